// SPDX-License-Identifier: GPL-2.0-or-later
// The runs of an experiment over time: for each cell a chart of maximum, p99 and median, and a wall with a small
// histogram of each run. A click leads to the report.

import { h, svg } from "../element.ts";
import { date, duration, integer, several } from "../format.ts";
import { write, type Address } from "./address.ts";
import { axis, histogram, share, type Axis } from "./draw.ts";
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
const WIDTH = 900;
const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 24;

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
  const load = async (responder: string) => {
    const asked = [...shown, ["responder", responder] as const].filter(([, value]) => value !== "");
    history.replaceState(null, "", write("history", asked));
    const answer = await fetch(`api/history?${new URLSearchParams(asked.map(([k, v]) => [k, v])).toString()}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const told = (await answer.json()) as History;
    if (!isOpen) return;
    whose.replaceChildren(...told.responders.map((name) => h("option", { value: name, selected: name === told.responder }, name)));
    state.textContent = sentence(told);
    box.replaceChildren(...cellsOf(told.runs).map(([name, runs]) => cell(name, runs, told.responder ?? "")));
  };
  const failed = (error: unknown) => {
    state.textContent = `The runs cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  };
  whose.addEventListener("change", () => void load(whose.value).catch(failed));
  void load(words.get("responder") ?? "").catch(failed);
  return () => {
    isOpen = false;
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
  return { summary, columns, slices: [] };
}

function cell(name: string, runs: readonly Past[], responder: string): HTMLElement {
  const measured = runs.flatMap((run) => (run.numbers === null ? [] : [channel(responder, run.numbers)]));
  const of = axis(measured);
  return h(
    "section",
    { class: "cell" },
    h("h2", {}, name),
    chart(runs, of),
    h("div", { class: "wall" }, ...[...runs].reverse().map((run) => brick(run, responder, of))),
  );
}

/** A run of the wall. Its maximum never stands without what was lost. */
function brick({ run, created, kernel, verdict, complete, numbers }: Past, responder: string, of: Axis): HTMLElement {
  const href = `report?run=${encodeURIComponent(run)}`;
  const what = `${verdict}${complete ? "" : ", interrupted"}`;
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

/** Where a date lies in the chart; a single one in the middle. */
export function across(at: number, first: number, last: number): number {
  const room = WIDTH - LEFT - 20;
  return LEFT + 10 + (first === last ? room / 2 : (room * (at - first)) / (last - first));
}

function chart(runs: readonly Past[], of: Axis): SVGSVGElement {
  const times = runs.map((run) => Date.parse(run.created));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (n: number) => across(times[n] ?? first, first, last);
  const y = (ns: number) => 8 + (HEIGHT - BOTTOM - 8) * (1 - share(ns, of));
  const decades = Math.round(Math.log10(of.high / of.low));
  const rules = Array.from({ length: decades + 1 }, (_, n) => of.low * 10 ** n).flatMap((ns) => [
    svg("line", { class: "rule", x1: LEFT, x2: WIDTH, y1: y(ns), y2: y(ns) }),
    svg("text", { x: LEFT - 6, y: y(ns) + 4, "text-anchor": "end" }, duration(ns)),
  ]);
  const ends = first === last ? [[first, "middle"] as const] : [[first, "start"] as const, [last, "end"] as const];
  const dates = ends.map(([at, anchor]) =>
    svg("text", { x: across(at, first, last), y: HEIGHT - 6, "text-anchor": anchor }, date(new Date(at).toISOString())),
  );
  const lines = LINES.flatMap(([key, name], look) => {
    const points = runs.flatMap((run, n) => {
      const ns = run.numbers?.[key] ?? null;
      return ns === null ? [] : [{ x: x(n), y: y(ns), run: run.run, ns }];
    });
    const path = points.map((point, n) => `${n === 0 ? "M" : "L"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
    const dots = points.map((point) => {
      const dot = svg("circle", { cx: point.x.toFixed(1), cy: point.y.toFixed(1), r: 3.5 });
      const what = `${name} ${duration(point.ns)}, ${point.run}`;
      return svg("a", { href: `report?run=${encodeURIComponent(point.run)}`, "aria-label": what }, svg("title", {}, what), dot);
    });
    const legend = svg("text", { x: LEFT + 10 + 90 * look, y: 20, class: "name" }, name);
    return [svg("g", { class: `line look-${look}` }, svg("path", { d: path }), ...dots, legend)];
  });
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Longest, p99 and median of each run over time" };
  return svg("svg", { class: "history", ...size }, ...rules, ...dates, ...lines);
}
