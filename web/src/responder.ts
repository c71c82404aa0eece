// SPDX-License-Identifier: GPL-2.0-or-later
// One responder under one load: its three charts, each with a table of its numbers.

import type { Limit } from "./chart.ts";
import { h } from "./element.ts";
import { emptyText } from "./empty.ts";
import { duration, exactNs, integer } from "./format.ts";
import { type Answers, drawHistogram } from "./histogram.ts";
import { drawPercentiles } from "./percentile.ts";
import { type About, clockText } from "./save.ts";
import { scrollBox } from "./scroll.ts";
import { drawTimelines } from "./timeline.ts";
import { type Lane, type LimitOf, limitsOn, lossesTotal, seriesOf } from "./transpose.ts";
import type { View } from "./view.ts";

type Draw = (host: HTMLElement, answers: readonly Answers[], limits: Limit[], about: About) => boolean;

/** A limit as a line. In a chart of several flavours, it names its flavours, unless the limit is for all of them. */
function line(axis: "x" | "y", { finding, whose }: LimitOf, shown: number): Limit {
  const { statistic, bound_ns } = finding;
  const of = whose.length === shown ? "" : ` of ${whose.join(", ")}`;
  return { axis, value: bound_ns, text: `limit${of}: ${statistic} ≤ ${duration(bound_ns)}` };
}

/** Fills the section, which must be in the page already, with the charts of the view's responder. */
export function showResponder(section: HTMLElement, view: View, lanes: readonly Lane[]): void {
  const answers = lanes.flatMap((lane): Answers[] => {
    const series = seriesOf(lane.run, view.responder);
    // Over time each flavour has a panel of its own, in which a quantile has no place.
    const own = limitsOn([lane], view.responder);
    const limits = own.filter(({ finding }) => finding.statistic === "max").map((of) => line("y", of, 1));
    const limited = lane.run.findings.some((finding) => finding.responder === view.responder);
    return series === undefined ? [] : [{ name: lane.name, look: lane.look, series, limits, limited }];
  });
  section.replaceChildren(h("h2", { "data-contents": `Charts of ${view.responder}` }, h("em", {}, view.responder), " under ", h("em", {}, view.load)));
  const about = (title: string): About => ({
    title: `${title} of ${view.responder} under ${view.load}`,
    clock: clockText(lanes[0]?.run.clock ?? ""),
    of: answers.map(({ name, look, series }) => ({ name, look, count: series.count, lost: lossesTotal(series) })),
  });
  const found = limitsOn(lanes, view.responder);
  const limits = (axis: "x" | "y") => found.map((of) => line(axis, of, answers.length));
  figure(
    section,
    "histogram",
    "Latency histogram",
    "How many answers have which latency. A tail reaches far to the right, however low it is.",
    drawHistogram,
    answers,
    limits("x"),
    about,
    histogramTable,
  );
  figure(
    section,
    "percentiles",
    "Percentiles",
    "The latency below which all answers but one in ten, hundred, thousand … stay.",
    drawPercentiles,
    answers,
    limits("y"),
    about,
    percentileTable,
  );
  figure(
    section,
    "timelines",
    "Latency over time",
    "Each bar goes from the shortest to the longest latency of a slice of time. Marks are the longest latencies of the run.",
    drawTimelines,
    answers,
    [],
    about,
    timelineTable,
  );
}

function figure(
  section: HTMLElement,
  id: string,
  title: string,
  reading: string,
  draw: Draw,
  answers: readonly Answers[],
  limits: Limit[],
  about: (title: string) => About,
  table: (answers: readonly Answers[]) => HTMLTableElement,
): void {
  const host = h("div", { class: "charts" });
  const element = h("figure", { id }, h("figcaption", {}, h("h3", {}, title), h("p", {}, reading)), host);
  section.append(element);
  if (!draw(host, answers, limits, about(title))) {
    const count = answers.reduce((all, { series }) => all + series.count, 0);
    host.append(h("p", { class: "empty" }, emptyText(count)));
    return;
  }
  // A table of a thousand rows is built only when the reader opens it.
  const numbers = h("details", { class: "numbers" }, h("summary", {}, `Numbers of the ${title.toLowerCase()}`));
  numbers.addEventListener("toggle", () => numbers.append(scrollBox(about(title).title, table(answers), "tall")), { once: true });
  element.append(numbers);
}

function numbersTable<T>(
  answers: readonly Answers[],
  heads: string[],
  rows: (answers: Answers) => T[],
  cells: (row: T) => string[],
): HTMLTableElement {
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col", class: "text" }, "flavour"),
        ...heads.map((head) => h("th", { scope: "col" }, head)),
      ),
    ),
    h(
      "tbody",
      {},
      ...answers.flatMap((each) =>
        rows(each).map((row) =>
          h("tr", {}, h("td", { class: "text" }, each.name), ...cells(row).map((cell) => h("td", {}, cell))),
        ),
      ),
    ),
  );
}

function histogramTable(answers: readonly Answers[]): HTMLTableElement {
  return numbersTable(
    answers,
    ["from (ns)", "to (ns)", "answers"],
    ({ series }) => series.columns,
    ({ low_ns, high_ns, count }) => [low_ns, high_ns, count].map(integer),
  );
}

function percentileTable(answers: readonly Answers[]): HTMLTableElement {
  return numbersTable(
    answers,
    ["quantile", "latency (ns)"],
    ({ series }) => series.curve,
    ({ quantile, latency_ns }) => [String(quantile), exactNs(latency_ns)],
  );
}

function timelineTable(answers: readonly Answers[]): HTMLTableElement {
  return numbersTable(
    answers,
    ["at (ns)", "width (ns)", "min (ns)", "max (ns)", "answers"],
    ({ series }) => series.timeline,
    ({ at_ns, width_ns, min_ns, max_ns, count }) => [at_ns, width_ns, min_ns, max_ns, count].map(integer),
  );
}
