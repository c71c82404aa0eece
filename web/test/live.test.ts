// SPDX-License-Identifier: GPL-2.0-or-later
// The live page in Chromium: a run from its start to its bundle, limits that are passed, and the generator's clock.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { readDuration, readLimits, Watch } from "../src/site/limits.ts";
import type { Told } from "../src/site/told.ts";
import { cells } from "./chromium.ts";
import { EXAMPLE, served } from "./stub.ts";

test("a generator is started by the form, told of while it measures, and stopped", async () => {
  await served("#live?frequency=2kHz&limit=500us", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    await page.check("#record");
    await page.fill("#count", "10k");
    await page.click("button:text('Start')");
    assert.match(await page.innerText(".refused"), /whole number/);
    await page.fill("#count", "");
    await page.click("button:text('Start')");
    const asked = '/api/live/start {"place":"127.0.0.1:7010","frequency":"2kHz","record":true}';
    await page.waitForFunction(() => location.hash.includes("record=yes"));
    while (stub.asked.length === 0) await page.waitForTimeout(20);
    assert.deepEqual(stub.asked, [asked]);
    stub.tell(EXAMPLE);
    await page.locator("#ladder-live tbody tr").waitFor();
    const [row] = await cells(page, "#ladder-live tbody tr");
    assert.deepEqual(
      [0, 2, 3, 5, 6, 7].map((n) => row?.[n]),
      ["task limit passed", "5.00 µs", "304 µs", "900 µs", "3", "4 superseded"],
    );
    assert.equal(await page.locator("svg.bars rect").count(), 3);
    const save = page.locator("#ladder-live > .save button:text-is('SVG')");
    const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
    const saved = await readFile(await download.path(), "utf8");
    for (const part of ["Live: a guest", "task: n 3, lost 4", "virtual time", "1.00 µs … 1.00 ms"]) {
      assert.ok(saved.includes(part), part);
    }
    assert.equal(saved.match(/<rect/g)?.length, 4);
    assert.equal(await page.innerText(".alarm"), "Limit passed: 500us by task since 2.00 ms.");
    assert.match(await page.innerText(".state"), /Running · a guest · virtual time · one trigger every 1\.00 ms.*7 triggers/);
    await page.fill("#limit", "1ms");
    assert.equal(await page.textContent(".alarm"), "");
    // What is paused stays; what comes later is shown again.
    await page.click("button:text('Pause')");
    const [channel] = EXAMPLE.channels;
    assert.ok(channel !== undefined);
    stub.tell({ ...EXAMPLE, channels: [{ ...channel, summary: { ...channel.summary, count: 4 } }] });
    await page.waitForTimeout(100);
    assert.equal((await cells(page, "#ladder-live tbody tr"))[0]?.[6], "3");
    await page.click("button:text('Go on')");
    assert.equal((await cells(page, "#ladder-live tbody tr"))[0]?.[6], "4");
    assert.equal(await page.getAttribute("a.log", "href"), "api/live/log.csv");
    await page.fill("#note", "the <b>door</b>");
    await page.click("button:text('Mark')");
    while (stub.asked.length < 2) await page.waitForTimeout(20);
    assert.equal(stub.asked[1], '/api/live/mark {"note":"the <b>door</b>"}');
    stub.tell({ ...EXAMPLE, marks: [{ at_ns: 2_000_000, triggers: 2, note: "the <b>door</b>" }] });
    await page.locator(".marks li:text('2.00 ms, after 2 triggers: the <b>door</b>')").waitFor();
    await page.click("button:text('Stop')");
    while (stub.asked.length < 3) await page.waitForTimeout(20);
    assert.equal(stub.asked[2], "/api/live/stop {}");
    stub.tell({ ...EXAMPLE, standing: "ended", bundle: "20261126-live" });
    await page.locator(".state:text('recorded as 20261126-live')").waitFor();
    assert.equal(await page.isDisabled("button:text('Stop')"), true);
    assert.equal(await page.locator("a.log").isVisible(), false);
  });
});

