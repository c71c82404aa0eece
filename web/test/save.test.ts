// SPDX-License-Identifier: GPL-2.0-or-later
// What a reader takes along: pictures and tables; search in stacks; and what stays in another view.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { field, file, formulas } from "../src/csv.ts";
import { hasWords } from "../src/search.ts";
import { drag, visit, write } from "./chromium.ts";
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

test("answers of no time are drawn at the low end of the axis, in a picture too, and however many there are", async () => {
  const report = fixture();
  const series = report.runs[3]!.series.at(-1)!;
  for (const slice of series.timeline.slice(0, 20)) Object.assign(slice, { min_ns: 0, max_ns: 0 });
  Object.assign(series.timeline[30]!, { min_ns: 0 });
  Object.assign(series.worst.at(-1)!, { latency_ns: 0 });
  // As many slices as a hundred runs have: more than a call takes arguments.
  const [first] = report.runs[4]!.series.at(-1)!.timeline;
  const many = Array.from({ length: 200_000 }, (_, n) => ({ ...first!, at_ns: 5e4 * n, width_ns: 5e4 }));
  report.runs[4]!.series.at(-1)!.timeline = many;
  await visit(await write("nothing", report), async (page) => {
    const text = (await saved(page, "#timelines .save button:text-is('SVG')")).bytes.toString();
    assert.doesNotMatch(text, /Infinity|NaN/);
    const box = /<clipPath[^>]*><rect x="[^"]*" y="([^"]*)" width="[^"]*" height="([^"]*)"/.exec(text)!;
    const foot = Number(box[1]) + Number(box[2]);
    const ends = [...text.matchAll(/M[\d.]+ ([\d.]+)h[\d.]+v([\d.]+)h/g)].map(([, y, v]) => Number(y) + Number(v));
    assert.ok(ends.length > 100 && ends.every((end) => end <= foot + 0.01), `${Math.max(...ends)} below ${foot}`);
    assert.ok(ends.filter((end) => Math.abs(end - foot) < 0.01).length >= 21);
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
  // A share is none of a time, however short that is.
  const short = inside();
  for (const { main } of short.hunts[0]!.responders[1]!.others) if (main !== null) main.ns = 999;
  await visit(await write("csv-finds", short), async (page) => {
    const finds = rowsOf((await saved(page, ".tabled:has(table.finds) .save button")).bytes.toString());
    assert.ok(finds[0]!.includes("share") && finds[1]!.includes("75.0 % in 5"), finds.join("\n"));
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

test("what is searched through is not read for each move of the pointer", async () => {
  await visit(await write("search-moves", inside()), async (page) => {
    await page.evaluate(() => {
      const find = Element.prototype.querySelectorAll;
      Object.assign(window, { searches: 0 });
      Element.prototype.querySelectorAll = function (this: Element, selectors: string) {
        if (selectors.includes("table.finds > tbody")) (window as unknown as { searches: number }).searches++;
        return find.call(this, selectors);
      } as typeof find;
    });
    const searches = () => page.evaluate("searches");
    await page.locator("#inside .ledger .box").first().hover();
    await page.selectOption("select[name=responder]", "hardirq");
    await page.selectOption("select[name=responder]", "task");
    assert.equal(await searches(), 0, "nothing is searched for");
    await page.fill("input[name=find]", "tar");
    await page.waitForFunction(() => document.querySelector(".found")?.textContent !== "");
    const before = await searches();
    assert.ok(Number(before) > 0);
    for (const n of [0, 1, 0]) await page.locator("#inside .ledger .box").nth(n).hover();
    assert.equal(await searches(), before, "the pointer moves");
  });
});

test("the focus stays on what was chosen by the keyboard, though the page draws it anew", async () => {
  await visit(await write("focus", papers()), async (page) => {
    const focused = () => page.evaluate(() => [document.activeElement?.tagName, document.activeElement?.textContent]);
    await page.focus("#ladder button:text-is('hardirq')");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "hardirq");
    assert.deepEqual(await focused(), ["BUTTON", "hardirq"]);
    await page.focus("select[name=experiment]");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((name) => location.hash.includes(name), "experiment=2007");
    await page.waitForFunction(() => document.querySelector("#ladder h2 em")?.textContent === "compile");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("name")), "experiment");
  });
});

test("the part that is shown of a ledger is that of its load, and of no other", async () => {
  const report = inside();
  report.runs[0]!.inside = inside().runs[3]!.inside;
  await visit(await write("ledger-loads", report), async (page) => {
    const all = page.locator("#inside .ledger .all");
    await drag(page, "#inside .ledger .boxes", [0.25, 0.5, 0.5, 0.5]);
    assert.ok(await all.isVisible());
    for (const [load, isPart] of [["idle", false], ["mixed", true]] as const) {
      await page.selectOption("select[name=load]", load);
      await page.waitForFunction((load) => document.querySelector("#ladder h2 em")?.textContent === load, load);
      assert.equal(await all.isVisible(), isPart, load);
    }
  });
});
