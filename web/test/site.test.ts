// SPDX-License-Identifier: GPL-2.0-or-later
// The page of `onset serve`, in Chromium, with a server that says what a test has it say.

import assert from "node:assert/strict";
import { test } from "node:test";
import { exposed, read, write } from "../src/site/address.ts";
import { differences, flat } from "../src/site/differences.ts";
import { axis, share } from "../src/site/draw.ts";
import { cellsOf, timeOf } from "../src/site/history.ts";
import { lost, sentence } from "../src/site/live.ts";
import { choose } from "../src/site/runs.ts";
import type { Told } from "../src/site/told.ts";
import { cells, coverage, drag, pixels } from "./chromium.ts";
import { encodeEdges } from "./edges.ts";
import { EXAMPLE, past, RUNS, served } from "./stub.ts";

test("runs are found by words, sorted by a column, and opened alone or together", async () => {
  await served("#runs", async (page) => {
    const rows = "table.runs tbody tr";
    await page.locator(rows).nth(2).waitFor();
    await page.fill("#filter", "7.3-rt mix");
    assert.deepEqual((await cells(page, rows)).map((row) => row[2]), ["7.3-rt"]);
    assert.match(page.url(), /#runs\?filter=7\.3-rt\+mix$/);
    assert.deepEqual(await page.locator("nav a[aria-current=page]").allInnerTexts(), ["Runs"]);
    await page.fill("#filter", "");
    await page.click("th button:text('samples')");
    const samples = async () => (await cells(page, rows)).map((row) => row[5]);
    assert.deepEqual(await samples(), ["900", "10\u202f000", "20\u202f000"]);
    await page.click("th button:text('samples')");
    assert.deepEqual(await samples(), ["20\u202f000", "10\u202f000", "900"]);
    // What a run is titled is text.
    assert.equal((await cells(page, rows))[0]?.[7], "<b>ladder</b>");
    assert.equal(await page.locator("a.report").isVisible(), false);
    await page.locator(`${rows} input`).nth(0).focus();
    await page.keyboard.press("Space");
    // The table is drawn anew, and the keyboard stays where it was.
    const focused = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    assert.equal(focused, "choose 20261122-120000-run-0002");
    await page.locator(`${rows} input`).nth(2).check();
    assert.equal(await page.getAttribute("a.report", "href"), "report?run=20261122-120000-run-0002&run=20261121-120000-run-0001");
    assert.match((await cells(page, rows))[2]?.[6] ?? "", /fail, interrupted/);
    await page.locator("table.differences tbody tr").first().waitFor();
    assert.deepEqual(await cells(page, "table.differences tbody tr"), [
      ["flavour", "7.3-rt", "6.12 preempt=none"],
      ["load", "idle", "mixed"],
      ["kernel.release", "7.3.2", "7.3.1"],
    ]);
    await page.locator(`${rows} input`).nth(0).uncheck();
    await page.waitForFunction(() => document.querySelector("table.differences") === null);
  });
});

test("chosen runs go to the bin and come back, and what the server refuses stays", async () => {
  const expected = { expected: /409/ } as const;
  await served("#runs", async (page, stub) => {
    const rows = "table.runs tbody tr";
    await page.locator(rows).nth(2).waitFor();
    assert.equal(await page.locator("button.discard").isVisible(), false);
    await page.locator(`${rows} input`).nth(0).check();
    await page.locator(`${rows} input`).nth(1).check();
    await page.click("button:text('The 2 chosen runs to the bin')");
    await page.waitForFunction((rows) => document.querySelectorAll(rows).length === 1, rows);
    const asked = [0, 1].map((n) => `/api/runs/discard {"run":"2026112${n}-120000-run-000${n}"}`);
    assert.deepEqual(stub.asked, asked);
    assert.match(await page.innerText(".state"), /^1 of 1 run/);
    stub.refusal = "cannot move it";
    await page.locator(`${rows} input`).check();
    await page.click("button.discard");
    await page.locator(".refused span:text('20261122-120000-run-0002: cannot move it')").waitFor();
    assert.equal(await page.locator(rows).count(), 1);
    stub.refusal = null;
    await page.click("nav a:text('Bin')");
    await page.locator(rows).nth(1).waitFor();
    await page.locator("button:text('Restore')").first().click();
    await page.waitForFunction((rows) => document.querySelectorAll(rows).length === 1, rows);
    assert.equal(stub.asked.at(-1), '/api/runs/restore {"run":"20261120-120000-run-0000"}');
    assert.match(await page.innerText(".state"), /^1 run in the bin/);
  }, expected);
});

test("the history of an experiment is a chart and a wall for each cell, and each run leads to its report", async () => {
  await served("#runs", async (page, stub) => {
    await page.locator("table.runs tbody tr").nth(2).waitFor();
    await page.locator("table.runs a:text('history')").first().click();
    await page.locator("section.cell").nth(1).waitFor();
    const asked = new URLSearchParams(stub.asked[0]?.split("?")[1]);
    assert.deepEqual(
      ["title", "flavour", "load", "instrument", "responder"].map((word) => asked.get(word)),
      ["<b>ladder</b>", "7.3-rt", "mixed", "trigger", null],
    );
    assert.match(await page.innerText(".state"), /5 runs.*task.*3 older runs left out.*1 damaged run/);
    // Kernels do not share an axis; the cell of the newest run comes first.
    const heads = await page.locator("section.cell h2").allInnerTexts();
    assert.deepEqual(heads, ["7.3-rt", "6.12"].map((name) => `<b>ladder</b> · ${name} · mixed · trigger · virtual time`));
    const cell = page.locator("section.cell").first();
    assert.equal(await cell.locator("svg.history g.line").count(), 3);
    // Three of the four runs have numbers, and each line has a point for each.
    assert.deepEqual(
      await cell.locator("svg.history g.line").evaluateAll((lines) => lines.map((line) => line.querySelectorAll("circle").length)),
      [3, 3, 3],
    );
    const heights = await cell.locator("g.look-0 circle").evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute("cy"))));
    assert.ok(heights.every((height, n) => n === 0 || height < (heights[n - 1] ?? 0)), "later runs were later");
    // The numbers of an unsound run, and of one that was interrupted, are told from those of others.
    assert.equal(await cell.locator("g.look-0 circle").count(), 3);
    assert.equal(await cell.locator("g.look-0 circle.doubtful").count(), 2);
    assert.deepEqual((await cell.locator("g.look-0 title").allTextContents()).slice(0, 2), [
      "longest 1.00 ms, 20261111-120000-run-0001: invalid, lost 1 superseded",
      "longest 2.00 ms, 20261112-120000-run-0002: fail, interrupted, lost 2 superseded",
    ]);
    const bricks = await cell.locator("a.brick").allInnerTexts();
    assert.match(bricks[0] ?? "", /no task/);
    assert.match(bricks[1] ?? "", /max 4\.00 ms\s+n 10.000, lost 4 superseded/);
    assert.equal(await cell.locator("a.brick.fail").count(), 1);
    assert.equal(await cell.locator("a.brick").nth(1).getAttribute("href"), "report?run=20261114-120000-run-0004");
    // A box around the last two runs leaves these, in the address too; a double click brings the others back.
    const seen = () => cell.locator("g.look-0 circle").evaluateAll((dots) => dots.filter((dot) => Number(dot.getAttribute("cx")) > 69).length);
    assert.equal(await seen(), 3);
    await drag(page, "section.cell svg.history", [0.6, 0.2, 0.99, 0.8]);
    await page.waitForFunction(() => location.hash.includes("zoom=history.0"));
    assert.equal(await seen(), 1);
    assert.match(page.url(), /#history\?title=/);
    await cell.locator("svg.history").dblclick({ position: { x: 300, y: 60 } });
    await page.waitForFunction(() => !location.hash.includes("zoom"));
    assert.equal(await seen(), 3);
    await page.selectOption("#responder", "hardirq");
    while (stub.asked.length < 2) await page.waitForTimeout(20);
    assert.equal(new URLSearchParams(stub.asked[1]?.split("?")[1]).get("responder"), "hardirq");
    assert.match(page.url(), /#history\?.*responder=hardirq/);
    await page.click("a.chosen:text('flavour: 7.3-rt')");
    while (stub.asked.length < 3) await page.waitForTimeout(20);
    assert.equal(new URLSearchParams(stub.asked[2]?.split("?")[1]).get("flavour"), null);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    assert.equal(wide, false, "the page scrolls sideways");
    const picture = process.env["ONSET_PICTURES"];
    if (picture !== undefined) await page.screenshot({ path: `${picture}/history.png`, fullPage: true });
  }, { viewport: { width: 1280, height: 900 } });
});

