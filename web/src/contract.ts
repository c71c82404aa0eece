// SPDX-License-Identifier: GPL-2.0-or-later
// What `onset report` writes into the page, and the check that this viewer understands it.
//
// Every statistic is computed by the command from the bundles. The viewer draws; it derives nothing
// but positions on a screen.

/** The only version of the contract that this viewer draws. */
export const SCHEMA = 11;

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
  /** Where the runs of an experiment were not answered by the same responders, so that they do not compare. */
  unequal: Unequal[];
  /** In the order of the papers; empty where no run belongs to one. */
  papers: PaperTable[];
  /** On the virtual clock; a report of nothing but hunts has no runs. */
  hunts: Hunt[];
  code: Code;
}

/** Names that the report's parts share: each is here once, and its index stands for it. */
export interface Code {
  /** `symbol+0x12 [module]` as kernels print them; of icicles also causes, tasks, and functions without an offset. */
  frames: string[];
  /** Indices into `frames`, innermost first, at most 24 and then “…”. The one without frames stands for no stack. */
  stacks: number[][];
  /** Why a part of a latency passed: the cause in one word (docs/hunting.md), by whom, and the index of a stack. */
  causes: { cause: string; who: string; stack: number }[];
}

/** Times added up: the sum, of how many stretches, and the longest; 0 stretches where a hunt of before did not count them. */
export interface Sum {
  ns: number;
  stretches: number;
  longest_ns: number;
}

/** Each that answers a trigger makes those after it later. */
export interface Unequal {
  experiment: string;
  lacking: { flavour: string; responders: string[] }[];
  /** What every run has. */
  common: string[];
  /** What runs the experiment with those alone, on the command line of `onset run`. */
  setting: string;
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
  /** Samples of the limited series with the fewest and the most, and for how long was measured; null in older bundles. */
  evidence: { samples_min: number; samples_max: number; measured_ns: number | null };
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
  /** Null where nobody looked, or nobody can: a machine, a probe. */
  inside: Inside | null;
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
  /** What the paper says, and what became of it. */
  claims: Claim[];
  picture: ({ kind: "chart" } & WaitChart) | ({ kind: "screens" } & Screens) | null;
}

/** Kernel, flavour or period, with one cell for each column. */
export interface PaperRow {
  label: string;
  whose: "paper" | "ours";
  /** As they are to be read; of ours `exact_ns` where it is a time, `spread` where the repetitions differ in what is shown. */
  cells: { text: string; exact_ns: number | null; spread: string | null }[];
  /** What ours stands on: the first of its runs, a series of it to look at; repetitions, samples and losses of all of them. */
  basis: { run: string; responder: string; repetitions: number; count: number; lost: number } | null;
}

