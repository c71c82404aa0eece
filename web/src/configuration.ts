// SPDX-License-Identifier: GPL-2.0-or-later
// What was run: the whole configuration of all runs side by side, the text of the experiment, and links to the raw
// data.

import type { Report } from "./contract.ts";
import { h } from "./element.ts";
import { date, seed } from "./format.ts";
import { swatch } from "./look.ts";
import { scrollBox } from "./scroll.ts";
import { type ConfigurationRow, configurationRows, type Lane, runName } from "./transpose.ts";
import type { View } from "./view.ts";

/** Every entry of the runs under the view's load, with the differences marked. */
export function showConfiguration(view: View, lanes: readonly Lane[]): HTMLElement {
  const runs = lanes.map((lane) => lane.run);
  const identity = [
    row(
      "run",
      runs.map((run) => run.run),
    ),
    row(
      "begun",
      runs.map((run) => date(run.created)),
    ),
    row(
      "seed",
      runs.map((run) => seed(run.seed)),
    ),
  ];
  const groups = [{ group: "run", rows: identity }, ...configurationRows(runs)];
  const table = h(
    "table",
    { class: "texts" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col", class: "pinned" }, "entry"),
        ...lanes.map((lane) => h("th", { scope: "col" }, swatch(lane.look), ` ${lane.name}`)),
      ),
    ),
    ...groups.map(({ group, rows }) =>
      h(
        "tbody",
        {},
        h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: lanes.length + 1 }, h("span", {}, group))),
        ...rows.map(showRow),
      ),
    ),
  );
  return h(
    "section",
    { id: "configuration" },
    h("h2", {}, "Configuration under ", h("em", {}, view.load)),
    h(
      "details",
      { class: "printed" },
      h("summary", {}, "All entries, side by side; ≠ marks entries that differ"),
      scrollBox("Configuration", table, "wide"),
    ),
  );
}

function row(key: string, values: string[]): ConfigurationRow {
  return { key, values, differs: new Set(values).size > 1 };
}

function showRow({ key, values, differs }: ConfigurationRow): HTMLElement {
  return h(
    "tr",
    { class: differs && "differs" },
    h("th", { scope: "row", class: "pinned" }, differs && h("span", { class: "sign", title: "differs" }, "≠ "), key),
    ...values.map((value) => h("td", { class: value === null ? "absent" : "" }, value ?? "—")),
  );
}

/** The experiments' texts, each once. */
export function showExperiments(report: Report): HTMLElement {
  const sources = [...new Set(report.runs.map((run) => run.experiment_source))];
  return h(
    "section",
    { id: "experiment" },
    h("h2", {}, "Experiment"),
    ...sources.map((source) =>
      h(
        "details",
        { class: "printed" },
        h("summary", {}, "The experiment file, as it was run"),
        h("pre", { tabindex: 0 }, source),
      ),
    ),
  );
}

/** Links to the files of every run. */
export function showFiles(report: Report): HTMLElement {
  const rows = report.runs.flatMap((run) =>
    run.files.map(({ name, href, what }) =>
      h(
        "tr",
        {},
        h("td", { class: "text" }, runName(run, report)),
        h("td", { class: "text" }, followable(href) ? h("a", { href }, name) : name),
        h("td", { class: "text" }, what),
      ),
    ),
  );
  const head = ["run", "file", "what it holds"].map((name) => h("th", { scope: "col", class: "text" }, name));
  return h(
    "section",
    { id: "files" },
    h("h2", {}, "Raw data"),
    rows.length === 0
      ? h("p", { class: "empty" }, "This report names no files.")
      : scrollBox(
          "Raw data",
          h("table", { class: "texts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
          "tall",
        ),
  );
}

/** Whether an address is one a report may link to: a file or a web page, and not a script. */
function followable(href: string): boolean {
  try {
    return ["file:", "http:", "https:"].includes(new URL(href, location.href).protocol);
  } catch {
    return false;
  }
}
