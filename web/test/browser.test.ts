// SPDX-License-Identifier: GPL-2.0-or-later
// The built page in a browser: it shows what the JSON says, follows its address, and asks the network
// for nothing. With ONSET_REPORT=path/to/report.html what holds for any report is checked on that one too.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import type { Run } from "../src/contract.ts";
import { duration, integer } from "../src/format.ts";
import { cells, coverage, MARKER, pixels, reportIn, TEMPLATE, visit, write } from "./chromium.ts";
import { fixture, huntAlone, inside, PULSE, papers } from "./fixture.ts";

async function ladderSaysWhatTheReportSays(page: Page): Promise<void> {
  const report = await reportIn(page);
  const experiments = [...new Set(report.runs.map((run) => run.experiment))];
  for (const experiment of experiments) {
    if (experiments.length > 1) await page.selectOption("select[name=experiment]", experiment);
    await laddersOf(
      page,
      report.runs.filter((run) => run.experiment === experiment),
    );
  }
}

async function laddersOf(page: Page, all: readonly Run[]): Promise<void> {
  for (const load of new Set(all.map((run) => run.load))) {
    await page.selectOption("select[name=load]", load);
    await page.waitForFunction((load) => document.querySelector("#ladder h2 em")?.textContent === load, load);
    const shown = new Map((await cells(page, "#ladder tbody tr")).map(([name, , ...numbers]) => [name, numbers]));
    const runs = all.filter((run) => run.load === load);
    for (const responder of new Set(all.flatMap((run) => run.series.map((s) => s.responder)))) {
      const expected = runs.flatMap((run) => {
        const s = run.series.find((series) => series.responder === responder);
        if (s === undefined) return ["not active"];
        const lost = Object.values(s.losses).reduce((sum, n) => sum + n, 0);
        return [duration(s.quantiles["0.5"]), duration(s.quantiles["0.999"]), duration(s.max_ns), integer(lost)];
      });
      assert.deepEqual(shown.get(responder), expected, `${responder} under ${load}`);
    }
  }
}

async function fitsAPhone(page: Page): Promise<void> {
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
}