/** What a paper says and what became of it. Relations within one clock; then and now are never divided by each other. */
export interface Claim {
  paper: string;
  outcome: "alike" | "changed" | "no_difference" | "cannot_be_told";
  /** What was seen here, or why it cannot be told. */
  here: string;
  /** What would count as a difference; null where it cannot be told. */
  smallest_effect: string | null;
  /** From the least to the greatest repetition; null where it cannot be told. */
  spread: string | null;
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

/** What the same run showed when it was made once more, to the instruction alike, with its kernel followed. */
export interface Inside {
  /** What cannot be seen in this kernel, and why. */
  missing: string[];
  /** What the follower's records lost, by kind. */
  losses: Record<string, number>;
  virtual_ns: number;
  triggers: number;
  /** By kind; one that had none is absent. */
  windows: Windows[];
  /** One for each responder, in the order of the run. */
  ledgers: Ledger[];
  /** The worst answers of each responder, at most 5, the longest first. */
  worst: WorstAnswer[];
  /** Null where too little can be seen in this kernel for one. */
  bound: Bound | null;
  /** By responder, the longest scheduling latency of the answers in its ledger and of its worst that the bound speaks of. */
  scheduling_ns: Record<string, number>;
  /** Of these answers, those that exceed the bound: each is a fault of the follower or of the analysis. */
  exceeded: Held[];
}

export type WindowKind = "irqs_off" | "preempt_off" | "bh_off" | "migration_off";

/** All windows of a kind. */
export interface Windows {
  kind: WindowKind;
  count: number;
  /** How many stacks opened them. */
  stacks: number;
  total_ns: number;
  /** Of the time that was followed; above 1 where windows of several tasks overlap. */
  share: number;
  /** Cut by the begin or the end of the run: they are not in the numbers. */
  without_length: number;
  /** The longest, at most 12. */
  rows: WindowRow[];
}

/** All windows of a kind that one stack opened. */
export interface WindowRow {
  count: number;
  total_ns: number;
  share: number;
  max_ns: number;
  max_insns: number;
  /** When the longest opened, on the virtual clock. */
  max_at_ns: number;
  /** Of the total, interrupts, softirqs and other tasks, where these could come. */
  hardirq_ns: number;
  softirq_ns: number;
  other_tasks_ns: number;
  /** Lengths below this and not below half of it, ascending; no edge for those of 2^63 ns and more. Empty ones are absent. */
  histogram: { below_ns?: number; count: number }[];
  /** Index of the stack that opened them, and of the one that closed the longest. */
  stack: number;
  closed_by: number;
  /** Index of the stack that was seen inside the longest, where one was taken. */
  inside?: number;
}

/** All time of a responder's answers from some latency on. Rows and others add up to the total. */
export interface Ledger {
  responder: string;
  samples: number;
  /** The p99 of the run; 0 where it is too short for that, and all answers are in. */
  from_ns: number;
  total_ns: number;
  kinds: Partial<Record<LatencyKind, Sum>>;
  /** By total, at most 40. */
  rows: LedgerRow[];
  others: Others;
  icicle: IcicleNode[];
}

/** One cause's account. */
export interface LedgerRow {
  /** Index of the cause. */
  cause: number;
  /** In how many answers. */
  count: number;
  /** The sum, of how many stretches, and the longest of them. */
  total_ns: number;
  stretches: number;
  longest_ns: number;
  share: number;
  /** The most of its time in one answer, in how many stretches, that answer's trigger, and the command that replays it. */
  max_ns: number;
  max_stretches: number;
  max_trigger: number;
  replay: string;
}

/** What has no row of its own. */
export interface Others {
  rows: number;
  total_ns: number;
  stretches: number;
  longest_ns: number;
  share: number;
}

/** A box of a ledger's icicle, each before those below it: cause, by whom, functions from the outermost in. */
export interface IcicleNode extends Sum {
  depth: number;
  what: "cause" | "who" | "function";
  /** Index of its name. */
  frame: number;
  /** Where it begins, of the ledger's total, and its own total with all below it. Below 0.2 % it is absent. */
  from_ns: number;
  share: number;
}

/** Of the paper “Internals of the RT Patch” (2007), and what is none of them. */
export type LatencyKind = "interrupt" | "wakeup" | "priority_inversion" | "interrupt_inversion" | "other";

/** In the order of an answer's way; one that it does not go through is absent. */
export type Stage =
  | "line"
  | "entry"
  | "handler"
  | "wake_up"
  | "need_resched"
  | "schedule"
  | "resumed"
  | "user";

/** One latency, explained: its parts add up to it exactly. */
export interface Latency {
  responder: string;
  trigger: number;
  at_ns: number;
  latency_ns: number;
  insns: number;
  /** The responder's task with its priority; empty where an interrupt or softirqs answered. */
  task: string;
  stages: Partial<Record<Stage, number>>;
  kinds: Partial<Record<LatencyKind, Sum>>;
  /**
   * Interrupts of the device that disturbs: when its line was to rise, since the trigger (negative where it was before), and
   * how many timers it started.
   */
  disturbances: { from_ns: number; timers: number }[];
  unexplained_ns: number;
  /** In their order, from the line to the pin. */
  parts: Part[];
  /** The parts by cause, the longest first, at most 20. */
  causes: CausePart[];
  others: Others;
}

/** One of a run's worst answers, and the command that replays it. */
export interface WorstAnswer extends Latency {
  replay: string;
}

/** A part of a latency. */
export interface Part {
  stage: Stage;
  /** Index of the cause; null where several short parts of one stage are together, which causes had. */
  cause: number | null;
  /** How many parts these are; 1 where it has a cause. */
  pieces: number;
  /** Since the trigger. */
  from_ns: number;
  ns: number;
  insns: number;
}

/** A term of the bound: the longest seen, without interrupts, and when it began on the virtual clock. */
export interface Term {
  ns: number;
  at_ns: number;
  /** Who began it. */
  stack: number;
  /** Where the CPU was in it when the follower looked last. */
  inside: number;
}

/** The bound of the scheduling latency, after ECRTS 2020 (docs/methods/bound.md). */
export interface Bound {
  st: Term;
  poid: Term;
  paie: Term;
  psd: Term;
  interference_free_ns: number;
  /** Null where interrupts came too densely for a bound. */
  interrupts_ns: number | null;
  bound_ns: number | null;
}

/** An answer that was held against the bound. */
export interface Held {
  responder: string;
  trigger: number;
  at_ns: number;
  /** From the line to the switch to the responder's task: what the bound is for. */
  scheduling_ns: number;
  latency_ns: number;
}

/** A search for the worst answers of a flavour, under one load or several. */
export interface Hunt {
  directory: string;
  flavour: string;
  load: string;
  seed: number;
  /** Null where it was killed, or goes on. */
  ended: "budget" | "stale" | "interrupted" | "failed" | null;
  trials: number;
  triggers: number;
  /** Of all trials together. */
  virtual_ns: number;
  /** Stacks that opened a stretch with interrupts or preemption off, and those of them that were fired into. */
  stacks_seen: number;
  stacks_fired_into: number;
  responders: Hunted[];
  strategies: StrategyShare[];
  /** Guests that died under fire. */
  died: { trial: number; under: string | null; text: string }[];
}

/** A responder's worst answer, and how it came to that. */
export interface Hunted {
  responder: string;
  /** The worst so far, ascending. */
  growth: GrowthPoint[];
  /** The same of triggers at random alone, over their own virtual time, which is `random_ns` in all. */
  random: GrowthPoint[];
  random_ns: number;
  /** Triggers of all trials without an answer of their own. */
  losses: Losses;
  find: Find | null;
  /** The finds below the worst, the latest first, those that were disturbed last; of a hunt that has ended. */
  others: OtherFind[];
}

/** From this virtual time on the worst was this. */
export interface GrowthPoint {
  virtual_ns: number;
  latency_ns: number;
  trial: number;
}

/** What one strategy did by itself. */
export interface StrategyShare {
  strategy: string;
  trials: number;
  triggers: number;
  virtual_ns: number;
  worst_ns: Record<string, number>;
}

/** A find below the worst. */
export interface OtherFind {
  latency_ns: number;
  trial: number;
  strategy: string;
  under: string | null;
  /** Whether another device disturbed. */
  disturbed: boolean;
  /** Its main cause; null where it was not explained. */
  main: CausePart | null;
  /** In the hunt's directory, for `onset replay`. */
  file: string | null;
}

/** What one cause took of a latency. */
export interface CausePart extends Sum {
  /** Index of the cause. */
  cause: number;
  /** 0 to 1. */
  share: number;
}

/** The worst answer that a hunt found, and how to have it again. */
export interface Find {
  latency_ns: number;
  trial: number;
  strategy: string;
  /** In which guest, where there are several. */
  under: string | null;
  /** Index of the stack that had opened the stretch that was fired into; without frames where nothing was aimed at. */
  stack: number;
  /** The command; null where the hunt ended before the find was written. */
  replay: string | null;
  /** What cannot be seen in this kernel, and why. */
  missing: string[];
  /** What the hunt found to have made it so late, the longest first; empty where it is explained here, or was not there. */
  causes: CausePart[];
  explanation: Latency | null;
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
  const { runs, hunts } = report;
  if (!Array.isArray(runs) || !Array.isArray(hunts) || runs.length + hunts.length === 0) {
    throw new Unreadable("This report holds no runs and no hunts.", AGAIN);
  }
  const stranger = runs.find((run) => run.clock !== report.clock);
  if (stranger !== undefined) {
    throw new Unreadable(
      `Run ${stranger.run} was measured with the clock “${stranger.clock}”, the report with “${report.clock}”: ` +
        "numbers of different clocks cannot share an axis.",
      "Write one report per clock domain.",
    );
  }
  if (!isWhole(report.code)) {
    throw new Unreadable("This report names code that it does not hold.", AGAIN);
  }
  return report;
}

/** Whether every index leads to a name. */
function isWhole({ frames, stacks, causes }: Code): boolean {
  return (
    stacks.every((stack) => stack.every((frame) => frame in frames)) && causes.every(({ stack }) => stack in stacks)
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
