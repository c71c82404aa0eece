// SPDX-License-Identifier: GPL-2.0-or-later
// Paints what the sweeps left on the screen: the more often, the brighter, by the logarithm, so that what came once is
// seen beside what came a million times.

import { colour } from "../look.ts";
import type { Pen, Rect } from "../pen.ts";
import type { Raster } from "./sweep.ts";

/** Grades of brightness. The dimmest is a single edge, which must be visible. */
const GRADES = 12;
const DIMMEST = 0.25;

/** Where a pin's levels lie in its lane, which is one unit high. */
const HIGH = 0.78;
const LOW = 0.22;

/** The grade of a count. */
export function grade(count: number, most: number): number {
  if (count === 0) return 0;
  return most <= 1 ? GRADES : 1 + Math.round(((GRADES - 1) * Math.log(count)) / Math.log(most));
}

const opacity = (of: number) => DIMMEST + ((1 - DIMMEST) * of) / GRADES;

/** Rectangles by their grade. */
type Graded = Rect[][];

/** Adds a row of counts, neighbours of one grade as one rectangle. */
function row(into: Graded, counts: Uint32Array, most: number, rect: (from: number, to: number) => Rect): void {
  let [from, present] = [0, 0];
  for (let x = 0; x <= counts.length; x++) {
    const now = x < counts.length ? grade(counts[x] ?? 0, most) : 0;
    if (now === present) continue;
    if (present > 0) into[present]?.push(rect(from, x));
    [from, present] = [x, now];
  }
}

/** The most of any. */
function most(counts: Uint32Array): number {
  let most = 0;
  for (const count of counts) if (count > most) most = count;
  return most;
}

/** Paints each pin into its lane: the first at the top, which is at `pins` on the chart's axis. */
export function paint(pen: Pen, raster: Raster, pins: number): void {
  const { columns, edges, high, low } = raster;
  const [left, , width] = pen.box;
  const step = width / columns;
  const [mostEdges, mostLevels] = [most(edges), Math.max(most(high), most(low))];
  const thick = 1.5 * pen.px;
  for (let pin = 0; pin < pins; pin++) {
    const at = (share: number) => pen.place(pins - 1 - pin + share, "y");
    const [top, bottom] = [at(HIGH), at(LOW)];
    const own = (of: Uint32Array) => of.subarray(pin * columns, (pin + 1) * columns);
    const graded: Graded = Array.from({ length: GRADES + 1 }, () => []);
    for (const [counts, y] of [[high, top], [low, bottom]] as const) {
      const above = y - thick / 2;
      row(graded, own(counts), mostLevels, (from, to) => [left + from * step, above, (to - from) * step, thick]);
    }
    row(graded, own(edges), mostEdges, (from, to) => [left + from * step, top, (to - from) * step, bottom - top]);
    graded.forEach((rects, n) => pen.fill(colour(pin === 0 ? 5 : (pin - 1) % 5), opacity(n), rects));
  }
}
