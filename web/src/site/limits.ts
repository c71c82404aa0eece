// SPDX-License-Identifier: GPL-2.0-or-later
// Limits on what a generator measures, and what has passed them. They are written as in an experiment:
// `task.max < 100us`.

import { h } from "../element.ts";
import { smallest } from "../extremes.ts";
import { duration, integer } from "../format.ts";
import type { Channel, Told } from "./told.ts";

/** A limit of one responder, or of all. */
export interface Limit {
  /** As it was written. */
  readonly text: string;
  readonly responder: string;
  /** `max`, `mean` or a quantile as in `p99.9`. */
  readonly statistic: string;
  readonly bound_ns: number;
  /** Whether the bound itself is too long already. */
  readonly isStrict: boolean;
}

/** A limit that a responder has passed. */
export interface Passed {
  readonly limit: Limit;
  readonly responder: string;
  /** The number; null if that is beyond the bound only because triggers were not answered, which is later than any. */
  readonly value_ns: number | null;
  /** When that was first so: in this time since the numbers begin. */
  readonly first: Span;
  /** How many answers are beyond the bound. */
  readonly count: Span;
  /** Of so many. */
  readonly of: number;
  /** How many triggers were not answered. */
  readonly unanswered: number;
}

/** From the least to the most that something can be. */
interface Span {
  readonly least: number;
  readonly most: number;
}

const EVERY = "all";

/** A duration as people write it, in ns; null for what is none. */
export function readDuration(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)\s*$/.exec(text);
  if (match === null) return null;
  const scale = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[match[2] as "ns"];
  return Number(match[1]) * scale;
}

/** The limits in a text, with commas between them, and what is none. A time alone limits the maximum of everybody. */
export function readLimits(text: string): { limits: Limit[]; wrong: string[] } {
  const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
  const read = parts.map((part) => [part, readLimit(part)] as const);
  return {
    limits: read.flatMap(([, limit]) => (limit === null ? [] : [limit])),
    wrong: read.flatMap(([part, limit]) => (limit === null ? [part] : [])),
  };
}

function readLimit(text: string): Limit | null {
  const match = /^(?:(?:(\w+)\.)?(max|mean|p50|p90|p99(?:\.9{1,3})?)\s*(<=|<|≤|=)\s*)?([^<=≤]+)$/.exec(text);
  const bound_ns = readDuration(match?.[4] ?? "");
  if (match === null || bound_ns === null || bound_ns === 0) return null;
  const [, responder = EVERY, statistic = "max", sign = "<="] = match;
  return { text, responder, statistic, bound_ns, isStrict: sign === "<" };
}

/** The limits of a responder. */
export function limitsOf({ summary }: Channel, limits: readonly Limit[]): Limit[] {
  return limits.filter(({ responder }) => responder === EVERY || responder === summary.responder);
}

const isBeyond = (ns: number, { bound_ns, isStrict }: Limit) => (isStrict ? ns >= bound_ns : ns > bound_ns);

/** The decimals of a quantile: `5` of `p50`, `999` of `p99.9`. */
const decimalsOf = (quantile: string) => quantile.slice(1).replace(".", "").replace(/0$/, "");

function valueOf({ summary }: Channel, statistic: string): number | null {
  if (statistic === "max") return summary.max_ns;
  if (statistic === "mean") return summary.mean_ns;
  return summary.quantiles[`0.${decimalsOf(statistic)}`] ?? null;
}

const unansweredOf = ({ summary }: Channel) => summary.losses["unanswered"] ?? 0;

/** Whether a statistic over all triggers is one that was not answered, as `unanswered_exceed` of the command says. */
function isUnanswered(channel: Channel, statistic: string): boolean {
  const lost = unansweredOf(channel);
  if (statistic === "max" || statistic === "mean") return statistic === "max" && lost > 0;
  const { count, losses } = channel.summary;
  const triggers = count + lost + (losses["superseded"] ?? 0) + (losses["overrun"] ?? 0);
  const decimals = decimalsOf(statistic);
  const rank = Math.ceil((triggers * Number(decimals)) / 10 ** decimals.length);
  return rank > triggers - lost;
}

/** All answers beyond a limit; null if more are than the server tells one by one. */
function worstOf({ worst, summary }: Channel, limit: Limit): Channel["worst"] | null {
  const known = worst.filter(({ latency_ns }) => isBeyond(latency_ns, limit));
  return known.length < worst.length || worst.length === summary.count ? known : null;
}

