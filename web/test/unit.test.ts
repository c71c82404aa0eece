// SPDX-License-Identifier: GPL-2.0-or-later
// What the viewer decides without a browser: reading the contract, transposing, naming, formatting.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Arrow } from "../src/boxes.ts";
import { parseReport, type Report, SCHEMA, Unreadable } from "../src/contract.ts";
import { duration, integer, nines, quantileName, seed, several, tick, sumText } from "../src/format.ts";
import { linearTicks, stepped } from "../src/growth.ts";
import { neighbour } from "../src/latency.ts";
import { step } from "../src/ledger.ts";
import { logPlace, logRange, logTicks } from "../src/ticks.ts";
import { configurationRows, doubts, limitsOn, type Matrix, runName, transpose } from "../src/transpose.ts";
import { firstView, readView, viewHash } from "../src/view.ts";
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
  assert.ok(twice(2).includes("6.12-rt"), "a flavour that is not ambiguous keeps its name");
});

test("a view survives its own hash, and nonsense in a hash falls back", () => {
  const matrix = only(fixture());
  const view = { experiment: matrix.experiment, load: "idle", responder: "work", flavours: ["6.12 preempt=full", "6.12-rt"] };
  assert.deepEqual(readView(viewHash(view, [matrix]), [matrix]), view);
  assert.deepEqual(readView("#load=nowhere&responder=%00&flavour=none", [matrix]), firstView(matrix));
  assert.ok(!viewHash(firstView(matrix), [matrix]).includes("flavour"));
});

test("the first view is the load with the latest answer and the responder with a limit", () => {
  assert.deepEqual(firstView(only(fixture())), {
    experiment: "Response ladder of 6.12",
    load: "mixed",
    responder: "task",
    flavours: Object.values(only(fixture()).flavours),
  });
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
  assert.deepEqual(doubts(report.runs), [{ ...kind, seen: [{ symptom, runs: report.runs.slice(0, 2) }] }]);
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
  assert.equal(sumText({ ns: 1_280_000, stretches: 12, longest_ns: 106_000 }), "1.28 ms in 12 stretches, longest 106 µs");
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

test("a report of hunts alone is one, and names of code that are not there are refused", () => {
  assert.equal(parseReport(JSON.stringify(huntAlone())).hunts.length, 1);
  const torn = inside();
  assert.throws(
    () => parseReport(JSON.stringify({ ...torn, code: { ...torn.code, frames: torn.code.frames.slice(0, 2) } })),
    /names code that it does not hold/,
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
