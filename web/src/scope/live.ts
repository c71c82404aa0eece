// SPDX-License-Identifier: GPL-2.0-or-later
// The oscilloscope of a live generator: its latest edges, which the server tells of four times a second.

import { h } from "../element.ts";
import { integer, several } from "../format.ts";
import { type About, clockText } from "../save.ts";
import type { Told } from "../site/told.ts";
import { readWord, wordHash, zoomHash } from "../zoom.ts";
import { type Capture, empty, forget, merge } from "./capture.ts";
import { knobs, type Knobs } from "./controls.ts";
import { drawScreen, type Screen } from "./screen.ts";
import { divisionFor, readSettings, type Settings, settingsWord } from "./settings.ts";

/** The edges that stay on the screen: so many are drawn well within the quarter of a second. */
const EDGES_MAX = 250_000;

/** An oscilloscope on the live page. */
export interface LiveScope {
  element: HTMLElement;
  /** Takes what the server tells; draws unless it is paused. */
  take(told: Told, isPaused: boolean): void;
  /** Forgets all edges. */
  clear(): void;
}

/** What is there once edges have come. */
interface Running {
  capture: Capture;
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
  let [number, missed] = [-1, 0];
  const clear = () => {
    running?.screen.remove();
    place.replaceChildren();
    element.hidden = true;
    [running, missed] = [null, 0];
  };
  return {
    element,
    clear,
    take(now, isPaused) {
      const { edges } = now;
      if (edges === null || edges.number === number) return;
      if (edges.number < number) clear();
      const isNext = edges.number === number + 1 || running === null;
      number = edges.number;
      missed += edges.left_out;
      if (edges.edges === "") return;
      const first = running === null;
      element.hidden = false;
      running ??= begin(place, edges.pins, now);
      const { capture } = running;
      const last = capture.stretches.length - 1;
      const end = capture.times[capture.length - 1] ?? 0;
      const before = capture.length;
      merge(capture, edges.edges);
      // Where edges are missing, a stretch ends and another one begins.
      if (first) capture.stretches = [[capture.times[0] ?? 0, Infinity]];
      else if (!isNext) {
        capture.stretches[last] = [capture.stretches[last]?.[0] ?? 0, end];
        capture.stretches.push([capture.times[before] ?? end, Infinity]);
      }
      forget(capture, EDGES_MAX);
      Object.assign(running.about, aboutOf(now));
      const without = missed === 0 ? "" : `; ${several(missed, "answer")} came too fast to be drawn`;
      told.textContent = `The latest ${integer(capture.length)} edges, at most ${integer(EDGES_MAX)}${without}`;
      if (!isPaused) running.screen.redraw();
    },
  };
}

function aboutOf({ clock, channels }: Told): About {
  const of = channels.map(({ summary: { responder, count, losses } }) => {
    return { name: responder, count, lost: Object.values(losses).reduce((sum, n) => sum + n, 0) };
  });
  return { title: "Oscilloscope: live generator", clock: clockText(clock ?? ""), of };
}

function begin(place: HTMLElement, pins: readonly string[], now: Told): Running {
  const latest = Math.max(0, ...now.channels.map(({ summary }) => summary.max_ns ?? 0));
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
  const capture = empty(pins);
  const draw = (settings: Settings) => drawScreen(host, { capture, settings, about, keep: new Set(), set });
  const running: Running = { capture, about, settings, knobs: turn, screen: draw(settings) };
  return running;
}
