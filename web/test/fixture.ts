// SPDX-License-Identifier: GPL-2.0-or-later
// A made-up report with the shape of a real one: three flavours, two loads, eight responders, long
// tails. The same numbers every time. They imitate measurements; nothing was measured.

import type {
  Code,
  Finding,
  Hunt,
  Inside,
  Latency,
  Losses,
  PaperTable,
  Report,
  Run,
  Series,
  Sum,
  WorstSample,
} from "../src/contract.ts";

/** Triggers of each run. */
export const TRIGGERS = 10_000;

const RESPONDERS = ["hardirq", "threaded_irq", "tasklet", "bh_work", "work", "work_highpri", "kthread", "task"];

/** Typical latency of each responder in ns, without load. */
const FLAVOURS: Record<string, number[]> = {
  "6.12 preempt=none": [310, 9_600, 4_500, 4_900, 12_400, 12_100, 8_100, 7_000],
  "6.12 preempt=full": [330, 9_900, 4_700, 5_100, 12_900, 12_600, 8_300, 7_300],
  "6.12-rt": [394, 6_050, 26_500, 27_100, 23_500, 22_800, 9_400, 17_900],
};

/** Shape of the tail under "mixed": the latest answers are this many times the typical one. */
const TAILS: Record<string, number> = { "6.12 preempt=none": 900, "6.12 preempt=full": 110, "6.12-rt": 9 };

/** Uniform numbers in [0, 1), by mulberry32: small, and the same in every engine. */
export function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The report. Each call makes a new one, so that a test may bend its own. */
export function fixture(): Report {
  const flavours = Object.keys(FLAVOURS);
  const runs = ["idle", "mixed"].flatMap((load) => flavours.map((flavour, i) => run(flavour, load, i)));
  return {
    schema: 16,
    title: "Response ladder of 6.12",
    lead: ["Under mixed load, task answered within 161 µs of virtual time on 6.12-rt.", "1 of 6 runs exceeded a limit."],
    created: "2026-11-21T19:57:03Z",
    tool: { version: "0.1.0", revision: "018facc" },
    clock: "virtual",
    runs,
    unequal: [],
    ...{ costs: null, prices: null, contents: [], papers: [], proof: null },
    hunts: [],
    code: { frames: [], stacks: [[]], causes: [] },
  };
}

/** A title too long for a phone's line. */
export const PULSE = "2007 assessment, figures 9 to 26: a pulse of 50 µs each millisecond";

/** The fixture with a second experiment and papers' tables of each kind; the figures are made up. */
export function papers(): Report {
  const report = fixture();
  const other = run("6.12-rt", "compile", 2);
  report.runs.push({ ...other, run: "20261121-200000-pulse", experiment: PULSE, findings: [] });
  report.papers = [delays(report.runs[0]!), waits(), pulses()];
  return report;
}

/** The fixture with its first run of “mixed” looked into, and a hunt; all figures are made up. */
export function inside(): Report {
  const report = fixture();
  report.code = CODE;
  report.runs[3]!.inside = seen();
  report.hunts = [hunt()];
  return report;
}

/** The hunt alone. */
export function huntAlone(): Report {
  const lead = ["The hunt of 6.12 preempt=none under the loads mixed, fork made task answer as late as 1.00 ms of virtual time."];
  return { ...inside(), title: "Hunt: 6.12 preempt=none · mixed", lead, runs: [] };
}

const CODE: Code = {
  frames: ["_raw_spin_lock_irq+0x9", "null_queue_rq+0x126 [null_blk]", "entry_SYSCALL_64+0x77", "irqs_off", "null_queue_rq [null_blk]", "task", "tar nice 0", "entry_SYSCALL_64"],
  stacks: [[], [0, 1, 2], [1]],
  causes: [
    { cause: "irqs_off", who: "", stack: 1 },
    { cause: "task", who: "tar nice 0", stack: 0 },
    { cause: "unexplained", who: "", stack: 0 },
  ],
};

