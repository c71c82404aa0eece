// SPDX-License-Identifier: GPL-2.0-or-later
// Every sweep of the screen on top of the others: how often each pin had an edge, and which level, at each column.
// Pure. Columns count, so no edge is lost however many share a column.

import { type Capture, triggers, type Trigger } from "./capture.ts";

/** Edges of sweeps that are drawn at most: so many take a twentieth of a second. */
const EDGES_MAX = 5_000_000;

/** From one time after the trigger to another. */
export type Window = readonly [from: number, to: number];

/** The sweeps that are drawn. */
export interface Sweeps {
  /** The edges that start them. */
  starts: Uint32Array;
  /** How many there would be. */
  of: number;
}

/**
 * The sweeps that show `from` to `to` around their trigger. If they have too many edges together, since each sweep
 * overlaps many others, only each second, third … is there, and each whose trigger is at one of the times `keep`: those
 * of the latest answers.
 */
export function sweeps(
  of: Capture,
  trigger: Trigger,
  [from, to]: Window,
  keep: ReadonlySet<number>,
  most = EDGES_MAX,
): Sweeps {
  const all = triggers(of, trigger);
  let [low, high, edges] = [0, 0, 0];
  for (const start of all) {
    const at = of.times[start] ?? 0;
    while (low < of.length && (of.times[low] ?? 0) < at + from) low++;
    if (high < low) high = low;
    while (high < of.length && (of.times[high] ?? 0) <= at + to) high++;
    edges += high - low;
  }
  const every = Math.ceil(edges / most);
  const starts = every <= 1 ? all : all.filter((start, n) => n % every === 0 || keep.has(of.times[start] ?? -1));
  return { starts, of: all.length };
}

/** Counts for each pin and each column of the screen, pin after pin. */
export interface Raster {
  columns: number;
  /** Edges. */
  edges: Uint32Array;
  /** Sweeps in which the pin was high, and in which it was low. */
  high: Uint32Array;
  low: Uint32Array;
}

/** The level of each pin while a sweep goes on: 0, 1, or -1 before anything is known. */
class Levels {
  readonly now: Int8Array;
  readonly since: Int32Array;

  constructor(
    readonly pins: number,
    readonly columns: number,
    readonly rising: readonly [Int32Array, Int32Array],
  ) {
    this.now = new Int8Array(pins);
    this.since = new Int32Array(pins);
  }

  begin(before: Int8Array, column: number): void {
    this.now.set(before);
    this.since.fill(column);
  }

  /** The pin had this level from its last edge to `column`. */
  had(pin: number, level: number, column: number): void {
    const counts = this.rising[level === 0 ? 0 : 1];
    const from = pin * (this.columns + 1) + (this.since[pin] ?? 0);
    counts[from] = (counts[from] ?? 0) + 1;
    const to = pin * (this.columns + 1) + column;
    counts[to] = (counts[to] ?? 0) - 1;
    this.since[pin] = column;
  }

  end(column: number): void {
    for (let pin = 0; pin < this.pins; pin++) {
      const level = this.now[pin] ?? -1;
      if (level >= 0) this.had(pin, level, column);
    }
  }

  /** From what begins and ends at each column to what is there. */
  sums(which: 0 | 1): Uint32Array {
    const sums = new Uint32Array(this.pins * this.columns);
    for (let pin = 0; pin < this.pins; pin++) {
      let sum = 0;
      for (let column = 0; column < this.columns; column++) {
        sum += this.rising[which][pin * (this.columns + 1) + column] ?? 0;
        sums[pin * this.columns + column] = sum;
      }
    }
    return sums;
  }
}

/** Draws sweeps, `from` to `to` around their triggers, in this many columns. */
export function rasterise(of: Capture, { starts }: Sweeps, [from, to]: Window, columns: number): Raster {
  const { times, codes, length, pins, stretches } = of;
  const scale = columns / (to - from);
  const edges = new Uint32Array(pins.length * columns);
  const room = pins.length * (columns + 1);
  const levels = new Levels(pins.length, columns, [new Int32Array(room), new Int32Array(room)]);
  const before = new Int8Array(pins.length).fill(-1);
  let [low, stretch] = [0, 0];
  for (let n = 0; n < starts.length; n++) {
    const at = times[starts[n]!]!;
    const [begin, end] = [at + from, at + to];
    for (; low < length && times[low]! < begin; low++) before[codes[low]! >> 1] = codes[low]! & 1;
    while (stretch + 1 < stretches.length && stretches[stretch]![1] <= at) stretch++;
    // Outside of its stretch a pin had edges that are not here.
    const [first, last] = stretches[stretch] ?? [begin, end];
    const column = (time: number) => Math.min(columns, Math.max(0, Math.floor((time - begin) * scale)));
    levels.begin(before, first > begin ? column(first) : 0);
    for (let i = low; i < length && times[i]! <= end; i++) {
      const [pin, level] = [codes[i]! >> 1, codes[i]! & 1];
      const x = Math.min(columns - 1, Math.floor((times[i]! - begin) * scale));
      edges[pin * columns + x]!++;
      if (times[i]! < first || times[i]! > last) continue;
      // Before an edge was the other level, whatever is known from earlier.
      levels.had(pin, 1 - level, x);
      levels.now[pin] = level;
    }
    levels.end(last < end ? column(last) : columns);
  }
  return { columns, edges, high: levels.sums(1), low: levels.sums(0) };
}

/** What was measured of a pin between two times after the trigger. */
export interface Measured {
  /** Its edges there. */
  edges: number;
  /** When its first edge there came, of each sweep that has one. */
  min_ns: number | null;
  mean_ns: number | null;
  max_ns: number | null;
  /** Sweeps without any edge of it there. */
  without: number;
}

/**
 * Measures each pin's edges from `from` to `to` after the trigger, both included; exactly, whatever the screen shows.
 * Times are those of the first edge there: the later ones answer other triggers.
 */
export function measure(of: Capture, { starts }: Sweeps, [from, to]: Window): Measured[] {
  const { times, codes, length, pins } = of;
  const [edges, sum] = [new Float64Array(pins.length), new Float64Array(pins.length)];
  const sweeps = new Float64Array(pins.length);
  const min = new Float64Array(pins.length).fill(Infinity);
  const max = new Float64Array(pins.length).fill(-Infinity);
  const seen = new Int32Array(pins.length).fill(-1);
  let low = 0;
  for (let n = 0; n < starts.length; n++) {
    const at = times[starts[n]!]!;
    while (low < length && times[low]! < at + from) low++;
    for (let i = low; i < length && times[i]! <= at + to; i++) {
      const [pin, since] = [codes[i]! >> 1, times[i]! - at];
      edges[pin]!++;
      if (seen[pin] === n) continue;
      seen[pin] = n;
      sweeps[pin]!++;
      sum[pin]! += since;
      if (since < min[pin]!) min[pin] = since;
      if (since > max[pin]!) max[pin] = since;
    }
  }
  return pins.map((_, pin) => {
    const isSome = sweeps[pin]! > 0;
    return {
      edges: edges[pin]!,
      min_ns: isSome ? min[pin]! : null,
      mean_ns: isSome ? sum[pin]! / sweeps[pin]! : null,
      max_ns: isSome ? max[pin]! : null,
      without: starts.length - sweeps[pin]!,
    };
  });
}