test("the template holds the marker once and refers to nothing outside itself", async () => {
  const template = await readFile(TEMPLATE, "utf8");
  assert.equal(template.split(MARKER).length, 2);
  assert.doesNotMatch(template, /<(script|img|iframe|link)[^>]+(src|href)="(?!data:)/);
});

test("the ladder shows exactly the numbers of the report, under every load", async () => {
  await visit(await write("ladder", fixture()), ladderSaysWhatTheReportSays);
});

test("the verdicts show each run's verdict and what its limit found", async () => {
  await visit(await write("verdicts", fixture()), async (page) => {
    const row = (await cells(page, "#verdicts tbody tr"))[0]!;
    const [idle, mixed] = fixture().runs.filter((run) => run.flavour === "6.12 preempt=none");
    assert.match(row[1]!, /pass/);
    assert.ok(row[1]!.includes("10\u202f000 samples, 10.0 s"), row[1]);
    const measured = ({ findings: [f] }: Run) => duration("statistic" in f! ? f.measured_ns : null);
    assert.ok(row[1]!.includes(measured(idle!)));
    assert.ok(/fail/.test(row[2]!) && row[2]!.includes(`${measured(mixed!)} > 250 µs`));
  });
});

test("what failed is behind no closed section, and a cell without limits says so", async () => {
  const report = papers();
  report.runs[0]!.findings = [];
  report.runs[0]!.verdict = "inconclusive";
  await visit(await write("open", report), async (page) => {
    const sections = page.locator("#verdicts details");
    const open = await sections.evaluateAll((all) => all.map((one) => (one as HTMLDetailsElement).open));
    assert.deepEqual(open, [true, false]);
    assert.match(await sections.first().locator("summary").innerText(), /fail/);
    const row = (await cells(page, "#verdicts tbody tr"))[0]!;
    assert.match(row[1]!, /no limit$/);
  });
});

test("a limit is drawn on the panels of the flavours that have it", async () => {
  const report = fixture();
  for (const run of report.runs.filter(({ flavour }) => flavour !== "6.12-rt")) run.findings = [];
  await visit(await write("limits", report), async (page) => {
    const names = await page.locator("#timelines .panel-name").allInnerTexts();
    assert.deepEqual(
      names.map((name) => name.trim()),
      ["6.12 preempt=none no limit", "6.12 preempt=full no limit", "6.12-rt"],
    );
  });
});

test("flavours that were not answered in the same company say so, with the set that all have", async () => {
  const report = fixture();
  const setting = "--set 'responders=[\"hardirq\", \"task\"]'";
  const lacking = [{ flavour: "6.1", responders: ["bh_work"] }];
  report.unequal = [{ experiment: report.runs[0]!.experiment, lacking, common: ["hardirq", "task"], setting }];
  await visit(await write("unequal", report), async (page) => {
    const note = await page.locator("#ladder .callout").innerText();
    assert.ok(note.includes("6.1 lacks bh_work") && note.includes(setting), note);
  });
});

test("every chart draws, and draws something else when the selection changes", async () => {
  await visit(await write("charts", fixture()), async (page) => {
    for (const look of [0, 1, 2]) {
      const [histogram = 0, percentiles = 0, ...panels] = await coverage(page, "#responder canvas", look);
      // A dotted line leaves more than half of the columns free, and the tallest flavours hide some.
      assert.ok(
        histogram > 0.08 && percentiles > 0.2,
        `flavour ${look}: ${histogram} of the histogram, ${percentiles} of the percentiles`,
      );
      // A slice of time leaves no column free; the other flavours have panels of their own.
      assert.deepEqual(
        panels.map((share) => share > 0.85),
        [0, 1, 2].map((panel) => panel === look),
        String(panels),
      );
    }
    const charts = ["#histogram canvas", "#percentiles canvas", "#timelines canvas"];
    const first = await Promise.all(charts.map((chart) => pixels(page, chart)));
    await page.selectOption("select[name=responder]", "hardirq");
    await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "hardirq");
    const other = await Promise.all(charts.map((chart) => pixels(page, chart)));
    charts.forEach((chart, i) => assert.notEqual(first[i], other[i], chart));
    await page.uncheck("input[value='6.12 preempt=none']");
    await page.waitForFunction(() => document.querySelectorAll("#timelines canvas").length === 2);
    assert.deepEqual(await coverage(page, "#histogram canvas, #percentiles canvas", 0), [0, 0]);
    assert.equal(await page.locator("#ladder th.group").count(), 2);
  });
});

test("a link restores the view, and going back restores the one before", async () => {
  const path = await write("hash", fixture());
  const check = async (page: Page) => {
    assert.equal(await page.locator("select[name=load]").inputValue(), "idle");
    assert.equal(await page.locator("#responder h2").innerText(), "work under idle");
    assert.deepEqual(
      await page
        .locator("input[name=flavour]:checked")
        .evaluateAll((boxes) => boxes.map((box) => (box as HTMLInputElement).value)),
      ["6.12-rt"],
    );
    await page.click("#ladder button:text-is('tasklet')");
    await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "tasklet");
    assert.match(page.url(), /responder=tasklet/);
    await page.goBack();
    await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "work");
  };
  await visit(path, check, { hash: "#load=idle&responder=work&flavour=6.12-rt" });
});

test("the last flavour cannot be taken away", async () => {
  await visit(
    await write("last", fixture()),
    async (page) => {
      const box = page.locator("input[value='6.12-rt']");
      await box.click();
      assert.ok(await box.isChecked());
    },
    { hash: "#flavour=6.12-rt" },
  );
});

test("pointing at a chart reads it: a worst answer gives its trigger, latency and time", async () => {
  await visit(await write("pointer", fixture()), async (page) => {
    const run = fixture().runs.find(({ load }) => load === "mixed")!;
    const worst = run.series.find(({ responder }) => responder === "task")!.worst[0]!;
    const place = await page.locator("#timelines .u-over").first().boundingBox();
    const end_ns = Math.max(
      ...fixture()
        .runs.slice(3)
        .flatMap(({ series }) =>
          series.find(({ responder }) => responder === "task")!.timeline.map((slice) => slice.at_ns + slice.width_ns),
        ),
    );
    await page
      .locator("#timelines .u-over")
      .first()
      .hover({ position: { x: (worst.at_ns / end_ns) * place!.width, y: 10 } });
    const readout = await page.locator("#timelines .readout").first().innerText();
    assert.ok(
      readout.startsWith(
        `trigger ${integer(worst.trigger)}: ${duration(worst.latency_ns)} at ${duration(worst.at_ns)}`,
      ),
      readout,
    );
    await page.locator("#percentiles .u-over").hover();
    assert.match(await page.locator("#percentiles .readout").innerText(), /% at or below: .*6\.12-rt/);
  });
});