test("a limit is a line where it belongs, and alarms when it is passed: in colour, in words, and once aloud", async () => {
  await served("#live?limit=task.max+%3C+500us%2C+task.mean+%3C%3D+1ms", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    const [channel] = EXAMPLE.channels;
    assert.ok(channel !== undefined);
    const quick = { ...channel, summary: { ...channel.summary, max_ns: 6_000 }, worst: channel.worst.slice(1) };
    stub.tell({ ...EXAMPLE, channels: [quick] });
    await page.locator("#ladder-live tbody tr").waitFor();
    // The mean has a line in the histogram alone: the other drawing shows maxima.
    assert.equal(await page.locator("svg.bars line.limit").count(), 2);
    assert.equal(await page.locator("svg.course line.limit").count(), 1);
    assert.equal(await page.locator("line.passed").count(), 0);
    assert.equal(await page.textContent(".alarm"), "");
    // An observer of what is said aloud, as a screen reader is one.
    await page.evaluate(() => {
      const said: string[] = [];
      Object.assign(window, { said });
      const aloud = document.querySelector("[role=alert].alarm") as HTMLElement;
      const all = { childList: true, characterData: true, subtree: true };
      new MutationObserver(() => said.push(aloud.textContent ?? "")).observe(aloud, all);
    });
    for (const count of [3, 4]) {
      stub.tell({ ...EXAMPLE, channels: [{ ...channel, summary: { ...channel.summary, count } }] });
    }
    await page.locator("tr.late").waitFor();
    assert.equal(await page.innerText(".alarm"), "Limit passed: task.max < 500us since 2.00 ms.");
    await page.locator(".alarms li:text('task.max < 500us: max 900 µs · first at 2.00 ms · 1 of 4 answers beyond it')").waitFor();
    assert.deepEqual(await page.evaluate("said"), ["Limit passed: task.max < 500us since 2.00 ms."]);
    assert.match(await page.innerText("tr.late th"), /task\s+limit passed/);
    assert.equal(await page.locator("svg.bars line.passed").count(), 1);
    assert.equal(await page.locator("svg.course line.passed").count(), 1);
    const colours = await page.evaluate(() => {
      const fail = getComputedStyle(document.documentElement).getPropertyValue("--fail").trim();
      const probe = Object.assign(document.createElement("i"), {});
      probe.style.color = fail;
      document.body.append(probe);
      const of = (selector: string) => getComputedStyle(document.querySelector(selector) as Element).color;
      return [getComputedStyle(probe).color, of(".alarm"), of("tr.late td.max")];
    });
    assert.equal(new Set(colours).size, 1, String(colours));
    // The line lies at the bound: between 1 µs and 1 ms at the place of 500 µs.
    const x = Number(await page.locator("svg.bars line.passed").getAttribute("x1"));
    assert.ok(Math.abs(x - (260 * Math.log10(500)) / 3) < 0.1, String(x));
    await page.fill("#limit", "task.max < 100");
    assert.match(await page.innerText(".alarm"), /No limit: task.max < 100. Write it as in task.max < 100us/);
    assert.match(page.url(), /limit=task.max\+%3C\+100/);
  });
});

test("of how things stand the words are said aloud, and not the numbers that change all the time", async () => {
  await served("#live", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    assert.equal(await page.locator(".state[aria-live], .state[role]").count(), 0);
    await page.evaluate(() => {
      const said: string[] = [];
      Object.assign(window, { said });
      const aloud = document.querySelector("[role=status].aloud") as HTMLElement;
      new MutationObserver(() => said.push(aloud.textContent ?? "")).observe(aloud, { childList: true });
    });
    for (const triggers of [7, 8, 9]) stub.tell({ ...EXAMPLE, triggers });
    stub.tell({ ...EXAMPLE, standing: "failed", message: "it went away" });
    await page.locator(".state:text('Failed')").waitFor();
    assert.deepEqual(await page.evaluate("said"), ["Running", "Failed: it went away"]);
  });
});

test("a saved picture is what is on the screen: its axis, and while it is paused its numbers", async () => {
  await served("#live?limit=task.max+%3C+5ms", async (page, stub) => {
    stub.tell(EXAMPLE);
    await page.locator("#ladder-live tbody tr").waitFor();
    await page.click("button:text('Pause')");
    const [channel] = EXAMPLE.channels;
    assert.ok(channel !== undefined);
    stub.tell({ ...EXAMPLE, triggers: 99, channels: [{ ...channel, summary: { ...channel.summary, count: 95 } }] });
    await page.locator(".state:text('99 triggers')").waitFor();
    const save = page.locator("#ladder-live > .save button:text-is('SVG')");
    const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
    const saved = await readFile(await download.path(), "utf8");
    const axis = /1\.00 µs … 10\.0 ms/;
    assert.match(await page.innerText("#ladder-live thead"), axis);
    assert.match(saved, axis);
    assert.ok(saved.includes("task: n 3, lost 4"), saved);
  });
});

test("limits are read as an experiment has them, and nothing else is one", () => {
  const read = (text: string) => {
    const { limits, wrong } = readLimits(text);
    return [...limits.map((l) => [l.responder, l.statistic, l.bound_ns, l.isStrict].join(" ")), ...wrong];
  };
  assert.deepEqual(read("task.max < 100us, work.p99.9<=2 ms"), ["task max 100000 true", "work p99.9 2000000 false"]);
  assert.deepEqual(read("max=1ms,threaded_irq.mean ≤ 7us"), ["all max 1000000 false", "threaded_irq mean 7000 false"]);
  assert.deepEqual(read("500us"), ["all max 500000 false"]);
  assert.deepEqual(read(" , "), []);
  const nonsense = ["task.max", "task.max < 100", "task.least < 1us", "task.max > 1us", "max < 0us", "task. max < 1us", "p99.99999 < 1us"];
  for (const text of nonsense) assert.deepEqual(read(text), [text]);
});

