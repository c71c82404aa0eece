// SPDX-License-Identifier: GPL-2.0-or-later
// What a reader takes along: pictures and tables; and search in stacks.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { field, file, formulas } from "../src/csv.ts";
import { hasWords } from "../src/search.ts";
import { visit, write } from "./chromium.ts";
import { scoped } from "./edges.ts";
import { fixture, inside, papers } from "./fixture.ts";

/** What a click on a button saves: the name of the file and its bytes. */
async function saved(page: Page, button: string): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).first().click()]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

/** Rows of a CSV, by RFC 4180. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (end === "\r\n") rows.push([]);
  }
  return rows.slice(0, -1);
}

/** Counts in a saved SVG, parsed as XML by the browser. */
function counted(
  page: Page,
  text: string,
  selectors: string[],
): Promise<{ counts: number[]; text: string; fault: string | null }> {
  return page.evaluate(
    ([text, selectors]) => {
      const of = new DOMParser().parseFromString(text, "image/svg+xml");
      const counts = selectors.map((selector) => of.querySelectorAll(selector).length);
      return { counts, text: of.documentElement.textContent ?? "", fault: of.querySelector("parsererror")?.textContent ?? null };
    },
    [text, selectors] as const,
  );
}

test("a field is quoted where it has to be, and nothing of it is changed", () => {
  assert.deepEqual(["a", 'a"b', "a,b", "a\r\nb", "=1+1", " a "].map(field), ["a", '"a""b"', '"a,b"', '"a\r\nb"', "=1+1", " a "]);
  const rows = [["a,", 'b"'], ["", "=x"]];
  assert.deepEqual(rowsOf(file(rows)), rows);
  assert.equal(formulas([["=x", "-5", "@a", "a", ""], ["+1.5", "+a"]]), 3);
});

test("every chart has buttons, and an SVG has the chart's lines as vectors, its title, n, losses and clock", async () => {
  const report = fixture();
  report.runs[3]!.series.at(-1)!.losses.superseded = 17;
  await visit(await write("svg", report), async (page) => {
    for (const chart of ["histogram", "percentiles", "timelines"]) assert.ok((await page.locator(`#${chart} .save button`).count()) >= 2, chart);
    const { name, bytes } = await saved(page, "#percentiles .save button:text-is('SVG')");
    assert.equal(name, "onset-Percentiles-of-task-under-mixed.svg");
    const { counts, text, fault } = await counted(page, bytes.toString(), ["image, foreignObject", "path[stroke-width='2'][fill=none]", "clipPath"]);
    assert.equal(fault, null);
    // A line of each flavour, no pixels.
    assert.deepEqual(counts, [0, 3, 1]);
    for (const part of ["Percentiles of task under mixed", "share of answers at or below", "latency", "6.12 preempt=none: n 10\u202f000, lost 17", "virtual time", "limit: max ≤ 250 µs", "99.9 %"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    // The curve goes through the chart's data: its last point is the maximum, at the marker.
    const drawn = bytes.toString();
    const end = /<path d="M[^"]*?([\d.]+) ([\d.]+)" fill="none"/.exec(drawn);
    assert.ok(end !== null && drawn.includes(`translate(${end[1]} ${end[2]})`), "a curve does not end at its marker");
  });
});

test("a PNG is as sharp as the screen, and not empty", async () => {
  await visit(await write("png", scoped(200)), async (page) => {
    for (const chart of ["#histogram", "#scope", "#ladder > .save, #ladder"]) {
      const { bytes } = await saved(page, `${chart} .save button:text-is('PNG')`.replace("#ladder > .save, #ladder .save", "#ladder > .save"));
      assert.equal(bytes.subarray(1, 4).toString(), "PNG");
      const width = bytes.readUInt32BE(16);
      if (chart === "#histogram") {
        const css = await page.locator("#histogram .plot").evaluate((plot) => plot.clientWidth);
        assert.equal(width, 2 * (css + 24));
      }
      const colours = await page.evaluate(async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
        context.drawImage(image, 0, 0);
        return new Set(new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)).size;
      }, bytes.toString("base64"));
      assert.ok(colours > 20, `${chart} has ${colours} colours`);
    }
  }, { deviceScaleFactor: 2 });
});

test("pictures of papers, ledgers and oscilloscopes are saved too, each of them as sound XML", async () => {
  const report = papers();
  report.runs[3]!.inside = inside().runs[3]!.inside;
  report.code = inside().code;
  report.hunts = inside().hunts;
  report.runs[3]!.scope = scoped(100).runs[3]!.scope;
  const path = await write("all-svg", report);
  // The browser asks before it takes more than ten files of one page.
  for (const first of [0, 8]) await visit(path, async (page) => {
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    const buttons = page.locator(".save button:text-is('SVG')");
    const count = await buttons.count();
    assert.ok(count >= 10, `${count}`);
    assert.ok(count <= 16, "not all are looked at");
    for (let i = first; i < Math.min(count, first + 8); i++) {
      const [download] = await Promise.all([page.waitForEvent("download"), buttons.nth(i).click()]);
      const text = (await readFile(await download.path())).toString();
      const { counts, fault } = await counted(page, text, ["path, rect, line", "script, image, foreignObject, style"]);
      assert.equal(fault, null, download.suggestedFilename());
      assert.ok(counts[0]! > 5 && counts[1] === 0, `${download.suggestedFilename()}: ${counts}`);
    }
  });
});

