// SPDX-License-Identifier: GPL-2.0-or-later
// What was seen inside the runs of the view: where the time of the responder's late answers went, its worst answers, and
// the windows.

import type { Code, Inside, Ledger, WorstAnswer } from "./contract.ts";
import { h } from "./element.ts";
import { exactNs, integer } from "./format.ts";
import { showLedger } from "./ledger.ts";
import { swatch } from "./look.ts";
import type { Lane } from "./transpose.ts";
import type { View } from "./view.ts";
import { showBound, showWindows } from "./windows.ts";
import { showWorst } from "./worst.ts";

/** The section; null where nobody looked into any of these runs. */
export function showInside(view: View, lanes: readonly Lane[], code: Code): HTMLElement | null {
  const seen = lanes.flatMap((lane) => (lane.run.inside === null ? [] : [{ lane, inside: lane.run.inside }]));
  if (seen.length === 0) return null;
  const of = (name: string) => [h("em", {}, name), " under ", h("em", {}, view.load)];
  const name = ({ look, name }: Lane) => h("p", { class: "panel-name" }, swatch(look), ` ${name}`);
  const unseen = lanes.filter(({ run }) => run.inside === null).map(({ name }) => name);
  return h(
    "section",
    { id: "inside" },
    h("h2", {}, "Where the time of ", ...of(view.responder), " went"),
    h(
      "p",
      { class: "lead" },
      "These runs were made once more with the kernel followed from outside: the same to the instruction, so what is seen explains the numbers above.",
    ),
    unseen.length > 0 && h("p", { class: "empty" }, `Not looked into: ${unseen.join(", ")}.`),
    ...seen.map(({ lane, inside }) => {
      const ledger = inside.ledgers.find(({ responder }) => responder === view.responder);
      const worst = inside.worst.filter(({ responder }) => responder === view.responder);
      return h("div", { class: "panel-inside" }, name(lane), ...doubts(inside), ...showTime(lane, ledger, worst, code));
    }),
    h("h2", {}, "Windows under ", h("em", {}, view.load)),
    h(
      "p",
      { class: "lead" },
      "Stretches in which something could not happen, by the stack that opened them, the longest first. Preemption off contains the interrupts and softirqs of that time.",
    ),
    ...seen.map(({ lane, inside }) =>
      h("div", { class: "panel-inside" }, name(lane), showWindows(lane.name, inside, code), showBound(inside, code)),
    ),
  );
}

function showTime(lane: Lane, ledger: Ledger | undefined, worst: WorstAnswer[], code: Code): HTMLElement[] {
  if (ledger === undefined) return [h("p", { class: "empty" }, "Not active here.")];
  const shown = [h("h3", {}, "Ledger"), showLedger(lane.name, ledger, code)];
  if (worst.length === 0) return shown;
  const title = worst.length === 1 ? "Worst answer" : "Worst answers";
  return [...shown, h("h3", {}, title), showWorst(lane.name, worst, code)];
}

/** What makes this page doubtful: an exceeded bound, of whatever responder, and what was not seen. */
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
    ...missing.map((what) => `Not seen: ${what}.`),
    ...lost.map(([kind, n]) => `Records lost while following, ${kind}: ${integer(n)}.`),
  ];
  return [...faults, ...texts.map((text) => h("p", { class: "doubted" }, text))];
}
