// SPDX-License-Identifier: GPL-2.0-or-later
// What `onset report` writes into the page, and the check that this viewer understands it.
//
// Every statistic is computed by the command from the bundles. The viewer draws; it derives nothing
// but positions on a screen.

/** The only version of the contract that this viewer draws. */
export const SCHEMA = 3;

/** Clock domain. Numbers of different clocks never share an axis, so a report has exactly one. */
export type Clock = "virtual" | "monotonic" | "tsc";

/** `inconclusive`: too few samples for what is limited; `invalid`: the run itself was unsound. */
export type Verdict = "pass" | "fail" | "inconclusive" | "invalid";

/** One page. */
export interface Report {
  schema: typeof SCHEMA;
  title: string;
  /** When the report was written, RFC 3339. */
  created: string;
  tool: { version: string; revision: string };
  clock: Clock;
  runs: Run[];
  /** In the order of the papers; empty where no run belongs to one. */
  papers: PaperTable[];
}

/** One execution of one flavour under one load: one bundle. */
export interface Run {
  /** Identity of the run, as `onset list` shows it. */
  run: string;
  /** What tells it apart from runs of the same flavour and load that measured something else. */
  experiment: string;
  flavour: string;
  load: string;
  /** Exact up to 2^53−1; a larger one is shown as approximate. */
  seed: number;
  clock: Clock;
  verdict: Verdict;
  /** False where the run was cut short and holds what it had until then. */
  complete: boolean;
  /** When the run began, RFC 3339. */
  created: string;
  series: Series[];
  warnings: Warning[];
  findings: Finding[];
  /** Kernel, machine, trigger, guest, load counters …; shown whole. */
  configuration: { group: string; entries: { key: string; value: string }[] }[];
  /** The experiment's TOML as it was run. */
  experiment_source: string;
  files: RawFile[];
}

/** Everything that one responder answered in one run. */
export interface Series {
  /** A mechanism of the driver or a method of a probe: any name. Order is that of the run. */
  responder: string;
  /** Samples, losses not included. */
  count: number;
  losses: Losses;
  min_ns: number | null;
  mean_ns: number | null;
  stddev_ns: number | null;
  max_ns: number | null;
  /** From the quantile as decimal text ("0.999") to ns. One that `count` cannot support is absent. */
  quantiles: Record<string, number>;
  /** Log-spaced display histogram, ascending; latencies in `low_ns ..= high_ns`. Empty ones may be absent. */
  columns: { low_ns: number; high_ns: number; count: number }[];
  /** Percentile plot, ascending and dense in the tail; quantile 0 … 1. */
  curve: { quantile: number; latency_ns: number }[];
  /** Minimum and maximum of every slice of time since the measuring phase began: no maximum is lost. */
  timeline: { at_ns: number; width_ns: number; min_ns: number; max_ns: number; count: number }[];
  /** The worst samples, worst first. */
  worst: WorstSample[];
}

/** What was not measured, by kind; shown beside every maximum. */
export interface Losses {
  /** Never answered before the run ended. */
  unanswered: number;
  /** Answered together with an older trigger, whose latency is the sample. */
  superseded: number;
  /** Edges with no trigger to answer. */
  spurious: number;
  /** Impossible values, kept out and counted. */
  tainted: number;
  /** Periods that passed without a measurement, late by an unknown time. */
  overrun: number;
  /** Records that the channel had no room for; known for the run, the same for each responder. */
  dropped: number;
}

/** A sample worth looking at. */
export interface WorstSample {
  /** Number of the trigger, from 0. */
  trigger: number;
  /** When it was raised, since the measuring phase began. */
  at_ns: number;
  latency_ns: number;
  /** Instructions completed between trigger and answer; absent on a clock beside which nobody counts them. */
  path_insns?: number;
}

/** A doubt about a run, with what to do about it. */
export interface Warning {
  code: string;
  symptom: string;
  cause: string;
  action: string;
}

