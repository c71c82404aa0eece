// SPDX-License-Identifier: GPL-2.0-or-later
// Which part of a chart the reader looks at. It is in the address beside the view, so that a link shows what its sender
// saw. Pure.

import type { Range } from "./ticks.ts";

/** A part of a chart, in its axes' own units. */
export interface Part {
  x: Range;
  y: Range;
}

/** Digits that a place needs to be found again: a chart is not a thousand times as wide as what can be seen. */
const DIGITS = 5;
/** No axis is stretched further: its marks could no longer be told apart. */
const DEEPEST = 1e-5;

/** The page that an address of `onset serve` names, with its `?`, and the words behind it. A report has no pages. */
function split(hash: string): [page: string, words: URLSearchParams] {
  const [, page = "", , words = ""] = /^#?((?:live|runs|history)(\?|$))?(.*)$/.exec(hash) ?? [];
  return [page === "" ? "" : page.replace(/\??$/, "?"), new URLSearchParams(words)];
}

/** A word of an address; null if it has none. */
export function readWord(hash: string, name: string): string | null {
  return split(hash)[1].get(name);
}

/** The hash with this word, or without one. */
export function wordHash(hash: string, name: string, value: string): string {
  const [page, words] = split(hash);
  if (value === "") words.delete(name);
  else words.set(name, value);
  return `#${page}${words}`;
}

/** The part of a chart that the hash of an address asks for; null if it asks for none, or for nonsense. */
export function readZoom(hash: string, chart: string): Part | null {
  const asked = split(hash)[1].getAll("zoom").map((text) => text.split(" "));
  const numbers = asked.find(([name]) => name === chart)?.slice(1).map(Number) ?? [];
  const [left = NaN, right = NaN, bottom = NaN, top = NaN] = numbers;
  return numbers.length === 4 && left < right && bottom < top
    ? { x: { low: left, high: right }, y: { low: bottom, high: top } }
    : null;
}

/** The hash with this part of a chart, or without one. */
export function zoomHash(hash: string, chart: string, part: Part | null): string {
  const [page, all] = split(hash);
  const others = all.getAll("zoom").filter((text) => text.split(" ")[0] !== chart);
  all.delete("zoom");
  for (const text of others) all.append("zoom", text);
  if (part !== null) {
    const places = [part.x.low, part.x.high, part.y.low, part.y.high];
    all.append("zoom", [chart, ...places.map((place) => Number(place.toPrecision(DIGITS)))].join(" "));
  }
  return `#${page}${all}`;
}

/**
 * The words of `from` with these names, put behind the view of `hash`; and the parts of drawings, which are the same in
 * every view. Their names have a dot.
 */
export function keepWords(hash: string, from: string, names: readonly string[]): string {
  const [page, all] = split(hash);
  for (const [name, text] of split(from)[1]) {
    const isOfDrawing = name === "zoom" && text.split(" ")[0]?.includes(".");
    if (names.includes(name) || isOfDrawing) all.append(name, text);
  }
  return `#${page}${all}`;
}

/** The axis' own measure: equal steps of it are equally wide. */
const scaled = (value: number, log: boolean) => (log ? Math.log(value) : value);
const unscaled = (value: number, log: boolean) => (log ? Math.exp(value) : value);

/** The part of a range that is within the whole of its axis; the whole if that is nothing or too little. */
export function within(whole: Range, { low, high }: Range, log: boolean): Range {
  const cut = { low: Math.max(whole.low, low), high: Math.min(whole.high, high) };
  const width = ({ low, high }: Range) => scaled(high, log) - scaled(low, log);
  return cut.low < cut.high && width(cut) >= DEEPEST * width(whole) ? cut : whole;
}

/**
 * The range stretched about its middle, by less than 1 to see less and by more to see more, and moved by so many of its
 * widths, inside the whole.
 */
export function moved(whole: Range, range: Range, log: boolean, by: { stretch: number; move: number }): Range {
  const [low, high] = [scaled(range.low, log), scaled(range.high, log)];
  const [least, most] = [scaled(whole.low, log), scaled(whole.high, log)];
  const width = Math.min((high - low) * by.stretch, most - least);
  if (width < DEEPEST * (most - least)) return range;
  const begin = (low + high - width) / 2 + by.move * width;
  const from = Math.min(Math.max(begin, least), most - width);
  return { low: unscaled(from, log), high: unscaled(from + width, log) };
}

/** Whether this is all of an axis, but for the digits that an address keeps. */
export function isWhole(whole: Range, range: Range, log: boolean): boolean {
  const near = (a: number, b: number) =>
    Math.abs(scaled(a, log) - scaled(b, log)) <= 1e-4 * (scaled(whole.high, log) - scaled(whole.low, log));
  return near(whole.low, range.low) && near(whole.high, range.high);
}
