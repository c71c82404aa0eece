// SPDX-License-Identifier: GPL-2.0-or-later
// What is behind the maxima: the longest latencies one by one, and the losses by kind.

import type { Losses, WorstSample } from "./contract.ts";
import { h } from "./element.ts";
import { emptyText } from "./empty.ts";
import { duration, exactNs, integer, quantileName } from "./format.ts";
import { swatch } from "./look.ts";
import { scrollBox } from "./scroll.ts";
import { type Lane, type Matrix, seriesOf } from "./transpose.ts";
import type { View } from "./view.ts";

/** The worst answers of the view's responder, one table per flavour. */
export function showWorst(view: View, lanes: readonly Lane[]): HTMLElement {
  const tables = lanes.map((lane) => {
    const { worst, count } = seriesOf(lane.run, view.responder) ?? { worst: [], count: 0 };
    const name = h("p", { class: "panel-name" }, swatch(lane.look), ` ${lane.name}`);
    if (worst.length === 0) return h("div", {}, name, h("p", { class: "empty" }, emptyText(count)));
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
  unanswered: "a trigger that was not answered before the run ended",
  superseded: "a trigger that was answered together with an older trigger; the latency of the older one is the sample",
  spurious: "an answer without a trigger",
  tainted: "an impossible value, which is not in the numbers",
  overrun: "a period that passed without a measurement; how late it would have been is unknown",
  dropped: "records for which the channel had no room; the number is the same for every responder of a run",
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
