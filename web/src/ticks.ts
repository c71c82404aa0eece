// SPDX-License-Identifier: GPL-2.0-or-later
// The places of the marks of a logarithmic axis, and the range of the axis.

/** Both ends of an axis. */
export interface Range {
  low: number;
  high: number;
}

/** Steps within a decade, from coarse to fine. */
const STEPS = [
  [1],
  [1, 3],
  [1, 2, 5],
  [1, 1.5, 2, 3, 4, 5, 7],
  [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9],
];

/** At most `budget` round values inside the range, as finely as that allows. */
export function logTicks({ low, high }: Range, budget: number): number[] {
  let best: number[] = [];
  for (const steps of STEPS) {
    const ticks = ticksOf(steps, low, high);
    if (ticks.length > budget) break;
    best = ticks;
  }
  if (best.length > 0) return best;
  // If there are more decades than marks, every second, third … decade has a mark.
  const decades = ticksOf([1], low, high);
  const stride = Math.ceil(decades.length / Math.max(1, budget));
  return decades.filter((_, i) => i % stride === 0);
}

function ticksOf(steps: readonly number[], low: number, high: number): number[] {
  const ticks: number[] = [];
  for (let exponent = Math.floor(Math.log10(low)); 10 ** exponent <= high; exponent++) {
    for (const step of steps) {
      const value = Number((step * 10 ** exponent).toPrecision(3));
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  return ticks;
}

/** Round values inside a range, evenly, at most `budget` and one. */
export function linearTicks({ low, high }: Range, budget: number): number[] {
  const least = (high - low) / budget;
  const decade = 10 ** Math.floor(Math.log10(least));
  const step = decade * ([1, 2, 5].find((step) => step * decade >= least) ?? 10);
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The range of positive `values`, widened so that no mark sits on an edge; null where there are none. */
export function logRange(values: Iterable<number>, margin = 1.25): Range | null {
  let low = Infinity;
  let high = 0;
  for (const value of values) {
    if (value > 0 && Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return high === 0 ? null : { low: low / margin, high: high * margin };
}

/** Place of `value` on the axis: 0 at the low end, 1 at the high end. */
export function logPlace(value: number, { low, high }: Range): number {
  return Math.log(value / low) / Math.log(high / low);
}

/** An axis of a chart, as far as its marks go. */
export interface Marked {
  log: boolean;
  /** At most `budget` places to mark, if round values are not the right places. */
  marks?(range: Range, budget: number): number[];
}

/** The marks of an axis: its own values, round values if those are too few, even ones in a narrow part. */
export function marksOf(of: Marked, range: Range, budget: number): number[] {
  const own = of.marks?.(range, budget) ?? [];
  if (!of.log) return of.marks === undefined ? linearTicks(range, budget) : own;
  const round = own.length > 1 ? own : logTicks(range, budget);
  return round.length > 1 ? round : linearTicks(range, budget);
}

/** The number of digits in which marks differ, and at least four. */
export function digitsOf(marks: readonly number[]): number {
  const [first, second] = marks;
  const step = first === undefined || second === undefined ? Infinity : Math.abs(second - first);
  return Math.max(4, Math.ceil(Math.log10(Math.max(...marks.map(Math.abs)) / step)) + 1);
}
