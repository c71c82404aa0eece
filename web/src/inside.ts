// SPDX-License-Identifier: GPL-2.0-or-later
// What onset saw inside the runs of the view when it replayed them: where the time of the responder's longest latencies
// went, its longest latencies one by one, and the windows.

import { WHERE } from "./again.ts";
import type { Code, Inside, Ledger, WorstAnswer } from "./contract.ts";
import { h } from "./element.ts";
import { exactNs, integer } from "./format.ts";
import { showLedger } from "./ledger.ts";
import { swatch } from "./look.ts";
import type { Lane } from "./transpose.ts";
import type { View } from "./view.ts";
import { showBound, showWindows } from "./windows.ts";
import { showWorst } from "./worst.ts";

/** The section; null if onset looked into none of these runs. */
export function showInside(view: View, lanes: readonly Lane[], code: Code): HTMLElement | null {
  const seen = lanes.flatMap((lane) => (lane.run.inside === null ? [] : [{ lane, inside: lane.run.inside }]));
  if (seen.length === 0) return null;
  const of = (name: string) => [h("em", {}, name), " under ", h("em", {}, view.load)];
  // A responder has other answers under another load.
  const whose = `${view.load} ${view.experiment}`;
  const name = ({ look, name }: Lane) => h("p", { class: "panel-name" }, swatch(look), ` ${name}`);
  const unseen = lanes.filter(({ run }) => run.inside === null).map(({ name }) => name);
  return h(
    "section",
    { id: "inside" },
    h("h2", {}, "Where the time of ", ...of(view.responder), " went"),
    h(
      "p",
      { class: "lead" },
      `onset replayed these runs and followed the kernel from outside. Each replay executed the same instructions as its run, so it explains the numbers above. ${WHERE}`,
    ),
    unseen.length > 0 && h("p", { class: "empty" }, `Not looked into: ${unseen.join(", ")}.`),
    ...seen.map(({ lane, inside }) => {
      const ledger = inside.ledgers.find(({ responder }) => responder === view.responder);
      const worst = inside.worst.filter(({ responder }) => responder === view.responder);
      const time = showTime(lane, ledger, worst, code, whose);
      return h("div", { class: "panel-inside" }, name(lane), ...doubts(inside), ...time);
    }),
    h("h2", { id: "windows" }, "Windows under ", h("em", {}, view.load)),
    h(
      "p",
      { class: "lead" },
      "A window is a stretch in which something could not happen, for example an interrupt. The tables show windows by the call stack that opened them, the longest first. Windows with preemption off contain the interrupts and softirqs of that time.",
    ),
    ...seen.map(({ lane, inside }) =>
      h("div", { class: "panel-inside" }, name(lane), showWindows(lane.name, inside, code), showBound(inside, code)),
    ),
  );
}

function showTime(
  lane: Lane,
  ledger: Ledger | undefined,
  worst: WorstAnswer[],
  code: Code,
  whose: string,
): HTMLElement[] {
  if (ledger === undefined) return [h("p", { class: "empty" }, "Not active here.")];
  const shown = [h("h3", {}, "Ledger"), showLedger(lane.name, ledger, code, whose)];
  if (worst.length === 0) return shown;
  const title = worst.length === 1 ? "Worst answer" : "Worst answers";
  return [...shown, h("h3", {}, title), showWorst(lane.name, worst, code, whose)];
}

/** The doubts about a replay: answers of any responder that exceed the bound, and what onset did not see. */
function doubts({ missing, losses, exceeded }: Inside): HTMLElement[] {
  const faults = exceeded.map(({ responder, trigger, scheduling_ns }) =>
    h(
      "p",
      { class: "callout" },
      `${responder} was scheduled ${exactNs(scheduling_ns)} ns after trigger ${integer(trigger)}, which is more than the bound: the follower or the analysis is wrong there; please report it.`,
    ),
  );
  const lost = Object.entries(losses).filter(([, n]) => n > 0);
  const texts = [
    ...missing.map((what) => `Not seen in this kernel: ${what}.`),
    ...lost.map(([kind, n]) => `Records that the follower lost (${kind}): ${integer(n)}.`),
  ];
  return [...faults, ...texts.map((text) => h("p", { class: "doubted" }, text))];
}
