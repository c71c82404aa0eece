// SPDX-License-Identifier: GPL-2.0-or-later
// What the viewer decides without a browser: reading the contract, transposing, naming, formatting.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Arrow } from "../src/boxes.ts";
import { isPart } from "../src/contents.ts";
import { type Report, SCHEMA } from "../src/contract.ts";
import { parseReport, Unreadable } from "../src/parse.ts";
import { doubts, tabulate } from "../src/doubts.ts";
import { share } from "../src/drawing.ts";
import { greatest, smallest } from "../src/extremes.ts";
import { duration, integer, nines, quantileName, seed, several, tick, sumText } from "../src/format.ts";
import { stepped } from "../src/growth.ts";
import { neighbour } from "../src/latency.ts";
import { step } from "../src/ledger.ts";
import { linearTicks, logPlace, logRange, logTicks } from "../src/ticks.ts";
import { configurationRows, limitsOn, type Matrix, runName, transpose } from "../src/transpose.ts";
import { firstView, readView, viewHash } from "../src/view.ts";
import { isWhole, keepWords, moved, readWord, readZoom, within, wordHash, zoomHash } from "../src/zoom.ts";
import { fixture, huntAlone, inside } from "./fixture.ts";

function changed(change: (report: Report) => void): Report {
  const report = fixture();
  change(report);
  return report;
}

/** The matrix of a report of one experiment. */
function only(report: Report): Matrix {
  const matrices = transpose(report);
  assert.equal(matrices.length, 1);
  return matrices[0]!;
}

test("durations read exactly as the command prints them", () => {
  // The table of crates/sample/src/units.rs: one rule for the terminal and the page.
  const table: [number, string][] = [
    [0, "0 ns"],
    [999, "999 ns"],
    [1_000, "1.00 µs"],
    [9_994, "9.99 µs"],
    [9_996, "10.0 µs"],
    [99_960, "100 µs"],
    [999_499, "999 µs"],
    [999_500, "1.00 ms"],
    [12_345_678, "12.3 ms"],
    [1_000_000_000, "1.00 s"],
  ];
  for (const [ns, text] of table) assert.equal(duration(ns), text);
});

test("an absent statistic is a dash and never a zero", () => {
  assert.equal(duration(null), "—");
  assert.equal(duration(undefined), "—");
});

test("quantiles are named by their digits and not by floating point", () => {
  for (const [quantile, name] of [
    ["0.5", "median"],
    ["0.9", "p90"],
    ["0.05", "p5"],
    ["0.999", "p99.9"],
    ["0.99999", "p99.999"],
    ["0.29", "p29"],
  ] as const) {
    assert.equal(quantileName(quantile), name);
  }
});

test("nines, ticks and counts are short and exact", () => {
  assert.deepEqual([1, 2, 10, 1_000, 100_000].map(nines), ["0 %", "50 %", "90 %", "99.9 %", "99.999 %"]);
  assert.deepEqual([500, 1_500, 20_000_000, 1e9].map(tick), ["500 ns", "1.5 µs", "20 ms", "1 s"]);
  assert.equal(integer(1_234_567), "1\u202f234\u202f567");
  assert.deepEqual([several(1, "run"), several(2_000, "run")], ["1 run", "2\u202f000 runs"]);
});

test("a seed that JSON could not carry says that it is approximate", () => {
  assert.equal(seed(42), "42");
  assert.match(seed(2 ** 64), /^≈ 1\.845e\+19 \(exact in the manifest\)$/);
});

test("axis marks are round, inside the range and within the budget, for any range", () => {
  for (let decades = 0.05; decades < 12; decades += 0.35) {
    for (let low = 1; low < 10; low += 0.7) {
      for (const budget of [2, 5, 12]) {
        const range = { low, high: low * 10 ** decades };
        const ticks = logTicks(range, budget);
        assert.ok(
          ticks.length <= budget && ticks.every((value) => value >= range.low && value <= range.high),
          JSON.stringify({ range, ticks }),
        );
        if (decades >= 1) assert.ok(ticks.length >= 1, JSON.stringify({ range, budget }));
      }
    }
  }
});

test("of any many numbers there is a greatest and a least", () => {
  const many = Array.from({ length: 500_000 }, (_, n) => n);
  assert.deepEqual([greatest(many), smallest(many), greatest([], 7), smallest([], 7)], [499_999, 0, 7, 7]);
});

