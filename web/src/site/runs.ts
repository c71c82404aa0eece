// SPDX-License-Identifier: GPL-2.0-or-later
// The runs of the store: filter, sort, open a report of one or of several, throw away; and the bin.

import { h } from "../element.ts";
import { keepFocus } from "../focus.ts";
import { date, integer, several } from "../format.ts";
import { write, type Address } from "./address.ts";
import { scrollBox } from "../scroll.ts";
import { showDifferences } from "./differences.ts";

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

/** The list of runs that the server has at `path`, handed on unless the page was left; or why there is none. */
function fetched(path: string, isOpen: () => boolean, then: (runs: Listed[]) => void, state: HTMLElement): void {
  void fetch(path)
    .then(async (answer) => {
      if (!answer.ok) throw new Error((await answer.text()).trim());
      return (await answer.json()) as { runs: Listed[] };
    })
    .then(
      ({ runs }) => {
        if (isOpen()) then(runs);
      },
      (error: unknown) => {
        state.textContent = `The runs cannot be read: ${error instanceof Error ? error.message : String(error)}`;
      },
    );
}

/** Has the server move runs, one after the other: those that it moved. What it refuses is said. */
async function moved(what: "discard" | "restore", runs: Iterable<string>, refused: HTMLElement): Promise<Set<string>> {
  const done = new Set<string>();
  refused.textContent = "";
  for (const run of runs) {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ run }) };
    const answer = await fetch(`api/runs/${what}`, init).catch(() => null);
    if (answer?.ok === true) {
      done.add(run);
      continue;
    }
    const why = answer === null ? "the server does not answer; is `onset serve` still running?" : (await answer.text()).trim();
    refused.append(h("span", {}, `${run}: ${why} `));
  }
  return done;
}

/** Shows the runs that were thrown away. */
export function showBin(place: HTMLElement): () => void {
  const count = h("p", { class: "state" }, "Reading the bin …");
  const refused = h("p", { class: "refused", role: "alert" });
  const box = h("div", {});
  place.replaceChildren(h("h1", {}, "Bin"), count, refused, box);
  let isOpen = true;
  const show = (runs: readonly Listed[]) => {
    const shown = runs.slice(0, ROWS_MAX);
    const more = shown.length < runs.length ? `; the first ${ROWS_MAX} are shown` : "";
    count.textContent = `${several(runs.length, "run")} in the bin${more}. They take room until you remove the directory .bin of the store.`;
    const rows = shown.map((run) => {
      const back = h("button", { type: "button" }, "Restore");
      back.addEventListener("click", () => {
        void moved("restore", [run.run], refused).then((done) => show(runs.filter((other) => !done.has(other.run))));
      });
      const what = run.damaged === null ? [run.flavour, run.load, run.title].join(" · ") : `damaged: ${run.damaged}`;
      return h("tr", {}, ...[run.run, what].map((text) => h("td", { class: "text" }, text)), h("td", {}, back));
    });
    box.replaceChildren(scrollBox("Runs in the bin", h("table", { class: "runs" }, h("tbody", {}, ...rows))));
  };
  fetched("api/bin", () => isOpen, show, count);
  return () => {
    isOpen = false;
  };
}

/** Shows the page in `place`. */
export function showRuns(place: HTMLElement, { words }: Address): () => void {
  const filter = h("input", { id: "filter", type: "search", placeholder: "7.3-rt mixed fail", value: words.get("filter") ?? "" });
  let sort = words.get("sort") ?? "";
  const chosen = new Set<string>();
  const count = h("p", { class: "state" }, "Reading the store …");
  const report = h("a", { class: "report", href: "#runs" }, "Report of the chosen runs");
  const discard = h("button", { type: "button", class: "discard" }, "To the bin");
  const refused = h("p", { class: "refused", role: "alert" });
  const box = h("div", {});
  const differing = h("section", { id: "differences" });
  place.replaceChildren(
    h("h1", {}, "Runs"),
    h("form", { class: "live" }, h("label", {}, "Filter", filter), report, discard),
    refused,
    differing,
    count,
    box,
  );
  let runs: Listed[] = [];
  let compared = "";
  // What was set up differently comes before any number.
  const compare = () => {
    const now = [...chosen].join(" ");
    if (now === compared) return;
    compared = now;
    void showDifferences(differing, [...chosen], () => compared === now);
  };
  const show = () => {
    compare();
    history.replaceState(null, "", write("runs", [["filter", filter.value], ["sort", sort]]));
    const shown = choose(runs, filter.value, sort);
    const more = shown.length > ROWS_MAX ? `; the first ${ROWS_MAX} are shown: filter more` : "";
    count.textContent = `${integer(shown.length)} of ${integer(runs.length)} runs${more}`;
    const query = [...chosen].map((run) => `run=${encodeURIComponent(run)}`).join("&");
    report.toggleAttribute("hidden", chosen.size === 0);
    discard.toggleAttribute("hidden", chosen.size === 0);
    discard.textContent = chosen.size > 1 ? `The ${chosen.size} chosen runs to the bin` : "To the bin";
    report.setAttribute("href", `report?${query}`);
    report.textContent = chosen.size === 1 ? "Report of the chosen run" : `Compare the ${chosen.size} chosen runs`;
    const rows = table(shown.slice(0, ROWS_MAX), chosen, sort, show, (to) => {
      sort = to;
      show();
    });
    keepFocus(box, () => box.replaceChildren(scrollBox("Runs of the store", rows)));
  };
  filter.addEventListener("input", show);
  place.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
  discard.addEventListener("click", () => {
    void moved("discard", [...chosen], refused).then((done) => {
      done.forEach((run) => chosen.delete(run));
      runs = runs.filter((run) => !done.has(run.run));
      show();
    });
  });
  let isOpen = true;
  const take = (list: Listed[]) => {
    runs = list;
    show();
  };
  fetched("api/runs", () => isOpen, take, count);
  return () => {
    isOpen = false;
  };
}

/** The address of the history of a run's experiment. */
function historyOf({ title = "", flavour = "", load = "", instrument = "" }: Listed): string {
  return write("history", [["title", title], ["flavour", flavour], ["load", load], ["instrument", instrument]]);
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
      return h("tr", {}, h("td", {}, box), h("td", { class: "text" }, run.run), h("td", { class: "text", colspan: 7 }, `damaged: ${run.damaged}`));
    }
    const link = h("a", { href: `report?run=${encodeURIComponent(run.run)}`, title: run.run }, date(run.created ?? run.run));
    const verdict = `${run.verdict ?? ""}${run.complete === false ? ", interrupted" : ""}`;
    return h(
      "tr",
      {},
      h("td", {}, box),
      h("td", { class: "text" }, link),
      ...[run.flavour, run.load, run.instrument].map((text) => h("td", { class: "text" }, text)),
      h("td", {}, integer(run.samples ?? 0)),
      h("td", { class: `text ${run.verdict ?? ""}` }, verdict),
      h("td", { class: "text title" }, run.title),
      h("td", { class: "text" }, h("a", { href: historyOf(run), "aria-label": `history of ${run.title ?? run.run}` }, "history")),
    );
  });
  return h("table", { class: "runs" }, h("thead", {}, h("tr", {}, h("th", {}), ...heads, h("th", {}))), h("tbody", {}, ...rows));
}
