// SPDX-License-Identifier: GPL-2.0-or-later
// The parts that all charts share: axes, colours that follow the scheme, a width that follows the page, limits, and
// the line of text that says what is under the pointer.

import uPlot from "uplot";
import { h } from "./element.ts";
import { colour, marker, token } from "./look.ts";
import { linearTicks, logTicks, type Range } from "./ticks.ts";
import { isWhole, moved, type Part, readZoom, within, zoomHash } from "./zoom.ts";

/** One axis of a chart. */
export interface Axis {
  label: string;
  range: Range;
  log: boolean;
  /** Writes a value in at least this many digits, so that neighbours differ. */
  text(value: number, digits?: number): string;
  /** At most `budget` places to mark on a logarithmic axis, if round values are not the right places. */
  marks?(range: Range, budget: number): number[];
}

/** A horizontal or vertical line for a limit of the experiment. */
export interface Limit {
  axis: "x" | "y";
  value: number;
  text: string;
}

/** Everything that makes a chart. */
export interface ChartParts {
  /** The name in the address. Charts with the same name have the same axes and zoom together. */
  name: string;
  /** The name of the chart for readers who do not see it. */
  label: string;
  height_px: number;
  x: Axis;
  y: Axis;
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  limits: Limit[];
  /** Draws on top of the series, in device pixels. */
  paint?(chart: uPlot): void;
  /** The text about the place of the pointer, which is in the axes' own units, when this part is shown. */
  read(x: number, y: number, shown: Part): (Node | string)[];
  /** The text while the reader points at nothing. */
  hint: string;
}

/** Printable width of A4 and of Letter with the margins of style.css, at 96 px per inch. */
const PAPER_PX = 680;

/** A chart on the page. */
interface Live {
  parts: ChartParts;
  chart: uPlot;
  host: HTMLElement;
  /** The part of its axes that it shows. */
  shown: Part;
  /** The button that is there while the chart does not show everything. */
  all: HTMLElement;
  observer: ResizeObserver;
}

const live: Live[] = [];

/** How to zoom, for a chart's hint. */
export const ZOOM = "Draw a box to zoom in, double click to show everything.";
const KEYS = "Keys: plus and minus zoom, arrows move, 0 shows all.";

/** Draws a chart into `host`, which must be in the page already, since the chart takes its width from there. */
export function drawChart(host: HTMLElement, parts: ChartParts): void {
  const readout = h("p", { class: "readout" }, parts.hint);
  const plot = h("div", { class: "plot", role: "img", tabindex: 0, "aria-label": `${parts.label} ${KEYS}` });
  const all = h("button", { type: "button", class: "all", hidden: true }, "show all");
  host.append(plot, all, readout);
  const shown = cut(parts, readZoom(location.hash, parts.name) ?? { x: parts.x.range, y: parts.y.range });
  const chart = new uPlot(options(parts, shown, plot.clientWidth, readout), parts.data, plot);
  const observer = new ResizeObserver(() => resize(chart, plot.clientWidth));
  observer.observe(plot);
  all.addEventListener("click", () => zoom(parts.name, null));
  plot.addEventListener("keydown", (event) => pressed(event, parts.name));
  live.push({ parts, chart, host: plot, shown, all, observer });
  all.hidden = isAll(parts, shown);
}

/** The data inside the chart's axes. */
function cut({ x, y }: ChartParts, part: Part): Part {
  return { x: within(x.range, part.x, x.log), y: within(y.range, part.y, y.log) };
}

function isAll({ x, y }: ChartParts, shown: Part): boolean {
  return isWhole(x.range, shown.x, x.log) && isWhole(y.range, shown.y, y.log);
}

/** Shows a part of all charts of this name, or the whole charts, and keeps this part in the address. */
function zoom(name: string, part: Part | null): void {
  for (const one of live.filter(({ parts }) => parts.name === name)) {
    const { parts, chart, shown, all } = one;
    Object.assign(shown, cut(parts, part ?? { x: parts.x.range, y: parts.y.range }));
    if (isAll(parts, shown)) part = null;
    all.hidden = part === null;
    chart.batch(() => {
      chart.setScale("x", { min: shown.x.low, max: shown.x.high });
      chart.setScale("y", { min: shown.y.low, max: shown.y.high });
    });
  }
  // This replaces the address in the history. So "back" leads to the earlier view, and not through each zoom.
  history.replaceState(history.state, "", zoomHash(location.hash, name, part));
}

