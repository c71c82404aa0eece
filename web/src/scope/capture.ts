// SPDX-License-Identifier: GPL-2.0-or-later
// What an oscilloscope has seen: edges of pins in the order of time. Pure. The report has those of a run
// (crates/view/src/report/scope.rs), a live generator tells of its own bit by bit.

import type { Scope } from "../contract.ts";

/** Edges of several pins. */
export interface Capture {
  /** Names; the first is the trigger's line. */
  readonly pins: readonly string[];
  /** How many of `times` and `codes` are edges; behind them is room for more. */
  length: number;
  /** When each edge was, in ns, rising. */
  times: Float64Array;
  /** Twice the pin, plus one for high. */
  codes: Uint8Array;
  /** Begin and end of each stretch of time of which there are edges. */
  stretches: (readonly [number, number])[];
}

/** An empty one. */
export function empty(pins: readonly string[]): Capture {
  return { pins, length: 0, times: new Float64Array(1024), codes: new Uint8Array(1024), stretches: [] };
}

/** The same edges, which stay as they are. */
export function copyOf(of: Capture): Capture {
  return { ...of, times: of.times.slice(), codes: of.codes.slice(), stretches: [...of.stretches] };
}

/** The edges of a run. */
export function capture({ pins, edges, stretches }: Scope): Capture {
  const of = empty(pins);
  append(of, edges);
  of.stretches = stretches.map(([begin = 0, end = 0]) => [begin, end] as const);
  return of;
}

function grow(of: Capture, least: number): void {
  if (least <= of.times.length) return;
  const room = Math.max(least, 2 * of.times.length);
  const [times, codes] = [new Float64Array(room), new Uint8Array(room)];
  times.set(of.times.subarray(0, of.length));
  codes.set(of.codes.subarray(0, of.length));
  Object.assign(of, { times, codes });
}

/** Adds edges as docs/report.schema.json says that they are written. They are later than those that are there. */
export function append(of: Capture, text: string): void {
  const bytes = atob(text);
  // An edge takes two bytes at least.
  grow(of, of.length + (bytes.length >> 1));
  let at = 0;
  for (let i = 0; i < bytes.length; ) {
    let scale = 1;
    let byte = bytes.charCodeAt(i++);
    for (; byte >= 0x80; byte = bytes.charCodeAt(i++)) {
      at += (byte & 0x7f) * scale;
      scale *= 128;
    }
    at += byte * scale;
    const code = bytes.charCodeAt(i++);
    // What was cut off, or is of no pin, is no edge.
    if (Number.isNaN(code) || code >> 1 >= of.pins.length) continue;
    of.times[of.length] = at;
    of.codes[of.length++] = code;
  }
}

/** Adds edges that may begin before the last one that is there, and that may be there already. */
export function merge(of: Capture, text: string): void {
  const more = empty(of.pins);
  append(more, text);
  // What is there and is later than the first new one goes behind it, in order.
  let from = of.length;
  while (from > 0 && (of.times[from - 1] ?? 0) >= (more.times[0] ?? Infinity)) from--;
  const [times, codes] = [of.times.slice(from, of.length), of.codes.slice(from, of.length)];
  grow(of, of.length + more.length);
  of.length = from;
  const push = (at: number, code: number) => {
    const isThere = of.length > 0 && of.times[of.length - 1] === at && of.codes[of.length - 1] === code;
    if (isThere) return;
    of.times[of.length] = at;
    of.codes[of.length++] = code;
  };
  for (let [old, fresh] = [0, 0]; old < times.length || fresh < more.length; ) {
    const [a, b] = [times[old] ?? Infinity, fresh < more.length ? (more.times[fresh] ?? 0) : Infinity];
    const isOld = a < b || (a === b && (codes[old] ?? 0) <= (more.codes[fresh] ?? 0));
    if (isOld) push(a, codes[old++] ?? 0);
    else push(b, more.codes[fresh++] ?? 0);
  }
}

/** Forgets the first edges, so that at most `most` are left. */
export function forget(of: Capture, most: number): void {
  const gone = of.length - most;
  if (gone <= 0) return;
  of.times.copyWithin(0, gone, of.length);
  of.codes.copyWithin(0, gone, of.length);
  of.length = most;
}

export const EDGES = ["rise", "fall", "either"] as const;
export type Edge = (typeof EDGES)[number];

/** What starts a sweep of the screen. */
export interface Trigger {
  pin: number;
  edge: Edge;
}

/** The places of the edges that trigger, in `of`. */
export function triggers(of: Capture, { pin, edge }: Trigger): Uint32Array {
  const wanted = edge === "either" ? [2 * pin, 2 * pin + 1] : [2 * pin + (edge === "rise" ? 1 : 0)];
  const [first, second = first] = wanted;
  const found = new Uint32Array(of.length);
  let count = 0;
  for (let i = 0; i < of.length; i++) {
    const code = of.codes[i];
    if (code === first || code === second) found[count++] = i;
  }
  return found.subarray(0, count);
}