test("the numbers beside a chart are those it is drawn from", async () => {
  await visit(await write("numbers", fixture()), async (page) => {
    await page.click("#histogram summary");
    await page.waitForSelector("#histogram tbody tr");
    const task = fixture()
      .runs.slice(3)
      .flatMap(({ flavour, series }) =>
        series.filter(({ responder }) => responder === "task").map((s) => ({ flavour, s })),
      );
    const expected = task.flatMap(({ flavour, s }) =>
      s.columns.map(({ low_ns, high_ns, count }) => [flavour, ...[low_ns, high_ns, count].map(integer)]),
    );
    assert.deepEqual(await cells(page, "#histogram tbody tr"), expected);
  });
});

test("dark and light differ on the ground and in the charts, and charts follow a change", async () => {
  await visit(await write("schemes", fixture()), async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [light, chart] = [await ground(), await pixels(page, "#percentiles canvas")];
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForFunction(
      (before) => (document.querySelector("#percentiles canvas") as HTMLCanvasElement).toDataURL() !== before,
      chart,
    );
    assert.equal(light, "rgb(255, 255, 255)");
    assert.notEqual(await ground(), light);
  });
});

test("a phone scrolls tables inside their boxes and never the page", async () => {
  await visit(await write("phone", fixture()), fitsAPhone, {
    viewport: { width: 375, height: 740 },
    deviceScaleFactor: 2,
    hasTouch: true,
  });
});

test("paper is light, opens the configuration, and is undone afterwards", async () => {
  await visit(
    await write("paper", fixture()),
    async (page) => {
      const dark = await pixels(page, "#histogram canvas");
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.waitForFunction(
        (before) => (document.querySelector("#histogram canvas") as HTMLCanvasElement).toDataURL() !== before,
        dark,
      );
      await page.emulateMedia({ media: "print" });
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
      assert.ok(await page.locator("#configuration table").isVisible());
      assert.ok(await page.locator("#histogram canvas").isVisible());
      assert.ok(!(await page.locator("#histogram details").isVisible()));
      await page.emulateMedia({ media: "screen" });
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      assert.ok(!(await page.locator("#configuration table").isVisible()));
      await page.waitForFunction(
        (before) => (document.querySelector("#histogram canvas") as HTMLCanvasElement).toDataURL() === before,
        dark,
      );
      assert.ok((await page.pdf({ format: "A4" })).length > 20_000);
      // So wide that a chart is as wide as on paper: it must change its colours even where it keeps its size.
    },
    { colorScheme: "dark", viewport: { width: 728, height: 900 } },
  );
});

test("doubt is shown: warnings, losses, absent quantiles, invalid and incomplete runs, missing responders", async () => {
  const report = fixture();
  const run = report.runs[3]!;
  Object.assign(run, { verdict: "invalid", complete: false });
  run.warnings.push({
    code: "guest_oops",
    symptom: "The guest's kernel reported an oops",
    cause: "A module of the load",
    action: "Read console.log in the bundle",
  });
  const task = run.series.find(({ responder }) => responder === "task")!;
  task.losses.unanswered = 1_234;
  task.quantiles = { "0.5": 7_000 };
  run.series = run.series.filter(({ responder }) => responder !== "bh_work");
  Object.assign(run.series[0]!, {
    count: 0,
    min_ns: null,
    mean_ns: null,
    stddev_ns: null,
    max_ns: null,
    quantiles: {},
    columns: [],
    curve: [],
    timeline: [],
    worst: [],
  });
  await visit(await write("doubt", report), async (page) => {
    await ladderSaysWhatTheReportSays(page);
    assert.match(
      await page.locator("#verdicts tbody tr").first().innerText(),
      /invalid[\s\S]*incomplete[\s\S]*1 warning/,
    );
    assert.match(await page.locator("#ladder .callout").innerText(), /6\.12 preempt=none/);
    const warnings = await page.locator("#warnings").innerText();
    for (const text of [
      "Warnings (1)",
      "reported an oops",
      "guest_oops",
      "A module of the load",
      "Read console.log",
      "6.12 preempt=none, mixed",
    ]) {
      assert.ok(warnings.includes(text), `${text} in ${warnings}`);
    }
    const row = (await cells(page, "#losses tbody tr")).find(([responder]) => responder === "task")!;
    assert.deepEqual(
      row.slice(2, 9),
      ["10 000", "1 234", "0", "0", "0", "0", "0"].map((text) => text.replace(" ", "\u202f")),
    );
  });
});

