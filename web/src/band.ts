// SPDX-License-Identifier: GPL-2.0-or-later
// The box that a reader draws with the mouse over what is no canvas.

import type { Rect } from "./pen.ts";

/** Over what a box can be drawn. */
export interface Area {
  readonly element: HTMLElement | SVGElement;
  /** How wide the element is, and the box inside its axes, in its own units. */
  readonly width: number;
  readonly box: Rect;
  /** Whether up and down mean something. */
  readonly hasHeight: boolean;
  /** Shows a box; null shows none. */
  mark(band: Rect | null): void;
}

/** A box that is narrower or lower selects that axis whole, in CSS pixels; a smaller one is none. */
const FLAT_PX = 24;
const LEAST_PX = 4;

type Point = readonly [x: number, y: number];

/** Has the reader draw boxes, and `then` take each. A finger scrolls the page instead. */
export function drawBand({ element, width, box, hasHeight, mark }: Area, then: (band: Rect) => void): void {
  const [left, top, wide, high] = box;
  let from: Point | null = null;
  let band: Rect | null = null;
  const px = () => element.getBoundingClientRect().width / width;
  const inside = (n: number, low: number, size: number) => Math.min(Math.max(n, low), low + size);
  const at = ({ clientX, clientY }: MouseEvent): Point => {
    const of = element.getBoundingClientRect();
    return [inside((clientX - of.left) / px(), left, wide), inside((clientY - of.top) / px(), top, high)];
  };
  const between = ([x1, y1]: Point, [x2, y2]: Point): Rect => {
    const [across, along] = [Math.abs(x2 - x1), Math.abs(y2 - y1)];
    // A flat box selects one axis whole.
    const isFlat = !hasHeight || along * px() < FLAT_PX;
    const isThin = !isFlat && across * px() < FLAT_PX;
    const [x, w] = isThin ? [left, wide] : [Math.min(x1, x2), across];
    const [y, h] = isFlat ? [top, high] : [Math.min(y1, y2), along];
    return [x, y, w, h];
  };
  element.addEventListener("pointerdown", (event) => {
    const { button, pointerType } = event as PointerEvent;
    from = button === 0 && pointerType !== "touch" ? at(event as PointerEvent) : null;
    band = null;
  });
  element.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = at(event as PointerEvent);
    const far = Math.max(Math.abs(to[0] - from[0]), hasHeight ? Math.abs(to[1] - from[1]) : 0) * px();
    if (band === null && far < LEAST_PX) return;
    element.setPointerCapture((event as PointerEvent).pointerId);
    band = between(from, to);
    mark(band);
  });
  const end = (isTaken: boolean) => {
    if (from !== null) mark(null);
    from = null;
    if (isTaken && band !== null && band[2] > 0 && band[3] > 0) then(band);
  };
  element.addEventListener("pointerup", () => end(true));
  element.addEventListener("pointercancel", () => end(false));
  // A box that ends on a link does not follow it, and a link is not dragged away.
  const follow = (event: Event) => {
    if (band !== null && (event as MouseEvent).detail > 0) event.preventDefault();
    band = null;
  };
  element.addEventListener("click", follow, { capture: true });
  element.addEventListener("dragstart", (event) => event.preventDefault());
}