/** How a key changes the shown part; moves are in widths of this part. */
const STEPS: Record<string, { stretch: number; move: { x: number; y: number } }> = {
  "+": { stretch: 0.5, move: { x: 0, y: 0 } },
  "=": { stretch: 0.5, move: { x: 0, y: 0 } },
  "-": { stretch: 2, move: { x: 0, y: 0 } },
  ArrowLeft: { stretch: 1, move: { x: -0.2, y: 0 } },
  ArrowRight: { stretch: 1, move: { x: 0.2, y: 0 } },
  ArrowUp: { stretch: 1, move: { x: 0, y: 0.2 } },
  ArrowDown: { stretch: 1, move: { x: 0, y: -0.2 } },
};

function pressed(event: KeyboardEvent, name: string): void {
  const one = live.find(({ host }) => host === event.currentTarget);
  if (one === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const { parts, shown } = one;
  const { x, y } = parts;
  const step = STEPS[event.key];
  // Where the chart shows everything, arrows scroll the page: there is nothing to which the chart could move.
  if (event.key.startsWith("Arrow") && isAll(parts, shown)) return;
  if (event.key === "0" || event.key === "Escape") zoom(name, null);
  else if (step === undefined) return;
  else {
    const { stretch, move } = step;
    zoom(name, {
      x: moved(x.range, shown.x, x.log, { stretch, move: move.x }),
      y: moved(y.range, shown.y, y.log, { stretch, move: move.y }),
    });
  }
  event.preventDefault();
}

/** The part around which the reader drew a box. */
function selected(chart: uPlot, name: string): void {
  const { left, top, width, height } = chart.select;
  if (width <= 0 || height <= 0) return;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const at = (place: number, axis: "x" | "y") => chart.posToVal(place, axis);
  zoom(name, {
    x: { low: at(left, "x"), high: at(left + width, "x") },
    y: { low: at(top + height, "y"), high: at(top, "y") },
  });
}

/** Removes all charts and their listeners. */
export function removeCharts(): void {
  for (const { chart, observer } of live.splice(0)) {
    observer.disconnect();
    chart.destroy();
  }
}

/** Draws every chart again, in the colours of the present scheme. */
export function redrawCharts(): void {
  for (const { chart } of live) chart.redraw(false, true);
}

/** Gives every chart the width of a sheet of paper, or again that of the page. */
export function sizeChartsForPaper(printing: boolean): void {
  for (const { chart, host } of live) resize(chart, printing ? PAPER_PX : host.clientWidth);
}

function resize(chart: uPlot, width: number): void {
  if (width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
}

function options(parts: ChartParts, shown: Part, width: number, readout: HTMLElement): uPlot.Options {
  return {
    width,
    height: parts.height_px,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: {
      // A box; a flat box selects one axis whole.
      drag: { x: true, y: true, uni: 24, dist: 4, setScale: false },
      points: { show: false },
      // uPlot's own handler would fit the axes to the data.
      bind: { dblclick: () => () => (zoom(parts.name, null), null) },
    },
    scales: { x: scale(parts.x, () => shown.x), y: scale(parts.y, () => shown.y) },
    axes: [axis(parts.x, 72, { size: 26 }), axis(parts.y, 34, { size: 52 })],
    series: [{}, ...parts.series],
    hooks: {
      draw: [(chart) => paint(chart, parts, shown), (chart) => drawLimits(chart, parts.limits)],
      setCursor: [(chart) => point(chart, parts, shown, readout)],
      setSelect: [(chart) => selected(chart, parts.name)],
    },
  };
}

function scale({ log }: Axis, shown: () => Range): uPlot.Scale {
  const range = (): uPlot.Range.MinMax => [shown().low, shown().high];
  return { time: false, auto: false, range, ...(log ? { distr: 3, log: 10 } : {}) };
}

/** Keeps the chart's own painting inside its axes when these do not show everything. */
function paint(chart: uPlot, parts: ChartParts, shown: Part): void {
  const { ctx, bbox } = chart;
  ctx.save();
  if (!isAll(parts, shown)) {
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
  }
  parts.paint?.(chart);
  ctx.restore();
}

function axis(of: Axis, spacing_px: number, size: { size: number }): uPlot.Axis {
  const font = '12px system-ui, "DejaVu Sans", sans-serif';
  const budget = (chart: uPlot) =>
    Math.max(2, Math.floor((spacing_px > 50 ? chart.width - 80 : chart.height - 52) / spacing_px));
  return {
    ...size,
    ...(of.label !== "" && { label: of.label, labelSize: 18 }),
    labelGap: 0,
    gap: 4,
    font,
    labelFont: font,
    stroke: () => token("--muted"),
    grid: { stroke: () => token("--grid"), width: 1 },
    ticks: { stroke: () => token("--grid"), width: 1, size: 4 },
    space: spacing_px,
    values: (_chart, splits) => splits.map((value) => of.text(value, digits(splits))),
    ...(of.log
      ? {
          splits: (chart: uPlot, _axis: number, low: number, high: number) => marks(of, { low, high }, budget(chart)),
          filter: (_chart: uPlot, splits: number[]) => splits,
        }
      : {}),
  };
}

/** The marks of a logarithmic axis: its own values, round values if those are too few, even ones in a narrow part. */
function marks(of: Axis, range: Range, budget: number): number[] {
  const own = of.marks?.(range, budget) ?? [];
  const round = own.length > 1 ? own : logTicks(range, budget);
  return round.length > 1 ? round : linearTicks(range, budget);
}

/** The number of digits in which marks differ, and at least four. */
function digits(splits: readonly number[]): number {
  const [first, second] = splits;
  const step = first === undefined || second === undefined ? Infinity : Math.abs(second - first);
  return Math.max(4, Math.ceil(Math.log10(Math.max(...splits.map(Math.abs)) / step)) + 1);
}

function drawLimits(chart: uPlot, limits: readonly Limit[]): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = token("--limit");
  ctx.lineWidth = uPlot.pxRatio;
  ctx.setLineDash([5 * uPlot.pxRatio, 4 * uPlot.pxRatio]);
  ctx.font = `${11 * uPlot.pxRatio}px system-ui, "DejaVu Sans", sans-serif`;
  for (const { axis, value, text } of limits) {
    const place = Math.round(chart.valToPos(value, axis, true)) + 0.5;
    const inside =
      axis === "x"
        ? place >= bbox.left && place <= bbox.left + bbox.width
        : place >= bbox.top && place <= bbox.top + bbox.height;
    if (!inside) continue;
    ctx.beginPath();
    if (axis === "x") {
      ctx.moveTo(place, bbox.top);
      ctx.lineTo(place, bbox.top + bbox.height);
      ctx.textAlign = place > bbox.left + bbox.width / 2 ? "right" : "left";
      writeOver(ctx, text, place + (ctx.textAlign === "right" ? -5 : 5) * uPlot.pxRatio, bbox.top + 11 * uPlot.pxRatio);
    } else {
      ctx.moveTo(bbox.left, place);
      ctx.lineTo(bbox.left + bbox.width, place);
      ctx.textAlign = "left";
      writeOver(ctx, text, bbox.left + 6 * uPlot.pxRatio, place - 5 * uPlot.pxRatio);
    }
    ctx.stroke();
  }
  ctx.restore();
}

/** Text with a rim in the ground's colour, readable on top of whatever is drawn there. */
function writeOver(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  ctx.save();
  ctx.setLineDash([]);
  ctx.strokeStyle = token("--ground");
  ctx.lineWidth = 4 * uPlot.pxRatio;
  ctx.lineJoin = "round";
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
  ctx.restore();
}

/** A flavour's marker, ringed in the ground's colour so that it stands out of lines; device pixels. */
export function drawMarker({ ctx }: uPlot, look: number, x: number, y: number): void {
  const outline = new Path2D(marker(look));
  ctx.save();
  ctx.translate(x, y);
  ctx.scale(uPlot.pxRatio, uPlot.pxRatio);
  ctx.lineWidth = 2;
  ctx.strokeStyle = token("--ground");
  ctx.fillStyle = colour(look);
  ctx.stroke(outline);
  ctx.fill(outline);
  ctx.restore();
}

function point(chart: uPlot, parts: ChartParts, shown: Part, readout: HTMLElement): void {
  const { left, top } = chart.cursor;
  if (left === undefined || top === undefined || left < 0) {
    readout.replaceChildren(parts.hint);
    return;
  }
  readout.replaceChildren(...parts.read(chart.posToVal(left, "x"), chart.posToVal(top, "y"), shown));
}
