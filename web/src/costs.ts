// SPDX-License-Identifier: GPL-2.0-or-later
// The table of costs: a row for each cost, a column for each run. The report has the figures as text.

import type { CostRow, Costs } from "./contract.ts";
import { h } from "./element.ts";
import { scrollBox } from "./scroll.ts";

/** The section; nothing if no run measured costs. */
export function showCosts(costs: Costs | null): HTMLElement[] {
  if (costs === null) return [];
  const head = h(
    "tr",
    {},
    h("th", { scope: "col", class: "pinned" }, "cost"),
    h("th", { scope: "col" }, "one operation"),
    ...costs.runs.map((run) => h("th", { scope: "col" }, run)),
    h("th", { scope: "col" }, "better is"),
  );
  const table = h("table", {}, h("thead", {}, head), h("tbody", {}, ...costs.rows.map(showRow)));
  const lead =
    "Each figure is of one operation: the median of the batches on a machine, with the least and the greatest median of the repetitions beneath; in the rig " +
    "the instructions and the virtual time of the batch in the middle. n counts batches.";
  return [
    h("section", { id: "costs" }, h("h2", {}, "Costs"), h("p", { class: "lead" }, lead), scrollBox("Costs", table, "wide")),
  ];
}

function showRow({ name, suite, about, more_is_better, cells }: CostRow): HTMLElement {
  return h(
    "tr",
    { title: suite },
    h("th", { scope: "row", class: "pinned" }, name),
    h("td", {}, about),
    ...cells.map(({ text, spread, outliers }) =>
      h(
        "td",
        { class: text === "—" ? "absent" : false, title: outliers === null ? undefined : `${outliers} outliers` },
        text,
        spread !== null && h("small", { class: "spread" }, spread),
      ),
    ),
    h("td", {}, more_is_better ? "more" : "less"),
  );
}
