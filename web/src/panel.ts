// SPDX-License-Identifier: GPL-2.0-or-later
// A panel of a figure: a small drawing with its name above, and below it what it shows in words, and its buttons.

import { type Drawing, showDrawing } from "./drawing.ts";
import { h } from "./element.ts";
import { type About, saveDrawing } from "./save.ts";

/** The width of every panel in its own units; it is scaled to the page. */
export const WIDTH = 440;

/** What makes a panel: its drawing, the name above it, and the words below it. */
export type Panel = Pick<Drawing, "name" | "height" | "box" | "x" | "y" | "draw"> & {
  label: string;
  text: string;
  about: About;
};

/** Shows a panel. */
export function showPanel({ label, text, about, ...drawn }: Panel): HTMLElement {
  const { element, drawing } = showDrawing({ ...drawn, label: `${label}: ${text}`, look: "plot", width: WIDTH });
  return h(
    "div",
    {},
    h("p", { class: "panel-name" }, label),
    element,
    h("p", { class: "readout" }, text),
    saveDrawing(drawing, { ...about, title: `${about.title}: ${label}` }),
  );
}
