// SPDX-License-Identifier: GPL-2.0-or-later
// The tables of the papers, onset's figures beside or below, and the outcome of each claim. Numbers and outcomes come
// from the report; this module only lays them out.

import type { Claim, PaperRow, PaperTable, Report, Run, WaitChart } from "./contract.ts";
import { showCourses } from "./courses.ts";
import { type Place, showDrawing } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { greatest } from "./extremes.ts";
import { duration, exactNs, integer, tick } from "./format.ts";
import { lookClass, marker } from "./look.ts";
import { type Edges, type Mark, marks } from "./marks.ts";
import { showHistograms, showScatter } from "./plots.ts";
import { type About, clockText, saveDrawing } from "./save.ts";
import { showScreens } from "./screen.ts";
import { scrollBox } from "./scroll.ts";
import { chip } from "./summary.ts";
import { digitsOf, linearTicks } from "./ticks.ts";
import type { Matrix } from "./transpose.ts";
import type { View } from "./view.ts";
import { ZOOM } from "./zooming.ts";

type Go = (change: Partial<View>) => void;

/** The section; nothing if no run belongs to a paper. */
export function showPapers(report: Report, matrices: readonly Matrix[], go: Go): HTMLElement[] {
  if (report.papers.length === 0) return [];
  const section = h(
    "section",
    { id: "papers" },
    h("h2", {}, "Papers"),
    h(
      "p",
      { class: "lead" },
      "The tables show the figures as the papers print them, and below them the same figures measured by onset. A claim of a paper is a relation between figures of " +
      "the paper. onset compares it with the same relation between its own figures, in each repetition. It never divides a figure of a paper by one of its own, since " +
      "the two have no common clock. “Lost” counts what has no number. Read no maximum without this number.",
    ),
    ...report.papers.map((table) => showTable(table, report, matrices, go)),
  );
  return [section];
}

function showTable(table: PaperTable, report: Report, matrices: readonly Matrix[], go: Go): HTMLElement {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col", class: "pinned" }, ""),
    ...table.columns.map(({ name, unit }) =>
      h("th", { scope: "col" }, name, unit !== "" && h("small", {}, ` ${unit}`)),
    ),
    h("th", { scope: "col" }, "lost"),
    h("th", { scope: "col" }, "samples"),
    h("th", { scope: "col" }, "runs"),
  );
  const rows = table.rows.map((row) => showRow(row, report, matrices, go));
  return h(
    "article",
    { id: `paper-${table.id}` },
    h("h3", {}, table.heading, " ", h("small", {}, table.source)),
    h("dl", { class: "claims" }, ...table.claims.flatMap(claim)),
    picture(table, report.clock),
    scrollBox(table.heading, h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)), "wide"),
    h("p", { class: "readout" }, table.note),
    table.absent.length > 0 && h("p", { class: "absences" }, `Not measured here: ${table.absent.join("; ")}.`),
  );
}

/** The outcomes in words. */
export const OUTCOMES: Record<Claim["outcome"], string> = {
  alike: "alike",
  changed: "changed",
  no_difference: "no difference that this set-up can show",
  cannot_be_told: "cannot be told here",
};

function claim({ paper, outcome, here, smallest_effect, spread }: Claim): HTMLElement[] {
  const told = smallest_effect !== null && spread !== null;
  return [
    h("dt", { class: outcome }, OUTCOMES[outcome]),
    h(
      "dd",
      {},
      h("p", { class: "said" }, paper),
      h("p", {}, h("b", {}, "Here: "), here),
      told && h("p", { class: "evidence" }, `${spread}; smallest effect that counts: ${smallest_effect}`),
    ),
  ];
}

function showRow(row: PaperRow, report: Report, matrices: readonly Matrix[], go: Go): HTMLElement {
  const { basis } = row;
  const lost = basis?.lost ?? 0;
  const run = report.runs.find((run) => run.run === basis?.run);
  const unsound = run?.verdict === "invalid";
  const cells = row.cells.map(({ text, exact_ns, spread }) =>
    h(
      "td",
      {
        class: text === "—" ? "absent" : unsound && exact_ns !== null && "unsound",
        title: exact_ns === null ? undefined : `${exactNs(Math.round(exact_ns))} ns`,
      },
      text,
      spread !== null && h("small", { class: "spread" }, spread),
    ),
  );
  const label =
    run === undefined || basis === null ? row.label : runButton(row.label, run, basis.responder, matrices, go);
  const doubted = run !== undefined && (unsound || !run.complete);
  return h(
    "tr",
    { class: row.whose },
    h("th", { scope: "row", class: "pinned" }, label, doubted && " ", doubted && chip(run.verdict)),
    ...cells,
    h("td", { class: lost > 0 ? "lost some" : "lost" }, basis === null ? "" : integer(lost)),
    h("td", { class: "zero" }, basis === null ? "" : integer(basis.count)),
    h("td", { class: "zero" }, basis === null ? "" : integer(basis.repetitions)),
  );
}

/** A button that shows the distribution of the run in the views below. */
function runButton(label: string, run: Run, responder: string, matrices: readonly Matrix[], go: Go): HTMLElement {
  const button = h("button", { type: "button", title: `Show ${responder} of ${run.flavour} under ${run.load}` }, label);
  button.addEventListener("click", () => {
    const matrix = matrices.find(({ experiment }) => experiment === run.experiment);
    go({ experiment: run.experiment, load: run.load, responder, flavours: matrix?.flavours ?? [] });
    document.getElementById("bar")?.scrollIntoView();
  });
  return button;
}

