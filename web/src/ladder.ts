// SPDX-License-Identifier: GPL-2.0-or-later
// The ladder: all responders of the same triggers, as a picture on one logarithmic axis and as numbers. Flavours are
// side by side.

import type { Series } from "./contract.ts";
import { h, svg } from "./element.ts";
import { ABSENT, duration, exactNs, integer, tick } from "./format.ts";
import { lookClass, marker, swatch, token } from "./look.ts";
import { type About, clockText, type Picture, saveButtons, standalone } from "./save.ts";
import { scrollBox } from "./scroll.ts";
import { runChips } from "./summary.ts";
import { logPlace, logRange, logTicks, type Range } from "./ticks.ts";
import { type Lane, lossesTotal, type Matrix, seriesOf } from "./transpose.ts";
import type { View } from "./view.ts";

/** Quantiles of the table, by the report's own keys. */
const MEDIAN = "0.5";
const TAIL = "0.999";

/** Height that one flavour takes in the picture, in CSS pixels. */
const LANE_PX = 13;

/** Fills the section with the ladder of the view's load. */
export function showLadder(
  section: HTMLElement,
  view: View,
  lanes: readonly Lane[],
  matrix: Matrix,
  go: (change: Partial<View>) => void,
): void {
  const axis = axisOf(lanes);
  const table = h(
    "table",
    {},
    h(
      "caption",
      {},
      "Picture: a line from the minimum to the maximum, thick up to p99.9; | is the median, the marker is the maximum.",
    ),
    head(lanes, axis),
    h("tbody", {}, ...matrix.responders.map((responder) => row(responder, view, lanes, axis, go))),
  );
  section.replaceChildren(
    h("h2", {}, "Ladder under ", h("em", {}, view.load)),
    h(
      "p",
      { class: "lead" },
      "How long each mechanism of Linux takes to answer the same triggers. “Lost” counts what has no latency. Read no maximum without this number.",
    ),
    invalidNote(lanes),
    unequalNote(matrix),
    scrollBox(`Ladder under ${view.load}`, table, "wide"),
    axis === null ? "" : saveButtons(() => pictureOf(table, about(view, lanes))),
  );
}

function invalidNote(lanes: readonly Lane[]): HTMLElement | string {
  const unsound = lanes.filter((lane) => lane.run.verdict === "invalid");
  if (unsound.length === 0) return "";
  return h(
    "p",
    { class: "callout", role: "note" },
    `Do not use the numbers of these runs, which are unsound: ${unsound.map((lane) => lane.name).join(", ")}. The warnings below say why.`,
  );
}

/** The note that not the same responders answered on all flavours. */
function unequalNote({ unequal }: Matrix): HTMLElement | string {
  if (unequal === undefined) return "";
  const lacking = unequal.lacking.map(({ flavour, responders }) => `${flavour} lacks ${responders.join(", ")}`);
  return h(
    "p",
    { class: "callout", role: "note" },
    `Not the same responders answered: ${lacking.join("; ")}. Each responder that answers makes the responders after it later, so do not compare latencies across these flavours. To measure with the responders that all have: `,
    h("code", {}, unequal.setting),
    ".",
  );
}

/** One axis for the whole picture; it is missing if there was no answer. */
function axisOf(lanes: readonly Lane[]): Range | null {
  const series = lanes.flatMap((lane) => lane.run.series);
  return logRange(
    series.flatMap((s) => [s.min_ns ?? 0, s.max_ns ?? 0]),
    1.6,
  );
}

function head(lanes: readonly Lane[], axis: Range | null): HTMLElement {
  const groups = lanes.map((lane) =>
    h(
      "th",
      { scope: "colgroup", colspan: 4, class: `group ${lookClass(lane.look)}` },
      swatch(lane.look),
      " ",
      lane.name,
      " ",
      runChips(lane.run),
    ),
  );
  const columns = lanes.flatMap(() => [
    h("th", { scope: "col", class: "first" }, "median"),
    h("th", { scope: "col" }, "p99.9"),
    h("th", { scope: "col" }, "max"),
    h("th", { scope: "col", title: "unanswered + superseded + spurious + tainted + overrun + dropped" }, "lost"),
  ]);
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { scope: "col", rowspan: 2, class: "pinned" }, "Responder"),
      h("th", { scope: "col", class: "picture" }, "Latency, logarithmic"),
      ...groups,
    ),
    h("tr", {}, h("td", { class: "picture" }, axis && axisPicture(axis)), ...columns),
  );
}

function axisPicture(axis: Range): SVGSVGElement {
  const labels = logTicks(axis, 5).map((ns) => svg("text", { x: `${at(ns, axis)}%`, y: 11 }, tick(ns)));
  return svg("svg", { class: "axis", height: 14, width: "100%", "aria-hidden": "true" }, ...labels);
}

function row(
  responder: string,
  view: View,
  lanes: readonly Lane[],
  axis: Range | null,
  go: (change: Partial<View>) => void,
): HTMLElement {
  const selected = responder === view.responder;
  const button = h(
    "button",
    { type: "button", title: `Show the distribution of ${responder}`, "aria-pressed": String(selected) },
    responder,
  );
  button.addEventListener("click", () => go({ responder }));
  return h(
    "tr",
    { class: selected && "selected" },
    h("th", { scope: "row", class: "pinned" }, button),
    h("td", { class: "picture" }, axis && rowPicture(responder, lanes, axis)),
    ...lanes.flatMap((lane) => cells(lane, seriesOf(lane.run, responder))),
  );
}

