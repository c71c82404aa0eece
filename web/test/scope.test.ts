// SPDX-License-Identifier: GPL-2.0-or-later
// The oscilloscope: what it counts, against a slow count of the same edges; and its panel in a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, type Capture, EDGES, forget } from "../src/scope/capture.ts";
import { readTime } from "../src/scope/controls.ts";
import { grade } from "../src/scope/paint.ts";
import { divisionFor, readSettings, type Settings, settingsWord, since } from "../src/scope/settings.ts";
import { measure, rasterise, sweeps } from "../src/scope/sweep.ts";
import { cells, coverage, pixels, visit, write } from "./chromium.ts";
import { encodeEdges, LATE, scoped, scopeOf } from "./edges.ts";

type Edge = readonly [at: number, pin: number, level: number];

/** A small generator of numbers, the same in every engine. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Edges of `pins` pins that toggle at random times. */
function random(seed: number, pins: number, count: number): Edge[] {
  const next = dice(seed);
  const levels = new Array<number>(pins).fill(0);
  let at = 0;
  return Array.from({ length: count }, () => {
    at += 1 + next(200);
    const pin = next(pins);
    levels[pin] = 1 - (levels[pin] ?? 0);
    return [at, pin, levels[pin] ?? 0] as const;
  });
}

function captured(edges: readonly Edge[], pins: number): Capture {
  const end = (edges.at(-1)?.[0] ?? 0) + 1;
  const names = Array.from({ length: pins }, (_, i) => `pin${i}`);
  return capture({ pins: names, samples: 0, samples_of_run: 0, stretches: [[0, end]], edges: encodeEdges(edges) });
}

const NONE: ReadonlySet<number> = new Set();

test("edges are read as they were written, times of several bytes too, and a torn end is left out", () => {
  const edges: Edge[] = [[5, 1, 1], [300, 0, 1], [2 ** 40, 2, 0], [2 ** 40 + 1, 0, 0]];
  const of = captured(edges, 3);
  const read = Array.from({ length: of.length }, (_, i) => [of.times[i], of.codes[i]! >> 1, of.codes[i]! & 1]);
  assert.deepEqual(read, edges.map((edge) => [...edge]));
  const torn = capture({ pins: ["a"], samples: 0, samples_of_run: 0, stretches: [], edges: Buffer.from([5, 1, 7]).toString("base64") });
  assert.equal(torn.length, 1);
  forget(of, 2);
  assert.deepEqual([of.length, of.times[0], of.codes[1]], [2, 2 ** 40, 0]);
});

test("every edge of every sweep is counted in its column, and levels are those of a slow count", () => {
  for (const seed of [1, 2, 3, 4]) {
    const pins = 3;
    const edges = random(seed, pins, 400);
    const of = captured(edges, pins);
    for (const edge of EDGES) {
      for (const [from, to] of [[-500, 4_500], [100, 700], [-50, 9]] as const) {
        const columns = 37;
        const taken = sweeps(of, { pin: seed % pins, edge }, [from, to], NONE);
        const raster = rasterise(of, taken, [from, to], columns);
        const expected = new Uint32Array(pins * columns);
        let [high, low] = [0, 0];
        const middle = Math.floor(columns / 2);
        const isWanted = (level: number) => edge === "either" || level === (edge === "rise" ? 1 : 0);
        const wanted = edges.filter(([, pin, level]) => pin === seed % pins && isWanted(level));
        assert.equal(taken.of, wanted.length);
        for (const [at] of wanted) {
          for (const [time, pin] of edges) {
            if (time < at + from || time > at + to) continue;
            const x = Math.min(columns - 1, Math.floor(((time - at - from) * columns) / (to - from)));
            expected[pin * columns + x]!++;
          }
          // The level of the first pin at the left edge of the middle column, if no edge is in that column before it.
          const wide = (to - from) / columns;
          const [left, right] = [at + from + middle * wide, at + from + (middle + 1) * wide];
          const own = edges.filter(([, pin]) => pin === 0);
          if (own.some(([time]) => time >= left && time < right)) continue;
          if (left < 0 || right > (edges.at(-1)?.[0] ?? 0)) continue;
          const last = own.filter(([time]) => time < left).at(-1);
          if (last === undefined && own.every(([time]) => time > at + to)) continue;
          if ((last?.[2] ?? 0) === 1) high++;
          else low++;
        }
        assert.deepEqual(raster.edges, expected, `seed ${seed}, ${edge}, ${from}`);
        const seen = [raster.high[middle]!, raster.low[middle]!];
        assert.ok(seen[0]! >= high && seen[1]! >= low && seen[0]! + seen[1]! <= taken.of, `${seen} of ${high}, ${low}`);
      }
    }
  }
});