function picture({ id, picture, heading, rows }: PaperTable, clock: string): HTMLElement | null {
  if (picture === null) return null;
  const of = rows.flatMap(({ label, basis }) => {
    return basis === null ? [] : [{ name: label, count: basis.count, lost: basis.lost }];
  });
  const about: About = { title: heading, clock: clockText(clock), of };
  const name = `paper.${id}`;
  switch (picture.kind) {
    case "chart":
      return showChart(picture, about, name);
    case "screens":
      return showScreens(picture, about, name);
    case "scatter":
      return showScatter(picture, about, name);
    case "histogram":
      return showHistograms(picture, about, name);
  }
}

/** The chart's own units; it is scaled to the page. */
const WIDTH = 440;
const HEIGHT = 220;
const LEFT = 48;
const BOTTOM = 40;
const EDGES: Edges = { left: LEFT, right: WIDTH - 10, foot: HEIGHT - BOTTOM };

/** The high thread's wait against the middle thread's work, on linear axes from 0: a bounded wait is a level line. */
function showChart({ lines, courses }: WaitChart, about: About, name: string): HTMLElement {
  const points = lines.flatMap((line) => line.points);
  const right = 1.05 * greatest(points.map(({ work_ns }) => work_ns));
  const top = 1.08 * greatest(points.map(({ wait_ns_max }) => wait_ns_max));
  const flavours = [...new Set(lines.map(({ flavour }) => flavour))];
  const works = [...new Set(points.map(({ work_ns }) => work_ns))];
  // Lines of kernels with equal waits cover each other. So the earlier line is broader, and shows beneath the later
  // one.
  const breadth = (flavour: string) => flavours.length - 1 - flavours.indexOf(flavour);
  const drawn = ({ x, y }: Place) => lines.map(({ flavour, inherits, points }) =>
    svg(
      "g",
      { class: lookClass(flavours.indexOf(flavour)) },
      svg("path", {
        class: "wait",
        d: points.map((p, i) => `${i === 0 ? "M" : "L"}${x(p.work_ns)} ${y(p.wait_ns_max)}`).join(""),
        "stroke-width": 2 + 4 * breadth(flavour),
        "stroke-dasharray": inherits ? "6 4" : undefined,
      }),
      ...points.map((p) =>
        svg(
          "path",
          {
            class: "mark",
            d: marker(inherits ? 1 : 0),
            transform: `translate(${x(p.work_ns)} ${y(p.wait_ns_max)}) scale(${1 + 0.7 * breadth(flavour)})`,
          },
          svg("title", {}, `${flavour}: work ${duration(p.work_ns)}, wait ${duration(p.wait_ns_max)}`),
        ),
      ),
    ),
  );
  const { element, drawing } = showDrawing({
    name,
    label: `${about.title}. The numbers are in the table.`,
    look: "waits",
    width: WIDTH,
    height: HEIGHT,
    box: [LEFT, 10, WIDTH - LEFT - 10, HEIGHT - BOTTOM - 10],
    x: { log: false, range: { low: 0, high: right } },
    y: { log: false, range: { low: 0, high: top } },
    draw: (at) => ({ frame: axes(at, works), inside: drawn(at) }),
  });
  return h(
    "div",
    {},
    h(
      "figure",
      {},
      h("figcaption", {}, h("p", {}, "Longest wait of the high thread.")),
      element,
      h("div", { class: "under" }, h("p", { class: "readout" }, ZOOM), saveDrawing(drawing, about)),
      h("p", { class: "keys" }, ...keys(lines, flavours)),
    ),
    showCourses(courses, about, name),
  );
}

/** The works that were tried, round waits with lines, and what the axis is. */
function axes({ shown, x, y }: Place, works: readonly number[]): SVGElement[] {
  const waits = linearTicks(shown.y, 5);
  const seen = works.filter((ns) => shown.x.low <= ns && ns <= shown.x.high);
  const marked = seen.length > 1 ? seen : linearTicks(shown.x, 5);
  return [
    ...marks(
      EDGES,
      waits.map((ns): Mark => [y(ns), ns === 0 ? "0" : tick(ns, digitsOf(waits))]),
      marked.map((ns): Mark => [x(ns), tick(ns, digitsOf(marked))]),
    ),
    svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "work of the middle thread"),
  ];
}

/** What each line is. */
function keys(lines: WaitChart["lines"], flavours: readonly string[]): HTMLElement[] {
  return lines.map(({ flavour, inherits }) =>
    h(
      "span",
      { class: `key ${lookClass(flavours.indexOf(flavour))}` },
      svg(
        "svg",
        { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
        svg("path", { class: "wait", d: "M0 6H34", "stroke-width": 2, "stroke-dasharray": inherits ? "6 4" : undefined }),
        svg("path", { class: "mark", d: marker(inherits ? 1 : 0), transform: "translate(17 6)" }),
      ),
      ` ${flavour}, ${inherits ? "priority inheritance: the wait is bounded where the line is level" : "plain mutex"}`,
    ),
  );
}
