// SPDX-License-Identifier: GPL-2.0-or-later
// The top of the page: what was measured, with which clock, and whether it passed.

import type {
  Clock,
  DeadlineFinding,
  Finding,
  Reason,
  Report,
  Run,
  StatisticFinding,
  Tolerance,
  Verdict,
} from "./contract.ts";
import { h } from "./element.ts";
import { date, duration, integer, several } from "./format.ts";
import { swatch } from "./look.ts";
import { scrollBox } from "./scroll.ts";
import type { Matrix } from "./transpose.ts";
import type { View } from "./view.ts";

const CLOCKS: Record<Clock, [string, string]> = {
  virtual: [
    "virtual time",
    "Virtual time counts the instructions that the kernel executed, plus the time that it slept. It contains no effects of caches, bus and firmware. So it ranks mechanisms and kernels, and does not predict the latency of a machine.",
  ],
  monotonic: [
    "CLOCK_MONOTONIC",
    "Real time of a real machine, from the clock of its kernel. The numbers contain the effects of caches, bus, firmware and everything else that ran.",
  ],
  tsc: [
    "time-stamp counter",
    "Real time of a real machine, from the counter of its processor. The numbers contain the effects of caches, bus, firmware and everything else that ran.",
  ],
  counter: [
    "counter of a generator",
    "Real time of a real machine, from the counter of the generator outside it, which sees its edges alone. The numbers contain everything between the line that rises and the pin that answers.",
  ],
};

/** The sign of each verdict, so that a reader can tell verdicts apart without colours. */
const SIGNS: Record<Verdict, string> = { pass: "✓", fail: "✗", inconclusive: "?", invalid: "!" };

const MEANINGS: Record<Verdict, string> = {
  pass: "every limit was kept",
  fail: "a limit was exceeded",
  inconclusive: "undecided: too few samples, or no limit",
  invalid: "the run is unsound: do not use its numbers",
};

