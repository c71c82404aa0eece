// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers as the page shows them. Durations have the same digits as in the command's own terminal output.

import type { Sum } from "./contract.ts";

/** Shown where a statistic is absent. Never a zero: nothing was measured. */
export const ABSENT = "—";

/** Three significant digits and the unit that keeps the number between 1 and 1000, as in `12.4 µs`. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return ABSENT;
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 999_500) return `${threeDigits(ns / 1e3)} µs`;
  if (ns < 999_500_000) return `${threeDigits(ns / 1e6)} ms`;
  return `${threeDigits(ns / 1e9)} s`;
}

function threeDigits(value: number): string {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** A round duration for an axis: `20 µs`, `1.5 s`; without needless digits, and with at most four. */
export function tick(ns: number, digits = 4): string {
  const [scale, unit] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${Number((ns / scale).toPrecision(Math.min(15, Math.max(4, digits))))} ${unit}`;
}

/** A count or an exact number of nanoseconds, digits in groups of three. */
export function integer(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A count with what is counted, as in `1 window` and `2 windows`. */
export function several(n: number, what: string): string {
  return `${integer(n)} ${what}${n === 1 ? "" : what.endsWith("ch") ? "es" : "s"}`;
}

/** A sum of stretches: `106 µs` for one, or `1.28 ms in 12 stretches, longest 106 µs`. */
export function sumText({ ns, stretches, longest_ns }: Sum): string {
  if (stretches === 0 && ns > 0) return `${duration(ns)} in stretches that were not counted`;
  if (stretches < 2) return duration(ns);
  return `${duration(ns)} in ${several(stretches, "stretch")}, longest ${duration(longest_ns)}`;
}

/** A share of a whole, 0 to 1, as in `12.3 %`. */
export function percentage(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** Exact nanoseconds, for the raw numbers beside a chart. */
export function exactNs(ns: number | null): string {
  return ns === null ? ABSENT : integer(ns);
}

/** A seed; one that JSON could not carry exactly says so. */
export function seed(n: number): string {
  return Number.isSafeInteger(n) ? String(n) : `≈ ${n.toPrecision(4)} (exact in the manifest)`;
}

/** `0.999` as `p99.9`; `0.5` as `median`. */
export function quantileName(quantile: string): string {
  return quantile === "0.5" ? "median" : `p${percent(quantile)}`;
}

/** The decimal text of a quantile times one hundred, moved by its digits: `0.99999` gives `99.999`. */
function percent(quantile: string): string {
  const digits = (quantile.split(".")[1] ?? "").padEnd(2, "0");
  const whole = digits.slice(0, 2).replace(/^0(?=\d)/, "");
  const fraction = digits.slice(2).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** A share of samples on the axis of nines, given one in how many lies above it: 1000 gives `99.9 %`. */
export function nines(oneIn: number): string {
  if (oneIn <= 1) return "0 %";
  const decimals = Math.max(0, Math.ceil(Math.log10(oneIn)) - 2);
  return `${(100 - 100 / oneIn).toFixed(decimals)} %`;
}

/** `2026-11-21T19:57:03Z` as `2026-11-21 19:57 UTC`; any other text as it is. */
export function date(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null) return text;
  return `${match[1]} ${match[2]} ${match[3] === "Z" ? "UTC" : match[3]}`;
}
