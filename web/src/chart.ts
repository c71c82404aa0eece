// SPDX-License-Identifier: GPL-2.0-or-later
// What all charts share: axes, colours that follow the scheme, width that follows the page, limits, and
// the line of text that says what is under the pointer.

import uPlot from "uplot";
import { h } from "./element.ts";
import { colour, marker, token } from "./look.ts";
import { logTicks, type Range } from "./ticks.ts";

/** One axis of a chart. */
export interface Axis {
  label: string;
  range: Range;
  log: boolean;
  text(value: number): string;
  /** At most `budget` places to mark on a logarithmic axis, where round values are not the right ones. */
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
  /** Names the chart for those who do not see it. */
  label: string;
  height_px: number;
  x: Axis;
  y: Axis;
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  limits: Limit[];
  /** Draws on top of the series, in device pixels. */
  paint?(chart: uPlot): void;
  /** What to say about the pointer's place, given in the axes' own units. */
  read(x: number, y: number): (Node | string)[];
  /** What stands there while nothing is pointed at. */
  hint: string;
}

/** Printable width of A4 and of Letter with the margins of style.css, at 96 px per inch. */
const PAPER_PX = 680;

const live: { chart: uPlot; host: HTMLElement; observer: ResizeObserver }[] = [];

/** Draws a chart into `host`, which must be in the page already: it takes its width from there. */
export function drawChart(host: HTMLElement, parts: ChartParts): void {
  const readout = h("p", { class: "readout" }, parts.hint);
  const plot = h("div", { class: "plot", role: "img", "aria-label": parts.label });
  host.append(plot, readout);
  const chart = new uPlot(options(parts, plot.clientWidth, readout), parts.data, plot);
  const observer = new ResizeObserver(() => resize(chart, plot.clientWidth));
  observer.observe(plot);
  live.push({ chart, host: plot, observer });
}

/** Takes away every chart and what it listens to. */
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

function options(parts: ChartParts, width: number, readout: HTMLElement): uPlot.Options {
  return {
    width,
    height: parts.height_px,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: { x: scale(parts.x), y: scale(parts.y) },
    axes: [axis(parts.x, 72, { size: 26 }), axis(parts.y, 34, { size: 52 })],
    series: [{}, ...parts.series],
    hooks: {
      draw: [(chart) => parts.paint?.(chart), (chart) => drawLimits(chart, parts.limits)],
      setCursor: [(chart) => point(chart, parts, readout)],
    },
  };
}

function scale({ range, log }: Axis): uPlot.Scale {
  const fixed: uPlot.Range.MinMax = [range.low, range.high];
  return { time: false, auto: false, range: () => fixed, ...(log ? { distr: 3, log: 10 } : {}) };
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
    values: (_chart, splits) => splits.map(of.text),
    ...(of.log
      ? {
          splits: (chart: uPlot) => (of.marks ?? logTicks)(of.range, budget(chart)),
          filter: (_chart: uPlot, splits: number[]) => splits,
        }
      : {}),
  };
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

function point(chart: uPlot, parts: ChartParts, readout: HTMLElement): void {
  const { left, top } = chart.cursor;
  if (left === undefined || top === undefined || left < 0) {
    readout.replaceChildren(parts.hint);
    return;
  }
  readout.replaceChildren(...parts.read(chart.posToVal(left, "x"), chart.posToVal(top, "y")));
}
