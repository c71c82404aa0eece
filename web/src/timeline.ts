// SPDX-License-Identifier: GPL-2.0-or-later
// Latency over time, one panel per flavour, all on the same axes. For every slice of time it shows the span from the
// shortest to the longest latency, exact and never interpolated. The longest latencies of the run are marked.

import { drawChart, type Limit, ZOOM } from "./chart.ts";
import type { Series, WorstSample } from "./contract.ts";
import { share } from "./drawing.ts";
import { h } from "./element.ts";
import { greatest } from "./extremes.ts";
import { duration, integer, tick } from "./format.ts";
import type { Answers } from "./histogram.ts";
import { colour, swatch } from "./look.ts";
import type { Pen, Rect } from "./pen.ts";
import type { About } from "./save.ts";
import { logRange, type Range } from "./ticks.ts";

/** How near, as a share of the axis, the pointer must be to a marked answer to read that instead of its slice. */
const NEAR = 0.02;

/** Draws into `host`; draws nothing if there was no answer. */
export function drawTimelines(host: HTMLElement, answers: readonly Answers[], _limits: Limit[], about: About): boolean {
  const slices = answers.flatMap(({ series }) => series.timeline);
  const y = logRange([
    ...slices.flatMap(({ min_ns, max_ns }) => [min_ns, max_ns]),
    ...answers.flatMap(({ limits }) => limits.map(({ value }) => value)),
  ]);
  if (y === null || slices.length === 0) return false;
  const end_ns = greatest(slices.map(({ at_ns, width_ns }) => at_ns + width_ns));
  answers.forEach((each, i) => {
    const unlimited = !each.limited && h("small", {}, " no limit");
    const panel = h("div", { class: "panel" }, h("p", { class: "panel-name" }, swatch(each.look), ` ${each.name}`, unlimited));
    host.append(panel);
    // The text that is for all panels is below the last one only.
    const last = i === answers.length - 1;
    const own = { ...about, title: `${about.title}, ${each.name}`, of: about.of.slice(i, i + 1) };
    drawPanel(panel, each, { low: 0, high: end_ns }, y, last, own);
  });
  return true;
}

function drawPanel(
  host: HTMLElement,
  { name, look, series, limits }: Answers,
  x: Range,
  y: Range,
  last: boolean,
  about: About,
): void {
  drawChart(host, {
    name: "timelines",
    label: `Latency over time of ${name}. The numbers are in the table below.`,
    height_px: last ? 178 : 160,
    x: {
      label: last ? "time since measuring began" : "",
      range: x,
      log: false,
      text: (ns, digits) => (ns === 0 ? "0" : tick(ns, digits)),
    },
    y: { label: "latency", range: y, log: true, text: tick },
    // The code below paints the data. The empty series only gives uPlot its scales.
    data: [
      [x.low, x.high],
      [null, null],
    ],
    series: [{ label: name, points: { show: false } }],
    limits,
    about,
    paint: (pen) => {
      paintSlices(pen, look, series);
      for (const { at_ns, latency_ns } of series.worst) {
        pen.mark(look, pen.place(at_ns, "x"), pen.place(latency_ns, "y"));
      }
    },
    read: (time_ns, latency_ns, shown) => readAt(time_ns, latency_ns, series, shown.x, shown.y),
    hint: last ? `Point at a mark to read its trigger, or anywhere else to read that slice of time. ${ZOOM}` : "",
  });
}

function paintSlices(pen: Pen, look: number, { timeline }: Series): void {
  // On whole pixels, so that neighbours meet without a seam.
  const place = (value: number, axis: "x" | "y") => Math.round(pen.place(value, axis));
  const [spans, tops]: [Rect[], Rect[]] = [[], []];
  const foot = pen.box[1] + pen.box[3];
  for (const { at_ns, width_ns, min_ns, max_ns } of timeline) {
    const left = place(at_ns, "x");
    const width = Math.max(pen.px, place(at_ns + width_ns, "x") - left);
    // Answers of 0 ns lie on the foot, and are seen there.
    const top = max_ns > 0 ? place(max_ns, "y") : foot - 1.5 * pen.px;
    spans.push(...inside(pen.box, [left, top, width, Math.max(pen.px, place(min_ns, "y") - top)]));
    tops.push(...inside(pen.box, [left, top, width, 1.5 * pen.px]));
  }
  pen.fill(colour(look), 0.35, spans);
  pen.fill(colour(look), 1, tops);
}

/** The part of a rectangle that is inside a box; nothing if there is none. */
function inside([left, top, width, height]: Rect, [x, y, wide, high]: Rect): Rect[] {
  const [from, to] = [Math.max(left, x), Math.min(left + width, x + wide)];
  const [upper, lower] = [Math.max(top, y), Math.min(top + height, y + high)];
  return from < to && upper < lower ? [[from, upper, to - from, lower - upper]] : [];
}

function readAt(time_ns: number, latency_ns: number, series: Series, x: Range, y: Range): string[] {
  const worst = nearest(series.worst, time_ns, latency_ns, x, y);
  if (worst !== undefined) {
    const { trigger, at_ns, latency_ns, path_insns } = worst;
    const path = path_insns === undefined ? "" : `, ${integer(path_insns)} instructions`;
    return [`trigger ${integer(trigger)}: ${duration(latency_ns)} at ${duration(at_ns)}${path}`];
  }
  const slice = series.timeline.find(({ at_ns, width_ns }) => at_ns <= time_ns && time_ns < at_ns + width_ns);
  if (slice === undefined) return [`${duration(time_ns)}: no answers`];
  const { at_ns, width_ns, min_ns, max_ns, count } = slice;
  return [
    `${duration(at_ns)} … ${duration(at_ns + width_ns)}: ${integer(count)} answers, ${duration(min_ns)} … ${duration(max_ns)}`,
  ];
}

/** The marked answer under the pointer. Distances are in shares of each axis; a panel is far wider than high. */
function nearest(
  worst: readonly WorstSample[],
  time_ns: number,
  latency_ns: number,
  x: Range,
  y: Range,
): WorstSample | undefined {
  const distance = (sample: WorstSample) =>
    Math.hypot(
      (sample.at_ns - time_ns) / (x.high - x.low),
      (share(sample.latency_ns, y, true) - share(latency_ns, y, true)) / 5,
    );
  const best = worst.reduce<WorstSample | undefined>(
    (a, b) => (a === undefined || distance(b) < distance(a) ? b : a),
    undefined,
  );
  return best !== undefined && distance(best) <= NEAR ? best : undefined;
}