test("methods of probes are drawn like responders, and no instructions are shown where none were counted", async () => {
  const report = fixture();
  const names = ["futex", "nanosleep-3.25ms-cpu0", "c++", "__proto__"];
  report.clock = "monotonic";
  for (const run of report.runs) {
    run.clock = "monotonic";
    run.findings = [];
    run.series = run.series.slice(0, names.length).map((series, i) => ({ ...series, responder: names[i]! }));
    for (const worst of run.series.flatMap((series) => series.worst)) delete worst.path_insns;
  }
  report.runs[0]!.series[3]!.losses.overrun = 17;
  await visit(
    await write("probes", report),
    async (page) => {
      await ladderSaysWhatTheReportSays(page);
      assert.equal(await page.locator("#responder h2 em").first().innerText(), "nanosleep-3.25ms-cpu0");
      assert.doesNotMatch(await page.locator("#worst").innerText(), /instructions|undefined|NaN/);
      assert.ok((await cells(page, "#ladder tbody tr")).map(([name]) => name).every((name, i) => name === names[i]));
    },
    { hash: "#responder=nanosleep-3.25ms-cpu0" },
  );
});

test("a responder that nobody answered says so instead of drawing nothing", async () => {
  const report = fixture();
  for (const run of report.runs) {
    Object.assign(run.series[0]!, {
      count: 0,
      min_ns: null,
      mean_ns: null,
      stddev_ns: null,
      max_ns: null,
      quantiles: {},
      columns: [],
      curve: [],
      timeline: [],
      worst: [],
    });
  }
  await visit(
    await write("silent", report),
    async (page) => {
      assert.equal(await page.locator("#responder .empty").count(), 3);
    },
    { hash: "#responder=hardirq" },
  );
});

test("a paper's table shows its figures, ours, what is missing, and leads to the run", async () => {
  await visit(await write("papers", papers()), async (page) => {
    const rows = await cells(page, "#paper-2001-1 tbody tr");
    assert.deepEqual(rows, [
      ["C Linux 2.4.0-test6", "0.2", "10.9", "103.5", "", "", ""],
      ["6.12 preempt=none", "—", "2.00\n1.98 … 2.02", "2.10", "3", "1\u202f000", "3"],
    ]);
    const text = await page.locator("#paper-2001-1").innerText();
    assert.ok(text.includes("Not measured here: 6.12-rt under disk"), text);
    assert.equal(await page.getAttribute("#paper-2001-1 .ours td:nth-of-type(2)", "title"), "2\u202f000\u202f000 ns");
    await page.selectOption("select[name=experiment]", PULSE);
    await page.waitForFunction(() => document.querySelector("#ladder h2 em")?.textContent === "compile");
    await page.click("#paper-2001-1 .ours button");
    await page.waitForFunction(() => document.querySelector("#responder h2 em")?.textContent === "hardirq");
    assert.equal(await page.inputValue("select[name=experiment]"), "Response ladder of 6.12");
    assert.equal(await page.inputValue("select[name=load]"), "idle");
  });
});

test("each claim of a paper shows its outcome, and what was decided shows its spread and the smallest effect", async () => {
  await visit(await write("claims", papers()), async (page) => {
    const outcomes = await page.locator("#paper-2001-1 .claims dt").allInnerTexts();
    assert.deepEqual(outcomes, ["alike", "no difference that this set-up can show", "cannot be told here"]);
    const [alike, , untold] = await page.locator("#paper-2001-1 .claims dd").allInnerTexts();
    for (const part of ["10.9 ms against 0.341 ms", "× 35.6", "× 35.1 to × 36.2 in 3 seeds", "counts: × 2.00"]) {
      assert.ok(alike?.includes(part), `${part} in ${alike}`);
    }
    assert.equal(untold, "Linux 2.4 is quicker than 2.2.\n\nHere: onset measures neither of these kernels.");
  });
});