/** One limit of the experiment and what was found. */
export interface Finding {
  responder: string;
  /** "max" or a quantile, as the experiment names it ("p99.9"). */
  statistic: string;
  bound_ns: number;
  /** Absent where the count cannot support the statistic. */
  measured_ns: number | null;
  verdict: Verdict;
}

/** A file of the bundle. */
export interface RawFile {
  name: string;
  /** Relative to the page, or a file: or http(s): address. */
  href: string;
  what: string;
}

/** A table or figure of a paper, the paper's figures beside ours. */
export interface PaperTable {
  id: string;
  heading: string;
  /** Paper and table. */
  source: string;
  /** `unit` is empty where the cells are words. */
  columns: { name: string; unit: string }[];
  /** In the order of reading. */
  rows: PaperRow[];
  /** Rows that the experiment would give and this report has no run for. */
  absent: string[];
  /** What ours are to be read as. */
  note: string;
  alike: Claim;
  changed: Claim;
  picture: ({ kind: "chart" } & WaitChart) | ({ kind: "screens" } & Screens) | null;
}

/** Kernel, flavour or period, with one cell for each column. */
export interface PaperRow {
  label: string;
  whose: "paper" | "ours";
  /** As they are to be read; `exact_ns` where ours is a time. */
  cells: { text: string; exact_ns: number | null }[];
  /** What ours stands on: a run, a series of it to look at, samples and losses. */
  basis: { run: string; responder: string; count: number; lost: number } | null;
}

/** A line about then and now: its text states numbers, its word what they decide. */
export interface Claim {
  word: "alike" | "not alike" | "changed" | "hardly changed" | "not known";
  text: string;
}

/** How long the high thread waited against how long the middle one worked. */
export interface WaitChart {
  lines: { flavour: string; inherits: boolean; points: { work_ns: number; wait_ns_max: number }[] }[];
}

/** An oscilloscope in infinite persistence: ten divisions, the rising edge due after the first. */
export interface Screens {
  division_ns: number;
  width_ns: number;
  screens: Screen[];
}

/** Places count from 0 at the left edge to 500 at the right. */
export interface Screen {
  label: string;
  /** Brightness 0 … 1. */
  edges: { place: number; brightness: number }[];
  /** First and last place of the high level. */
  high: [number, number];
  /** Where the low level ends before the pulse and begins after it. */
  low: [number, number];
  /** Edges beyond the right edge. */
  beyond: number;
  latest_ns: number | null;
}

/** A report that cannot be shown, with the reason and what to do, in words for the reader. */
export class Unreadable extends Error {
  constructor(
    readonly reason: string,
    readonly action: string,
  ) {
    super(`${reason} ${action}`);
  }
}

const AGAIN = "Write the report again with: onset report RUN… -o report.html";

/** The report in the page's JSON. Throws {@link Unreadable} where it is none that this viewer draws. */
export function parseReport(text: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Unreadable("This page holds no report: its data are missing or cut short.", AGAIN);
  }
  const schema = isRecord(value) ? value["schema"] : undefined;
  if (schema !== SCHEMA) {
    throw new Unreadable(
      `This page's data have schema number ${JSON.stringify(schema) ?? "(none)"}; this viewer reads schema ${SCHEMA}.`,
      `The viewer and the command come from different versions of onset. ${AGAIN}`,
    );
  }
  const report = value as Report;
  if (!Array.isArray(report.runs) || report.runs.length === 0) {
    throw new Unreadable("This report holds no runs.", AGAIN);
  }
  const stranger = report.runs.find((run) => run.clock !== report.clock);
  if (stranger !== undefined) {
    throw new Unreadable(
      `Run ${stranger.run} was measured with the clock “${stranger.clock}”, the report with “${report.clock}”: ` +
        "numbers of different clocks cannot share an axis.",
      "Write one report per clock domain.",
    );
  }
  return report;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
