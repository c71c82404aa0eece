// SPDX-License-Identifier: GPL-2.0-or-later
// What stands behind the maxima, and what speaks against the numbers: the worst answers one by one,
// the losses by kind, the warnings.

import type { Losses, Report, WorstSample } from "./contract.ts";
import { h, scrollBox } from "./element.ts";
import { duration, exactNs, integer, quantileName } from "./format.ts";
import { swatch } from "./look.ts";
import { doubts, type Lane, type Matrix, runName, seriesOf } from "./transpose.ts";
import type { View } from "./view.ts";

/** The worst answers of the view's responder, one table per flavour. */
export function showWorst(view: View, lanes: readonly Lane[]): HTMLElement {
  const tables = lanes.map((lane) => {
    const worst = seriesOf(lane.run, view.responder)?.worst ?? [];
    const name = h("p", { class: "panel-name" }, swatch(lane.look), ` ${lane.name}`);
    if (worst.length === 0) return h("div", {}, name, h("p", { class: "empty" }, "Nothing was answered here."));
    return h("div", {}, name, scrollBox(`Worst answers of ${lane.name}`, worstTable(worst), "short"));
  });
  return h(
    "section",
    { id: "worst" },
    h("h2", {}, "Worst answers of ", h("em", {}, view.responder), " under ", h("em", {}, view.load)),
    h("div", { class: "columns" }, ...tables),
  );
}

function worstTable(worst: readonly WorstSample[]): HTMLTableElement {
  const counted = worst.some(({ path_insns }) => path_insns !== undefined);
  const heads = ["latency", "trigger", "at", ...(counted ? ["instructions"] : [])];
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h(
      "tbody",
      {},
      ...worst.map(({ latency_ns, trigger, at_ns, path_insns }) =>
        h(
          "tr",
          {},
          h("td", { class: "max", title: `${exactNs(latency_ns)} ns` }, duration(latency_ns)),
          h("td", {}, integer(trigger)),
          h("td", { title: `${exactNs(at_ns)} ns since measuring began` }, duration(at_ns)),
          ...(counted ? [h("td", {}, path_insns === undefined ? "–" : integer(path_insns))] : []),
        ),
      ),
    ),
  );
}

const KINDS: Record<keyof Losses, string> = {
  unanswered: "never answered before the run ended",
  superseded: "answered together with an older trigger, whose latency is the sample",
  spurious: "an answer to no trigger",
  tainted: "an impossible value, kept out",
  overrun: "a period that passed without a measurement; how late it would have been is unknown",
  dropped: "records that the channel had no room for; the same for every responder of a run",
};

/** Samples, every statistic and losses by kind, of all responders under the view's load. */
export function showLosses(view: View, lanes: readonly Lane[], matrix: Matrix): HTMLElement {
  const kinds = Object.keys(KINDS) as (keyof Losses)[];
  const series = lanes.flatMap((lane) => lane.run.series);
  const quantiles = [...new Set(series.flatMap((s) => Object.keys(s.quantiles)))].sort((a, b) => Number(a) - Number(b));
  const heads = ["min", "mean", "std. dev.", ...quantiles.map(quantileName), "max"];
  const rows = lanes.flatMap((lane) =>
    matrix.responders.flatMap((responder) => {
      const s = seriesOf(lane.run, responder);
      if (s === undefined) return [];
      const times = [s.min_ns, s.mean_ns, s.stddev_ns, ...quantiles.map((q) => s.quantiles[q] ?? null), s.max_ns];
      return h(
        "tr",
        {},
        h("th", { scope: "row", class: "pinned" }, responder),
        h("td", { class: "text" }, swatch(lane.look), ` ${lane.name}`),
        h("td", {}, integer(s.count)),
        ...kinds.map((kind) => h("td", { class: s.losses[kind] > 0 ? "some" : "zero" }, integer(s.losses[kind]))),
        ...times.map((ns) =>
          h(
            "td",
            {
              class: ns === null ? "absent" : "",
              title: ns === null ? "too few samples to support it" : `${exactNs(Math.round(ns))} ns`,
            },
            duration(ns),
          ),
        ),
      );
    }),
  );
  const head = h(
    "tr",
    {},
    h("th", { scope: "col", class: "pinned" }, "responder"),
    h("th", { scope: "col", class: "text" }, "flavour"),
    h("th", { scope: "col" }, "answered"),
    ...kinds.map((kind) => h("th", { scope: "col", title: KINDS[kind] }, kind)),
    ...heads.map((name) => h("th", { scope: "col" }, name)),
  );
  return h(
    "section",
    { id: "losses" },
    h("h2", {}, "Losses and statistics under ", h("em", {}, view.load)),
    scrollBox(
      `Losses and statistics under ${view.load}`,
      h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
      "wide",
    ),
    h("dl", { class: "kinds" }, ...kinds.flatMap((kind) => [h("dt", {}, kind), h("dd", {}, KINDS[kind])])),
  );
}

/** Every doubt about any run of the report, whatever is selected above, with what to do next. */
export function showWarnings(report: Report): HTMLElement {
  const found = doubts(report.runs);
  const count = found.reduce((sum, { seen }) => sum + seen.length, 0);
  const items = found.map(({ code, cause, action, seen }) =>
    h(
      "li",
      {},
      ...seen.map(({ symptom, runs }) =>
        h("p", {}, h("span", { class: "symptom" }, symptom), ` (${runs.map((run) => runName(run, report)).join("; ")})`),
      ),
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
    ),
  );
  return h(
    "section",
    { id: "warnings" },
    h("h2", {}, count === 0 ? "Warnings" : `Warnings (${count})`),
    items.length === 0
      ? h("p", { class: "empty" }, "None: no run gave reason to doubt it.")
      : h("ul", { class: "doubts" }, ...items),
  );
}
