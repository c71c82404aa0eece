// SPDX-License-Identifier: GPL-2.0-or-later
// A chart as vectors, drawn from the data and the axes that uPlot has: uPlot paints pixels alone, so its lines and axes
// are drawn here a second time. Whatever a chart paints itself comes by its pen.

import type uPlot from "uplot";
import type { ChartParts } from "./chart.ts";
import { share } from "./drawing.ts";
import { svg } from "./element.ts";
import { token } from "./look.ts";
import { paintLimits, type Rect, svgPen } from "./pen.ts";
import { digitsOf, marksOf } from "./ticks.ts";
import type { Part } from "./zoom.ts";

const RIGHT = 24;
const TOP = 8;
const BOTTOM = 26;
const LABEL = 18;
/** Below any chart. */
const FAR_BELOW = 1e4;
/** The name of the box that lines are cut at, of which a saved picture has one. */
const CLIP = "inside";

/** The shown part of a chart, in a picture of this width. */
export function vectors(parts: ChartParts, shown: Part, width: number): SVGGElement {
  const left = (parts.y.size_px ?? 52) + (parts.y.label === "" ? 0 : LABEL);
  const bottom = BOTTOM + (parts.x.label === "" ? 0 : LABEL);
  const box: Rect = [left, TOP, width - left - RIGHT, parts.height_px - TOP - bottom];
  const place = (value: number, axis: "x" | "y") => {
    const along = share(value, shown[axis], parts[axis].log);
    return axis === "x" ? box[0] + along * box[2] : box[1] + (1 - along) * box[3];
  };
  const inside = svg("g", { "clip-path": `url(#${CLIP})` });
  const [x, y, w, h] = box;
  const clip = svg("clipPath", { id: CLIP }, svg("rect", { x, y, width: w, height: h }));
  const [xs, ...columns] = parts.data;
  parts.series.forEach((series, i) => {
    const d = line(xs as number[], columns[i] as (number | null)[], place, parts);
    if (d !== "") inside.append(...strokes(series, d, y + h));
  });
  const pen = svgPen(inside, box, place);
  parts.paint?.(pen);
  paintLimits(pen, parts.limits);
  return svg("g", {}, clip, ...axes(parts, shown, box, place), inside);
}


/** The path through all values that there are; a stepped line keeps its height until the next one. */
function line(
  xs: readonly number[],
  ys: readonly (number | null | undefined)[],
  place: (value: number, axis: "x" | "y") => number,
  { stepped = false, y: { log } }: ChartParts,
): string {
  const round = (n: number) => Math.round(n * 100) / 100;
  let d = "";
  xs.forEach((x, i) => {
    const y = ys[i];
    if (y === null || y === undefined) return;
    const at = round(place(x, "x"));
    // On a logarithmic axis a line to nothing leaves the box, as on the screen.
    const height = round(log && y <= 0 ? FAR_BELOW : Math.min(place(y, "y"), FAR_BELOW));
    d += d === "" ? `M${at} ${height}` : stepped ? `H${at}V${height}` : `L${at} ${height}`;
  });
  return d;
}

function strokes(series: uPlot.Series, d: string, bottom: number): SVGElement[] {
  const of = (value: unknown) => (typeof value === "function" ? String((value as () => string)()) : "");
  const stroke = { d, fill: "none", stroke: of(series.stroke), "stroke-width": series.width ?? 1 };
  const dashes = (series.dash ?? []).join(" ");
  const fill = of(series.fill);
  const [start = "", end = ""] = [/^M(\S+)/.exec(d)?.[1], d.match(/[HL](-?[\d.]+)(?!.*[HL])/)?.[1]];
  const area = fill !== "" && end !== "" && svg("path", { d: `${d}V${bottom}H${end}V${bottom}H${start}z`, fill });
  const path = svg("path", { ...stroke, "stroke-dasharray": dashes === "" ? undefined : dashes });
  return area === false ? [path] : [area, path];
}

function axes(
  parts: ChartParts,
  shown: Part,
  [left, top, width, height]: Rect,
  place: (value: number, axis: "x" | "y") => number,
): SVGElement[] {
  const [grid, muted] = [token("--grid"), token("--muted")];
  const label = (text: string, at: Record<string, string | number>) =>
    svg("text", { fill: muted, "font-size": 12, "text-anchor": "middle", ...at }, text);
  const all: SVGElement[] = [];
  for (const [name, room] of [["x", width / 72], ["y", height / 34]] as const) {
    const of = parts[name];
    const marks = marksOf(of, shown[name], Math.max(2, Math.floor(room)));
    for (const mark of marks) {
      const at = Math.round(place(mark, name)) + 0.5;
      const ends = name === "x" ? { x1: at, x2: at, y1: top, y2: top + height + 4 } : { x1: left - 4, x2: left + width, y1: at, y2: at };
      all.push(svg("line", { ...ends, stroke: grid }));
      const text = of.text(mark, digitsOf(marks));
      all.push(name === "x" ? label(text, { x: at, y: top + height + 18 }) : label(text, { x: left - 8, y: at + 4, "text-anchor": "end" }));
    }
  }
  const middle = top + height / 2;
  if (parts.x.label !== "") all.push(label(parts.x.label, { x: left + width / 2, y: top + height + 36 }));
  if (parts.y.label !== "") all.push(label(parts.y.label, { transform: `translate(13 ${middle}) rotate(-90)` }));
  return all;
}
