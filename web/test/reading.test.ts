// SPDX-License-Identifier: GPL-2.0-or-later
// The built page in a browser: what helps a reader to find, to read and to take along what is there.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import type { PaperItem, Report } from "../src/contract.ts";
import { duration } from "../src/format.ts";
import { cells, drag, pixels, visit, write } from "./chromium.ts";
import { fixture, huntAlone, inside, papers } from "./fixture.ts";

const PHONE = { viewport: { width: 375, height: 740 } };

/** The fixture with a warning for each responder of two runs, which differ in name and number. */
function warned(): Report {
  const report = fixture();
  for (const run of report.runs.slice(3, 5)) {
    run.series.forEach(({ responder }, i) => {
      const symptom = `${responder} answered ${1_200 + i} triggers together with an older one`;
      const about = { code: "superseded", cause: "It was delayed.", action: "Lengthen the period." };
      run.warnings.push({ ...about, responder, triggers: 1_200 + i, symptom });
    });
  }
  return report;
}

test("the sentences that the report leads with stand below the title, and a report without any has no gap", async () => {
  await visit(await write("lead", fixture()), async (page) => {
    assert.equal(await page.locator("h1 + p.answer").innerText(), fixture().lead.join(" "));
  });
  await visit(await write("no-lead", { ...fixture(), lead: [] }), async (page) => {
    assert.equal(await page.locator(".answer").count(), 0);
  });
});

test("the contents name every part, follow the view, and lead there by the keyboard without losing the view", async () => {
  const check = async (page: Page) => {
    const texts = await page.locator("#contents a").allInnerTexts();
    assert.deepEqual(texts, await page.locator("main section > h2").evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset["contents"] ?? one.textContent!)));
    for (const part of ["Ladder under mixed", "Charts of task", "Windows under mixed", "Hunt: 6.12 preempt=none under mixed, fork"]) {
      assert.ok(texts.includes(part), `${part} in ${texts.join("; ")}`);
    }
    await page.selectOption("select[name=load]", "idle");
    await page.waitForFunction(() => document.querySelector("#contents")?.textContent?.includes("Ladder under idle"));
    await page.selectOption("select[name=load]", "mixed");
    await page.waitForFunction(() => document.querySelector("#contents")?.textContent?.includes("Windows under mixed"));
    const before = page.url();
    await page.focus("#contents a:text-is('Windows under mixed')");
    await page.keyboard.press("Enter");
    assert.equal(page.url(), before);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "windows");
    assert.ok((await page.locator("#windows").boundingBox())!.y < 200, "it is at the top");
  };
  await visit(await write("contents", inside()), check);
  await visit(
    await write("contents-address", inside()),
    async (page) => {
      assert.equal(await page.locator("#ladder h2 em").innerText(), "mixed");
      assert.ok((await page.locator("#worst h2").boundingBox())!.y < 200, "it is at the top");
    },
    { hash: "#worst" },
  );
});

test("a report of one part has no contents", async () => {
  await visit(await write("one-part", huntAlone()), async (page) => {
    assert.ok(!(await page.locator("#contents").isVisible()));
  });
});

test("the task is looked at first, whatever is limited", async () => {
  const report = fixture();
  for (const finding of report.runs.flatMap((run) => run.findings)) finding.responder = "hardirq";
  await visit(await write("first", report), async (page) => {
    assert.equal(await page.inputValue("select[name=responder]"), "task");
    assert.equal(await page.locator("#responder h2").innerText(), "task under mixed");
  });
});

test("a table shows at which edge there is more of it, until it is scrolled there", async () => {
  await visit(await write("fades", fixture()), async (page) => {
    const frame = page.locator("#losses .frame");
    const shown = () => frame.evaluate((one) => getComputedStyle(one, "::after").visibility);
    await page.waitForSelector("#losses .frame[data-right]");
    assert.equal(await shown(), "visible");
    await frame.locator(".scroll").evaluate((box) => (box.scrollLeft = box.scrollWidth));
    await page.waitForSelector("#losses .frame:not([data-right])");
    assert.equal(await shown(), "hidden");
    const below = page.locator("#worst .frame").first();
    await page.waitForSelector("#worst .frame[data-below]");
    await below.locator(".scroll").evaluate((box) => (box.scrollTop = box.scrollHeight));
    await page.waitForFunction(() => !document.querySelector("#worst .frame")!.hasAttribute("data-below"));
    assert.equal(await page.locator("#ladder .frame[data-right]").count(), 0, "all of it is there");
  });
});

