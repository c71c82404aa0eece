// SPDX-License-Identifier: GPL-2.0-or-later
// What charts paint with beside uPlot's own lines: the same few shapes on the page's canvas and in an SVG. So whatever
// a chart paints can be saved as a picture without a second painter.

import uPlot from "uplot";
import { svg } from "./element.ts";
import { colour, marker, token } from "./look.ts";

/** A rectangle: left, top, width, height. */
export type Rect = readonly [x: number, y: number, width: number, height: number];

export const FONT = 'system-ui, "DejaVu Sans", sans-serif';

/** A surface with a chart's axes. */
export interface Pen {
  /** How long a CSS pixel is here. */
  readonly px: number;
  /** The box inside the axes. */
  readonly box: Rect;
  /** Where a value of an axis lies. */
  place(value: number, axis: "x" | "y"): number;
  /** Filled rectangles of one colour. */
  fill(colour: string, opacity: number, rects: readonly Rect[]): void;
  /** A flavour's marker, ringed in the ground's colour so that it stands out of lines. */
  mark(look: number, x: number, y: number): void;
  /** A dashed line in a colour. */
  dashed(colour: string, from: readonly [number, number], to: readonly [number, number]): void;
  /** Text with a rim in the ground's colour, readable on top of whatever is drawn there. */
  write(colour: string, text: string, x: number, y: number, align: "left" | "right"): void;
}

/** Paints on a chart's canvas, in device pixels. */
export function canvasPen(chart: uPlot): Pen {
  const { ctx, bbox } = chart;
  const px = uPlot.pxRatio;
  return {
    px,
    box: [bbox.left, bbox.top, bbox.width, bbox.height],
    place: (value, axis) => {
      const { distr, min } = chart.scales[axis] ?? {};
      // What has no logarithm, as a latency of 0 ns, lies at the low end: uPlot has it a decade below the box.
      return chart.valToPos(distr === 3 && value <= 0 ? (min ?? 0) : value, axis, true);
    },
    fill(colour, opacity, rects) {
      ctx.fillStyle = colour;
      ctx.globalAlpha = opacity;
      for (const [x, y, width, height] of rects) ctx.fillRect(x, y, width, height);
      ctx.globalAlpha = 1;
    },
    mark(look, x, y) {
      const outline = new Path2D(marker(look));
      ctx.save();
      ctx.translate(x, y);
      ctx.scale(px, px);
      ctx.lineWidth = 2;
      ctx.strokeStyle = token("--ground");
      ctx.fillStyle = colour(look);
      ctx.stroke(outline);
      ctx.fill(outline);
      ctx.restore();
    },
    dashed(colour, from, to) {
      ctx.save();
      ctx.strokeStyle = colour;
      ctx.lineWidth = px;
      ctx.setLineDash([5 * px, 4 * px]);
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.lineTo(...to);
      ctx.stroke();
      ctx.restore();
    },
    write(colour, text, x, y, align) {
      ctx.save();
      ctx.font = `${11 * px}px ${FONT}`;
      ctx.textAlign = align;
      ctx.strokeStyle = token("--ground");
      ctx.fillStyle = colour;
      ctx.lineWidth = 4 * px;
      ctx.lineJoin = "round";
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
      ctx.restore();
    },
  };
}

/** Paints into an SVG group; `place` as in {@link Pen}. */
export function svgPen(into: SVGElement, box: Rect, place: Pen["place"]): Pen {
  const round = (n: number) => Math.round(n * 100) / 100;
  return {
    px: 1,
    box,
    place,
    fill(colour, opacity, rects) {
      if (rects.length === 0) return;
      const d = rects.map(([x, y, w, h]) => `M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}z`).join("");
      into.append(svg("path", { d, fill: colour, "fill-opacity": round(opacity) }));
    },
    mark(look, x, y) {
      const where = `translate(${round(x)} ${round(y)})`;
      const paint = { fill: colour(look), stroke: token("--ground"), "stroke-width": 2, "paint-order": "stroke" };
      into.append(svg("path", { d: marker(look), transform: where, ...paint }));
    },
    dashed(colour, [x1, y1], [x2, y2]) {
      const ends = { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2) };
      into.append(svg("line", { ...ends, stroke: colour, "stroke-dasharray": "5 4" }));
    },
    write(fill, text, x, y, align) {
      const rim = { stroke: token("--ground"), "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke" };
      const anchor = align === "left" ? "start" : "end";
      into.append(svg("text", { x: round(x), y: round(y), fill, "font-size": 11, "text-anchor": anchor, ...rim }, text));
    },
  };
}

/** A horizontal or vertical line for a limit of the experiment, or for a cursor. */
export interface Limit {
  axis: "x" | "y";
  value: number;
  text: string;
  /** The name of its colour in style.css; that of limits if there is none. */
  token?: string;
}

/** Paints the lines that are inside the axes, with their text. */
export function paintLimits(pen: Pen, limits: readonly Limit[]): void {
  const [left, top, width, height] = pen.box;
  for (const { axis, value, text, token: name = "--limit" } of limits) {
    const place = Math.round(pen.place(value, axis)) + 0.5;
    if (axis === "x") {
      if (place < left || place > left + width) continue;
      const isRight = place > left + width / 2;
      pen.dashed(token(name), [place, top], [place, top + height]);
      pen.write(token(name), text, place + (isRight ? -5 : 5) * pen.px, top + 11 * pen.px, isRight ? "right" : "left");
    } else {
      if (place < top || place > top + height) continue;
      pen.dashed(token(name), [left, place], [left + width, place]);
      pen.write(token(name), text, left + 6 * pen.px, place - 5 * pen.px, "left");
    }
  }
}