test("what is measured between two times is exact, and says how many sweeps have no edge there", () => {
  const edges: Edge[] = [[1_000, 0, 1], [1_010, 1, 1], [2_000, 0, 1], [2_050, 1, 0], [2_060, 1, 1], [3_000, 0, 1]];
  const of = captured(edges, 2);
  const taken = sweeps(of, { pin: 0, edge: "rise" }, [0, 500], NONE);
  assert.deepEqual(measure(of, taken, [10, 60])[1], { edges: 3, min_ns: 10, mean_ns: 30, max_ns: 50, without: 1 });
  const nothing = { edges: 0, min_ns: null, mean_ns: null, max_ns: null, without: 3 };
  assert.deepEqual(measure(of, taken, [11, 49])[1], nothing);
});

test("a million edges in sweeps that overlap a hundredfold are thinned, and the latest answer is still there", () => {
  const edges: Edge[] = [];
  for (let trigger = 0; trigger < 20_000; trigger++) {
    const at = 1_000 + 1_000 * trigger;
    edges.push([at, 0, 1], [at + 100, 0, 0], [at + (trigger === 7_777 ? 99_999 : 300), 1, trigger % 2]);
  }
  edges.sort(([a], [b]) => a - b);
  const of = captured(edges, 2);
  const window = [-10_000, 100_000] as const;
  const all = sweeps(of, { pin: 0, edge: "rise" }, window, NONE, Infinity);
  assert.equal(all.starts.length, 20_000);
  const late = 1_000 + 1_000 * 7_777;
  const some = sweeps(of, { pin: 0, edge: "rise" }, window, new Set([late]), 500_000);
  assert.ok(some.starts.length < 2_000 && some.of === 20_000, `${some.starts.length}`);
  assert.ok([...some.starts].some((start) => of.times[start] === late));
  const columns = 1_000;
  const raster = rasterise(of, some, window, columns);
  const column = Math.floor(((99_999 + 10_000) / 110_000) * columns);
  assert.ok(raster.edges[columns + column]! > 0, "the latest answer is not on the screen");
});

test("no column with an edge is dark, however many others have more", () => {
  for (const most of [1, 2, 1e3, 4e9]) {
    for (const count of [1, 2, most]) assert.ok(grade(count, most) >= 1, `${count} of ${most}`);
  }
  assert.equal(grade(0, 5), 0);
  assert.ok(grade(5, 100) < grade(50, 100));
});

test("outside of its stretch of time a pin has no level, since edges of it may be missing", () => {
  const edges: Edge[] = [[1_000, 0, 1], [1_010, 0, 0], [9_000, 0, 1], [9_010, 0, 0]];
  const of = captured(edges, 1);
  of.stretches = [[900, 1_500], [8_500, 9_500]];
  const raster = rasterise(of, sweeps(of, { pin: 0, edge: "rise" }, [-1_000, 1_000], NONE), [-1_000, 1_000], 20);
  assert.deepEqual([...raster.low].slice(0, 4), [0, 0, 0, 0]);
  assert.deepEqual([raster.low[8], raster.low[12], raster.low[17]], [1, 2, 0]);
});

test("settings are in a word of the address, and nonsense in it is as at first", () => {
  const first: Settings = { pin: "trigger", edge: "rise", division_ns: 1e5, cursors: [null, null] };
  const set: Settings = { pin: "task", edge: "fall", division_ns: 2e4, cursors: [-1_500, null] };
  assert.deepEqual(readSettings(settingsWord(set), ["trigger", "task"], first), set);
  for (const word of [null, "", "nobody sometimes 3 x y", "task"]) {
    const read = readSettings(word, ["trigger", "task"], first);
    assert.deepEqual({ ...read, pin: "trigger" }, first, String(word));
  }
  assert.deepEqual([divisionFor(9e5), divisionFor(9e5 + 1), divisionFor(0)], [1e5, 2e5, 100]);
  assert.deepEqual(["12.5us", "-3 ms", "0", "−1ns"].map(readTime), [12_500, -3e6, 0, -1]);
  for (const text of ["", "12", "us", "1 m"]) assert.equal(readTime(text), null, text);
  assert.deepEqual([since(-1_500), since(0), since(2e6)], ["−1.5 µs", "0", "2 ms"]);
});