test("how many answers are beyond a limit, and since when, is exact or a range that has it", () => {
  const [channel] = EXAMPLE.channels;
  assert.ok(channel !== undefined);
  const passed = (text: string, more: Partial<Told> = {}, watch = new Watch()) => {
    const found = watch.take({ ...EXAMPLE, ...more }, readLimits(text).limits);
    return found.map(({ limit, first, count }) => [limit.statistic, first.least, first.most, count.least, count.most]);
  };
  assert.deepEqual(passed("task.max < 500us"), [["max", 2e6, 2e6, 1, 1]]);
  // The bound itself is allowed, or not.
  assert.deepEqual(passed("task.max <= 900us"), []);
  assert.deepEqual(passed("task.max < 900us"), [["max", 2e6, 2e6, 1, 1]]);
  assert.deepEqual(passed("hardirq.max < 1us"), []);
  // More are beyond it than are told one by one: a column of the histogram and a stretch of time leave it open.
  const column = { low_ns: 900_000, high_ns: 999_999, count: 40 };
  const slice = { at_ns: 4_096, width_ns: 1_024, min_ns: 5_000, max_ns: 950_000, count: 9 };
  const many = {
    ...channel,
    summary: { ...channel.summary, count: 50, max_ns: 960_000 },
    columns: [{ low_ns: 100_000, high_ns: 109_999, count: 10 }, column],
    slices: [{ ...slice, at_ns: 0, max_ns: 100_000 }, slice],
    worst: [950_001, 950_002].map((latency_ns, n) => ({ trigger: n, at_ns: 5_000 + n, latency_ns })),
  };
  assert.deepEqual(passed("task.max < 950us", { channels: [many] }), [["max", 4_096, 5_120, 2, 40]]);
  // A mean is beyond its limit since it was seen there, until the numbers are forgotten.
  const watch = new Watch();
  assert.deepEqual(passed("task.mean < 1us", {}, watch).map((of) => of[1]), [3e6]);
  assert.deepEqual(passed("task.mean < 1us", { measured_ns: 9e6 }, watch).map((of) => of[1]), [3e6]);
  assert.deepEqual(passed("task.mean < 1us", { measured_ns: 1e6 }, watch).map((of) => of[1]), [1e6]);
  // A trigger that was not answered is later than any bound.
  const lost = (of: typeof channel, unanswered: number) => {
    const channels = [{ ...of, summary: { ...of.summary, losses: { ...of.summary.losses, unanswered } } }];
    return (text: string) =>
      new Watch()
        .take({ ...EXAMPLE, channels }, readLimits(text).limits)
        .map(({ value_ns, count, unanswered }) => [value_ns, count.most, unanswered]);
  };
  assert.deepEqual(lost(channel, 7)("task.max < 1s"), [[null, 0, 7]]);
  assert.deepEqual(lost(many, 7)("task.max < 950us"), [[960_000, 40, 7]]);
  // A median is not answered if half of the triggers are not.
  assert.deepEqual(lost(channel, 100)("task.p50 < 1s"), [[null, 0, 100]]);
  assert.deepEqual(lost(channel, 2)("task.p50 < 1s, task.mean < 1s"), []);
  assert.deepEqual(lost(channel, 2)("task.p99.9 < 1s"), [[null, 0, 2]]);
  assert.deepEqual(passed("p50 < 1us", {}, watch).length, 1);
});

test("a generator's clock that is off is told with its uncertainty, and doubted where no crystal is so far off", async () => {
  await served("#live", async (page, stub) => {
    await page.locator(".state:text('No generator')").waitFor();
    stub.tell(EXAMPLE);
    await page.locator(".state:text('its clock +40.1 ± 2.3 ppm')").waitFor();
    assert.equal(await page.locator("p.exposed").isVisible(), false);
    const known = { started_ns: 1, span_ns: 1, batches: 99 };
    const drift = { ...known, gain_ppb: -250_000, uncertainty_ppb: 900, is_doubtful: true };
    stub.tell({ ...EXAMPLE, drift });
    await page.locator(".state:text('its clock −250.0 ± 0.9 ppm')").waitFor();
    assert.match(await page.innerText("p.exposed"), /further apart than crystals are off.*wrong by that share/);
  });
});

test("a duration is read as people write it, or not at all", () => {
  assert.deepEqual(["100us", "1.5 ms", "2s", "7ns"].map(readDuration), [100e3, 1.5e6, 2e9, 7]);
  for (const text of ["", "100", "us", "-1us", "1 m"]) assert.equal(readDuration(text), null, text);
});