function cells(lane: Lane, series: Series | undefined): HTMLElement[] {
  const unsound = lane.run.verdict === "invalid" ? " unsound" : "";
  if (series === undefined) {
    return [h("td", { class: `first absent ${lookClass(lane.look)}`, colspan: 4, "data-lane": lane.name }, "not active")];
  }
  const lost = lossesTotal(series);
  const kinds = Object.entries(series.losses).map(([kind, n]) => `${kind} ${integer(n)}`);
  return [
    time(`first ${lookClass(lane.look)}${unsound}`, "median", series.quantiles[MEDIAN], lane.name),
    time(unsound, "p99.9", series.quantiles[TAIL]),
    time("max" + unsound, "max", series.max_ns),
    h(
      "td",
      {
        class: lost > 0 ? "lost some" : "lost",
        title: `${kinds.join(", ")}; ${integer(series.count)} answered`,
        "data-head": "lost",
      },
      integer(lost),
    ),
  ];
}

/** A cell with a time. If the page is too narrow for a table, style.css writes the head and the lane into the cell. */
function time(kind: string, head: string, ns: number | null | undefined, lane?: string): HTMLElement {
  const told = { "data-head": head, "data-lane": lane };
  if (ns === null || ns === undefined) {
    return h("td", { class: `${kind} absent`, title: "too few samples to support it", ...told }, ABSENT);
  }
  return h("td", { class: kind.trim(), title: `${exactNs(ns)} ns`, ...told }, duration(ns));
}

/** What the saved picture says: of each flavour the answers of all responders together. */
function about(view: View, lanes: readonly Lane[]): About {
  const sum = (numbers: number[]) => numbers.reduce((all, n) => all + n, 0);
  const of = lanes.map(({ name, look, run: { series } }) => {
    return { name, look, count: sum(series.map(({ count }) => count)), lost: sum(series.map(lossesTotal)) };
  });
  const title = `Latency of each responder under ${view.load}: minimum to maximum, thick up to p99.9, median`;
  return { title, clock: clockText(lanes[0]?.run.clock ?? ""), of };
}

/** Where names end and bars begin in the saved picture, and how wide it is. */
const NAMES_PX = 130;
const BARS_PX = 560;

/** The rows' pictures one below the other, each with the name of its responder and the maximum of each flavour. */
function pictureOf(table: HTMLTableElement, about: About): Picture {
  const rows = [...table.querySelectorAll<SVGSVGElement>("svg.axis, svg.rungs")];
  const body = svg("g", {});
  let y = 4;
  for (const picture of rows) {
    const copy = standalone(picture);
    const height = Number(picture.getAttribute("height"));
    for (const [name, value] of [["x", NAMES_PX], ["y", y], ["width", BARS_PX]] as const) copy.setAttribute(name, String(value));
    const responder = picture.closest("tr")?.querySelector("th button")?.textContent ?? "";
    const at = { x: NAMES_PX - 8, y: y + height / 2 + 4, "text-anchor": "end", "font-size": 12, fill: token("--text") };
    body.append(svg("text", at, responder), copy);
    y += height + 6;
  }
  return { about, width: NAMES_PX + BARS_PX + 40, height: y, body };
}

/** Per cent of the picture's width. */
function at(ns: number, axis: Range): number {
  return Math.round(logPlace(ns, axis) * 1e4) / 100;
}

function rowPicture(responder: string, lanes: readonly Lane[], axis: Range): SVGSVGElement {
  const height = lanes.length * LANE_PX + 3;
  const grid = logTicks(axis, 5).map((ns) =>
    svg("line", { class: "grid", x1: `${at(ns, axis)}%`, x2: `${at(ns, axis)}%`, y1: 0, y2: height }),
  );
  const bars = lanes.map((lane, i) => {
    const series = seriesOf(lane.run, responder);
    return series && bar(lane.look, series, axis, (i + 0.5) * LANE_PX + 1.5);
  });
  return svg("svg", { class: "rungs", width: "100%", height, "aria-hidden": "true" }, ...grid, ...bars);
}

function bar(look: number, series: Series, axis: Range, y: number): SVGGElement | undefined {
  const { min_ns, max_ns } = series;
  if (min_ns === null || max_ns === null) return undefined;
  const median = series.quantiles[MEDIAN];
  const tail = series.quantiles[TAIL];
  const x = (ns: number) => `${at(Math.max(ns, axis.low), axis)}%`;
  return svg(
    "g",
    { class: lookClass(look) },
    svg("line", { class: "span", x1: x(min_ns), x2: x(max_ns), y1: y, y2: y }),
    tail !== undefined && svg("line", { class: "bulk", x1: x(min_ns), x2: x(tail), y1: y, y2: y }),
    median !== undefined && svg("line", { class: "median", x1: x(median), x2: x(median), y1: y - 5, y2: y + 5 }),
    svg("svg", { x: x(max_ns), y, overflow: "visible" }, svg("path", { class: "mark", d: marker(look) })),
  );
}
