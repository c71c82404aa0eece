// SPDX-License-Identifier: GPL-2.0-or-later
// All tables and figures of the papers: what became of each, the paper's figure and onset's, and the command that makes
// it again. Outcomes and figures come from the report.

import { link } from "./contents.ts";
import type { PaperItem, Report } from "./contract.ts";
import { h } from "./element.ts";
import { OUTCOMES } from "./papers.ts";
import { scrollBox } from "./scroll.ts";

/** The section; nothing if no run belongs to a paper. */
export function showOverview({ contents }: Report): HTMLElement[] {
  if (contents.length === 0) return [];
  const heads = ["paper", "", "shows", "outcome", "paper's figure", "here", "again by, or why not"];
  const head = h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)));
  const table = h("table", {}, h("thead", {}, head), h("tbody", {}, ...contents.map(row)));
  return [
    h(
      "section",
      { id: "overview" },
      h("h2", {}, "The papers' tables and figures"),
      h(
        "p",
        { class: "lead" },
        "Each table and figure of the five papers. A figure here is a relation: the paper's between its figures, ours between ours. The outcome is that of the " +
        "claim that leads; the other claims of the table are counted beside it.",
      ),
      scrollBox("The papers' tables and figures", table, "wide"),
    ),
  ];
}

const STATUS: Record<PaperItem["status"], string> = {
  ...OUTCOMES,
  not_in_this_report: "not in this report",
  by_command: "see the command",
  not_yet: "not yet",
  no_measurement: "no measurement",
};

function row(item: PaperItem): HTMLElement {
  const { paper, place, shows, status, why, theirs, ours, others, command, table } = item;
  const beside = others.map(({ outcome, count }) => `${count} ${OUTCOMES[outcome]}`).join(", ");
  return h(
    "tr",
    {},
    h("td", {}, paper),
    h("th", { scope: "row" }, table === null ? place : link(`paper-${table}`, place)),
    h("td", {}, shows),
    h("td", { class: status }, STATUS[status], beside !== "" && h("small", {}, ` and ${beside}`)),
    h("td", { class: theirs === "" && "absent" }, theirs === "" ? "—" : theirs),
    h("td", { class: ours === null && "absent" }, ours ?? "—"),
    h("td", {}, command !== "" && h("code", {}, command), command !== "" && why !== "" && h("br", {}), why),
  );
}