test("nothing lies at the low end of a logarithmic axis, and not infinitely far below", () => {
  const range = { low: 10, high: 1_000 };
  assert.deepEqual([0, -1, 10, 100].map((value) => share(value, range, true)), [0, 0, 0, 0.5]);
  assert.equal(share(0, { low: -1, high: 1 }, false), 0.5);
});

test("a range ignores what a logarithm cannot place", () => {
  assert.deepEqual(logRange([0, -1, NaN, Infinity, 100], 1), { low: 100, high: 100 });
  assert.equal(logRange([0]), null);
  assert.equal(logPlace(100, { low: 1, high: 10_000 }), 0.5);
});

test("data of another schema are refused with both numbers and what to do", () => {
  assert.throws(
    () => parseReport('{"schema":1}'),
    (error) =>
      error instanceof Unreadable &&
      /schema number 1/.test(error.reason) &&
      error.reason.includes(`reads schema ${SCHEMA}.`) &&
      /onset report/.test(error.action),
  );
  assert.throws(() => parseReport("{}"), /schema number \(none\)/);
  assert.throws(() => parseReport("null"), Unreadable);
});

test("the template without a report, a torn one and an empty one are refused in words", () => {
  const text = JSON.stringify(fixture());
  for (const broken of ["__ONSET_REPORT__", "", text.slice(0, -10), JSON.stringify({ ...fixture(), runs: [] })]) {
    assert.throws(() => parseReport(broken), Unreadable);
  }
  assert.deepEqual(parseReport(text), fixture());
});

test("runs of different clocks are refused", () => {
  const mixed = changed((report) => {
    report.runs[1]!.clock = "tsc";
  });
  assert.throws(() => parseReport(JSON.stringify(mixed)), /different clocks/);
});

test("the transpose keeps every run once and a flavour's look under every load", () => {
  const report = fixture();
  const matrix = only(report);
  assert.deepEqual(matrix.loads, ["idle", "mixed"]);
  const runs = matrix.loads.flatMap((load) => matrix.lanes(load).map((lane) => lane.run));
  assert.deepEqual(new Set(runs), new Set(report.runs));
  for (const load of matrix.loads)
    assert.deepEqual(
      matrix.lanes(load).map(({ look }) => look),
      [0, 1, 2],
    );
});

test("a flavour run twice under one load is told apart by seed, and by run where that does not help", () => {
  const twice = (second: number) =>
    only(changed((report) => report.runs.push({ ...report.runs[0]!, run: "again", seed: second }))).flavours;
  assert.deepEqual(
    twice(2).filter((name) => name.includes("none")),
    ["6.12 preempt=none · seed 1", "6.12 preempt=none · seed 2"],
  );
  const same = twice(1).filter((name) => name.includes("none"));
  assert.equal(same.length, 3);
  assert.ok(same.includes("6.12 preempt=none · again"));
  assert.ok(twice(2 ** 64).some((name) => name.endsWith(`· seed ${seed(2 ** 64)}`)), "a seed is told as everywhere");
  assert.ok(twice(2).includes("6.12-rt"), "a flavour that is not ambiguous keeps its name");
});

test("a view survives its own hash, and nonsense in a hash falls back", () => {
  const matrix = only(fixture());
  const view = { experiment: matrix.experiment, load: "idle", responder: "work", flavours: ["6.12 preempt=full", "6.12-rt"] };
  assert.deepEqual(readView(viewHash(view, [matrix]), [matrix]), view);
  assert.deepEqual(readView("#load=nowhere&responder=%00&flavour=none", [matrix]), firstView(matrix));
  assert.ok(!viewHash(firstView(matrix), [matrix]).includes("flavour"));
});

test("the first view is of the task, under the load under which it was latest", () => {
  assert.deepEqual(firstView(only(fixture())), {
    experiment: "Response ladder of 6.12",
    load: "mixed",
    responder: "task",
    flavours: Object.values(only(fixture()).flavours),
  });
  const limited = changed(({ runs }) => {
    for (const finding of runs.flatMap((run) => run.findings)) finding.responder = "hardirq";
  });
  assert.equal(firstView(only(limited)).responder, "task", "whatever is limited");
  const strangers = changed(({ runs }) => {
    for (const { series } of runs) series.find(({ responder }) => responder === "task")!.responder = "select-1ms";
  });
  assert.equal(firstView(only(strangers)).responder, "select-1ms", "the last, where there is no task");
  for (const finding of strangers.runs.flatMap((run) => run.findings)) finding.responder = "work";
  assert.equal(firstView(only(strangers)).responder, "work", "or the one with a limit");
});

