// SPDX-License-Identifier: GPL-2.0-or-later
// Watches the live page of an `onset serve` that measures, until its run has ended: says every so often, as a line of
// JSON, how much memory the page's scripts have after a collection of garbage, how many nodes there are, and how long
// the page took at most to answer since the line before. The bench `page` of the command starts it. It asserts nothing.
//
// ONSET_PAGE is the page's address, ONSET_EVERY the time between two lines in seconds.

import { chromium, type Page } from "playwright-core";

const address = process.env["ONSET_PAGE"] ?? "http://127.0.0.1:7080/";
const every_s = Number(process.env["ONSET_EVERY"] ?? 60);

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  // With limits, of which one is passed all the time.
  await page.goto(`${address}#live?limit=${encodeURIComponent("task.max < 1us, task.p99 < 1ms")}`);
  await page.locator("#ladder-live tbody tr").first().waitFor();
  await watch(page);
} finally {
  await browser.close();
}

async function watch(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  let slowest_ms = 0;
  const hasEnded = async () => {
    const asked = performance.now();
    const state = await page.evaluate(() => document.querySelector(".state")?.textContent ?? "");
    slowest_ms = Math.max(slowest_ms, Math.round(performance.now() - asked));
    return /^(Ended|Failed)/.test(state);
  };
  for (let minute = 0; ; minute++) {
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = await devtools.send("Runtime.getHeapUsage");
    const { nodes, jsEventListeners: listeners } = await devtools.send("Memory.getDOMCounters");
    console.log(JSON.stringify({ sample: minute, heap_bytes: usedSize, nodes, listeners, slowest_ms }));
    slowest_ms = 0;
    for (let waited_s = 0; waited_s < every_s; waited_s++) {
      if (await hasEnded()) return;
      await page.waitForTimeout(1_000);
    }
  }
}
