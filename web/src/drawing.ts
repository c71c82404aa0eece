// SPDX-License-Identifier: GPL-2.0-or-later
// A chart that is an SVG, drawn by the module that shows it, and zoomed as the charts of chart.ts are.

import { drawBand } from "./band.ts";
import { h, svg } from "./element.ts";
import type { Rect } from "./pen.ts";
import type { Range } from "./ticks.ts";
import type { Part } from "./zoom.ts";
import { allButton, type Axes, firstPart, forget, goBack, goTo, isAll, KEYS, type Scale, zoomed } from "./zooming.ts";

/** What makes a drawing. */
export interface Drawing {
  /** The name in the address, with a dot, since no view of the page draws it anew ({@link keepWords}). */
  name: string;
  /** What it shows, for readers who do not see it. */
  label: string;
  /** Classes of style.css. */
  look: string;
  /** Whether there are links in it. */
  hasLinks?: boolean;
  /** Its size, and the box inside its axes, in its own units. */
  width: number;
  height: number;
  box: Rect;
  x: Scale;
  /** Absent where up and down mean nothing. */
  y?: Scale;
  draw(at: Place): Drawn;
}

/** Where values lie, when this part is shown. */
export interface Place {
  shown: Part;
  /** Whether that is everything. */
  isAll: boolean;
  x(value: number): number;
  y(value: number): number;
}

/** A drawing's axes, and what is cut at their ends. */
export interface Drawn {
  frame: SVGElement[];
  inside: SVGElement[];
}

/** A drawing on the page, until it is removed. */
export interface Shown {
  element: HTMLElement;
  drawing: SVGSVGElement;
  remove(): void;
}

const FIXED: Scale = { range: { low: 0, high: 1 }, log: false };
/** Where a value lies on an axis, 0 … 1 inside it. What has no logarithm, as a latency of 0 ns, is at the low end. */
export const share = (value: number, { low, high }: Range, log: boolean) =>
  log ? Math.log((value > 0 ? value : low) / low) / Math.log(high / low) : (value - low) / (high - low);
const value = (share: number, { low, high }: Range, log: boolean) =>
  log ? low * (high / low) ** share : low + share * (high - low);

/** Shows a drawing. */
export function showDrawing(of: Drawing): Shown {
  const { name, label, look, width, height, box, hasLinks = false } = of;
  const axes = { x: of.x, y: of.y ?? FIXED };
  const shown = firstPart(name, axes);
  const drawing = svg("svg", { class: look, viewBox: `0 0 ${width} ${height}` });
  const role = hasLinks ? "group" : "img";
  const host = h("div", { class: "drawing", role, tabindex: 0, "aria-label": `${label} ${KEYS}` }, drawing);
  const all = allButton();
  const show = () => drawing.replaceChildren(...parts(of, axes, shown));
  show();
  const area = { element: drawing, width, box, hasHeight: of.y !== undefined, mark: marker(drawing) };
  drawBand(area, (band) => goTo(name, partOf(of, axes, shown, band)));
  drawing.addEventListener("dblclick", () => goBack(name));
  const still = zoomed({ name, axes, host, shown, all, show });
  const remove = () => {
    still();
    forget(name);
  };
  return { element: h("div", { class: "drawn" }, host, all), drawing, remove };
}

function parts({ box, draw }: Drawing, axes: Axes, shown: Part): SVGElement[] {
  const [left, top, width, height] = box;
  const isWhole = isAll(axes, shown);
  // A tenth of a unit cannot be seen.
  const round = (place: number) => Math.round(10 * place) / 10;
  const { frame, inside } = draw({
    shown,
    isAll: isWhole,
    x: (x) => round(left + share(x, shown.x, axes.x.log) * width),
    y: (y) => round(top + height - share(y, shown.y, axes.y.log) * height),
  });
  // Where everything is shown, marks at the ends are whole.
  const cut = { x: left, y: top, width, height, viewBox: box.join(" "), overflow: isWhole ? "visible" : "hidden" };
  return [...frame, svg("svg", cut, ...inside)];
}

/** The part that a box encloses. */
function partOf({ box }: Drawing, axes: Axes, shown: Part, [x, y, wide, high]: Rect): Part {
  const [left, top, width, height] = box;
  const along = (axis: "x" | "y", low: number, high: number) => {
    const [of, log] = [shown[axis], axes[axis].log];
    return { low: value(low, of, log), high: value(high, of, log) };
  };
  return {
    x: along("x", (x - left) / width, (x + wide - left) / width),
    y: along("y", (top + height - y - high) / height, (top + height - y) / height),
  };
}

/** Marks a box in a drawing. */
function marker(drawing: SVGSVGElement): (band: Rect | null) => void {
  const mark = svg("rect", { class: "band" });
  return (band) => {
    mark.remove();
    if (band === null) return;
    ["x", "y", "width", "height"].forEach((name, n) => mark.setAttribute(name, String(band[n])));
    drawing.append(mark);
  };
}