test("cells keep kernels and clocks apart, and a single run stands in the middle", () => {
  const names = cellsOf([past(1), past(2, { clock: "monotonic" }), past(3, { flavour: "6.12" })]).map(([name]) => name);
  assert.equal(names.length, 3);
  assert.match(names[0] ?? "", /6\.12/);
  assert.match(names[1] ?? "", /monotonic clock$/);
  assert.deepEqual(timeOf([past(1)]), { low: -43_200_000, high: 43_200_000 });
  const days = 3 * 86_400_000;
  assert.deepEqual(timeOf([past(4), past(1)]), { low: -days / 100, high: days + days / 100 });
});

test("runs differ in what is not alike, by its path, and what always differs is left out", () => {
  const entries = [["a", "1"], ["b.c", ""], ["b.d.0", "2"], ["b.d.1", "x"]];
  assert.deepEqual([...flat({ a: 1, b: { c: null, d: [2, "x"] } })], entries);
  const [one, other] = [{ seed: 1, created: "a", kernel: null }, { seed: 1, created: "b", kernel: { name: "7.3" } }];
  assert.deepEqual(differences([one, other]), [["kernel.name", ["", "7.3"]]]);
  assert.deepEqual(differences([one, one]), []);
});

test("a page that comes over a network says that nothing is encrypted, and how to have it so", () => {
  for (const name of ["127.0.0.1", "localhost", "[::1]", "127.1.2.3"]) assert.equal(exposed(name, "7080"), null, name);
  for (const name of ["192.0.2.7", "bench", "127.0.0.1.example", "localhost.example"]) {
    assert.match(exposed(name, "7080") ?? "", new RegExp(`ssh -L 7080:127\\.0\\.0\\.1:7080 ${name}`), name);
  }
});

