// SPDX-License-Identifier: GPL-2.0-or-later
// The runs of an experiment over time: for each cell a chart of maximum, p99 and median, and a wall with a small
// histogram of each run. A click leads to the report.

import { type Place, showDrawing, type Shown } from "../drawing.ts";
import { h, svg } from "../element.ts";
import { greatest, smallest } from "../extremes.ts";
import { date, duration, integer, several, tick } from "../format.ts";
import { type About, clockText, saveDrawing } from "../save.ts";
import { digitsOf, marksOf, type Range } from "../ticks.ts";
import { keepWords } from "../zoom.ts";
import { ZOOM } from "../zooming.ts";
import { write, type Address } from "./address.ts";
import { axis, histogram, type Axis } from "./draw.ts";
import { lost } from "./live.ts";
import type { Channel } from "./told.ts";

/** What the server answers (docs/history.schema.json). */
export interface History {
  readonly responder: string | null;
  readonly responders: readonly string[];
  readonly runs: readonly Past[];
  readonly omitted: number;
  readonly damaged: number;
}

export interface Past {
  readonly run: string;
  readonly created: string;
  readonly title: string;
  readonly flavour: string;
  readonly load: string;
  readonly instrument: string;
  readonly kernel: string | null;
  readonly clock: string;
  readonly verdict: string;
  readonly complete: boolean;
  readonly numbers: Numbers | null;
}

interface Numbers {
  readonly count: number;
  readonly losses: Readonly<Record<string, number>>;
  readonly p50_ns: number | null;
  readonly p99_ns: number | null;
  readonly max_ns: number | null;
  readonly columns: Channel["columns"];
}

/** The words of the address that say which runs are shown. */
const WORDS = ["title", "flavour", "load", "instrument"] as const;
const LINES = [["max_ns", "longest"], ["p99_ns", "p99"], ["p50_ns", "median"]] as const;
/** In the chart's own units. A phone has room for a smaller chart, whose text can still be read. */
const [WIDTH, NARROW] = [900, 420];
const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 24;
const DAY_MS = 86_400_000;

/** Runs that may stand on one axis: of one cell of one experiment, by one clock. In the order of the newest run. */
export function cellsOf(runs: readonly Past[]): [string, Past[]][] {
  const cells = new Map<string, Past[]>();
  for (const run of runs) {
    const clock = run.clock === "virtual" ? "virtual time" : `${run.clock} clock`;
    const name = [run.title, run.flavour, run.load, run.instrument, clock].join(" · ");
    const cell = cells.get(name) ?? [];
    cells.delete(name);
    cells.set(name, [...cell, run]);
  }
  return [...cells].reverse();
}