function latency(responder: string): Latency {
  return {
    responder,
    trigger: 17,
    at_ns: 17_000_123,
    latency_ns: 1_000_000,
    insns: 999_990,
    task: "init RT 80",
    stages: { line: 700_000, need_resched: 299_000, user: 1_000 },
    kinds: { interrupt: once(700_000), wakeup: { ns: 300_000, stretches: 14, longest_ns: 290_000 } },
    disturbances: [],
    unexplained_ns: 1_000,
    parts: [
      { stage: "line", cause: 0, pieces: 1, from_ns: 0, ns: 700_000, insns: 700_000 },
      { stage: "need_resched", cause: 1, pieces: 1, from_ns: 700_000, ns: 290_000, insns: 290_000 },
      { stage: "need_resched", cause: null, pieces: 12, from_ns: 990_000, ns: 9_000, insns: 8_990 },
      { stage: "user", cause: 2, pieces: 1, from_ns: 999_000, ns: 1_000, insns: 1_000 },
    ],
    causes: [
      { cause: 0, ...once(700_000), share: 0.7 },
      { cause: 1, ns: 290_000, stretches: 12, longest_ns: 106_000, share: 0.29 },
    ],
    others: { rows: 3, total_ns: 10_000, stretches: 13, longest_ns: 1_000, share: 0.01 },
  };
}

/** One stretch. */
function once(ns: number): Sum {
  return { ns, stretches: 1, longest_ns: ns };
}

function replay(trigger: number): string {
  return `onset replay onset-runs/made-up --sample ${trigger} --responder task`;
}

function seen(): Inside {
  const row = { count: 3, total_ns: 900_000, share: 0.009, max_ns: 700_000, max_insns: 700_000, max_at_ns: 17_000_123 };
  const parts = { hardirq_ns: 1_000, softirq_ns: 2_000, other_tasks_ns: 0, stack: 1, inside: 0, closed_by: 2 };
  const histogram = [
    { below_ns: 2 ** 17, count: 2 },
    { below_ns: 2 ** 20, count: 1 },
  ];
  return {
    missing: ["calls of ktime_get: the kernel has no such function"],
    losses: { backwards: 0, unknown_stacks: 0, unknown_watches: 0, stray_frames: 0, dropped: 0 },
    virtual_ns: 100_000_000,
    triggers: 100,
    windows: [
      { kind: "irqs_off", count: 50, stacks: 4, total_ns: 2e6, share: 0.02, without_length: 0, rows: [{ ...row, ...parts, histogram }] },
      {
        kind: "preempt_off",
        count: 1,
        stacks: 1,
        total_ns: 700_000,
        share: 0.007,
        without_length: 2,
        rows: [{ ...row, ...parts, histogram, inside: 2 }],
      },
    ],
    ledgers: [
      {
        responder: "task",
        samples: 2,
        from_ns: 300_000,
        total_ns: 1_400_000,
        kinds: { interrupt: { ns: 1_000_000, stretches: 2, longest_ns: 700_000 }, wakeup: once(400_000) },
        rows: [
          { cause: 0, count: 2, total_ns: 1_000_000, stretches: 2, longest_ns: 700_000, share: 1 / 1.4,
            max_ns: 700_000, max_stretches: 1, max_trigger: 17, replay: replay(17) },
          { cause: 1, count: 1, total_ns: 390_000, stretches: 12, longest_ns: 106_000, share: 0.39 / 1.4,
            max_ns: 390_000, max_stretches: 12, max_trigger: 18, replay: replay(18) },
        ],
        others: { rows: 1, total_ns: 10_000, stretches: 1, longest_ns: 10_000, share: 0.01 / 1.4 },
        icicle: [
          { depth: 0, what: "cause", frame: 3, from_ns: 0, ns: 1_000_000, stretches: 2, longest_ns: 700_000, share: 1 / 1.4 },
          { depth: 1, what: "function", frame: 7, from_ns: 0, ns: 1_000_000, stretches: 2, longest_ns: 700_000, share: 1 / 1.4 },
          { depth: 2, what: "function", frame: 4, from_ns: 0, ns: 1_000_000, stretches: 2, longest_ns: 700_000, share: 1 / 1.4 },
          { depth: 0, what: "cause", frame: 5, from_ns: 1_000_000, ns: 390_000, stretches: 12, longest_ns: 106_000, share: 0.39 / 1.4 },
          { depth: 1, what: "who", frame: 6, from_ns: 1_000_000, ns: 390_000, stretches: 12, longest_ns: 106_000, share: 0.39 / 1.4 },
        ],
      },
    ],
    worst: [
      { ...latency("task"), replay: replay(17) },
      { ...latency("task"), trigger: 18, at_ns: 18_000_456, replay: replay(18) },
    ],
    bound: {
      st: { ns: 300, at_ns: 1, stack: 0, inside: 0 },
      poid: { ns: 800_000, at_ns: 2, stack: 1, inside: 2 },
      paie: { ns: 100, at_ns: 3, stack: 0, inside: 0 },
      psd: { ns: 4_000, at_ns: 4, stack: 2, inside: 0 },
      interference_free_ns: 804_100,
      interrupts_ns: 50_000,
      bound_ns: 854_100,
    },
    scheduling_ns: { task: 700_123 },
    exceeded: [],
  };
}