/** How many answers are beyond a limit: exactly, or to within a column of the histogram. */
function countOf(channel: Channel, limit: Limit): Span {
  const { worst, columns } = channel;
  const known = worstOf(channel, limit)?.length;
  if (known !== undefined) return { least: known, most: known };
  const sum = (some: Channel["columns"]) => some.reduce((all, { count }) => all + count, 0);
  const whole = sum(columns.filter(({ low_ns }) => isBeyond(low_ns, limit)));
  return { least: Math.max(worst.length, whole), most: sum(columns.filter(({ high_ns }) => isBeyond(high_ns, limit))) };
}

/** When the first answer beyond a limit was: exactly, or to within a stretch of time. */
function firstOf(channel: Channel, limit: Limit): Span | null {
  const known = worstOf(channel, limit);
  if (known !== null) {
    const at = smallest(known.map(({ at_ns }) => at_ns));
    return known.length === 0 ? null : { least: at, most: at };
  }
  const slice = channel.slices.find(({ max_ns }) => isBeyond(max_ns, limit));
  return slice === undefined ? null : { least: slice.at_ns, most: slice.at_ns + slice.width_ns };
}

/** Remembers since when means and quantiles are beyond their limits: the server tells only how they are now. */
export class Watch {
  private readonly since = new Map<string, number>();
  private until_ns = 0;

  /** What has passed its limit. */
  take({ channels, measured_ns }: Told, limits: readonly Limit[]): Passed[] {
    // The numbers were forgotten, or another run goes on.
    if (measured_ns < this.until_ns) this.since.clear();
    this.until_ns = measured_ns;
    return channels.flatMap((channel) =>
      limitsOf(channel, limits).flatMap((limit): Passed[] => {
        const [value_ns, { responder, count: of }] = [valueOf(channel, limit.statistic), channel.summary];
        const common = { limit, responder, count: countOf(channel, limit), of, unanswered: unansweredOf(channel) };
        const name = `${responder} ${limit.text}`;
        if (value_ns !== null && isBeyond(value_ns, limit)) {
          const first = limit.statistic === "max" ? firstOf(channel, limit) : this.first(name);
          return first === null ? [] : [{ ...common, value_ns, first }];
        }
        return isUnanswered(channel, limit.statistic) ? [{ ...common, value_ns: null, first: this.first(name) }] : [];
      }),
    );
  }

  private first(name: string): Span {
    const at = this.since.get(name) ?? this.until_ns;
    this.since.set(name, at);
    return { least: at, most: at };
  }
}

function span({ least, most }: Span, text: (n: number) => string): string {
  return least === most ? text(least) : `${text(least)} … ${text(most)}`;
}

const nameOf = ({ limit, responder }: Passed) =>
  limit.responder === EVERY ? `${limit.text} by ${responder}` : limit.text;

/** What tells of limits. */
interface Alarm {
  readonly element: HTMLElement;
  readonly show: (passed: readonly Passed[], wrong: readonly string[]) => void;
}

/** Where passed limits are told; aloud, for who does not see the page, once each and not at each new number. */
export function alarm(): Alarm {
  const aloud = h("p", { class: "alarm", role: "alert" });
  const list = h("ul", { class: "alarms", "aria-label": "Limits that were passed" });
  const show = (passed: readonly Passed[], wrong: readonly string[]) => {
    const said = passed.map((one) => `${nameOf(one)} since ${duration(one.first.least)}`).join("; ");
    const nonsense = wrong.map((text) => `No limit: ${text}. Write it as in task.max < 100us.`);
    const text = [...(said === "" ? [] : [`Limit passed: ${said}.`]), ...nonsense].join(" ");
    if (aloud.textContent !== text) aloud.textContent = text;
    list.replaceChildren(...passed.map((one) => h("li", {}, sentence(one))));
  };
  return { element: h("div", {}, aloud, list), show };
}

function sentence(passed: Passed): string {
  const { limit, value_ns, first, count, of, unanswered } = passed;
  const when = first.least === first.most ? "first at" : "first in";
  const lost = unanswered === 0 ? [] : [`${integer(unanswered)} triggers were not answered`];
  const parts =
    value_ns === null
      ? [...lost, `known since ${span(first, duration)}`]
      : [
          `${limit.statistic} ${duration(value_ns)}`,
          `${when} ${span(first, duration)}`,
          `${span(count, integer)} of ${integer(of)} answers beyond it`,
          ...lost,
        ];
  return `${nameOf(passed)}: ${parts.join(" · ")}`;
}
