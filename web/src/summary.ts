// SPDX-License-Identifier: GPL-2.0-or-later
// The top of the page: what was measured, in which time, and whether it passed.

import type { Clock, Finding, Report, Run, Verdict } from "./contract.ts";
import { h, scrollBox } from "./element.ts";
import { date, duration, integer, several } from "./format.ts";
import { swatch } from "./look.ts";
import type { Matrix } from "./transpose.ts";
import type { View } from "./view.ts";

const CLOCKS: Record<Clock, [string, string]> = {
  virtual: [
    "virtual time",
    "How long a path the kernel took, counted in instructions executed, plus the time it slept; caches, bus and firmware are not in it, so it ranks mechanisms and kernels and does not predict a machine.",
  ],
  monotonic: [
    "CLOCK_MONOTONIC",
    "Real time of a real machine as its kernel keeps it: caches, bus, firmware and whatever else ran are in the numbers.",
  ],
  tsc: [
    "time-stamp counter",
    "Real time of a real machine, from the processor's own counter: caches, bus, firmware and whatever else ran are in the numbers.",
  ],
};

/** Each verdict's sign, so that it does not depend on colour. */
const SIGNS: Record<Verdict, string> = { pass: "✓", fail: "✗", inconclusive: "?", invalid: "!" };

const MEANINGS: Record<Verdict, string> = {
  pass: "every limit was kept",
  fail: "a limit was exceeded",
  inconclusive: "too few samples, or no limit, to decide",
  invalid: "the run itself was unsound: do not use its numbers",
};

/** A verdict as a word with its sign. */
export function chip(verdict: Verdict): HTMLElement {
  return h(
    "span",
    { class: `chip ${verdict}`, title: MEANINGS[verdict] },
    h("span", { "aria-hidden": "true" }, SIGNS[verdict]),
    ` ${verdict}`,
  );
}

/** The verdict of a run, and that it was cut short if it was. */
export function runChips(run: Run): HTMLElement {
  return h(
    "span",
    { class: "chips" },
    chip(run.verdict),
    !run.complete &&
      h(
        "span",
        { class: "chip incomplete", title: "the run was cut short; this is what it had until then" },
        "incomplete",
      ),
  );
}

/** Title, origin and the meaning of the clock. */
export function showHeader(report: Report): HTMLElement {
  const [name, meaning] = CLOCKS[report.clock];
  const some = (n: number, what: string) => (n === 0 ? [] : [several(n, what)]);
  const material = [...some(report.runs.length, "run"), ...some(report.hunts.length, "hunt")].join(", ");
  return h(
    "header",
    {},
    h("h1", {}, report.title),
    h(
      "p",
      { class: "origin" },
      `${material} · ${date(report.created)} · onset ${report.tool.version} (${report.tool.revision})`,
    ),
    h("p", { class: "clock" }, h("strong", {}, `Clock: ${name}.`), ` ${meaning}`),
  );
}

/** Flavours against loads, each with its verdict and what its limits found; of several experiments each by itself. */
export function showVerdicts(matrices: readonly Matrix[], go: (change: Partial<View>) => void): HTMLElement {
  const tables = matrices.map((matrix) => {
    const table = scrollBox(`Verdicts of ${matrix.experiment}`, verdictTable(matrix, go));
    if (matrices.length === 1) return table;
    // What failed is never behind a closed section.
    const worst = worstVerdict(matrix);
    const open = worst === "fail" || worst === "invalid";
    return h("details", { class: "printed", open }, h("summary", {}, `${matrix.experiment} `, chip(worst)), table);
  });
  return h("section", { id: "verdicts" }, h("h2", {}, "Verdict"), ...tables);
}

/** From the one that says most against an experiment. */
const WORST: readonly Verdict[] = ["fail", "invalid", "inconclusive", "pass"];

function worstVerdict(matrix: Matrix): Verdict {
  const all = matrix.loads.flatMap((load) => matrix.lanes(load).map(({ run }) => run.verdict));
  return WORST.find((verdict) => all.includes(verdict)) ?? "pass";
}

function verdictTable(matrix: Matrix, go: (change: Partial<View>) => void): HTMLTableElement {
  const { experiment } = matrix;
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Flavour"),
        ...matrix.loads.map((load) => h("th", { scope: "col" }, loadButton(experiment, load, go))),
      ),
    ),
    h(
      "tbody",
      {},
      ...matrix.flavours.map((name, look) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, swatch(look), " ", name),
          ...matrix.loads.map((load) => verdictCell(matrix.lanes(load).find((lane) => lane.name === name)?.run)),
        ),
      ),
    ),
  );
}

function loadButton(experiment: string, load: string, go: (change: Partial<View>) => void): HTMLElement {
  const button = h("button", { type: "button", title: `Show the ladder under ${load}` }, load);
  button.addEventListener("click", () => {
    go({ experiment, load });
    document.getElementById("ladder")?.scrollIntoView();
  });
  return button;
}

function verdictCell(run: Run | undefined): HTMLElement {
  if (run === undefined) return h("td", { class: "absent" }, "not run");
  const warnings = run.warnings.length;
  return h(
    "td",
    {},
    runChips(run),
    h("div", { class: "evidence" }, evidenceText(run)),
    ...(run.findings.length === 0 ? [h("div", { class: "finding" }, "no limit")] : run.findings.map(findingLine)),
    warnings > 0 && h("div", { class: "finding doubted" }, warnings === 1 ? "1 warning" : `${warnings} warnings`),
  );
}

/** What the verdict stands on: `500 samples, 500 ms`. */
export function evidenceText({ evidence: { samples_min, samples_max, measured_ns } }: Run): string {
  const fewest = samples_min === samples_max ? "" : `${integer(samples_min)} to `;
  const samples = `${fewest}${several(samples_max, "sample")}`;
  return measured_ns === null ? samples : `${samples}, ${duration(measured_ns)}`;
}

function findingLine(finding: Finding): HTMLElement {
  const { responder, statistic, measured_ns, bound_ns, verdict } = finding;
  // Compared exactly: both may round to the same three digits.
  const relation = measured_ns === null || measured_ns <= bound_ns ? "≤" : ">";
  const measured = measured_ns === null ? "not measurable" : duration(measured_ns);
  return h(
    "div",
    { class: `finding ${verdict}`, title: MEANINGS[verdict] },
    `${SIGNS[verdict]} ${responder} ${statistic} `,
    h("b", {}, measured),
    measured_ns === null ? ", " : " ",
    h("span", {}, measured_ns === null ? `limit ${duration(bound_ns)}` : `${relation} ${duration(bound_ns)}`),
  );
}