test("the inversion is one chart of both mutexes, and each pulse has a screen that hides no edge silently", async () => {
  await visit(await write("pictures", papers()), async (page) => {
    assert.equal(await page.locator("#paper-2007-inversion .waits path.wait").count(), 2);
    assert.equal(await page.locator("#paper-2007-inversion .waits path.mark").count(), 8);
    assert.equal(await page.locator("#paper-2007-toggle .scope").count(), 2);
    const readouts = await page.locator("#paper-2007-toggle .screens .readout").allInnerTexts();
    assert.deepEqual(readouts, [
      "latest edge 21.0 µs",
      "latest edge 1.20 ms; 12 edges are beyond the right end",
    ]);
  });
});

test("papers fit a phone, and only a report of several experiments asks which", async () => {
  await visit(await write("papers-ladder", papers()), ladderSaysWhatTheReportSays);
  await visit(await write("papers-phone", papers()), fitsAPhone, { viewport: { width: 375, height: 740 } });
  await visit(await write("one", fixture()), async (page) => {
    assert.equal(await page.locator("select[name=experiment]").count(), 0);
    assert.equal(await page.locator("#papers").count(), 0);
  });
});

test("a run that was looked into shows its ledger, its worst answers and its windows, and the others say that they were not", async () => {
  await visit(await write("inside", inside()), async (page) => {
    const ledger = await cells(page, "#inside .ledger tbody tr");
    const replay = (trigger: number) => `onset replay onset-runs/made-up --sample ${trigger} --responder task`;
    assert.deepEqual(
      ledger.map((row) => [...row.slice(0, 4), ...row.slice(6).map((cell) => cell.replace(/\s+copy$/, ""))]),
      [
        ["1.00 ms", "71.4 %", "2", "700 µs", "2", "700 µs", replay(17)],
        ["390 µs", "27.9 %", "12", "106 µs", "1", "390 µs in 12", replay(18)],
        ["10.0 µs", "0.7 %", "1", "10.0 µs", "", "", ""],
      ],
    );
    assert.match(ledger[0]![5]!, /_raw_spin_lock_irq\+0x9 < null_queue_rq\+0x126 \[null_blk\]/);
    const text = await page.locator("#inside").innerText();
    for (const part of ["Not looked into: 6.12 preempt=full, 6.12-rt", "Not seen in this kernel: calls of ktime_get", "1 other", "1\u202f000\u202f000 ns", "unexplained 1.00 µs"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    await page.click("#inside .windows summary >> nth=-1");
    await page.click("#inside .bound summary");
    const open = await page.locator("#inside").innerText();
    for (const part of ["2 without a length", "inside:", "854 µs", "D_POID", "task 700 µs"]) {
      assert.ok(open.includes(part), `${part} in ${open}`);
    }
    const terms = await page.locator("#inside .bound").innerText();
    assert.match(terms, /_raw_spin_lock_irq\+0x9 < null_queue_rq\+0x126 \[null_blk\][^]*inside: null_queue_rq/);
    await page.selectOption("select[name=responder]", "hardirq");
    await page.waitForFunction(() => document.querySelector("#inside .empty + .panel-inside .empty") !== null);
  });
});

test("of the worst answers the reader chooses one, and each has the command that replays it", async () => {
  await visit(await write("worst", inside()), async (page) => {
    const choice = page.locator("#inside select[name=worst]");
    assert.deepEqual(await choice.locator("option").allInnerTexts(), ["1. 1.00 ms, trigger 17", "2. 1.00 ms, trigger 18"]);
    const latency = page.locator("#inside .latency");
    assert.match(await latency.innerText(), /^Trigger 17, at 17\.0 ms/);
    await choice.selectOption("1");
    assert.match(await latency.innerText(), /^Trigger 18, at 18\.0 ms/);
    assert.equal(await latency.count(), 1);
    const commands = await page.locator("#inside .again code").allInnerTexts();
    const words = "onset-runs/made-up --sample 18 --responder task";
    assert.deepEqual(commands, [`onset replay ${words}`, `onset explain ${words}`]);
  });
});

test("an exceeded bound is the first thing that is said of a run, and a bound that cannot be seen is none", async () => {
  const report = inside();
  const seen = report.runs[3]!.inside!;
  seen.exceeded = [{ responder: "task", trigger: 40, at_ns: 1, scheduling_ns: 854_101, latency_ns: 900_000 }];
  await visit(await write("exceeded", report), async (page) => {
    const said = await page.locator("#inside .callout").innerText();
    assert.match(said, /^task was scheduled 854\u202f101 ns after trigger 40, which is more than the bound.*report it/);
    assert.match(await page.locator("#inside .bound summary").innerText(), /854 µs exceeded$/);
  });
  seen.exceeded = [];
  seen.bound = null;
  await visit(await write("unbounded", report), async (page) => {
    assert.equal(await page.locator("#inside .bound, #inside .callout").count(), 0);
    assert.match(await page.locator("#inside").innerText(), /No bound of the scheduling latency/);
  });
});

test("boxes are as wide as their share, and are read by pointing and by the arrow keys", async () => {
  await visit(await write("boxes", inside()), async (page) => {
    const field = (await page.locator("#inside .ledger .boxes").boundingBox())!;
    const boxes = page.locator("#inside .ledger .box");
    const first = (await boxes.first().boundingBox())!;
    assert.ok(Math.abs(first.width / field.width - 1 / 1.4) < 0.01, `${first.width} of ${field.width}`);
    const readout = page.locator("#inside .ledger .readout");
    await boxes.nth(4).hover();
    assert.match(await readout.innerText(), /^tar nice 0: 390 µs in 12 stretches, longest 106 µs; 27\.9 % of the time/);
    await boxes.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await readout.innerText(), /^null_queue_rq \[null_blk\]: 1\.00 ms/);
    assert.equal(await page.locator("#inside .ledger .box[tabindex='0']").count(), 1);
    await page.locator("#inside .latency .box").nth(3).hover();
    assert.match(await page.locator("#inside .latency .readout").innerText(), /700\u202f000 ns.*irqs_off/);
    await page.click("#inside .latency .numbers summary");
    // The table is made once the browser has told of the opening, which is after the click.
    await page.locator("#inside .latency .numbers tbody tr").nth(2).waitFor();
    const parts = await cells(page, "#inside .latency .numbers tbody tr");
    assert.deepEqual(parts[2], ["990\u202f000", "9\u202f000", "8\u202f990", "request", "12 short parts"]);
  });
});

test("what disturbed is marked at its time below the causes, and read as they are", async () => {
  await visit(await write("disturbed", huntAlone()), async (page) => {
    const field = (await page.locator(".find .boxes").boundingBox())!;
    const marks = page.locator(".find .look-mark");
    const readout = page.locator(".find .readout");
    for (const [n, at, says] of [
      [0, 0, /^1\.00 µs before the trigger: the other device interrupts$/],
      [1, 0.6, /^600 µs after the trigger.*starts 8 timers$/],
    ] as const) {
      const mark = (await marks.nth(n).boundingBox())!;
      const middle = (mark.x + mark.width / 2 - field.x) / field.width;
      assert.ok(Math.abs(middle - at) < 0.01, `${middle}`);
      // At its middle a little right of the border, where it is not cut off.
      await marks.nth(n).hover({ position: { x: 6, y: 15 } });
      assert.match(await readout.innerText(), says);
    }
    await page.locator(".find .box").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await readout.innerText(), /before the trigger/);
    await page.keyboard.press("ArrowRight");
    assert.match(await readout.innerText(), /starts 8 timers/);
  });
  await visit(await write("undisturbed", inside()), async (page) => {
    assert.equal(await page.locator("#inside .look-mark").count(), 0);
  });
});