test("what the server refuses is said, and the page fits a phone and the dark", async () => {
  // The browser itself tells of a refused request on the console.
  const phone = { viewport: { width: 390, height: 800 }, colorScheme: "dark", expected: /409/ } as const;
  await served("#live", async (page, stub) => {
    stub.refusal = "a run goes on; stop it first";
    await page.locator(".state:text('No generator')").waitFor();
    await page.click("button:text('Reset')");
    await page.locator(".refused:text('a run goes on; stop it first')").waitFor();
    stub.tell({ ...EXAMPLE, standing: "failed", message: "cannot open <b>127.0.0.1:1</b>", generator: "" });
    await page.locator(".state:text('Failed: cannot open <b>127.0.0.1:1</b>')").waitFor();
    stub.tell(EXAMPLE);
    await page.locator("#ladder-live tbody tr").waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    assert.equal(wide, false, "the page scrolls sideways");
  }, phone);
});

/** What the server tells of a trigger each millisecond from `first` on, answered after 20 µs. */
function edgesFrom(number: number, first: number, count = 50): Told {
  const edges = Array.from({ length: count }, (_, n) => first + n).flatMap((trigger) => {
    const at = 1_000_000 * trigger;
    return [[at, 0, 1], [at + 1, 0, 0], [at + 20_000, 1, trigger % 2]] as [number, number, number][];
  });
  return { ...EXAMPLE, edges: { number, pins: ["trigger", "task"], edges: encodeEdges(edges), left_out: 0 } };
}

test("the oscilloscope draws edges as they come, pauses, forgets, and keeps how it is set in the address", async () => {
  await served("#live?scope=trigger+rise+10000+-+-", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    assert.equal(await page.locator("#scope").isVisible(), false);
    stub.tell(edgesFrom(0, 1));
    await page.locator("#scope canvas").waitFor();
    const row = async () => (await cells(page, "#scope table.measured tbody tr"))[1];
    assert.deepEqual(await row(), ["task", "50", "20 µs", "20 µs", "20 µs", "0"]);
    assert.ok((await coverage(page, "#scope canvas", 0))[0]! > 0.5);
    // The next ones begin before the last ones end: a late answer tells of its trigger again.
    stub.tell(edgesFrom(1, 50));
    await page.locator("#scope .state:text('297 edges')").waitFor();
    assert.equal((await row())?.[1], "99");
    await page.click("button:text('Pause')");
    const paused = await pixels(page, "#scope canvas");
    stub.tell(edgesFrom(2, 200));
    await page.locator("#scope .state:text('447 edges')").waitFor();
    assert.equal(await pixels(page, "#scope canvas"), paused);
    await page.click("button:text('Go on')");
    stub.tell(edgesFrom(4, 300));
    await page.locator("#scope .state:text('597 edges')").waitFor();
    assert.equal((await row())?.[1], "199");
    await page.selectOption("select[name=scope-division]", "20000");
    await page.waitForFunction(() => location.hash.includes("scope=trigger+rise+20000"));
    await page.fill("#frequency", "2kHz");
    await page.waitForFunction(() => location.hash.includes("frequency=2kHz") && location.hash.includes("rise+20000"));
    await page.click("button:text('Reset')");
    await page.locator("#scope").waitFor({ state: "hidden" });
  });
});