test("an address names a view or a part of the page", () => {
  assert.deepEqual(["", "#", "#ladder", "#load=idle", "#zoom=histogram+1+2+3+4"].map(isPart), [false, false, true, false, false]);
});

test("the same limit of several runs is one line, the same doubt of several runs one warning", () => {
  const doubt = { code: "host_steal", symptom: "s", cause: "c", action: "a" };
  const report = changed(({ runs }) => runs.slice(0, 2).forEach((run) => run.warnings.push({ ...doubt })));
  const lanes = only(report).lanes("mixed");
  assert.deepEqual(
    limitsOn(lanes, "task").map(({ whose }) => whose),
    [lanes.map(({ name }) => name)],
  );
  const { symptom, ...kind } = doubt;
  const seen = [{ symptom, warning: doubt, runs: report.runs.slice(0, 2) }];
  assert.deepEqual(doubts(report.runs), [{ ...kind, seen }]);
});

test("a limit belongs to the flavours that have it, and to no other", () => {
  const report = changed(({ runs }) => {
    for (const run of runs.filter(({ flavour }) => flavour !== "6.12-rt")) run.findings = [];
  });
  const lanes = only(report).lanes("mixed");
  assert.deepEqual(
    limitsOn(lanes, "task").map(({ whose }) => whose),
    [["6.12-rt"]],
  );
  assert.deepEqual(limitsOn(lanes.slice(0, 2), "task"), []);
});

test("a sum is told with its stretches and the longest, and one stretch without", () => {
  assert.equal(sumText({ ns: 1_280_000, stretches: 12, longest_ns: 106_000 }),
    "1.28 ms in 12 stretches, longest 106 µs");
  assert.equal(sumText({ ns: 106_000, stretches: 1, longest_ns: 106_000 }), "106 µs");
  assert.equal(sumText({ ns: 5_000, stretches: 0, longest_ns: 0 }), "5.00 µs in stretches that were not counted");
});

test("doubts of one kind stand together, each with its own symptom", () => {
  const kind = { code: "superseded", cause: "c", action: "a" };
  const report = changed(({ runs }) => runs[0]?.warnings.push({ ...kind, symptom: "s1" }, { ...kind, symptom: "s2" }));
  const [doubt, ...others] = doubts(report.runs);
  assert.equal(others.length, 0);
  assert.deepEqual(doubt?.seen.map((s) => s.symptom), ["s1", "s2"]);
});

test("symptoms that differ in a name and a number are one sentence with a row for each", () => {
  const late = (responder: string, triggers: number) => {
    const symptom = `${responder} answered ${triggers} triggers together with an older one`;
    return { code: "superseded", cause: "c", action: "a", responder, triggers, symptom };
  };
  const report = changed(({ runs }) => runs[0]!.warnings.push(late("task", 12), late("work", 37)));
  const seen = doubts(report.runs)[0]!.seen;
  assert.deepEqual(tabulate(seen), {
    sentence: "… answered … triggers together with an older one",
    heads: ["responder", "triggers"],
    rows: [
      { cells: ["task", "12"], runs: [report.runs[0]] },
      { cells: ["work", "37"], runs: [report.runs[0]] },
    ],
  });
});

test("a number without a name and the mark behind it are a column too, and other words are told whole", () => {
  const seen = (...symptoms: string[]) =>
    symptoms.map((symptom) => ({ symptom, warning: { code: "x", cause: "c", action: "a", symptom }, runs: [] }));
  const two = tabulate(seen("CPU 3, on the core of 1, was busy 5 % of it", "CPU 2, on the core of 1, was busy 7 % of it"));
  assert.equal(two.sentence, "CPU …, on the core of 1, was busy … % of it");
  assert.deepEqual([two.heads, two.rows.map(({ cells }) => cells)], [["", ""], [["3", "5"], ["2", "7"]]]);
  for (const other of [seen("it warned: a b", "it warned: c"), seen("it warned: a b", "it warned: c d")]) {
    const { sentence, heads, rows } = tabulate(other);
    assert.deepEqual([sentence, heads, rows.length], ["", ["symptom"], 2]);
    assert.equal(rows[0]?.cells[0], "it warned: a b");
  }
});

