// SPDX-License-Identifier: GPL-2.0-or-later
// The screen of an oscilloscope in infinite persistence: trigger and pins as traces, cursors, and what is measured
// between them. The same for a run of a report and for a live generator.

import { type Axis, type ChartParts, drawChart, type Handle, ZOOM } from "../chart.ts";
import { h } from "../element.ts";
import { duration, exactNs, integer } from "../format.ts";
import type { Limit, Pen } from "../pen.ts";
import type { About } from "../save.ts";
import { scrollBox } from "../scroll.ts";
import type { Range } from "../ticks.ts";
import type { Capture } from "./capture.ts";
import { paint } from "./paint.ts";
import { screen, type Settings, since } from "./settings.ts";
import { measure, type Measured, type Raster, rasterise, type Sweeps, sweeps, type Window } from "./sweep.ts";

/** Height of a pin's lane in CSS pixels, and of what is above and below all lanes. */
const LANE = 30;
const FRAME = 52;

/** The edges that a screen shows. */
export interface Seen {
  capture: Capture;
  /** The times of edges whose sweeps are always there. */
  keep: ReadonlySet<number>;
}

/** What a screen shows. */
export interface Shown extends Seen {
  settings: Settings;
  about: About;
  /** The reader set a cursor at this time: the first, or the second. */
  set(cursor: 0 | 1, ns: number): void;
}

/** A screen on the page. */
export interface Screen extends Handle {
  /** Has cursors elsewhere. */
  move(settings: Settings): void;
  /** Shows other edges, of the same pins. */
  show(seen: Seen): void;
}

/** The part of the screen's time that an axis shows. */
interface Drawn {
  range: Range;
  columns: number;
  raster: Raster;
}

/** Draws a screen into `host`, which must be in the page already. */
export function drawScreen(host: HTMLElement, shown: Shown): Screen {
  const { capture: { pins }, about } = shown;
  let { settings, capture } = shown;
  const [from, to] = screen(settings);
  // No edge is of a pin that is not there, so then there are no sweeps.
  const trigger = { pin: pins.indexOf(settings.pin), edge: settings.edge };
  let taken: Sweeps = sweeps(capture, trigger, [from, to], shown.keep);
  let drawn: Drawn | null = null;
  const limits: Limit[] = [];
  const told = h("p", { class: "readout" });
  // The table stays while its rows change, so that who scrolls or saves it is not disturbed.
  const table = h("table", { class: "measured" });
  const chart = h("div", {});
  host.append(chart, told, scrollBox(`${about.title}: edges between the cursors`, table));
  const refresh = () => {
    const cursors = cursorLines(settings);
    limits.splice(0, limits.length, ...cursors);
    told.textContent = sweepsText(taken, settings, pins);
    const [left, right] = between(settings);
    table.replaceChildren(...measurements(pins, measure(capture, taken, [left, right]), [left, right]));
  };
  refresh();
  const parts: ChartParts = {
    name: "scope",
    label: `${about.title}. What is measured between the cursors is in the table below.`,
    height_px: pins.length * LANE + FRAME,
    x: times(settings),
    y: lanes(pins),
    data: [
      [from, to],
      [null, null],
    ],
    series: [{ points: { show: false } }],
    limits,
    about,
    paint(pen) {
      const { range, columns } = shownBy(pen, [from, to]);
      const isSame = drawn?.columns === columns && drawn.range.low === range.low && drawn.range.high === range.high;
      if (drawn === null || !isSame) {
        drawn = { range, columns, raster: rasterise(capture, taken, [range.low, range.high], columns) };
      }
      paint(pen, drawn.raster, pins.length);
    },
    click: (x, _y, isShifted) => shown.set(isShifted ? 1 : 0, Math.round(x)),
    read: (x, y) => readAt(x, pins.length - 1 - Math.floor(y), pins, drawn),
    hint: `A click sets cursor A, with Shift cursor B. ${ZOOM}`,
  };
  const handle = drawChart(chart, parts);
  return {
    remove: () => {
      handle.remove();
      host.replaceChildren();
    },
    redraw: () => handle.redraw(),
    show: (seen) => {
      ({ capture } = seen);
      taken = sweeps(capture, trigger, [from, to], seen.keep);
      drawn = null;
      refresh();
      handle.redraw();
    },
    move: (to) => {
      settings = to;
      refresh();
      handle.redraw();
    },
  };
}