/** Copies by the first button of the ledger, and gives what a paste then writes. */
async function copied(page: Page): Promise<string> {
  const button = page.locator("#inside .ledger .copy").first();
  await button.click();
  await page.waitForFunction(() => document.querySelector("#inside .ledger .copy")?.textContent === "copied");
  await page.evaluate(() => {
    const field = document.createElement("textarea");
    field.id = "pasted";
    document.body.prepend(field);
    field.focus();
  });
  await page.keyboard.press("Control+V");
  return page.inputValue("#pasted");
}

test("a command is one line however long, and its button copies all of it, with and without the clipboard", async () => {
  const report = inside();
  const long = `onset replay ${"a-long-name/".repeat(12)}made-up --sample 17 --responder task`;
  report.runs[3]!.inside!.ledgers[0]!.rows[0]!.replay = long;
  const path = await write("copy", report);
  const row = async (page: Page) => {
    const code = page.locator("#inside .ledger .command code").first();
    assert.equal(await code.getAttribute("title"), long);
    assert.ok((await code.boundingBox())!.height < 30, "one line");
    assert.ok(await code.evaluate((one) => one.scrollWidth > one.clientWidth), "cut at its end");
    assert.equal(await copied(page), long);
  };
  await visit(path, row, { permissions: ["clipboard-read", "clipboard-write"] });
  await visit(path, async (page) => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await row(page);
    assert.equal(await page.locator("textarea").count(), 1, "only that of this test");
  });
});

test("a browser that lets nothing be copied has the command selected", async () => {
  await visit(await write("uncopied", inside()), async (page) => {
    await page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      document.execCommand = () => false;
    });
    await page.locator("#inside .again .copy").first().click();
    await page.waitForFunction(() => document.querySelector("#inside .again .copy")?.textContent === "selected");
    const text = await page.locator("#inside .again code").first().innerText();
    assert.equal(await page.evaluate(() => getSelection()!.toString()), text);
  });
});

test("links to raw data lead on from where the page lies", async () => {
  await visit(await write("links", fixture()), async (page) => {
    const links = await page.$$eval("#files a", (all) => all.map((one) => [one.getAttribute("href")!, (one as HTMLAnchorElement).href]));
    const here = page.url().replace(/[^/]*$/, "");
    assert.ok(links.length > 0);
    for (const [written, followed] of links) assert.equal(followed, here + written);
  });
});

test("warnings that differ in a name and a number are one table, with the cause and the action once", async () => {
  await visit(await write("warned", warned()), async (page) => {
    assert.equal(await page.locator("#warnings h2").innerText(), "Warnings (8)");
    assert.equal(await page.locator("#warnings li").count(), 1);
    assert.equal(await page.locator("#warnings .symptom").innerText(), "… answered … triggers together with an older one");
    const rows = await cells(page, "#warnings tbody tr");
    assert.equal(rows.length, 8);
    assert.deepEqual(rows[7], ["task", "1\u202f207", "6.12 preempt=none, mixed; 6.12 preempt=full, mixed"]);
    assert.deepEqual((await cells(page, "#warnings thead tr"))[0], ["responder", "triggers", "run"]);
    const text = await page.locator("#warnings").innerText();
    assert.equal(text.split("It was delayed.").length, 2);
    assert.equal(text.split("Lengthen the period.").length, 2);
  });
});

test("both axes of the growth of a hunt say what they are", async () => {
  await visit(await write("growth", huntAlone()), async (page) => {
    const texts = await page.locator(".growth text").allTextContents();
    for (const label of ["longest latency so far", "virtual time of all trials"]) assert.ok(texts.includes(label), label);
    const label = (await page.locator(".growth text:text-is('longest latency so far')").boundingBox())!;
    const chart = (await page.locator(".growth").boundingBox())!;
    assert.ok(label.height > label.width && label.x >= chart.x, "upright, and inside");
  });
});

