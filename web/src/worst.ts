// SPDX-License-Identifier: GPL-2.0-or-later
// The worst answers of a responder, of which the reader chooses one.

import { again } from "./again.ts";
import type { Code, WorstAnswer } from "./contract.ts";
import { h } from "./element.ts";
import { duration, integer } from "./format.ts";
import { showLatency } from "./latency.ts";

/**
 * The chosen answer, at first the one with the longest latency; `name` names the run's flavour, `of` the view that it
 * is in.
 */
export function showWorst(name: string, worst: readonly WorstAnswer[], code: Code, of: string): HTMLElement {
  const shown = h("div", {});
  const show = (index: number) => {
    const answer = worst[index];
    if (answer === undefined) return;
    const place = index === 0 ? "Worst" : `Number ${index + 1} of the worst`;
    const title = `${place} answer of ${answer.responder}, ${name}`;
    shown.replaceChildren(again(answer.replay), showLatency(title, answer, code, of));
  };
  show(0);
  if (worst.length === 1) return shown;
  const options = worst.map(({ latency_ns, trigger }, index) =>
    h("option", { value: index }, `${index + 1}. ${duration(latency_ns)}, trigger ${integer(trigger)}`),
  );
  const choice = h("select", { name: "worst" }, ...options);
  choice.addEventListener("change", () => show(choice.selectedIndex));
  return h("div", {}, h("label", { class: "choice" }, h("span", {}, "Answer"), choice), shown);
}