test("configurations side by side keep entries that only some runs have and mark what differs", () => {
  const report = changed(({ runs }) => runs[0]!.configuration[0]!.entries.push({ key: "only here", value: "1" }));
  const kernel = configurationRows(report.runs.slice(0, 2)).find(({ group }) => group === "kernel");
  assert.deepEqual(kernel?.rows.at(-1), { key: "only here", values: ["1", null], differs: true });
  assert.equal(kernel?.rows.find(({ key }) => key === "release")?.differs, false);
});

test("runs of another experiment never stand beside those of the same flavour and load", () => {
  const report = changed(({ runs }) => runs.push({ ...runs[0]!, run: "other", experiment: "Clock reads" }));
  const matrices = transpose(report);
  assert.deepEqual(
    matrices.map(({ experiment, flavours }) => [experiment, flavours.length]),
    [
      ["Response ladder of 6.12", 3],
      ["Clock reads", 1],
    ],
  );
  const view = { ...firstView(matrices[1]!), load: "idle" };
  assert.match(viewHash(view, matrices), /experiment=Clock\+reads/);
  assert.deepEqual(readView(viewHash(view, matrices), matrices), view);
  assert.equal(readView("#experiment=none", matrices).experiment, "Response ladder of 6.12");
  assert.match(runName(report.runs.at(-1)!, report), /Clock reads$/);
  assert.equal(runName(fixture().runs[0]!, fixture()), "6.12 preempt=none, idle");
});

test("a report of a proof alone is one, and a report of nothing is none", () => {
  const nothing = { ...fixture(), runs: [] };
  assert.throws(() => parseReport(JSON.stringify(nothing)), /no runs, no hunts and no proof/);
  const proof = { schema: 3, responder: "a", statistic: "p99", load: "idle", kernels: [], machine: null };
  assert.equal(parseReport(JSON.stringify({ ...nothing, proof })).proof?.responder, "a");
});

test("a report of hunts alone is one, and names of code that are not there are refused", () => {
  assert.equal(parseReport(JSON.stringify(huntAlone())).hunts.length, 1);
  const torn = inside();
  assert.throws(
    () => parseReport(JSON.stringify({ ...torn, code: { ...torn.code, frames: torn.code.frames.slice(0, 2) } })),
    /refers to names of functions that it does not hold/,
  );
});

test("arrows lead down a stack and back, and along a row over boxes of other depths", () => {
  const nodes = inside().runs[3]!.inside!.ledgers[0]!.icicle;
  const path = (from: number, ...arrows: Arrow[]) =>
    arrows.reduce<number | undefined>((at, arrow) => (at === undefined ? at : step(nodes, at, arrow)), from);
  assert.equal(path(0, "ArrowDown", "ArrowDown"), 2);
  assert.equal(path(2, "ArrowDown"), undefined);
  assert.equal(path(2, "ArrowUp", "ArrowUp", "ArrowRight"), 3);
  assert.equal(path(1, "ArrowRight", "ArrowLeft"), 1);
  assert.equal(path(0, "ArrowUp"), undefined);
  assert.equal(path(0, "ArrowLeft"), undefined);
});

test("arrows lead along a strip, and to what is at the same time in the next one", () => {
  const box = (row: number, from: number, share: number) => ({ row, from, share, look: "", text: "", says: "" });
  const strips = [box(0, 0, 0.7), box(0, 0.7, 0.3), box(1, 0, 0.4), box(1, 0.4, 0.3), box(1, 0.7, 0.3)];
  assert.equal(neighbour(strips, 1, "ArrowDown"), 4);
  assert.equal(neighbour(strips, 3, "ArrowUp"), 0);
  assert.equal(neighbour(strips, 2, "ArrowRight"), 3);
  assert.equal(neighbour(strips, 1, "ArrowRight"), undefined, "a strip ends where the other begins");
  assert.equal(neighbour(strips, 0, "ArrowUp"), undefined);
  assert.equal(neighbour(strips, 3, "ArrowDown"), undefined);
  const marked = [...strips, box(2, 0.5, 0), box(2, 0.6, 0)];
  assert.equal(neighbour(marked, 4, "ArrowDown"), 6);
  assert.equal(neighbour(marked, 2, "ArrowDown"), 5, "the first one, where all are later");
  assert.equal(neighbour(marked, 5, "ArrowUp"), 3);
});