function hunt(): Hunt {
  const point = (virtual_ns: number, latency_ns: number, trial: number) => ({ virtual_ns, latency_ns, trial });
  return {
    directory: "onset-runs/hunts/made-up",
    flavour: "6.12 preempt=none",
    load: "mixed, fork",
    seed: 1,
    ended: "budget",
    trials: 26,
    triggers: 4_964,
    virtual_ns: 13_600_000_000,
    stacks_seen: 2_175,
    stacks_fired_into: 1_202,
    responders: [
      {
        responder: "hardirq",
        growth: [point(1e9, 3_000, 0), point(5e9, 188_000, 9)],
        random: [],
        random_ns: 0,
        losses: losses(0),
        find: {
          latency_ns: 188_000,
          trial: 9,
          strategy: "coverage",
          under: "fork",
          stack: 0,
          replay: null,
          missing: [],
          causes: [
            { cause: 0, ns: 169_200, stretches: 3, longest_ns: 100_000, share: 0.9 },
            { cause: 2, ...once(18_800), share: 0.1 },
          ],
          explanation: null,
        },
        others: [],
      },
      {
        responder: "task",
        growth: [point(1e9, 200_000, 0), point(2e9, 1_000_000, 2)],
        random: [point(1e8, 150_000, 6)],
        random_ns: 251_000_000,
        losses: losses(12),
        find: {
          latency_ns: 1_000_000,
          trial: 2,
          strategy: "foresight",
          under: "mixed",
          stack: 1,
          replay: "onset replay onset-runs/hunts/made-up/task.find.json",
          missing: [],
          causes: [],
          explanation: {
            ...latency("task"),
            disturbances: [
              { from_ns: -1_000, timers: 0 },
              { from_ns: 600_000, timers: 8 },
            ],
          },
        },
        others: [
          {
            latency_ns: 90_000,
            trial: 5,
            strategy: "window_start",
            under: "fork",
            disturbed: false,
            main: { cause: 0, ns: 67_500, stretches: 5, longest_ns: 40_000, share: 0.75 },
            file: "task.2.find.json",
          },
          { latency_ns: 120_000, trial: 8, strategy: "disturb", under: "mixed", disturbed: true, main: null, file: null },
        ],
      },
    ],
    strategies: [
      { strategy: "random", trials: 2, triggers: 250, virtual_ns: 251_000_000, worst_ns: { task: 150_000 } },
      { strategy: "foresight", trials: 13, triggers: 256, virtual_ns: 10_500_000_000, worst_ns: { hardirq: 150_000, task: 1_000_000 } },
    ],
    died: [{ trial: 7, under: "fork", text: "Kernel panic - not syncing" }], forked_otherwise: [12],
  };
}

const CLAIMS: Pick<PaperTable, "claims" | "absent" | "note"> = {
  absent: ["6.12-rt under disk"],
  note: "Ours: virtual time at 8 ns an instruction.",
  claims: [
    {
      paper: "Timers of the tick lengthen each sleep: 10.9 ms against 0.341 ms, × 32.0.",
      outcome: "alike",
      here: "Mean delay with timers of the tick to that with precise ones: × 35.6.",
      ...{ figure: "× 35.6", smallest_effect: "× 2.00" },
      spread: "× 35.1 to × 36.2 in 3 seeds",
    },
    {
      paper: "The preemptible kernel does not help.",
      outcome: "no_difference",
      here: "Worst less mean delay of preempt=none to that of preempt=full: × 1.02.",
      ...{ figure: "× 1.04", smallest_effect: "× 1.50" },
      spread: "× 0.80 to × 1.60 in 3 seeds",
    },
    {
      paper: "Linux 2.4 is quicker than 2.2.",
      outcome: "cannot_be_told",
      here: "onset measures neither of these kernels.",
      ...{ figure: null, smallest_effect: null },
      spread: null,
    },
  ],
};

