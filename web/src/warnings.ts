// SPDX-License-Identifier: GPL-2.0-or-later
// The warnings: each kind of warning once, with all runs that have it, its probable cause and the next action.

import type { Report } from "./contract.ts";
import { type Doubt, doubts, type Seen, tabulate } from "./doubts.ts";
import { h } from "./element.ts";
import { integer } from "./format.ts";
import { scrollBox } from "./scroll.ts";
import { runName } from "./transpose.ts";

/** All warnings about all runs of the report, whatever is selected above, with the next actions. */
export function showWarnings(report: Report): HTMLElement {
  const found = doubts(report.runs);
  const count = found.reduce((sum, { seen }) => sum + seen.length, 0);
  return h(
    "section",
    { id: "warnings" },
    h("h2", {}, count === 0 ? "Warnings" : `Warnings (${count})`),
    found.length === 0
      ? h("p", { class: "empty" }, "None: no run has a warning.")
      : h("ul", { class: "doubts" }, ...found.map((doubt) => showDoubt(doubt, report))),
  );
}

function showDoubt({ code, cause, action, seen }: Doubt, report: Report): HTMLElement {
  return h(
    "li",
    {},
    ...(seen.length > 1 ? table(code, seen, report) : seen.map((one) => alone(one, report))),
    h(
      "dl",
      {},
      h("dt", {}, "Probable cause"),
      h("dd", {}, cause),
      h("dt", {}, "Next action"),
      h("dd", {}, action),
      h("dt", {}, "Code"),
      h("dd", {}, h("code", {}, code)),
    ),
  );
}

function alone({ symptom, runs }: Seen, report: Report): HTMLElement {
  const where = runs.map((run) => runName(run, report)).join("; ");
  return h("p", {}, h("span", { class: "symptom" }, symptom), ` (${where})`);
}

/** What several symptoms have in common, and what each has of its own. */
function table(code: string, seen: readonly Seen[], report: Report): HTMLElement[] {
  const { sentence, heads, rows } = tabulate(seen);
  const isNumber = (text: string) => /^\d+$/.test(text);
  const counted = heads.map((_, column) => rows.every(({ cells }) => isNumber(cells[column] ?? "")));
  const kind = (column: number) => (counted[column] ? "" : "text");
  const body = rows.map(({ cells, runs }) =>
    h(
      "tr",
      {},
      ...cells.map((cell, column) =>
        h("td", { class: kind(column) }, counted[column] ? integer(Number(cell)) : cell),
      ),
      h("td", { class: "text" }, runs.map((run) => runName(run, report)).join("; ")),
    ),
  );
  const head = [
    ...heads.map((name, column) => h("th", { scope: "col", class: kind(column) }, name)),
    h("th", { scope: "col", class: "text" }, "run"),
  ];
  return [
    ...(sentence === "" ? [] : [h("p", {}, h("span", { class: "symptom" }, sentence))]),
    scrollBox(
      `Warnings of the kind ${code}`,
      h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)),
      "short",
    ),
  ];
}
