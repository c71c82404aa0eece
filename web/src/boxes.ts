// SPDX-License-Identifier: GPL-2.0-or-later
// Boxes side by side whose widths are times. The reader points at a box, or uses the arrow keys, and a line below says
// what is in the box. Widths are shares of the page, so that the boxes need not be drawn again.

import { h, svg } from "./element.ts";
import { token } from "./look.ts";
import { type About, saveButtons } from "./save.ts";

/** One box. */
export interface Box {
  /** Row from the top. */
  row: number;
  /** Where it begins and how wide it is, in shares of the whole. */
  from: number;
  share: number;
  /** The class that colours it. */
  look: string;
  /** The text in the box, if there is room. */
  text: string;
  /** The text in the line below when the reader points at the box. */
  says: string;
}

/** The direction of an arrow key. */
export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

/** Height of a row in CSS pixels. */
const ROW_PX = 20;
/** A narrower box has no room for text, on any page. */
const SHARE_WRITTEN = 0.03;

/**
 * The boxes with their readout. `next` is the index of the box to which an arrow leads from another box; undefined if
 * there is none. Only one box is in the tab order, since there may be hundreds.
 */
export function showBoxes(
  label: string,
  boxes: readonly Box[],
  hint: string,
  about: About,
  next: (from: number, arrow: Arrow) => number | undefined,
): HTMLElement {
  const readout = h("p", { class: "readout", "aria-live": "polite" }, hint);
  const elements = boxes.map(({ look, text, says, share }, index) =>
    h(
      "button",
      { type: "button", class: `box ${look}`, tabindex: index === 0 ? 0 : -1, "aria-label": says },
      share >= SHARE_WRITTEN && h("span", {}, text),
    ),
  );
  boxes.forEach(({ row, from, share }, index) => {
    // By properties: the page's policy forbids style attributes.
    const { style } = elements[index] as HTMLElement;
    style.left = `${100 * from}%`;
    style.width = `${100 * share}%`;
    style.top = `${row * ROW_PX}px`;
  });
  const rows = 1 + Math.max(0, ...boxes.map(({ row }) => row));
  const field = h("div", { class: "boxes", role: "group", "aria-label": label }, ...elements);
  field.style.height = `${rows * ROW_PX}px`;
  const boxOf = (event: Event) => elements.indexOf((event.target as Element).closest("button") as HTMLButtonElement);
  const read = (event: Event) => {
    const box = boxes[boxOf(event)];
    if (box !== undefined) readout.replaceChildren(box.says);
  };
  field.addEventListener("pointerover", read);
  field.addEventListener("focusin", (event) => {
    elements.forEach((element) => (element.tabIndex = element === event.target ? 0 : -1));
    read(event);
  });
  field.addEventListener("pointerleave", () => {
    const focused = boxes[elements.indexOf(document.activeElement as HTMLButtonElement)];
    readout.replaceChildren(focused?.says ?? hint);
  });
  field.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow")) return;
    const to = next(boxOf(event), event.key as Arrow);
    if (to === undefined) return;
    event.preventDefault();
    elements[to]?.focus();
  });
  const save = saveButtons(() => {
    const width = field.clientWidth;
    return { about, width, height: rows * ROW_PX, body: drawn(boxes, elements, width) };
  });
  return h("div", {}, field, readout, save);
}

/** The boxes as a drawing, in the colours that their elements have. */
function drawn(boxes: readonly Box[], elements: readonly HTMLElement[], width: number): SVGGElement {
  const shapes = boxes.flatMap(({ row, from, share, text, says }, i) => {
    const element = elements[i];
    const fill = element === undefined ? "" : getComputedStyle(element).getPropertyValue("--look").trim();
    const place = { x: from * width, y: row * ROW_PX, width: Math.max(1, share * width - 1), height: ROW_PX - 1 };
    const box = svg("rect", { ...place, fill, "fill-opacity": 0.4 }, svg("title", {}, says));
    // As many letters as there is room for: a saved drawing cannot be pointed at.
    const letters = Math.floor((share * width - 8) / 6.6);
    if (share < SHARE_WRITTEN || letters < 2) return [box];
    const short = text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
    return [box, svg("text", { x: place.x + 4, y: place.y + 14, "font-size": 12, fill: token("--text") }, short)];
  });
  return svg("g", {}, ...shapes);
}