test("a phone shows all numbers of the ladder, each with its head and its flavour, and scrolls nothing sideways", async () => {
  const report = fixture();
  report.runs[3]!.series.pop();
  await visit(
    await write("ladder-phone", report),
    async (page) => {
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
      const boxes = await page.$$eval("#ladder tbody td, #ladder tbody th", (all) => all.map((one) => one.getBoundingClientRect().toJSON()));
      assert.ok(boxes.every(({ left, right, height }) => left >= 0 && right <= 375 && height > 0));
      assert.equal(await page.locator("#ladder .frame[data-right]").count(), 0);
      const hardirq = report.runs[3]!.series[0]!;
      const shown = await page.$$eval("#ladder tbody tr:first-child td:not(.picture)", (all) =>
        all.slice(0, 4).map((one) => {
          const written = (of: string) => getComputedStyle(one, of).content.replaceAll('"', "");
          return [written("::before"), (one as HTMLElement).innerText.trim(), written("::after")];
        }),
      );
      assert.deepEqual(shown, [
        ["6.12 preempt=none", duration(hardirq.quantiles["0.5"]), "median"],
        ["none", duration(hardirq.quantiles["0.999"]), "p99.9"],
        ["none", duration(hardirq.max_ns), "max"],
        ["none", "0", "lost"],
      ]);
      const absent = page.locator("#ladder tbody tr:last-child td.first").first();
      assert.equal(await absent.innerText(), "not active");
    },
    PHONE,
  );
});

const changed = (page: Page, chart: string, before: string) =>
  page.waitForFunction(
    ([chart, before]) => (document.querySelector(chart!) as HTMLCanvasElement).toDataURL() !== before,
    [chart, before],
  );

test("a box drawn over a chart zooms it, the address keeps that, and a double click shows all again", async () => {
  const path = await write("zoom", fixture());
  let hash = "";
  for (const [chart, name] of [["#histogram", "histogram"], ["#percentiles", "percentiles"], ["#timelines", "timelines"]] as const) {
    await visit(path, async (page) => {
      const canvas = `${chart} canvas`;
      const whole = await pixels(page, canvas);
      assert.match(await page.locator(`${chart} .readout`).last().innerText(), /Draw a box to zoom in, double click to go back/);
      await drag(page, `${chart} .u-over`, [0.3, 0.2, 0.6, 0.8]);
      await changed(page, canvas, whole);
      const zoomed = await pixels(page, canvas);
      hash = new URL(page.url()).hash;
      assert.match(hash, new RegExp(`zoom=${name}`));
      await page.uncheck("input[value='6.12 preempt=full']");
      await page.waitForFunction(() => document.querySelectorAll("#timelines canvas").length === 2);
      assert.match(page.url(), /zoom=/, "a flavour less leaves it");
      await page.check("input[value='6.12 preempt=full']");
      await page.waitForFunction(() => document.querySelectorAll("#timelines canvas").length === 3);
      await page.locator(`${chart} .u-over`).first().dblclick();
      assert.doesNotMatch(page.url(), /zoom=/);
      assert.equal(await pixels(page, canvas), whole);
      assert.notEqual(zoomed, whole);
    });
    await visit(
      path,
      async (page) => {
        const all = page.locator(`${chart} .all`).first();
        assert.ok(await all.isVisible(), "a link shows what its sender saw");
        const zoomed = await pixels(page, `${chart} canvas`);
        await page.selectOption("select[name=responder]", "hardirq");
        await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "hardirq");
        assert.doesNotMatch(page.url(), /zoom=/, "another responder has other axes");
        await page.goBack();
        await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "task");
        assert.equal(await pixels(page, `${chart} canvas`), zoomed);
        await page.locator(`${chart} .all`).first().click();
        assert.ok(!(await page.locator(`${chart} .all`).first().isVisible()));
      },
      { hash },
    );
  }
});

