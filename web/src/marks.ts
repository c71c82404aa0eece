// SPDX-License-Identifier: GPL-2.0-or-later
// The marks beside and below a drawing: a line and a text at each height, and a text at each place across.

import { svg } from "./element.ts";

/** Where on the drawing, and the text that stands there. */
export type Mark = readonly [place: number, text: string];

/** The drawing's box, in its own units: its left and right edge, and its foot. */
export interface Edges {
  left: number;
  right: number;
  foot: number;
}

/** The marks of both axes. */
export function marks({ left, right, foot }: Edges, up: readonly Mark[], across: readonly Mark[]): SVGElement[] {
  return [
    ...up.flatMap(([y, text]) => [
      svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
      svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, text),
    ]),
    ...across.map(([x, text]) => svg("text", { x, y: foot + 16, "text-anchor": "middle" }, text)),
  ];
}
