// SPDX-License-Identifier: GPL-2.0-or-later
// Small drawings of a responder: its histogram and its longest latency over time, on axes that all responders share.

import { svg } from "../element.ts";
import { greatest, smallest } from "../extremes.ts";
import { duration } from "../format.ts";
import { token } from "../look.ts";
import { clockText, type Picture, standalone } from "../save.ts";
import type { Channel, Told } from "./told.ts";

/** A range of latencies in ns, of whole decades. */
export interface Axis {
  readonly low: number;
  readonly high: number;
}

export const WIDTH = 260;
export const HEIGHT = 34;

/** A limit as a line. */
export interface Line {
  readonly ns: number;
  readonly text: string;
  readonly isPassed: boolean;
}

/** The axis that holds the latencies of all, and these. */
export function axis(channels: readonly Channel[], more: readonly number[] = []): Axis {
  const measured = channels.flatMap(({ summary }) => [summary.min_ns, summary.max_ns]).filter((n) => n !== null);
  const ends = [...measured, ...more];
  const low = Math.floor(Math.log10(Math.max(1, smallest(ends, 1e6))));
  const high = Math.ceil(Math.log10(greatest(ends, 10)));
  return { low: 10 ** low, high: 10 ** Math.max(high, low + 1) };
}

/** Where a latency lies on the axis, 0 … 1. */
export function share(ns: number, { low, high }: Axis): number {
  return Math.min(1, Math.max(0, Math.log(Math.max(ns, 1) / low) / Math.log(high / low)));
}

/** Heights are logarithmic, so that a single answer is seen beside a million. */
export function histogram({ summary, columns }: Channel, of: Axis, lines: readonly Line[] = []): SVGSVGElement {
  const most = greatest(columns.map((column) => column.count), 1);
  const bars = columns
    .filter((column) => column.count > 0)
    .map(({ low_ns, high_ns, count }) => {
      const [from, to] = [share(low_ns, of) * WIDTH, share(high_ns, of) * WIDTH];
      const height = (HEIGHT * Math.log(count + 1)) / Math.log(most + 1);
      const box = { x: from.toFixed(1), y: (HEIGHT - height).toFixed(1), height: height.toFixed(1) };
      return svg("rect", { ...box, width: Math.max(1, to - from).toFixed(1) });
    });
  const limits = lines.map((line) => {
    const x = (share(line.ns, of) * WIDTH).toFixed(1);
    return limit(line, { x1: x, x2: x, y1: 0, y2: HEIGHT });
  });
  return drawing(`Histogram of ${summary.responder}`, "bars", ...bars, ...limits);
}

function limit({ text, isPassed }: Line, ends: Record<string, string | number>): SVGLineElement {
  return svg("line", { class: isPassed ? "limit passed" : "limit", ...ends }, svg("title", {}, text));
}

/** The longest latency of each stretch of time; a stretch without an answer is a gap. */
export function course(
  { summary, slices }: Channel,
  of: Axis,
  until: number,
  lines: readonly Line[] = [],
): SVGSVGElement {
  let path = "";
  let end = Number.NaN;
  for (const { at_ns, width_ns, max_ns } of slices) {
    const x = ((at_ns + width_ns / 2) / Math.max(1, until)) * WIDTH;
    const y = HEIGHT - share(max_ns, of) * HEIGHT;
    path += `${at_ns === end ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    // A stretch alone is a dot.
    if (at_ns !== end) path += "h0.1";
    end = at_ns + width_ns;
  }
  const limits = lines.map((line) => {
    const y = (HEIGHT - share(line.ns, of) * HEIGHT).toFixed(1);
    return limit(line, { x1: 0, x2: WIDTH, y1: y, y2: y });
  });
  return drawing(`Longest latency of ${summary.responder} over time`, "course", svg("path", { d: path }), ...limits);
}

function drawing(label: string, kind: string, ...shapes: SVGElement[]): SVGSVGElement {
  const size = { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  return svg("svg", { class: kind, role: "img", "aria-label": label, ...size }, ...shapes);
}

/** Room for names in a saved picture, and what is between its rows and columns. */
const NAMES = 120;
const GAP = 24;

/** What the table's drawings were drawn of: while they are paused, the server tells newer numbers. */
export interface Drawn {
  readonly told: Told;
  readonly axis: Axis;
}

/** All drawings of the table, a row for each responder, to be saved. */
export function picture(table: HTMLTableElement, drawn: Drawn | null): Picture {
  const { told, axis: shared } = drawn ?? { told: null, axis: axis([]) };
  const channels = told?.channels ?? [];
  const body = svg("g", {});
  const write = (text: string, x: number, y: number) =>
    body.append(svg("text", { x, y, "font-size": 12, fill: token("--text") }, text));
  const range = `${duration(shared.low)} … ${duration(shared.high)}, logarithmic`;
  write(`how often, ${range}`, NAMES, 14);
  write(`longest over time, ${range}`, NAMES + WIDTH + GAP, 14);
  let y = GAP;
  for (const row of table.tBodies[0]?.rows ?? []) {
    write(row.cells[0]?.textContent ?? "", 0, y + HEIGHT / 2 + 4);
    [...row.querySelectorAll<SVGSVGElement>("svg")].forEach((one, column) => {
      const copy = standalone(one);
      copy.setAttribute("x", String(NAMES + column * (WIDTH + GAP)));
      copy.setAttribute("y", String(y));
      body.append(copy);
    });
    y += HEIGHT + 10;
  }
  const of = channels.map(({ summary: { responder, count, losses } }) => {
    return { name: responder, count, lost: Object.values(losses).reduce((sum, n) => sum + n, 0) };
  });
  const about = { title: `Live: ${told?.generator ?? ""}`, clock: clockText(told?.clock ?? ""), of };
  return { about, width: NAMES + 2 * WIDTH + GAP, height: y, body };
}