function delays(run: Run): PaperTable {
  const cell = (text: string, exact_ns: number | null = null, spread: string | null = null) => {
    return { text, exact_ns, spread };
  };
  const basis = { run: run.run, responder: "hardirq", repetitions: 3, count: 1_000, lost: 3 };
  return {
    ...CLAIMS,
    id: "2001-1",
    heading: "Delay of a task that sleeps 50 ms, disk load",
    source: "Heursch, Rzehak 2001, table 1",
    columns: ["min delay", "mean delay", "max delay"].map((name) => ({ name, unit: "ms" })),
    rows: [
      {
        label: "C Linux 2.4.0-test6",
        whose: "paper",
        cells: ["0.2", "10.9", "103.5"].map((text) => cell(text)),
        basis: null,
      },
      {
        label: run.flavour,
        whose: "ours",
        cells: [cell("—"), cell("2.00", 2_000_000.4, "1.98 … 2.02"), cell("2.10", 2_100_000)],
        basis,
      },
    ],
    picture: null,
  };
}

function waits(): PaperTable {
  const points = (wait: (work: number) => number) =>
    [1e6, 2e6, 5e6, 1e7].map((work_ns) => ({ work_ns, wait_ns_max: wait(work_ns) }));
  const lines = [
    { flavour: "6.12 preempt=full", inherits: false, points: points((work) => work + 5e5) },
    { flavour: "6.12 preempt=full", inherits: true, points: points(() => 5.2e5) },
  ];
  return {
    ...delays(fixture().runs[0]!),
    id: "2007-inversion",
    heading: "Priority inversion",
    picture: { kind: "chart", lines, courses: [] },
  };
}

function pulses(): PaperTable {
  const edges = [60, 61, 62, 70, 110, 112, 140].map((place, i) => ({ place, brightness: 1 / (i + 1) }));
  const levels: { high: [number, number]; low: [number, number] } = { high: [60, 140], low: [70, 110] };
  const screen = { label: "6.12-rt, compile", edges, ...levels };
  const screens = [
    { ...screen, beyond: 0, latest_ns: 21_000 },
    { ...screen, label: "6.12 preempt=none, compile", beyond: 12, latest_ns: 1_200_000 },
  ];
  return {
    ...delays(fixture().runs[0]!),
    id: "2007-toggle",
    heading: "A pulse of 50 µs every millisecond",
    picture: { kind: "screens", division_ns: 50_000, width_ns: 50_000, screens },
  };
}

function run(flavour: string, load: string, index: number): Run {
  const series = RESPONDERS.map((responder, i) => makeSeries(responder, flavour, load, i));
  const task = series.find(({ responder }) => responder === "task")?.max_ns ?? null;
  const kept = (task ?? Infinity) <= 250_000;
  const findings: Finding[] = [
    {
      responder: "task",
      statistic: "max",
      bound_ns: 250_000,
      measured_ns: task,
      verdict: kept ? "pass" : "fail",
      reason: kept ? "within" : "exceeded",
    },
  ];
  return {
    experiment: "Response ladder of 6.12",
    run: `20261121-195${index}-${load}`,
    flavour,
    load,
    seed: 1,
    clock: "virtual",
    verdict: findings.every((finding) => finding.verdict === "pass") ? "pass" : "fail",
    evidence: { samples_min: TRIGGERS, samples_max: TRIGGERS, measured_ns: 10_000_400_000 },
    complete: true,
    created: "2026-11-21T19:50:00Z",
    series,
    warnings: [],
    findings,
    configuration: configuration(flavour, load),
    experiment_source: EXPERIMENT,
    files: [
      {
        name: "manifest.json",
        href: `runs/${index}-${load}/manifest.json`,
        what: "configuration, versions, warnings and verdict",
      },
      {
        name: "samples.parquet",
        href: `runs/${index}-${load}/samples.parquet`,
        what: "every sample: responder, trigger, time, latency, instructions",
      },
    ],
    inside: null,
    scope: null,
  };
}

function makeSeries(responder: string, flavour: string, load: string, index: number): Series {
  const typical = FLAVOURS[flavour]?.[index] ?? 1;
  const next = uniform(Object.keys(FLAVOURS).indexOf(flavour) * 100 + index * 10 + load.length);
  const loaded = load === "idle" ? 1.2 : (TAILS[flavour] ?? 1);
  const superseded = load === "mixed" && responder === "work" ? 37 : 0;
  const samples = Array.from({ length: TRIGGERS - superseded }, (_, trigger): WorstSample => {
    const body = typical * (0.92 + 0.16 * next());
    // One in a hundred or so meets the load; how badly follows a power law, cut at the flavour's tail.
    const meets = next() < (load === "idle" ? 0.05 : Math.sqrt(loaded) / 100);
    const late = meets ? Math.min(loaded, (1 - next()) ** -0.75) : 1;
    const latency_ns = Math.round(body * Math.max(1, late));
    return {
      trigger,
      at_ns: Math.round(trigger * 1_000_000 + 400_000 * next()),
      latency_ns,
      path_insns: latency_ns - Math.floor(latency_ns * 0.01),
    };
  });
  return summarise(responder, samples, superseded);
}