test("a paused oscilloscope measures what it shows, and goes on though the run has ended", async () => {
  const options = { expected: /409/ } as const;
  await served("#live?scope=trigger+rise+10000+-+-", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    stub.tell(edgesFrom(0, 1));
    await page.locator("#scope canvas").waitFor();
    await page.click("button:text('Pause')");
    const paused = await pixels(page, "#scope canvas");
    const row = async () => (await cells(page, "#scope table.measured tbody tr"))[1];
    // Edges between those that are there: a late answer moves all that are behind it.
    stub.tell(edgesFrom(1, 5.5, 30));
    await page.locator("#scope .state:text('240 edges')").waitFor();
    assert.match(await page.innerText("#scope .state"), /paused at 150 edges$/);
    await page.fill("input[name=cursor-b]", "50us");
    await page.keyboard.press("Enter");
    await page.locator("#scope caption:text('50 µs')").waitFor();
    assert.deepEqual(await row(), ["task", "50", "20 µs", "20 µs", "20 µs", "0"]);
    await page.fill("input[name=cursor-b]", "");
    await page.keyboard.press("Enter");
    await page.setViewportSize({ width: 1000, height: 900 });
    while ((await pixels(page, "#scope canvas")) === paused) await page.waitForTimeout(20);
    await page.setViewportSize({ width: 1280, height: 900 });
    while ((await pixels(page, "#scope canvas")) !== paused) await page.waitForTimeout(20);
    await page.selectOption("select[name=scope-division]", "20000");
    assert.equal((await row())?.[1], "50");
    // The run has ended: nothing comes any more.
    stub.tell({ ...EXAMPLE, standing: "ended" });
    await page.locator(".state:text('Ended')").waitFor();
    await page.click("button:text('Go on')");
    assert.equal((await row())?.[1], "80");
    stub.refusal = "no run goes on";
    await page.click("button:text('Reset')");
    await page.locator(".refused:text('no run goes on')").waitFor();
    assert.ok(await page.locator("#scope").isVisible(), "what is not reset stays");
  }, options);
});

test("missing edges end a stretch, though none come at first, and the worst answers are never left out", async () => {
  await served("#live?scope=trigger+rise+10000+-+-", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    stub.tell(edgesFrom(0, 1));
    const none = edgesFrom(3, 1, 0);
    assert.equal(none.edges?.edges, "");
    stub.tell(none);
    stub.tell(edgesFrom(4, 60));
    await page.locator("#scope .state:text('300 edges')").waitFor();
    const over = page.locator("#scope .u-over");
    const { width, height } = (await over.boundingBox())!;
    await over.hover({ position: { x: 0.7 * width, y: 0.75 * height } });
    const read = await page.locator("#scope .under .readout").innerText();
    const [, high = "", low = ""] = /^task at .*high in (\d+) sweeps, low in (\d+)/.exec(read) ?? [];
    assert.equal(Number(high) + Number(low), 99, read);
    // Each sweep shows a hundred triggers, so that only each second one can be drawn, and the worst besides.
    stub.tell(edgesFrom(0, 1, 20_000));
    await page.locator("#scope .state:text('60\u202f000 edges')").waitFor();
    await page.selectOption("select[name=scope-division]", "10000000");
    const sweeps = await page.locator("#scope .readout:text('sweeps')").innerText();
    assert.match(sweeps, /^10.001 of 20.000 sweeps, .*each with a latest answer/);
  });
});

test("an address names a page and its words, and nonsense is the runs", () => {
  assert.equal(read("#live?frequency=2kHz").words.get("frequency"), "2kHz");
  for (const hash of ["", "#", "#nonsense?x", "#live2"]) assert.equal(read(hash).page, "runs", hash);
  assert.equal(write("live", [["a", "1 2"], ["b", ""]]), "#live?a=1+2");
  assert.deepEqual([...read(write("runs", [["filter", "7.3 & more"]])).words], [["filter", "7.3 & more"]]);
});

test("runs are chosen by all words, in any column, and sorted by numbers as numbers", () => {
  assert.deepEqual(choose(RUNS, "MIXED pass", "").map((run) => run.run), ["20261120-120000-run-0000"]);
  assert.deepEqual(choose(RUNS, "", "-samples").map((run) => run.samples), [20_000, 10_000, 900]);
  assert.equal(choose(RUNS, "", "nonsense").length, 3);
});

test("a shared axis holds everything, and losses and states are words", () => {
  const of = axis(EXAMPLE.channels);
  assert.deepEqual(of, { low: 1e3, high: 1e6 });
  assert.deepEqual([share(1e3, of), share(1e6, of), share(1, of)], [0, 1, 0]);
  assert.equal(lost({ superseded: 4, dropped: 0, unanswered: 1_000 }), "4 superseded, 1\u202f000 unanswered");
  assert.equal(lost({ dropped: 0 }), "0");
  assert.match(sentence({ ...EXAMPLE, damaged_frames: 2 }), /2 damaged frames/);
});
