// SPDX-License-Identifier: GPL-2.0-or-later
// Who runs when, in a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Report, WaitCourse, WaitThread } from "../src/contract.ts";
import { visit, write } from "./chromium.ts";
import { papers } from "./fixture.ts";

/** Turns one after the other: who runs, whether it holds the mutex, and for how many ns. */
type Turns = readonly (readonly [thread: WaitThread, holds: boolean, length_ns: number])[];

function course(inherits: boolean, turns: Turns, asked_ns: number, locked_ns: number): WaitCourse {
  let at = 0;
  const placed = turns.map(([thread, holds, length]) => ({ thread, holds, from_ns: at, to_ns: (at += length) }));
  return { flavour: "6.12-rt", inherits, work_ns: 1e6, turns: placed, asked_ns, locked_ns };
}

/** The fixture with both figures of the 2007 internals paper; the times are made up. */
function inversion(): Report {
  const report = papers();
  const table = report.papers.find(({ id }) => id === "2007-inversion");
  assert.ok(table?.picture?.kind === "chart");
  const begins = [["low", false, 5e3], ["low", true, 2e4], ["high", false, 3e4]] as const;
  table.picture.courses = [
    course(false, [...begins, ["low", true, 1e4], ["middle", false, 1e6], ["low", true, 5e5], ["high", true, 4e4]], 2.5e4, 1.565e6),
    course(true, [...begins, ["low", true, 5e5], ["high", true, 4e4], ["middle", false, 1e6], ["low", false, 1e4]], 2.5e4, 5.55e5),
  ];
  return report;
}

test("who runs when has a bar for each turn, in the lane of its thread, as long as the turn", async () => {
  await visit(await write("courses", inversion()), async (page) => {
    const panels = page.locator("#paper-2007-inversion .courses .plot");
    assert.equal(await panels.count(), 2);
    const drawn = panels.first().locator("rect.turn");
    const bars = await drawn.evaluateAll((all) =>
      all.map((bar) => {
        const of = (name: string) => Number(bar.getAttribute(name));
        return { y: of("y"), width: of("width"), holds: bar.classList.contains("holds") };
      }),
    );
    assert.equal(bars.length, 7);
    assert.deepEqual(bars.map(({ holds }) => holds), [false, true, false, true, false, true, true]);
    const [low, , high, , middle, works] = bars;
    assert.ok(high!.y < middle!.y && middle!.y < low!.y, "the high thread is on top");
    const ratio = middle!.width / works!.width;
    assert.ok(ratio > 1.98 && ratio < 2.02, `a turn of twice the length is ${ratio} times as wide`);
    // Without inheritance the wait goes over the turn of the middle thread; with it, it ends before.
    const waits = page.locator("#paper-2007-inversion .courses line.waits-for");
    const lengths = await waits.evaluateAll((all) => {
      const at = (line: Element, end: string) => Number(line.getAttribute(end));
      return all.map((line) => at(line, "x2") - at(line, "x1"));
    });
    assert.ok(lengths[0]! > 2 * lengths[1]!, `${lengths}`);
    await page.setViewportSize({ width: 375, height: 800 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
  });
});
