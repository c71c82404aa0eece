// SPDX-License-Identifier: GPL-2.0-or-later
// The section about what kernels get and what they pay, in a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Report } from "../src/contract.ts";
import { integer } from "../src/format.ts";
import { cells, visit, write } from "./chromium.ts";
import { fixture } from "./fixture.ts";

/** The fixture with what three kernels get and pay; the figures are made up. */
function prices(): Report {
  const report = fixture();
  const kernel = (flavour: string, worst_ns: number, costs: number[], on_front: boolean) => {
    const [latency_run, cost_run] = ["20261121-200000-a", "20261121-200000-b"];
    return { flavour, latency_run, load: "mixed", worst_ns, answers: 10_000, cost_run, costs, on_front };
  };
  report.prices = {
    costs: ["null_call", "context_2p_0k"],
    unit: "instructions",
    kernels: [
      kernel("6.12 preempt=none", 1_690_000, [376, 3_498.4], true),
      kernel("6.12-rt", 16_900, [376, 3_639], true),
      kernel("7.3-rt", 29_000, [392, 5_744], false),
    ],
  };
  return report;
}

test("who pays what has a mark for each kernel and cost where its numbers are, and the numbers", async () => {
  await visit(await write("prices", prices()), async (page) => {
    const rows = await cells(page, "#prices tbody tr");
    const none = ["6.12 preempt=none", "1.69 ms", "mixed", integer(10_000), "376", integer(3_498), "yes"];
    assert.deepEqual(rows[0], none);
    assert.equal(rows[2]?.at(-1), "no");
    // Each chart has a mark of each kernel; the one that another beats is hollow.
    const charts = page.locator("#prices figure");
    assert.equal(await charts.count(), 2);
    for (const chart of await charts.all()) {
      assert.deepEqual([await chart.locator("path.mark").count(), await chart.locator("path.hollow").count()], [2, 1]);
    }
    const marks = charts.last().locator("g path");
    const moved = await marks.evaluateAll((all) => all.map((mark) => mark.getAttribute("transform") ?? ""));
    const places = moved.map((transform) => /translate\(([\d.]+) ([\d.]+)\)/.exec(transform));
    const [x, y] = [1, 2].map((n) => places.map((place) => Number(place?.[n])));
    assert.ok(x?.[0] !== undefined && x[0] < x[1]! && x[1]! < x[2]!, `${x}: cheap ones are further left`);
    assert.ok(y?.[0] !== undefined && y[0] < y[2]! && y[2]! < y[1]!, `${y}: early answers are lower`);
    await page.setViewportSize({ width: 375, height: 800 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
  });
});