test("drawings are zoomed as charts are: by a box, by keys, back by a double click, in the address and in every view", async () => {
  const both = { ...papers(), hunts: huntAlone().hunts };
  const path = await write("zoom-drawings", both);
  const drawings = [
    ["#hunt-1 .growth", "growth.hunt-1"],
    ["#paper-2007-inversion .waits", "paper.2007-inversion"],
    ["#paper-2007-toggle .scope", "paper.2007-toggle"],
  ] as const;
  for (const [selector, name] of drawings) {
    const inside = (page: Page) => page.locator(selector).first().evaluate((drawing) => drawing.innerHTML);
    const marks = (page: Page) => page.locator(selector).first().locator("text").allTextContents();
    let [hash, whole] = ["", ""];
    let seen: string[] = [];
    await visit(path, async (page) => {
      whole = await inside(page);
      await drag(page, selector, [0.4, 0.3, 0.7, 0.7]);
      const part = await inside(page);
      seen = await marks(page);
      hash = new URL(page.url()).hash;
      assert.notEqual(part, whole);
      assert.equal(new URLSearchParams(hash.slice(1)).get("zoom")?.split(" ")[0], name);
      // Another responder has no other axes here.
      await page.selectOption("select[name=responder]", "hardirq");
      await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "hardirq");
      assert.ok(page.url().includes(`zoom=${name}`), page.url());
      assert.equal(await inside(page), part);
      await page.locator(selector).first().dblclick();
      assert.doesNotMatch(page.url(), /zoom=/);
      assert.equal(await inside(page), whole);
      // A click is no box.
      await page.locator(selector).first().click();
      assert.equal(await inside(page), whole);
      await page.locator(selector).first().locator("xpath=..").focus();
      await page.keyboard.press("+");
      assert.notEqual(await inside(page), whole);
      await page.keyboard.press("0");
      assert.equal(await inside(page), whole);
    });
    await visit(path, async (page) => {
      // To within the digits that an address keeps.
      assert.deepEqual(await marks(page), seen, "a link shows what its sender saw");
      assert.notEqual(await inside(page), whole);
      await page.locator(selector).first().locator("xpath=../following-sibling::button").click();
      assert.equal(await inside(page), whole);
    }, { hash });
  }
  // Screens of one time base show the same part, and say which.
  await visit(path, async (page) => {
    await drag(page, "#paper-2007-toggle .scope", [0.1, 0.5, 0.5, 0.5]);
    assert.deepEqual(await page.locator("#paper-2007-toggle .scope text").allTextContents(), ["0 ns … 200 µs", "0 ns … 200 µs"]);
  });
});

test("boxes are zoomed along their time, keep their text where there is room, and move to what has the focus", async () => {
  const path = await write("zoom-boxes", inside());
  let hash = "";
  await visit(path, async (page) => {
    const boxes = page.locator("#inside .ledger .box");
    const wide = async (n: number) => (await boxes.nth(n).boundingBox())!.width;
    const whole = await wide(0);
    await drag(page, "#inside .ledger .boxes", [0.25, 0.5, 0.5, 0.5]);
    assert.ok(Math.abs((await wide(0)) / whole - 4) < 0.1, `${await wide(0)} of ${whole}`);
    hash = new URL(page.url()).hash;
    assert.match(hash, /zoom=boxes\.Ledger-of-task/);
    // The last box lies beyond the right end: with the focus the part moves to it.
    const field = (await page.locator("#inside .ledger .boxes").boundingBox())!;
    const last = boxes.last();
    assert.ok((await last.boundingBox())!.x >= field.x + field.width - 1);
    await last.focus();
    const moved = (await last.boundingBox())!;
    assert.ok(moved.x < field.x + field.width && moved.x + moved.width > field.x, JSON.stringify(moved));
    await page.locator("#inside .ledger .boxes").dblclick();
    await page.locator("#inside .ledger .boxes").dblclick();
    assert.equal(await wide(0), whole);
    assert.doesNotMatch(page.url(), /zoom=/);
  });
  await visit(path, async (page) => {
    assert.ok(await page.locator("#inside .ledger .all").isVisible(), "a link shows what its sender saw");
  }, { hash });
});

test("panels over time are zoomed together, and what is read there is what is shown", async () => {
  await visit(await write("zoom-panels", fixture()), async (page) => {
    const third = "#timelines .panel:nth-of-type(3) canvas";
    const whole = await pixels(page, third);
    await drag(page, "#timelines .u-over", [0.5, 0.5, 0.6, 0.5]);
    await changed(page, third, whole);
    const over = page.locator("#timelines .u-over").first();
    const { width, height } = (await over.boundingBox())!;
    await over.hover({ position: { x: width / 2, y: height - 2 } });
    // The middle of 5 s to 6 s of 10 s; a slice is 50 ms wide.
    assert.match(await page.locator("#timelines .readout").first().innerText(), /5\.[45]\d s|5\.50 s/);
  });
});

