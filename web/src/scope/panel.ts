// SPDX-License-Identifier: GPL-2.0-or-later
// The section “Oscilloscope” of a report: a screen for each flavour, all set alike, so that kernels can be held against
// each other as figures 9 to 24 of the Assessment paper hold them.

import { h } from "../element.ts";
import { greatest } from "../extremes.ts";
import { integer } from "../format.ts";
import { swatch } from "../look.ts";
import { type About, clockText } from "../save.ts";
import { type Lane, lossesTotal, seriesOf } from "../transpose.ts";
import type { View } from "../view.ts";
import { readWord, wordHash, zoomHash } from "../zoom.ts";
import { capture, type Capture } from "./capture.ts";
import { knobs } from "./controls.ts";
import { drawScreen, type Screen } from "./screen.ts";
import { divisionFor, readSettings, type Settings, settingsWord } from "./settings.ts";

/** The edges of a run are read once, however often its screen is drawn. */
const captures = new WeakMap<object, Capture>();

/** The section, or null without a run that an oscilloscope could see. It is filled once it is in the page. */
export function scopeSection(view: View, lanes: readonly Lane[]): { section: HTMLElement; fill(): void } | null {
  const seen = lanes.filter(({ run }) => run.scope !== null);
  if (seen.length === 0) return null;
  const section = h("section", { id: "scope" });
  return { section, fill: () => fill(section, view, seen) };
}

function fill(section: HTMLElement, view: View, lanes: readonly Lane[]): void {
  const pins = [...new Set(lanes.flatMap(({ run }) => run.scope?.pins ?? []))];
  const latest = greatest(lanes.map(({ run }) => seriesOf(run, view.responder)?.max_ns ?? 0));
  const first: Settings = { pin: pins[0] ?? "", edge: "rise", division_ns: divisionFor(latest), cursors: [null, null] };
  let settings = readSettings(readWord(location.hash, "scope"), pins, first);
  const hosts = lanes.map((lane) => h("figure", { class: "oscilloscope" }, h("p", { class: "panel-name" }, swatch(lane.look), ` ${lane.name}`), thinned(lane)));
  let screens: Screen[] = [];
  const change = (change: Partial<Settings>) => {
    const isOther = change.cursors === undefined;
    settings = { ...settings, ...change };
    turn.reflect(settings);
    let hash = wordHash(location.hash, "scope", settingsWord(settings));
    // Another screen has other axes.
    if (isOther) hash = zoomHash(hash, "scope", null);
    history.replaceState(history.state, "", hash);
    if (!isOther) for (const screen of screens) screen.move(settings);
    else draw();
  };
  const set = (cursor: 0 | 1, ns: number) => {
    const [a, b] = settings.cursors;
    change({ cursors: cursor === 0 ? [ns, b] : [a, ns] });
  };
  const turn = knobs(pins, change);
  const draw = () => {
    for (const screen of screens) screen.remove();
    screens = lanes.map((lane, i) => {
      const host = h("div", {});
      hosts[i]?.append(host);
      const shown = { capture: edgesOf(lane), settings, about: about(lane, view), keep: latestOf(lane), set };
      return drawScreen(host, shown);
    });
  };
  section.replaceChildren(
    h("h2", {}, "Oscilloscope under ", h("em", {}, view.load)),
    h(
      "p",
      { class: "lead" },
      "The trigger's line and every pin, each sweep on top of the others. A bright line has more edges than a dim one, on a logarithmic scale; a single edge can be seen. A pin toggles with each answer, so both levels are there.",
    ),
    turn.element,
    ...hosts,
  );
  turn.reflect(settings);
  draw();
}

function edgesOf({ run }: Lane): Capture {
  const scope = run.scope;
  if (scope === null) throw new Error("a run without edges");
  const known = captures.get(scope);
  const read = known ?? capture(scope);
  if (known === undefined) captures.set(scope, read);
  return read;
}

/** When the latest answers were triggered, and when they came: no sweep that these start is left out. */
function latestOf({ run }: Lane): Set<number> {
  const worst = run.series.flatMap(({ worst }) => worst);
  return new Set(worst.flatMap(({ at_ns, latency_ns }) => [at_ns, at_ns + latency_ns]));
}

function about(lane: Lane, view: View): About {
  const { run } = lane;
  const of = run.series.map((series) => ({ name: series.responder, count: series.count, lost: lossesTotal(series) }));
  return { title: `Oscilloscope: ${lane.name} under ${view.load}`, clock: clockText(run.clock), of };
}

/** That a page has not all edges of a long run. */
function thinned({ run }: Lane): HTMLElement | null {
  const scope = run.scope;
  if (scope === null || scope.samples === scope.samples_of_run) return null;
  const [some, all] = [scope.samples, scope.samples_of_run].map(integer);
  return h("p", { class: "doubted" }, `The page has the edges of ${some} of ${all} answers: stretches of time at even distances, and those with the longest latency of each responder.`);
}