test("a hunt alone is a report: growth, coverage, strategies, finds and how to replay them", async () => {
  await visit(await write("hunt", huntAlone()), async (page) => {
    const text = await page.locator(".hunt").innerText();
    for (const part of [
      "26 trials with 4\u202f964 triggers in 13.6 s",
      "1\u202f202 of 2\u202f175 stacks",
      "the budget was used up",
      "onset replay onset-runs/hunts/made-up/task.find.json",
      "The hunt ended before it wrote this find to a file",
      "The trigger was not aimed at a stretch",
      "Triggers without an answer of their own: 12 superseded.",
      "found by foresight in trial 2, under mixed",
      "The guest of trial 7, under fork, died",
      "Kernel panic", "Trial 12 came out otherwise in a fork",
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.deepEqual((await cells(page, ".hunt .columns tbody tr"))[0], ["random", "2", "250", "251 ms", "—", "150 µs"]);
    const causes = await cells(page, ".hunt .find:nth-of-type(1) .causes tbody tr");
    assert.deepEqual(causes, [
      ["169 µs", "90.0 %", "3", "100 µs", "irqs_off", "_raw_spin_lock_irq+0x9 < null_queue_rq+0x126 [null_blk]"],
      ["18.8 µs", "10.0 %", "1", "18.8 µs", "unexplained", "no stack"],
    ]);
    assert.match(text, /Rings: the longest latency of triggers at random/);
    const others = await cells(page, ".hunt .finds tbody tr");
    assert.deepEqual(others[0]?.slice(0, 4), ["90.0 µs", "window_start, trial 5", "fork", "75.0 % in 5"]);
    assert.equal(others[0]?.at(-1), "task.2.find.json");
    assert.deepEqual(others[1]?.slice(0, 5), ["120 µs", "disturb, trial 8 disturbed", "mixed", "—", "not explained"]);
    assert.equal(await page.locator(".growth path.wait").count(), 4);
    assert.equal(await page.locator(".growth circle").count(), 1);
    assert.equal(await page.locator(".growth .mark").count(), 4);
    assert.equal(await page.locator("#verdicts, #bar, #warnings").count(), 0);
  });
  const never = huntAlone();
  for (const hunted of never.hunts.flatMap(({ responders }) => responders)) hunted.random = [];
  await visit(await write("never-random", never), async (page) => {
    assert.doesNotMatch(await page.locator(".hunt").innerText(), /Rings/);
  });
});

test("what was seen inside and hunts fit a phone, and paper has them on light ground", async () => {
  await visit(await write("inside-phone", inside()), fitsAPhone, { viewport: { width: 375, height: 740 } });
  await visit(
    await write("inside-paper", inside()),
    async (page) => {
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.emulateMedia({ media: "print" });
      assert.ok(await page.locator("#inside .windows table").last().isVisible());
      assert.ok(await page.locator(".growth").isVisible());
      assert.ok(!(await page.locator("#inside .latency .numbers").isVisible()));
    },
    { colorScheme: "dark" },
  );
});

test("another schema number gives a message that can be acted on", async () => {
  await visit(await write("schema", { ...fixture(), schema: 1 }), async (page) => {
    assert.match(
      await page.locator("[role=alert]").innerText(),
      /cannot be shown[\s\S]*schema number 1[\s\S]*onset report/,
    );
  });
});

test("a report that the viewer trips over says so instead of staying blank", async () => {
  const path = await write("torn", { ...fixture(), runs: [{ clock: "virtual" }] });
  // The fault is not swallowed either: it is the one thing that the console must hold.
  const shown = visit(path, async (page) => {
    assert.match(await page.locator("[role=alert]").innerText(), /viewer failed[\s\S]*fault of onset/);
  });
  await assert.rejects(shown, /TypeError/);
});

test("markup in any text of the report is shown and not obeyed, and a script is no link", async () => {
  const evil = `</script><img src=x onerror="document.title='owned'"><b>& "q"`;
  const report = fixture();
  report.title = evil;
  for (const run of report.runs) {
    Object.assign(run, { flavour: `${run.flavour} ${evil}`, experiment_source: evil });
    run.warnings.push({ code: evil, symptom: evil, cause: evil, action: evil });
    run.files.push({ name: "bad", href: "javascript:document.title='owned'", what: evil });
  }
  await visit(await write("markup", report), async (page) => {
    assert.equal(await page.locator("h1").innerText(), evil);
    assert.equal(await page.title(), `${evil} — onset`);
    assert.equal(await page.locator("main img, main b:not(.finding b)").count(), 0);
    assert.equal(await page.locator("a:text-is('bad')").count(), 0);
    assert.equal(await page.locator("a:text-is('manifest.json')").count(), 6);
  });
});

const real = process.env["ONSET_REPORT"];
test(
  "a report written by the command shows its own numbers",
  { skip: real === undefined ? "ONSET_REPORT names no report" : false },
  async () => {
    const path = resolve(real!);
    await visit(path, async (page) => {
      await ladderSaysWhatTheReportSays(page);
      assert.ok((await coverage(page, "#percentiles canvas", 0))[0]! > 0);
    });
    await visit(path, fitsAPhone, { viewport: { width: 375, height: 740 } });
  },
);
