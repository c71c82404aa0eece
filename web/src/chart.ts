// SPDX-License-Identifier: GPL-2.0-or-later
// The parts that all charts share: axes, colours that follow the scheme, a width that follows the page, limits, and
// the line of text that says what is under the pointer.

import uPlot from "uplot";
import { h } from "./element.ts";
import { token } from "./look.ts";
import { canvasPen, FONT, type Limit, paintLimits, type Pen } from "./pen.ts";
import { type About, basis, saveButtons } from "./save.ts";
import { digitsOf, type Marked, marksOf, type Range } from "./ticks.ts";
import { vectors } from "./vector.ts";
import type { Part } from "./zoom.ts";
import { allButton, firstPart, forget, goBack, goTo, isAll, KEYS, zoomed } from "./zooming.ts";

export type { Limit } from "./pen.ts";
export { ZOOM } from "./zooming.ts";

/** One axis of a chart. */
export interface Axis extends Marked {
  label: string;
  range: Range;
  /** Writes a value in at least this many digits, so that neighbours differ. */
  text(value: number, digits?: number): string;
  /** The room for its texts beside the chart, if that is another than usual. */
  size_px?: number;
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
  /** Whether lines keep their height until the next value. */
  stepped?: boolean;
  limits: Limit[];
  /** What a picture of it says, and on what it is based. */
  about: About;
  /** Draws on top of the series. */
  paint?(pen: Pen): void;
  /** The reader clicked at this place, with Shift or without. */
  click?(x: number, y: number, isShifted: boolean): void;
  /** The text about the place of the pointer, which is in the axes' own units, when this part is shown. */
  read(x: number, y: number, shown: Part): (Node | string)[];
  /** The text while the reader points at nothing. */
  hint: string;
}

/** How long after a click a second one makes it a double click. */
const DOUBLE_MS = 250;
/** Printable width of A4 and of Letter with the margins of style.css, at 96 px per inch. */
const PAPER_PX = 680;

/** A chart on the page. */
interface Live {
  parts: ChartParts;
  chart: uPlot;
  host: HTMLElement;
  observer: ResizeObserver;
  /** Has it zoom no more. */
  still(): void;
}

/** A chart, for whoever changes what it paints. */
export interface Handle {
  /** Paints again. */
  redraw(): void;
  /** Takes it off the page. */
  remove(): void;
}

const live: Live[] = [];

/** Draws a chart into `host`, which must be in the page already, since the chart takes its width from there. */
export function drawChart(host: HTMLElement, parts: ChartParts): Handle {
  const readout = h("p", { class: "readout" }, parts.hint);
  const plot = h("div", { class: "plot", role: "img", tabindex: 0, "aria-label": `${parts.label} ${KEYS}` });
  const all = allButton();
  const save = saveButtons(() => {
    const width = plot.clientWidth;
    return { about: parts.about, width, height: parts.height_px, body: vectors(parts, shown, width) };
  });
  host.append(plot, all, h("div", { class: "under" }, readout, save), basis(parts.about));
  const shown = firstPart(parts.name, parts);
  const chart = new uPlot(options(parts, shown, plot.clientWidth, readout), parts.data, plot);
  const observer = new ResizeObserver(() => resize(chart, plot.clientWidth));
  observer.observe(plot);
  let waiting = 0;
  // The first click of a double click is none.
  chart.over.addEventListener("dblclick", () => clearTimeout(waiting));
  chart.over.addEventListener("click", ({ offsetX, offsetY, shiftKey, detail }) => {
    const place = [chart.posToVal(offsetX, "x"), chart.posToVal(offsetY, "y")] as const;
    if (detail <= 1) waiting = window.setTimeout(() => parts.click?.(...place, shiftKey), DOUBLE_MS);
  });
  const show = () =>
    chart.batch(() => {
      chart.setScale("x", { min: shown.x.low, max: shown.x.high });
      chart.setScale("y", { min: shown.y.low, max: shown.y.high });
    });
  const still = zoomed({ name: parts.name, axes: parts, host: plot, shown, all, show });
  const one = { parts, chart, host: plot, observer, still };
  live.push(one);
  const remove = () => {
    live.splice(live.indexOf(one), 1);
    end(one);
    host.replaceChildren();
  };
  return { redraw: () => chart.redraw(false, false), remove };
}

/** The part around which the reader drew a box. */
function selected(chart: uPlot, name: string): void {
  const { left, top, width, height } = chart.select;
  if (width <= 0 || height <= 0) return;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const at = (place: number, axis: "x" | "y") => chart.posToVal(place, axis);
  goTo(name, {
    x: { low: at(left, "x"), high: at(left + width, "x") },
    y: { low: at(top + height, "y"), high: at(top, "y") },
  });
}

/** Removes all charts and their listeners. */
export function removeCharts(): void {
  for (const one of live.splice(0)) {
    end(one);
    forget(one.parts.name);
  }
}

function end({ chart, observer, still }: Live): void {
  still();
  observer.disconnect();
  chart.destroy();
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
      bind: { dblclick: () => () => (goBack(parts.name), null) },
    },
    scales: { x: scale(parts.x, () => shown.x), y: scale(parts.y, () => shown.y) },
    axes: [axis(parts.x, 72, { size: 26 }), axis(parts.y, 34, { size: parts.y.size_px ?? 52 })],
    series: [{}, ...parts.series],
    hooks: {
      draw: [(chart) => paint(chart, parts, shown), (chart) => paintLimits(canvasPen(chart), parts.limits)],
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
  parts.paint?.(canvasPen(chart));
  ctx.restore();
}

function axis(of: Axis, spacing_px: number, size: { size: number }): uPlot.Axis {
  const font = `12px ${FONT}`;
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
    values: (_chart, splits) => splits.map((value) => of.text(value, digitsOf(splits))),
    ...(of.log || of.marks !== undefined
      ? {
          splits: (chart: uPlot, _axis: number, low: number, high: number) => marksOf(of, { low, high }, budget(chart)),
          filter: (_chart: uPlot, splits: number[]) => splits,
        }
      : {}),
  };
}

function point(chart: uPlot, parts: ChartParts, shown: Part, readout: HTMLElement): void {
  const { left, top } = chart.cursor;
  if (left === undefined || top === undefined || left < 0) {
    readout.replaceChildren(parts.hint);
    return;
  }
  readout.replaceChildren(...parts.read(chart.posToVal(left, "x"), chart.posToVal(top, "y"), shown));
}
