// SPDX-License-Identifier: GPL-2.0-or-later
// Boxes side by side whose widths are times. The reader points at a box, or uses the arrow keys, and a line below says
// what is in the box. Widths are shares of the page, so that the boxes need not be drawn again for another width.

import { drawBand } from "./band.ts";
import { h, svg } from "./element.ts";
import { greatest } from "./extremes.ts";
import { token } from "./look.ts";
import type { Rect } from "./pen.ts";
import { type About, saveButtons } from "./save.ts";
import type { Range } from "./ticks.ts";
import { allButton, firstPart, goBack, goTo, ZOOM, zoomed } from "./zooming.ts";

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
 * The boxes with their readout. `of` is what tells them apart from those of one label in other views: the part of them
 * that is shown is kept in the address by both. `next` is the index of the box to which an arrow leads from another
 * box; undefined if there is none. Only one box is in the tab order, since there may be hundreds.
 */
export function showBoxes(
  label: string,
  boxes: readonly Box[],
  hint: string,
  about: About,
  of: string,
  next: (from: number, arrow: Arrow) => number | undefined,
): HTMLElement {
  const readout = h("p", { class: "readout", "aria-live": "polite" }, hint, " ", ZOOM);
  const elements = boxes.map(({ look, says }, index) =>
    h("button", { type: "button", class: `box ${look}`, tabindex: index === 0 ? 0 : -1, "aria-label": says }),
  );
  const rows = 1 + greatest(boxes.map(({ row }) => row), 0);
  const field = h("div", { class: "boxes", role: "group", "aria-label": label }, ...elements);
  field.style.height = `${rows * ROW_PX}px`;
  const draw = (shown: Range) => boxes.forEach((box, i) => place(elements[i] as HTMLElement, box, shown));
  const part = zoomField(`${label} ${of}`, field, draw);
  const boxOf = (event: Event) => elements.indexOf((event.target as Element).closest("button") as HTMLButtonElement);
  const read = (event: Event) => {
    const box = boxes[boxOf(event)];
    if (box !== undefined) readout.replaceChildren(box.says);
  };
  field.addEventListener("pointerover", read);
  field.addEventListener("focusin", (event) => {
    elements.forEach((element) => (element.tabIndex = element === event.target ? 0 : -1));
    const box = boxes[boxOf(event)];
    if (box !== undefined) part.reveal(box.from, box.share);
    read(event);
  });
  field.addEventListener("pointerleave", () => {
    const focused = boxes[elements.indexOf(document.activeElement as HTMLButtonElement)];
    readout.replaceChildren(focused?.says ?? `${hint} ${ZOOM}`);
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
    return { about, width, height: rows * ROW_PX, body: drawn(boxes, elements, width, part.shown) };
  });
  return h("div", { class: "drawn" }, part.all, field, readout, save);
}

/** Where a box lies when a part of the whole is shown. */
const within = ({ from, share }: Box, { low, high }: Range) => {
  return { from: (from - low) / (high - low), share: share / (high - low) };
};

function place(element: HTMLElement, box: Box, shown: Range): void {
  const { from, share } = within(box, shown);
  // By properties: the page's policy forbids style attributes.
  element.style.left = `${100 * from}%`;
  element.style.width = `${100 * share}%`;
  element.style.top = `${box.row * ROW_PX}px`;
  element.replaceChildren(...(share >= SHARE_WRITTEN ? [h("span", {}, box.text)] : []));
}

/** The part of a field that is shown. */
interface FieldPart {
  readonly shown: Range;
  readonly all: HTMLElement;
  /** Moves the part, so that it has something of this. */
  reveal(from: number, share: number): void;
}

const WHOLE = { range: { low: 0, high: 1 }, log: false };

/** Has the field zoom along its time; `draw` draws a part. */
function zoomField(whose: string, field: HTMLElement, draw: (shown: Range) => void): FieldPart {
  const name = `boxes.${whose.replace(/[^A-Za-z0-9=.]+/g, "-")}`;
  const axes = { x: WHOLE, y: WHOLE };
  const shown = firstPart(name, axes);
  const band = h("div", { class: "band" });
  const mark = (rect: Rect | null) => {
    band.remove();
    if (rect === null) return;
    band.style.left = `${100 * rect[0]}%`;
    band.style.width = `${100 * rect[2]}%`;
    field.append(band);
  };
  const show = () => draw(shown.x);
  const at = (place: number) => shown.x.low + place * (shown.x.high - shown.x.low);
  const goToRange = (x: Range) => goTo(name, { x, y: { ...WHOLE.range } });
  drawBand({ element: field, width: 1, box: [0, 0, 1, 1], hasHeight: false, mark }, ([x, , width]) =>
    goToRange({ low: at(x), high: at(x + width) }),
  );
  field.addEventListener("dblclick", () => goBack(name));
  // The browser scrolls to what has the focus, and the part moves instead.
  field.addEventListener("scroll", () => (field.scrollLeft = 0));
  const all = allButton();
  zoomed({ name, axes, host: field, shown, all, hasArrows: true, show });
  show();
  const reveal = (from: number, share: number) => {
    const { low, high } = shown.x;
    if (from <= high && from + share >= low) return;
    const begin = Math.min(Math.max(0, from + share / 2 - (high - low) / 2), 1 - (high - low));
    goToRange({ low: begin, high: begin + high - low });
  };
  return { get shown() { return shown.x; }, all, reveal };
}

/** The boxes as a drawing, in the colours that their elements have. */
function drawn(boxes: readonly Box[], elements: readonly HTMLElement[], width: number, shown: Range): SVGGElement {
  const shapes = boxes.flatMap((box, i) => {
    const { row, text, says } = box;
    // What is cut off at an end is a whole box that is shorter.
    const { from: begin, share: all } = within(box, shown);
    const from = Math.max(0, begin);
    const share = Math.min(1, begin + all) - from;
    if (from > 1 || begin + all < 0) return [];
    const element = elements[i];
    const fill = element === undefined ? "" : getComputedStyle(element).getPropertyValue("--look").trim();
    const place = { x: from * width, y: row * ROW_PX, width: Math.max(1, share * width - 1), height: ROW_PX - 1 };
    const rect = svg("rect", { ...place, fill, "fill-opacity": 0.4 }, svg("title", {}, says));
    // As many letters as there is room for: a saved drawing cannot be pointed at.
    const letters = Math.floor((share * width - 8) / 6.6);
    if (share < SHARE_WRITTEN || letters < 2) return [rect];
    const short = text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
    return [rect, svg("text", { x: place.x + 4, y: place.y + 14, "font-size": 12, fill: token("--text") }, short)];
  });
  return svg("g", {}, ...shapes);
}
