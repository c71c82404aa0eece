// SPDX-License-Identifier: GPL-2.0-or-later
// The oscilloscope of a live generator: its latest edges, which the server tells of four times a second.

import { h } from "../element.ts";
import { greatest } from "../extremes.ts";
import { integer, several } from "../format.ts";
import { type About, clockText } from "../save.ts";
import type { Told } from "../site/told.ts";
import { readWord, wordHash, zoomHash } from "../zoom.ts";
import { type Capture, copyOf, empty, forget, merge } from "./capture.ts";
import { knobs, type Knobs } from "./controls.ts";
import { drawScreen, type Screen, type Seen } from "./screen.ts";
import { divisionFor, readSettings, type Settings, settingsWord } from "./settings.ts";

/** The edges that stay on the screen: so many are drawn well within the quarter of a second. */
const EDGES_MAX = 250_000;

/** An oscilloscope on the live page. */
export interface LiveScope {
  element: HTMLElement;
  /** Takes what the server tells; draws it unless it is paused. */
  take(told: Told): void;
  /** Stays as it is, or goes on with all that has come. */
  pause(isPaused: boolean): void;
  /** Forgets all edges. */
  clear(): void;
}

/** What is there once edges have come. */
interface Running {
  /** All edges that have come. */
  capture: Capture;
  /** What is on the screen: while it is paused the edges until then, which cursors and zooms are to measure. */
  seen: Seen;
  about: About;
  settings: Settings;
  knobs: Knobs;
  screen: Screen;
}

/** An oscilloscope that shows itself once there are edges. */
export function liveScope(): LiveScope {
  const told = h("p", { class: "state" });
  const place = h("div", {});
  const element = h("section", { id: "scope", hidden: true }, h("h2", {}, "Oscilloscope"), told, place);
  let running: Running | null = null;
  let latest: Told | null = null;
  let [isPaused, isTorn] = [false, false];
  let [number, missed] = [-1, 0];
  const clear = () => {
    running?.screen.remove();
    place.replaceChildren();
    element.hidden = true;
    [running, missed, isTorn] = [null, 0, false];
  };
  const show = () => {
    if (running === null || latest === null) return;
    if (!isPaused) goOn(running, latest);
    told.textContent = edgesText(running, missed);
  };
  return {
    element,
    clear,
    take(now) {
      const { edges } = now;
      if (edges === null || edges.number === number) return;
      if (edges.number < number) clear();
      // Edges may be missing before what tells of none.
      isTorn ||= running !== null && edges.number !== number + 1;
      number = edges.number;
      missed += edges.left_out;
      if (edges.edges === "") return;
      latest = now;
      element.hidden = false;
      running ??= begin(place, edges.pins, now, isPaused);
      add(running.capture, edges.edges, isTorn);
      isTorn = false;
      show();
    },
    pause(paused) {
      isPaused = paused;
      // What comes from now on does not move the edges that are on the screen.
      if (isPaused && running !== null) running.capture = copyOf(running.capture);
      show();
    },
  };
}

/** Adds edges. Where some are missing before them, a stretch ends and another one begins. */
function add(capture: Capture, edges: string, isTorn: boolean): void {
  const before = capture.length;
  const last = capture.stretches.length - 1;
  const end = capture.times[before - 1] ?? 0;
  merge(capture, edges);
  if (last < 0) capture.stretches = [[capture.times[0] ?? 0, Infinity]];
  else if (isTorn) {
    capture.stretches[last] = [capture.stretches[last]?.[0] ?? 0, end];
    capture.stretches.push([capture.times[before] ?? end, Infinity]);
  }
  forget(capture, EDGES_MAX);
}

/** Shows all edges that have come, and the sweeps of the worst answers among them, however many others there are. */
function goOn(running: Running, now: Told): void {
  const worst = now.channels.flatMap((channel) => channel.worst);
  const keep = new Set(worst.flatMap(({ at_ns, latency_ns }) => [at_ns, at_ns + latency_ns]));
  running.seen = { capture: running.capture, keep };
  Object.assign(running.about, aboutOf(now));
  running.screen.show(running.seen);
}

function edgesText({ capture, seen }: Running, missed: number): string {
  const without = missed === 0 ? "" : `; ${several(missed, "answer")} came too fast to be drawn`;
  const until = seen.capture === capture ? "" : `; paused at ${integer(seen.capture.length)} edges`;
  return `The latest ${integer(capture.length)} edges, at most ${integer(EDGES_MAX)}${without}${until}`;
}

function aboutOf({ clock, channels }: Told): About {
  const of = channels.map(({ summary: { responder, count, losses } }) => {
    return { name: responder, count, lost: Object.values(losses).reduce((sum, n) => sum + n, 0) };
  });
  return { title: "Oscilloscope: live generator", clock: clockText(clock ?? ""), of };
}

function begin(place: HTMLElement, pins: readonly string[], now: Told, isPaused: boolean): Running {
  const latest = greatest(now.channels.map(({ summary }) => summary.max_ns ?? 0), 0);
  const first: Settings = { pin: pins[0] ?? "", edge: "rise", division_ns: divisionFor(latest), cursors: [null, null] };
  const settings = readSettings(readWord(location.hash, "scope"), pins, first);
  const host = h("div", {});
  const change = (change: Partial<Settings>) => {
    running.settings = { ...running.settings, ...change };
    running.knobs.reflect(running.settings);
    const isOther = change.cursors === undefined;
    let hash = wordHash(location.hash, "scope", settingsWord(running.settings));
    if (isOther) hash = zoomHash(hash, "scope", null);
    history.replaceState(null, "", hash);
    if (isOther) {
      running.screen.remove();
      running.screen = draw(running.settings);
    } else running.screen.move(running.settings);
  };
  const turn = knobs(pins, change);
  turn.reflect(settings);
  place.replaceChildren(turn.element, host);
  const about: About = { ...aboutOf(now), of: [] };
  const set = (cursor: 0 | 1, ns: number) => {
    const [a, b] = running.settings.cursors;
    change({ cursors: cursor === 0 ? [ns, b] : [a, ns] });
  };
  const seen: Seen = { capture: empty(pins), keep: new Set() };
  const draw = (settings: Settings) => drawScreen(host, { ...running.seen, settings, about, set });
  const screen = drawScreen(host, { ...seen, settings, about, set });
  const capture = isPaused ? copyOf(seen.capture) : seen.capture;
  const running: Running = { capture, seen, about, settings, knobs: turn, screen };
  return running;
}