/** Why a finding is what it is, in the words of the terminal (crates/stats/src/limits.rs). */
const REASONS: Record<Reason, string> = {
  within: "kept",
  exceeded: "exceeded",
  unanswered: "triggers were not answered",
  superseded: "superseded triggers leave it open",
  overrun: "periods that were not measured leave it open",
  unreliable: "dropped records, spurious or tainted answers",
  resolution: "quantiles are known to 0.1 %, and the bound is as near",
  no_samples: "no samples",
  too_few_samples: "too few samples",
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

/** The verdict of a run, and a note if the run was interrupted. */
export function runChips(run: Run): HTMLElement {
  return h(
    "span",
    { class: "chips" },
    chip(run.verdict),
    !run.complete &&
      h(
        "span",
        { class: "chip incomplete", title: "the run was interrupted; the numbers are those until then" },
        "incomplete",
      ),
  );
}

/** Title, origin and the meaning of the clock. */
export function showHeader(report: Report): HTMLElement {
  const [name, meaning] = CLOCKS[report.clock];
  const some = (n: number, what: string) => (n === 0 ? [] : [several(n, what)]);
  const proof = report.proof === null ? [] : ["a proof"];
  const material = [...some(report.runs.length, "run"), ...some(report.hunts.length, "hunt"), ...proof].join(", ");
  return h(
    "header",
    {},
    h("h1", {}, report.title),
    report.lead.length > 0 && h("p", { class: "answer" }, report.lead.join(" ")),
    h(
      "p",
      { class: "origin" },
      `${material} · ${date(report.created)} · onset ${report.tool.version} (${report.tool.revision})`,
    ),
    h("p", { class: "clock" }, h("strong", {}, `Clock: ${name}.`), ` ${meaning}`),
  );
}

/** Flavours against loads, each with its verdict and the outcomes of its limits; one table for each experiment. */
export function showVerdicts(matrices: readonly Matrix[], go: (change: Partial<View>) => void): HTMLElement {
  const tables = matrices.map((matrix) => {
    const table = scrollBox(`Verdicts of ${matrix.experiment}`, verdictTable(matrix, go));
    if (matrices.length === 1) return table;
    // A section with a failed run is always open.
    const worst = worstVerdict(matrix);
    const open = worst === "fail" || worst === "invalid";
    return h("details", { class: "printed", open }, h("summary", {}, `${matrix.experiment} `, chip(worst)), table);
  });
  return h("section", { id: "verdicts" }, h("h2", {}, "Verdict"), ...tables);
}

/** The verdicts, beginning with the worst. */
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

/** The numbers on which the verdict is based: `500 samples, 500 ms`. */
export function evidenceText({ evidence: { samples_min, samples_max, measured_ns } }: Run): string {
  const fewest = samples_min === samples_max ? "" : `${integer(samples_min)} to `;
  const samples = `${fewest}${several(samples_max, "sample")}`;
  return measured_ns === null ? samples : `${samples}, ${duration(measured_ns)}`;
}

function findingLine(finding: Finding): HTMLElement {
  const { responder, verdict } = finding;
  return h(
    "div",
    { class: `finding ${verdict}`, title: MEANINGS[verdict] },
    `${SIGNS[verdict]} ${responder} `,
    ...("statistic" in finding ? statisticParts(finding) : deadlineParts(finding)),
    reasonText(finding),
  );
}

/** Why a limit failed or is open, where its numbers do not say so: they may even be within it. */
function reasonText({ verdict, reason }: Finding): string {
  return verdict === "pass" || reason === "exceeded" ? "" : `; ${REASONS[reason]}`;
}

function statisticParts({ statistic, measured_ns, bound_ns }: StatisticFinding): (string | HTMLElement)[] {
  if (measured_ns === null) {
    return [`${statistic} `, h("b", {}, "not measurable"), ", ", h("span", {}, `limit ${duration(bound_ns)}`)];
  }
  // The exact numbers are compared, since both may round to the same three digits.
  const relation = measured_ns <= bound_ns ? "≤" : ">";
  return [`${statistic} `, h("b", {}, duration(measured_ns)), " ", h("span", {}, `${relation} ${duration(bound_ns)}`)];
}

/** How often a deadline was missed, which event first, and the latest answer. */
function deadlineParts(finding: DeadlineFinding): (string | HTMLElement)[] {
  const { tolerance, deadline_ns, events, missed, open, first, worst, latest, needed } = finding;
  const counted = `${integer(missed)} of ${integer(events)} missed`;
  const row = worst === null ? "" : `, from trigger ${integer(worst.from)} on`;
  const [name, measured] =
    tolerance.kind === "consecutive"
      ? ["consecutive", `${integer(worst?.missed ?? 0)} missed in a row${row}`]
      : tolerance.kind === "firm"
        ? ["firm", needed > 0 ? counted : `${integer(tolerance.of - (worst?.missed ?? 0))} of ${integer(tolerance.of)} met${row}`]
        : ["miss", counted];
  const more = [
    ...(open > 0 ? [`${integer(open)} of them lost, how late is unknown`] : []),
    ...(needed > 0 ? [`${integer(needed)} more events needed`] : []),
    ...(first === null ? [] : [`first trigger ${integer(first)}`]),
    ...(latest === null ? [] : [`latest ${duration(latest.latency_ns)} at trigger ${integer(latest.trigger)}`]),
  ];
  const text = [`limit ${toleranceText(tolerance)}`, ...more].join("; ");
  return [`${name}(${duration(deadline_ns)}) `, h("b", {}, measured), ", ", h("span", {}, text)];
}

function toleranceText(tolerance: Tolerance): string {
  switch (tolerance.kind) {
    case "share":
      return `at most ${integer(tolerance.most)} in ${integer(tolerance.of)}`;
    case "firm":
      return `at least ${integer(tolerance.least)} of ${integer(tolerance.of)}`;
    default:
      return `at most ${integer(tolerance.most)}`;
  }
}