/** The times at the ends of a pen's box, and how many columns it has. */
function shownBy(pen: Pen, [from, to]: Window): Pick<Drawn, "range" | "columns"> {
  const low = pen.place(from, "x");
  const span = pen.place(to, "x") - low;
  const [left, , width] = pen.box;
  const at = (place: number) => from + ((place - low) / span) * (to - from);
  return { range: { low: at(left), high: at(left + width) }, columns: Math.max(1, Math.round(width)) };
}

/** The axis of time after the trigger. */
function times(settings: Settings): Axis {
  const [low, high] = screen(settings);
  const label = `time after the trigger, ${since(settings.division_ns)} a division`;
  return { label, range: { low, high }, log: false, text: since };
}

/** The axis of lanes: the first pin at the top. */
function lanes(pins: readonly string[]): Axis {
  return {
    label: "",
    range: { low: 0, high: pins.length },
    log: false,
    size_px: 8 + 7 * Math.max(...pins.map((pin) => Math.min(pin.length, 18))),
    text: (place) => name(pins[pins.length - 1 - Math.floor(place)] ?? ""),
    marks: ({ low, high }) => pins.map((_, i) => i + 0.5).filter((place) => place >= low && place <= high),
  };
}

/** A long name in as many letters as there is room for. */
function name(pin: string): string {
  return pin.length <= 18 ? pin : `${pin.slice(0, 17)}…`;
}

function cursorLines({ cursors }: Settings): Limit[] {
  return cursors.flatMap((value, i) =>
    value === null ? [] : [{ axis: "x", value, text: `${"AB"[i]} ${since(value)}`, token: "--link" } as const],
  );
}

/** What is measured: from one cursor to the other; without one, from the trigger, to the right end. */
export function between(settings: Settings): readonly [number, number] {
  const [a, b] = settings.cursors;
  const [left, right] = [a ?? 0, b ?? screen(settings)[1]];
  return left <= right ? [left, right] : [right, left];
}

function sweepsText({ starts, of }: Sweeps, { pin, edge }: Settings, pins: readonly string[]): string {
  if (!pins.includes(pin)) return `No sweeps: this run has no pin ${pin}, so nothing triggers`;
  const what = edge === "either" ? "either edge" : `the ${edge === "rise" ? "rising" : "falling"} edge`;
  const by = `triggered by ${what} of ${pin}`;
  if (starts.length === of) return `${integer(of)} sweeps, ${by}`;
  return `${integer(starts.length)} of ${integer(of)} sweeps, ${by}: at even distances, and each with a latest answer`;
}

function readAt(ns: number, pin: number, pins: readonly string[], drawn: Drawn | null): string[] {
  const at = since(Math.round(ns), 5);
  const of = pins[pin];
  if (of === undefined || drawn === null) return [at];
  const { range, columns, raster } = drawn;
  const column = Math.floor(((ns - range.low) / (range.high - range.low)) * columns);
  // Nobody points at a single column.
  let edges = 0;
  for (let x = Math.max(0, column - 1); x <= Math.min(columns - 1, column + 1); x++) {
    edges += raster.edges[pin * columns + x] ?? 0;
  }
  const place = pin * columns + Math.min(columns - 1, Math.max(0, column));
  const [high, low] = [raster.high[place] ?? 0, raster.low[place] ?? 0];
  return [`${of} at ${at}: ${integer(edges)} edges here; high in ${integer(high)} sweeps, low in ${integer(low)}`];
}

/** What the table of measurements says: its caption, its head and its rows. */
function measurements(
  pins: readonly string[],
  all: readonly Measured[],
  [from, to]: readonly [number, number],
): HTMLElement[] {
  const time = (ns: number | null, kind = "") =>
    h("td", { class: ns === null ? "absent" : kind, title: ns === null ? undefined : `${exactNs(Math.round(ns))} ns` }, ns === null ? "—" : since(Math.round(ns), 3));
  const rows = all.map(({ edges, min_ns, mean_ns, max_ns, without }, pin) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, pins[pin]),
      h("td", {}, integer(edges)),
      time(min_ns),
      time(mean_ns),
      time(max_ns, "max"),
      h("td", { class: without > 0 ? "some" : "zero" }, integer(without)),
    ),
  );
  const heads = ["edges", "first: min", "mean", "max", "sweeps without"];
  const head = h("tr", {}, h("th", { scope: "col", class: "text" }, "pin"), ...heads.map((one) => h("th", { scope: "col" }, one)));
  const caption = h("caption", {}, `Edges from ${since(from, 5)} to ${since(to, 5)} after the trigger, which is ${duration(to - from)}. Min, mean and max are of the first edge of each sweep there.`);
  return [caption, h("thead", {}, head), h("tbody", {}, ...rows)];
}
