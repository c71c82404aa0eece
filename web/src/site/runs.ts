// SPDX-License-Identifier: GPL-2.0-or-later
// The runs of the store: filter, sort, open a report of one or of several.

import { h } from "../element.ts";
import { date, integer } from "../format.ts";
import { write, type Address } from "./address.ts";
import { scrollBox } from "../scroll.ts";

/** A run as `onset list --json` prints it (docs/list.schema.json). */
export interface Listed {
  readonly run: string;
  readonly damaged: string | null;
  readonly title?: string;
  readonly created?: string;
  readonly flavour?: string;
  readonly load?: string;
  readonly instrument?: string;
  readonly seed?: number;
  readonly verdict?: string;
  readonly complete?: boolean;
  readonly samples?: number;
}

/** The most rows that are drawn at once. */
const ROWS_MAX = 500;
const COLUMNS = ["created", "flavour", "load", "instrument", "samples", "verdict", "title"] as const;
export type Column = (typeof COLUMNS)[number];

/** Runs in which each word occurs somewhere, in the order of a column; without one the newest first. */
export function choose(runs: readonly Listed[], filter: string, sort: string): Listed[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const has = (run: Listed) => {
    const text = [run.run, ...COLUMNS.map((column) => run[column])].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const chosen = runs.filter(has);
  const [name, falls] = sort.startsWith("-") ? [sort.slice(1), true] : [sort, false];
  const column = COLUMNS.find((known) => known === name);
  if (column === undefined) return chosen;
  const order = (a: Listed, b: Listed) => {
    const [left, right] = [a[column] ?? "", b[column] ?? ""];
    return typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
  };
  return chosen.sort((a, b) => (falls ? order(b, a) : order(a, b)));
}

/** Shows the page in `place`. */
export function showRuns(place: HTMLElement, { words }: Address): () => void {
  const filter = h("input", { id: "filter", type: "search", placeholder: "7.3-rt mixed fail", value: words.get("filter") ?? "" });
  let sort = words.get("sort") ?? "";
  const chosen = new Set<string>();
  const count = h("p", { class: "state" }, "Reading the store …");
  const report = h("a", { class: "report", href: "#runs" }, "Report of the chosen runs");
  const box = h("div", {});
  place.replaceChildren(
    h("h1", {}, "Runs"),
    h("form", { class: "live" }, h("label", {}, "Filter", filter), report),
    count,
    box,
  );
  let runs: Listed[] = [];
  const show = () => {
    history.replaceState(null, "", write("runs", [["filter", filter.value], ["sort", sort]]));
    const shown = choose(runs, filter.value, sort);
    const more = shown.length > ROWS_MAX ? `; the first ${ROWS_MAX} are shown: filter more` : "";
    count.textContent = `${integer(shown.length)} of ${integer(runs.length)} runs${more}`;
    const query = [...chosen].map((run) => `run=${encodeURIComponent(run)}`).join("&");
    report.toggleAttribute("hidden", chosen.size === 0);
    report.setAttribute("href", `/report?${query}`);
    report.textContent = chosen.size === 1 ? "Report of the chosen run" : `Compare the ${chosen.size} chosen runs`;
    box.replaceChildren(scrollBox("Runs of the store", table(shown.slice(0, ROWS_MAX), chosen, sort, show, (to) => {
      sort = to;
      show();
    })));
  };
  filter.addEventListener("input", show);
  place.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
  let isOpen = true;
  void fetch("/api/runs")
    .then(async (answer) => {
      if (!answer.ok) throw new Error((await answer.text()).trim());
      return (await answer.json()) as { runs: Listed[] };
    })
    .then(
      (list) => {
        if (!isOpen) return;
        runs = list.runs;
        show();
      },
      (error: unknown) => {
        count.textContent = `The runs cannot be read: ${error instanceof Error ? error.message : String(error)}`;
      },
    );
  return () => {
    isOpen = false;
  };
}

function table(
  runs: readonly Listed[],
  chosen: Set<string>,
  sort: string,
  changed: () => void,
  sortBy: (sort: string) => void,
): HTMLTableElement {
  const heads = COLUMNS.map((column) => {
    const button = h("button", { type: "button" }, column === "created" ? "run" : column);
    button.addEventListener("click", () => sortBy(sort === column ? `-${column}` : column));
    const order = sort === column ? "ascending" : sort === `-${column}` ? "descending" : "none";
    return h("th", { scope: "col", class: column === "samples" ? "" : "text", "aria-sort": order }, button);
  });
  const rows = runs.map((run) => {
    const box = h("input", { type: "checkbox", "aria-label": `choose ${run.run}`, checked: chosen.has(run.run) });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(run.run);
      else chosen.delete(run.run);
      changed();
    });
    if (run.damaged !== null) {
      return h("tr", {}, h("td", {}), h("td", { class: "text" }, run.run), h("td", { class: "text", colspan: 6 }, `damaged: ${run.damaged}`));
    }
    const link = h("a", { href: `/report?run=${encodeURIComponent(run.run)}`, title: run.run }, date(run.created ?? run.run));
    const verdict = `${run.verdict ?? ""}${run.complete === false ? ", interrupted" : ""}`;
    return h(
      "tr",
      {},
      h("td", {}, box),
      h("td", { class: "text" }, link),
      ...[run.flavour, run.load, run.instrument].map((text) => h("td", { class: "text" }, text)),
      h("td", {}, integer(run.samples ?? 0)),
      h("td", { class: `text ${run.verdict ?? ""}` }, verdict),
      h("td", { class: "text" }, run.title),
    );
  });
  return h("table", { class: "runs" }, h("thead", {}, h("tr", {}, h("th", {}), ...heads)), h("tbody", {}, ...rows));
}