test("text of a run is text in an SVG, control characters included", async () => {
  const evil = `</text><script>alert(1)</script><a href="javascript:1">& "q"\u0007\u{1f600}`;
  const report = fixture();
  for (const run of report.runs) run.flavour = `${run.flavour} ${evil}`;
  await visit(await write("evil", report), async (page) => {
    const { bytes } = await saved(page, "#histogram .save button:text-is('SVG')");
    const { counts, text, fault } = await counted(page, bytes.toString(), ["script, a"]);
    assert.equal(fault, null);
    assert.deepEqual(counts, [0]);
    assert.ok(text.replace(/\s+/g, "").includes("</text><script>alert(1)</script>"), text);
    assert.ok(text.includes("\ufffd") && text.includes("\u{1f600}"));
  });
});

test("a table as CSV has exact times where the page rounds, whole stacks, and what spans columns once", async () => {
  await visit(await write("csv", inside()), async (page) => {
    const { name, bytes } = await saved(page, "#ladder .tabled .save button");
    assert.equal(name, "onset-Ladder-under-mixed.csv");
    const [head, ...rows] = rowsOf(bytes.toString());
    assert.deepEqual(head!.slice(0, 5), ["Responder", "6.12 preempt=none median (ns)", "6.12 preempt=none p99.9 (ns)", "6.12 preempt=none max (ns)", "6.12 preempt=none lost"]);
    const task = fixture().runs[3]!.series.find(({ responder }) => responder === "task")!;
    const row = rows.find(([responder]) => responder === "task")!;
    assert.deepEqual(row.slice(1, 5), [task.quantiles["0.5"], task.quantiles["0.999"], task.max_ns, 0].map(String));
    const ledger = rowsOf((await saved(page, "#inside .ledger .tabled .save button")).bytes.toString());
    assert.ok(ledger[0]!.includes("time (ns)"), ledger[0]!.join());
    assert.ok(ledger[1]!.includes("_raw_spin_lock_irq+0x9 < null_queue_rq+0x126 [null_blk] < entry_SYSCALL_64+0x77"), ledger[1]!.join());
    assert.ok(ledger[1]!.includes("onset replay onset-runs/made-up --sample 17 --responder task"), ledger[1]!.join());
    assert.ok(ledger.every((line) => line.length === ledger[0]!.length));
  });
});

test("a cell that looks like a formula is saved as it is, and the page says so", async () => {
  const report = structuredClone(inside());
  report.code.causes[1]!.who = "=HYPERLINK(1)";
  report.code.causes[1]!.cause = "=cause, \"quoted\"";
  await visit(await write("formula", report), async (page) => {
    const { bytes } = await saved(page, "#inside .ledger .tabled .save button");
    assert.ok(rowsOf(bytes.toString())[2]!.includes('=cause, "quoted" =HYPERLINK(1)'), bytes.toString());
    assert.match(await page.locator("#inside .ledger .said-saved").last().innerText(), /^1 cells begin like a formula/);
  });
});

test("words are found in any order and any case", () => {
  assert.ok(hasWords("null_queue_rq [null_blk] tar", "TAR null_q") && hasWords("x", ""));
  assert.ok(!hasWords("null_queue_rq", "null_queue_rq task"));
});

test("search in stacks leaves the rows with its words, by the keyboard, and is in the address", async () => {
  const path = await write("search", inside());
  const shown = (page: Page) => page.locator("#inside .ledger tbody tr:visible").count();
  await visit(path, async (page) => {
    assert.equal(await shown(page), 3);
    await page.locator("#ladder h2").click();
    await page.keyboard.press("/");
    // In a closed stack too: its outermost function is not shown.
    await page.keyboard.type("syscall_64 NULL_blk");
    // The row of all others stays.
    await page.waitForFunction(() => document.querySelectorAll("#inside .ledger tbody tr[hidden]").length === 1);
    assert.equal(await shown(page), 2);
    assert.match(page.url(), /find=syscall_64\+NULL_blk/);
    assert.match(await page.locator(".found").innerText(), /^\d+ of \d+ rows$/);
    await page.selectOption("select[name=responder]", "hardirq");
    await page.selectOption("select[name=responder]", "task");
    await page.waitForFunction(() => document.querySelectorAll("#inside .ledger tbody tr[hidden]").length === 1);
    assert.match(page.url(), /find=/);
    const { bytes } = await saved(page, "#inside .ledger .tabled .save button");
    assert.equal(rowsOf(bytes.toString()).length, 3);
    await page.fill("input[name=find]", "");
    assert.equal(await shown(page), 3);
    assert.doesNotMatch(page.url(), /find=/);
  });
  await visit(path, async (page) => {
    assert.equal(await page.inputValue("input[name=find]"), "tar");
    assert.equal(await shown(page), 2);
  }, { hash: "#find=tar" });
  await visit(await write("no-stacks", fixture()), async (page) => {
    assert.ok(!(await page.locator(".search").isVisible()));
  });
});