/** Shows the page in `place`. */
export function showHistory(place: HTMLElement, { words }: Address): () => void {
  const shown = WORDS.map((word) => [word, words.get(word) ?? ""] as const);
  const state = h("p", { class: "state" }, "Reading the runs …");
  const whose = h("select", { id: "responder" });
  const box = h("div", { id: "history" });
  const all = shown.filter(([, value]) => value !== "").map(([word, value]) => {
    const others = shown.map(([other, own]) => [other, other === word ? "" : own] as const);
    return h("a", { href: write("history", others), class: "chosen", title: `any ${word}` }, `${word}: ${value} ✕`);
  });
  place.replaceChildren(h("h1", {}, "History"), h("form", { class: "live" }, h("label", {}, "Responder", whose), ...all), state, box);
  let isOpen = true;
  let charts: Shown[] = [];
  const clear = () => {
    for (const { remove } of charts) remove();
    charts = [];
  };
  const load = async (responder: string, keep: readonly string[]) => {
    const asked = [...shown, ["responder", responder] as const].filter(([, value]) => value !== "");
    history.replaceState(null, "", keepWords(write("history", asked), keep.length > 0 ? location.hash : "", keep));
    const answer = await fetch(`api/history?${new URLSearchParams(asked.map(([k, v]) => [k, v])).toString()}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const told = (await answer.json()) as History;
    if (!isOpen) return;
    whose.replaceChildren(...told.responders.map((name) => h("option", { value: name, selected: name === told.responder }, name)));
    state.textContent = sentence(told);
    clear();
    const cells = cellsOf(told.runs).map(([name, runs], n) => cell(name, runs, told.responder ?? "", n));
    charts = cells.map(({ chart }) => chart);
    box.replaceChildren(...cells.map(({ section }) => section));
  };
  const failed = (error: unknown) => {
    state.textContent = `The runs cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  };
  // Another responder has other axes.
  whose.addEventListener("change", () => void load(whose.value, []).catch(failed));
  void load(words.get("responder") ?? "", ["zoom"]).catch(failed);
  return () => {
    isOpen = false;
    clear();
  };
}

function sentence({ runs, omitted, damaged, responder }: History): string {
  const parts = [`${several(runs.length, "run")}, the answers of ${responder ?? "nobody"}`];
  if (omitted > 0) parts.push(`${several(omitted, "older run")} left out: choose one experiment`);
  if (damaged > 0) parts.push(`${several(damaged, "damaged run")} left out`);
  return parts.join(" · ");
}

/** A run as the drawings of the live page take a responder. */
function channel(responder: string, { count, losses, max_ns, columns }: Numbers): Channel {
  const min_ns = columns[0]?.low_ns ?? null;
  const summary = { responder, count, losses, min_ns, mean_ns: null, max_ns, quantiles: {} };
  return { summary, columns, slices: [], worst: [] };
}

function cell(
  name: string,
  runs: readonly Past[],
  responder: string,
  n: number,
): { section: HTMLElement; chart: Shown } {
  const measured = runs.flatMap((run) => (run.numbers === null ? [] : [channel(responder, run.numbers)]));
  const of = axis(measured);
  const chart = showChart(`history.${n}`, runs, of);
  const about: About = {
    title: `${responder} over time: ${name}`,
    clock: clockText(runs[0]?.clock ?? ""),
    of: measured.map(({ summary: { count, losses } }, n) => {
      return { name: runs.filter(({ numbers }) => numbers !== null)[n]?.run ?? "", count, lost: total(losses) };
    }),
  };
  const under = h("div", { class: "under" }, h("p", { class: "readout" }, ZOOM), saveDrawing(chart.drawing, about));
  const wall = h("div", { class: "wall" }, ...[...runs].reverse().map((run) => brick(run, responder, of)));
  return { section: h("section", { class: "cell" }, h("h2", {}, name), chart.element, under, wall), chart };
}

const total = (losses: Readonly<Record<string, number>>) => Object.values(losses).reduce((sum, n) => sum + n, 0);

/** The verdict of a run, and whether it was interrupted. */
const outcome = ({ verdict, complete }: Pick<Past, "verdict" | "complete">) =>
  `${verdict}${complete ? "" : ", interrupted"}`;

/** A run of the wall. Its maximum never stands without what was lost. */
function brick({ run, created, kernel, verdict, complete, numbers }: Past, responder: string, of: Axis): HTMLElement {
  const href = `report?run=${encodeURIComponent(run)}`;
  const what = outcome({ verdict, complete });
  const title = [run, kernel ?? "kernel unknown", what].join("\n");
  const text =
    numbers === null
      ? [`no ${responder}`]
      : [`max ${duration(numbers.max_ns)}`, `n ${integer(numbers.count)}, lost ${lost(numbers.losses)}`];
  return h(
    "a",
    { class: `brick ${verdict}`, href, title, "aria-label": `${date(created)}, ${what}, ${text.join(", ")}` },
    h("span", { class: "when" }, date(created)),
    ...(numbers === null ? [] : [histogram(channel(responder, numbers), of)]),
    ...text.map((line) => h("span", {}, line)),
  );
}

/** When a run began, since the first of them: in the address a place has few digits. */
const since = (runs: readonly Past[], { created }: Past) =>
  Date.parse(created) - smallest(runs.map((run) => Date.parse(run.created)));

/** The time that a chart shows, with some room at both ends; of a single run the day around it. */
export function timeOf(runs: readonly Past[]): Range {
  const last = greatest(runs.map((run) => since(runs, run)));
  const room = last === 0 ? DAY_MS / 2 : 0.01 * last;
  return { low: -room, high: last + room };
}

function showChart(name: string, runs: readonly Past[], of: Axis): Shown {
  const width = matchMedia("(max-width: 700px)").matches ? NARROW : WIDTH;
  return showDrawing({
    name,
    label: "Longest, p99 and median of each run over time.",
    look: "history",
    hasLinks: true,
    width,
    height: HEIGHT,
    box: [LEFT, 8, width - LEFT, HEIGHT - BOTTOM - 8],
    x: { log: false, range: timeOf(runs) },
    y: { log: true, range: of },
    draw: (at) => ({ frame: axes(at, runs, width), inside: LINES.map((_, look) => line(runs, look, at)) }),
  });
}

/** Lines at round latencies, what the colours are, and from when to when runs are shown. */
function axes({ shown, x, y }: Place, runs: readonly Past[], width: number): SVGElement[] {
  const heights = marksOf({ log: true }, shown.y, 6);
  const rules = heights.flatMap((ns) => [
    svg("line", { class: "rule", x1: LEFT, x2: width, y1: y(ns), y2: y(ns) }),
    svg("text", { x: LEFT - 6, y: y(ns) + 4, "text-anchor": "end" }, tick(ns, digitsOf(heights))),
  ]);
  const seen = runs.filter((run) => shown.x.low <= since(runs, run) && since(runs, run) <= shown.x.high);
  const [first, last] = [seen[0], seen.at(-1)];
  const dated = (run: Past, anchor: string) =>
    svg("text", { x: x(since(runs, run)), y: HEIGHT - 6, "text-anchor": anchor }, date(run.created));
  const ends =
    first === undefined || last === undefined
      ? []
      : first === last
        ? [dated(first, "middle")]
        : [dated(first, "start"), dated(last, "end")];
  const names = LINES.map(([, name], look) =>
    svg("g", { class: `name look-${look}` }, svg("text", { x: LEFT + 10 + 90 * look, y: 20 }, name)),
  );
  return [...rules, ...ends, ...names];
}

function line(runs: readonly Past[], look: number, { x, y }: Place): SVGGElement {
  const [key, name] = LINES[look] ?? LINES[0];
  const points = runs.flatMap((run) => {
    const ns = run.numbers?.[key] ?? null;
    return ns === null ? [] : [{ x: x(since(runs, run)), y: y(ns), run, ns }];
  });
  const path = points.map((point, n) => `${n === 0 ? "M" : "L"}${point.x} ${point.y}`).join("");
  const dots = points.map(({ run, ns, ...place }) => {
    // The numbers of an unsound run mean nothing, and an interrupted one has those of a part.
    const isDoubtful = run.verdict === "invalid" || !run.complete;
    const dot = svg("circle", { cx: place.x, cy: place.y, r: 3.5, class: isDoubtful && "doubtful" });
    const what = `${name} ${duration(ns)}, ${run.run}: ${outcome(run)}, lost ${lost(run.numbers?.losses ?? {})}`;
    const href = `report?run=${encodeURIComponent(run.run)}`;
    return svg("a", { href, "aria-label": what }, svg("title", {}, what), dot);
  });
  return svg("g", { class: `line look-${look}` }, svg("path", { d: path }), ...dots);
}
