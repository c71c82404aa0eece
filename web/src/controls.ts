// SPDX-License-Identifier: GPL-2.0-or-later
// The bar in which the reader chooses experiment, load, responder and flavours. It is also the legend of all charts
// below it.

import { h } from "./element.ts";
import { lookClass, swatch } from "./look.ts";
import type { Matrix } from "./transpose.ts";
import type { View } from "./view.ts";

/** The bar, and a function that updates it for a view. */
export interface Controls {
  element: HTMLElement;
  reflect(view: View): void;
}

/** Controls that call `go` with the choice of the reader. */
export function controls(
  matrix: Matrix,
  matrices: readonly Matrix[],
  go: (change: Partial<View>) => void,
): Controls {
  const names = matrices.map(({ experiment }) => experiment);
  const experiment = select("experiment", names, (value) => go({ experiment: value }));
  const load = select("load", matrix.loads, (value) => go({ load: value }));
  const responder = select("responder", matrix.responders, (value) => go({ responder: value }));
  const boxes = matrix.flavours.map((name, look) => {
    const box = h("input", { type: "checkbox", name: "flavour", value: name });
    box.addEventListener("change", () => {
      const flavours = boxes.filter(({ input }) => input.checked).map(({ name }) => name);
      // The last flavour stays, since without any the page would show nothing.
      if (flavours.length === 0) box.checked = true;
      else go({ flavours });
    });
    return { name, input: box, label: h("label", { class: `flavour ${lookClass(look)}` }, box, swatch(look), name) };
  });
  const element = h(
    "nav",
    { id: "controls", "aria-label": "What to show" },
    names.length > 1 && h("label", { class: "choice" }, h("span", {}, "Experiment"), experiment),
    h("label", { class: "choice" }, h("span", {}, "Load"), load),
    h("label", { class: "choice" }, h("span", {}, "Responder"), responder),
    h("fieldset", {}, h("legend", {}, "Flavours"), ...boxes.map(({ label }) => label)),
  );
  return {
    element,
    reflect(view) {
      experiment.value = view.experiment;
      load.value = view.load;
      responder.value = view.responder;
      for (const { name, input } of boxes) input.checked = view.flavours.includes(name);
    },
  };
}

function select(name: string, values: readonly string[], chosen: (value: string) => void): HTMLSelectElement {
  const element = h("select", { name }, ...values.map((value) => h("option", { value }, value)));
  element.addEventListener("change", () => chosen(element.value));
  return element;
}