test("a growth curve steps at each find and goes on to the end of the hunt", () => {
  const points = [
    { virtual_ns: 1, latency_ns: 5, trial: 0 },
    { virtual_ns: 4, latency_ns: 9, trial: 3 },
  ];
  assert.equal(stepped(points, 10, (ns) => ns, (ns) => -ns), "M1 -5H4V-9H10");
  assert.equal(stepped([], 10, (ns) => ns, (ns) => ns), "");
  assert.deepEqual(linearTicks({ low: 0, high: 13.6 }, 5), [0, 5, 10]);
});

test("what a chart is zoomed to survives the address, for each chart by itself and beside the view", () => {
  const part = { x: { low: 1_000, high: 20_000 }, y: { low: 0.6, high: 123_456 } };
  const hash = zoomHash("#load=idle", "histogram", part);
  assert.deepEqual(readZoom(hash, "histogram"), { ...part, y: { low: 0.6, high: 123_460 } });
  assert.equal(readZoom(hash, "timelines"), null);
  const both = zoomHash(hash, "timelines", part);
  assert.equal(zoomHash(both, "timelines", null), hash);
  assert.match(hash, /^#load=idle&zoom=/);
  assert.deepEqual(readZoom(keepWords("#load=mixed", hash, ["zoom"]), "histogram"), readZoom(hash, "histogram"));
  for (const nonsense of ["#zoom=histogram", "#zoom=histogram+2+1+0+1", "#zoom=histogram+a+b+c+d", "#zoom=histogram+1+2+3"]) {
    assert.equal(readZoom(nonsense, "histogram"), null, nonsense);
  }
});

test("a word of the address stands beside the others, of a report and of a page of the site", () => {
  assert.equal(readWord(wordHash("#load=idle", "find", "a b&c"), "find"), "a b&c");
  assert.equal(wordHash("#load=idle&find=x", "find", ""), "#load=idle");
  assert.equal(wordHash("#live", "scope", "task rise 20000 - -"), "#live?scope=task+rise+20000+-+-");
  const zoomed = zoomHash("#live?frequency=2kHz", "scope", { x: { low: -1, high: 2 }, y: { low: 0, high: 1 } });
  assert.match(zoomed, /^#live\?frequency=2kHz&zoom=/);
  assert.deepEqual(readZoom(zoomed, "scope")?.x, { low: -1, high: 2 });
});

test("a part stays inside its axis, moves by its own width, and cannot become a line", () => {
  const whole = { low: 1, high: 10_000 };
  assert.deepEqual(within(whole, { low: 0.1, high: 100 }, true), { low: 1, high: 100 });
  assert.deepEqual(within(whole, { low: 2e4, high: 3e4 }, true), whole);
  assert.deepEqual(within(whole, { low: 5, high: 5.000001 }, true), whole);
  const half = moved(whole, whole, true, { stretch: 0.5, move: 0 });
  assert.deepEqual([half.low, half.high].map((n) => Math.round(n)), [10, 1_000]);
  const right = moved(whole, half, true, { stretch: 1, move: 0.25 });
  assert.ok(Math.abs(right.low - 10 ** 1.5) < 1e-6 && right.high < 1e4);
  assert.ok(isWhole(whole, moved(whole, half, true, { stretch: 4, move: 3 }), true));
  const end = moved(whole, half, true, { stretch: 1, move: 9 });
  assert.ok(Math.abs(end.high - whole.high) < 1e-6, "not beyond the end");
  let narrow = { low: 0, high: 100 };
  for (let i = 0; i < 99; i++) narrow = moved({ low: 0, high: 100 }, narrow, false, { stretch: 0.5, move: 0 });
  assert.ok(narrow.high - narrow.low >= 1e-3);
});

test("marks of a narrow part are even, inside it, and differ in their text", () => {
  const ticks = linearTicks({ low: 5_000_100_000, high: 5_000_900_000 }, 5);
  assert.deepEqual(ticks, [5_000_200_000, 5_000_400_000, 5_000_600_000, 5_000_800_000]);
  assert.deepEqual(ticks.map((ns) => tick(ns, 6)), ["5.0002 s", "5.0004 s", "5.0006 s", "5.0008 s"]);
});