function losses(superseded: number): Losses {
  return { unanswered: 0, superseded, spurious: 0, tainted: 0, overrun: 0, dropped: 0 };
}

function summarise(responder: string, samples: WorstSample[], superseded: number): Series {
  const sorted = samples.map(({ latency_ns }) => latency_ns).sort((a, b) => a - b);
  const at = (q: number) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? 0;
  const mean = sorted.reduce((sum, ns) => sum + ns, 0) / sorted.length;
  const variance = sorted.reduce((sum, ns) => sum + (ns - mean) ** 2, 0) / sorted.length;
  return {
    responder,
    count: sorted.length,
    losses: losses(superseded),
    min_ns: sorted[0] ?? null,
    mean_ns: Math.round(mean),
    stddev_ns: Math.round(Math.sqrt(variance)),
    max_ns: sorted.at(-1) ?? null,
    quantiles: Object.fromEntries(["0.5", "0.9", "0.99", "0.999"].map((q) => [q, at(Number(q))])),
    columns: columns(sorted),
    curve: curve(sorted.length).map((quantile) => ({
      quantile,
      latency_ns: quantile === 1 ? (sorted.at(-1) ?? 0) : at(quantile),
    })),
    timeline: timeline(samples),
    worst: [...samples].sort((a, b) => b.latency_ns - a.latency_ns).slice(0, 32),
  };
}

/** Sixteen columns to the octave, empty ones left out. */
function columns(sorted: readonly number[]): Series["columns"] {
  const found = new Map<number, number>();
  for (const ns of sorted) {
    const column = Math.floor(Math.log2(ns) * 16);
    found.set(column, (found.get(column) ?? 0) + 1);
  }
  const edge = (column: number) => Math.ceil(2 ** (column / 16));
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([column, count]) => ({ low_ns: edge(column), high_ns: edge(column + 1) - 1, count }));
}

/** 0, then ten steps to every nine that the count reaches, then 1. */
function curve(count: number): number[] {
  const steps = Math.floor(Math.log10(count) * 10);
  return [...Array.from({ length: steps + 1 }, (_, i) => 1 - 10 ** (-i / 10)), 1].map((q) => Math.max(q, 1 / count));
}

/** Slices of 50 triggers. */
function timeline(samples: readonly WorstSample[]): Series["timeline"] {
  const width_ns = 50_000_000;
  const slices = new Map<number, number[]>();
  for (const { at_ns, latency_ns } of samples) {
    const slice = Math.floor(at_ns / width_ns);
    slices.set(slice, [...(slices.get(slice) ?? []), latency_ns]);
  }
  return [...slices].map(([slice, ns]) => ({
    at_ns: slice * width_ns,
    width_ns,
    min_ns: Math.min(...ns),
    max_ns: Math.max(...ns),
    count: ns.length,
  }));
}

function configuration(flavour: string, load: string): Run["configuration"] {
  const rt = flavour.endsWith("-rt");
  return [
    {
      group: "kernel",
      entries: [
        { key: "release", value: rt ? "6.12.57-rt-amd64" : "6.12.57-amd64" },
        { key: "command line", value: `console=ttyS0 nokaslr norandmaps${rt ? "" : ` ${flavour.split(" ")[1]}`}` },
      ],
    },
    {
      group: "machine",
      entries: [
        { key: "QEMU", value: "10.0.2" },
        { key: "icount shift", value: "0" },
        { key: "memory", value: "256 MiB" },
      ],
    },
    {
      group: "trigger",
      entries: [
        { key: "period", value: "1 ms" },
        { key: "jitter", value: "400 µs" },
        { key: "count", value: String(TRIGGERS) },
      ],
    },
    {
      group: "load",
      entries: [
        { key: "name", value: load },
        { key: "work done", value: load === "idle" ? "0" : String(1_000 + flavour.length) },
      ],
    },
  ];
}

const EXPERIMENT = `title = "Response ladder of 6.12"
flavours = ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt"]
loads = ["idle", "mixed"]

[trigger]
period = "1ms"
jitter = "400us"
count = 10000

[limits]
task.max = "250us"
`;