test("the report has a screen for each flavour, which zooms, goes back, measures between cursors, and is in the address", async () => {
  await visit(await write("scope", scoped()), async (page) => {
    assert.equal(await page.locator("#scope canvas").count(), 3);
    const all = await coverage(page, "#scope canvas", 0);
    assert.ok(all.every((share) => share > 0.2), String(all));
    const whole = await pixels(page, "#scope canvas >> nth=0");
    await page.locator("#scope .plot").first().scrollIntoViewIfNeeded();
    const over = (await page.locator("#scope .u-over").first().boundingBox())!;
    const rows = "#scope .oscilloscope:nth-of-type(1) table.measured tbody tr";
    const max = async () => (await cells(page, rows)).find(([pin]) => pin === "task")?.[4];
    // The late one is on the screen and in the numbers.
    assert.equal(await max(), since(LATE.latency_ns, 3));
    await page.mouse.move(over.x + 100, over.y + 10);
    await page.mouse.down();
    await page.mouse.move(over.x + 260, over.y + 12, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(() => location.hash.includes("zoom=scope"));
    const once = await pixels(page, "#scope canvas >> nth=0");
    assert.notEqual(once, whole);
    await page.locator("#scope .plot").first().focus();
    await page.keyboard.press("+");
    assert.notEqual(await pixels(page, "#scope canvas >> nth=0"), once);
    // Back to the first part, and back to everything. A double click sets no cursor.
    await page.locator("#scope .u-over").first().dblclick();
    await page.waitForFunction((once) => (document.querySelector("#scope canvas") as HTMLCanvasElement).toDataURL() === once, once);
    await page.locator("#scope .u-over").first().dblclick();
    await page.waitForFunction(() => !location.hash.includes("zoom=scope"));
    await page.locator("#scope .u-over").first().click({ position: { x: 400, y: 20 } });
    await page.waitForFunction(() => (document.querySelector("input[name=cursor-a]") as HTMLInputElement).value !== "");
    assert.equal(await page.inputValue("input[name=cursor-b]"), "");
    await page.fill("input[name=cursor-a]", "1us");
    await page.keyboard.press("Enter");
    await page.fill("input[name=cursor-b]", "500us");
    await page.keyboard.press("Enter");
    assert.notEqual(await max(), since(LATE.latency_ns, 3));
    await page.waitForFunction(() => location.hash.includes("500000"));
    assert.match(page.url(), /scope=trigger\+rise\+\d+\+1000\+500000/);
    await page.selectOption("select[name=scope-pin]", "hardirq");
    await page.selectOption("select[name=scope-edge]", "either");
    await page.selectOption("select[name=scope-division]", "20000");
    assert.match(await page.locator("#scope .readout:text('sweeps, ')").first().innerText(), /^2\u202f000 sweeps, triggered by either edge of hardirq/);
    await page.waitForFunction(() => location.hash.includes("hardirq+either+20000"));
    const address = page.url();
    await page.reload();
    assert.equal(page.url(), address);
    assert.equal(await page.inputValue("select[name=scope-pin]"), "hardirq");
    await page.selectOption("select[name=load]", "idle");
    await page.waitForFunction(() => document.querySelector("#scope") === null);
  });
});

test("a run that has no such pin says so, and is not triggered by another one", async () => {
  const report = scoped(100);
  const run = report.runs[3]!;
  run.series.pop();
  run.scope = scopeOf(run, 100);
  await visit(await write("scope-pinless", report), async (page) => {
    const told = page.locator("#scope .readout:text('weeps')");
    await page.selectOption("select[name=scope-pin]", "task");
    assert.deepEqual(await told.allInnerTexts(), [
      "No sweeps: this run has no pin task, so nothing triggers",
      ...[1, 2].map(() => "50 sweeps, triggered by the rising edge of task"),
    ]);
    assert.equal((await cells(page, "#scope .oscilloscope:nth-of-type(1) table.measured tbody tr"))[1]?.[1], "0");
  });
});

test("a run of which the page has some stretches says so, and the oscilloscope fits a phone", async () => {
  const report = scoped(50);
  report.runs[3]!.scope!.samples_of_run = 1_000_000;
  const phone = { viewport: { width: 375, height: 740 }, colorScheme: "dark" } as const;
  await visit(await write("scope-phone", report), async (page) => {
    assert.match(await page.locator("#scope .doubted").innerText(), /400 of 1\u202f000\u202f000 answers/);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
  }, phone);
});