test("keys zoom and move a chart, and leave the page its arrows where all is shown", async () => {
  await visit(await write("zoom-keys", fixture()), async (page) => {
    const canvas = "#histogram canvas";
    const [whole, address] = [await pixels(page, canvas), page.url()];
    const plot = page.locator("#histogram .plot");
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(page.url(), address);
    await page.keyboard.press("+");
    await changed(page, canvas, whole);
    const zoomed = await pixels(page, canvas);
    await page.keyboard.press("ArrowRight");
    await changed(page, canvas, zoomed);
    await page.keyboard.press("0");
    await page.waitForFunction(() => !location.hash.includes("zoom"));
    assert.equal(await pixels(page, canvas), whole);
    assert.match((await plot.getAttribute("aria-label"))!, /Keys: plus and minus zoom/);
  });
});

test("a zoomed chart keeps its part in other widths, on paper and in the dark", async () => {
  const hash = "#zoom=histogram+50000+500000+0.6+100";
  await visit(
    await write("zoom-sizes", fixture()),
    async (page) => {
      const first = await pixels(page, "#histogram canvas");
      await page.setViewportSize({ width: 900, height: 900 });
      await changed(page, "#histogram canvas", first);
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.waitForFunction(
        (before) => (document.querySelector("#histogram canvas") as HTMLCanvasElement).toDataURL() === before,
        first,
      );
      await page.emulateMedia({ colorScheme: "dark" });
      await changed(page, "#histogram canvas", first);
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.emulateMedia({ media: "print" });
      const all = page.locator("#histogram .all");
      assert.equal(await all.evaluate((one) => getComputedStyle(one, "::after").content), '"a part of the chart"');
      await page.emulateMedia({ media: "screen" });
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      assert.equal(await all.innerText(), "show all");
      assert.ok(await all.isVisible());
    },
    { hash },
  );
});

test("paper has neither contents nor buttons, and commands in full", async () => {
  await visit(await write("reading-paper", inside()), async (page) => {
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print" });
    for (const part of ["#contents", ".copy", ".all"]) assert.ok(!(await page.locator(part).first().isVisible()), part);
    const fits = (one: Element) => one.scrollWidth <= one.clientWidth || getComputedStyle(one).whiteSpace === "normal";
    assert.ok(await page.locator("#inside .ledger .command code").first().evaluate(fits));
  });
});

test("what was made to be read fits a phone: warnings, commands, papers", async () => {
  for (const [name, report] of [["warned", warned()], ["inside", inside()], ["papers", papers()]] as const) {
    await visit(
      await write(`phone-${name}`, report),
      async (page) => assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, name),
      PHONE,
    );
  }
});

test("a limit says what was measured and why it failed, of a deadline how many missed it, where, and how far", async () => {
  const report = fixture();
  const counted = { responder: "task", deadline_ns: 100_000, events: 5_000, missed: 3, late: 2, open: 1 };
  const latest = { trigger: 900, at_ns: 900_000_000, latency_ns: 141_000 };
  report.runs[0]!.findings = [
    { ...counted, tolerance: { kind: "misses", most: 1 }, first: 812, worst: null, latest, needed: 0, verdict: "fail", reason: "exceeded" },
    { ...counted, tolerance: { kind: "firm", least: 9, of: 10 }, first: 812, worst: { from: 805, missed: 2 }, latest, needed: 0, verdict: "fail", reason: "exceeded" },
    { ...counted, tolerance: { kind: "consecutive", most: 2 }, first: 812, worst: { from: 812, missed: 2 }, latest: null, needed: 0, verdict: "pass", reason: "within" },
    { ...counted, missed: 0, open: 0, tolerance: { kind: "share", most: 1, of: 10_000 }, first: null, worst: null, latest: null, needed: 5_000, verdict: "inconclusive", reason: "too_few_samples" },
    { ...counted, statistic: "max", bound_ns: 250_000, measured_ns: 9_070, verdict: "fail", reason: "unanswered" },
  ];
  await visit(await write("deadlines", report), async (page) => {
    const lines = await page.locator("#verdicts tbody tr").first().locator("td").first().locator(".finding").allInnerTexts();
    assert.deepEqual(lines.map((line) => line.replaceAll("\u202f", "")), [
        "✗ task miss(100 µs) 3 of 5000 missed, limit at most 1; 1 of them lost, how late is unknown; first trigger 812; latest 141 µs at trigger 900",
        "✗ task firm(100 µs) 8 of 10 met, from trigger 805 on, limit at least 9 of 10; 1 of them lost, how late is unknown; first trigger 812; latest 141 µs at trigger 900",
        "✓ task consecutive(100 µs) 2 missed in a row, from trigger 812 on, limit at most 2; 1 of them lost, how late is unknown; first trigger 812",
        "? task miss(100 µs) 0 of 5000 missed, limit at most 1 in 10000; 5000 more events needed; too few samples",
        "✗ task max 9.07 µs ≤ 250 µs; triggers were not answered",
      ]);
  });
});

/** A table that was made again, one that only a command shows, and a drawing. */
function items(): PaperItem[] {
  const none = { why: "", theirs: "", ours: null, others: [], command: "", table: null };
  return [
    {
      ...none,
      ...{ paper: "2001", place: "table 1", shows: "delay of a task", status: "alike", theirs: "× 32.0", ours: "× 35.6" },
      others: [{ outcome: "cannot_be_told", count: 2 }],
      command: "onset run experiments/papers/2001-tables-1-2.toml",
      table: "2001-1",
    },
    {
      ...none,
      ...{ paper: "2002", place: "Interrupt Latency", shows: "interrupts off", status: "by_command", why: "a ranking" },
      command: "onset windows experiments/ladder.toml --kind irqs_off",
    },
    { ...none, paper: "2006", place: "figure 5.6", shows: "a flow chart", status: "no_measurement", why: "a drawing" },
  ];
}

test("the papers' tables and figures come first, each with its outcome, both figures and its command or reason", async () => {
  await visit(await write("overview", { ...papers(), contents: items() }), async (page) => {
    assert.equal(await page.locator("section[id]").first().getAttribute("id"), "overview");
    assert.deepEqual(await cells(page, "#overview tbody tr"), [
      ["2001", "table 1", "delay of a task", "alike and 2 cannot be told here", "× 32.0", "× 35.6",
        "onset run experiments/papers/2001-tables-1-2.toml"],
      ["2002", "Interrupt Latency", "interrupts off", "see the command", "—", "—",
        "onset windows experiments/ladder.toml --kind irqs_off\na ranking"],
      ["2006", "figure 5.6", "a flow chart", "no measurement", "—", "—", "a drawing"],
    ]);
    await page.click("#overview a");
    await page.waitForFunction(() => document.activeElement?.closest("#paper-2001-1") !== null);
  });
  await visit(await write("no-overview", fixture()), async (page) => {
    assert.equal(await page.locator("#overview").count(), 0);
  });
});

test("points over time and histograms have a panel for each kernel, and show every extreme", async () => {
  const table = papers().papers[0]!;
  const points = [10, 900, 11].map((latency_ns, i) => ({ at_ns: i * 4_000_000, latency_ns }));
  const panel = { label: "6.12, idle", points, count: 3 };
  const scatter = { ...table, id: "scatter", picture: { kind: "scatter" as const, panels: [panel] } };
  const panels = ["6.12, idle", "6.12-rt, idle"].map((label) => ({ label, column_ns: 100, counts: [9_000, 0, 1] }));
  const histogram = { ...table, id: "histogram", picture: { kind: "histogram" as const, panels } };
  await visit(await write("plots", { ...papers(), papers: [scatter, histogram] }), async (page) => {
    assert.equal(await page.locator("#paper-scatter .dot").count(), 3);
    assert.equal(await page.locator("#paper-scatter .readout").first().innerText(), "greatest of 3: 900 ns");
    assert.equal(await page.locator("#paper-histogram .plot").count(), 2);
    const bars = page.locator("#paper-histogram .plot").first().locator(".bar");
    assert.equal(await bars.count(), 2);
    // A single sample among thousands can be seen.
    assert.ok(Number(await bars.nth(1).getAttribute("height")) >= 1);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }, PHONE);
});
