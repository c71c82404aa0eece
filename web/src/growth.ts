// SPDX-License-Identifier: GPL-2.0-or-later
// How the longest latencies of a hunt grew with its virtual time, and beside them the longest latencies of triggers at
// random instants alone.

import type { GrowthPoint, Hunt, Hunted } from "./contract.ts";
import { type Place, showDrawing } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { duration, integer, tick } from "./format.ts";
import { dash, lookClass, marker } from "./look.ts";
import { type Edges, type Mark, marks } from "./marks.ts";
import { type About, clockText, saveDrawing } from "./save.ts";
import { scrollBox } from "./scroll.ts";
import { digitsOf, linearTicks, logRange, marksOf } from "./ticks.ts";
import { type Scale, ZOOM } from "./zooming.ts";

/** The chart's own units; it is scaled to the page. */
const WIDTH = 460;
const HEIGHT = 250;
const LEFT = 70;
const RIGHT = 12;
const TOP = 8;
const BOTTOM = 38;
const EDGES: Edges = { left: LEFT, right: WIDTH - RIGHT, foot: HEIGHT - BOTTOM };

/** Beyond this ratio of the greatest to the least a linear axis hides the small ones. */
const LINEAR = 8;

/** The axis of latencies. */
function latencies(values: readonly number[]): Scale {
  const range = logRange(values) ?? { low: 1, high: 10 };
  const log = range.high / range.low > LINEAR;
  return { log, range: log ? range : { low: 0, high: range.high } };
}

/** A stepped line: each latency holds up to the next point, the last one up to the end. */
export function stepped(
  points: readonly GrowthPoint[],
  end_ns: number,
  x: (ns: number) => number,
  y: (ns: number) => number,
): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  const steps = rest.map(({ virtual_ns, latency_ns }) => `H${x(virtual_ns)}V${y(latency_ns)}`);
  return `M${x(first.virtual_ns)} ${y(first.latency_ns)}${steps.join("")}H${x(end_ns)}`;
}

/** The chart with its key and its numbers; `name` is its name in the address. */
export function showGrowth(hunt: Hunt, name: string): HTMLElement {
  const { responders, virtual_ns } = hunt;
  const values = responders.flatMap(({ growth, random }) => [...growth, ...random]).map((p) => p.latency_ns);
  if (values.length === 0) return h("p", { class: "empty" }, "Nothing was answered here.");
  const x: Scale = { log: false, range: { low: 0, high: Math.max(1, virtual_ns) } };
  const y = latencies(values);
  const tried = responders.some(({ random }) => random.length > 0);
  const rings = tried && " Rings: the longest latency of triggers at random instants alone, over their own virtual time.";
  const about: About = {
    title: `Longest latency so far: hunt of ${hunt.flavour} under ${hunt.load}`,
    clock: clockText("virtual"),
    of: responders.map(({ responder, losses }, look) => {
      const lost = Object.values(losses).reduce((sum, n) => sum + n, 0);
      return { name: responder, look, count: Math.max(0, hunt.triggers - lost), lost };
    }),
  };
  const { element, drawing } = showDrawing({
    name,
    label: "The longest latency of each responder over the hunt's virtual time. The numbers are in the table below.",
    look: "waits growth",
    width: WIDTH,
    height: HEIGHT,
    box: [LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM],
    x,
    y,
    draw: (at) => ({
      frame: axes(at, y.log),
      inside: responders.map((hunted, look) => lines(hunted, look, virtual_ns, at)),
    }),
  });
  return h(
    "figure",
    {},
    h(
      "figcaption",
      {},
      h("h3", {}, "How the longest latency grew"),
      h("p", {}, "The longest latency so far, of all strategies together.", rings),
    ),
    element,
    h("div", { class: "under" }, h("p", { class: "readout" }, ZOOM), saveDrawing(drawing, about)),
    h("p", { class: "keys" }, ...responders.map(({ responder }, look) => key(responder, look))),
    numbers(hunt),
  );
}

/** Marks, the lines at those of the latencies, and what the axes are. */
function axes({ shown, x, y }: Place, log: boolean): SVGElement[] {
  const heights = marksOf({ log }, shown.y, log ? 6 : 5);
  const times = linearTicks(shown.x, 5);
  const text = (ns: number, all: number[]) => (ns === 0 ? "0" : tick(ns, digitsOf(all)));
  const up = heights.map((ns): Mark => [y(ns), text(ns, heights)]);
  return [
    ...marks(EDGES, up, times.map((ns): Mark => [x(ns), text(ns, times)])),
    svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "virtual time of all trials"),
    svg(
      "text",
      { transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" },
      "longest latency so far",
    ),
  ];
}

function lines(
  { responder, growth, random, random_ns }: Hunted,
  look: number,
  end_ns: number,
  { x, y }: Place,
): SVGGElement {
  const marks = growth.map(({ virtual_ns, latency_ns, trial }) =>
    svg(
      "path",
      { class: "mark", d: marker(look), transform: `translate(${x(virtual_ns)} ${y(latency_ns)}) scale(0.8)` },
      svg("title", {}, `${responder}: ${duration(latency_ns)} after ${duration(virtual_ns)}, trial ${integer(trial)}`),
    ),
  );
  // Steps are often few and short, so each has a ring; else nobody would see them.
  const rings = random.map(({ virtual_ns, latency_ns }) =>
    svg(
      "circle",
      { class: "wait", cx: x(virtual_ns), cy: y(latency_ns), r: 4, "stroke-width": 1.5 },
      svg("title", {}, `${responder}, random instants alone: ${duration(latency_ns)} after ${duration(virtual_ns)}`),
    ),
  );
  return svg(
    "g",
    { class: lookClass(look) },
    svg("path", { class: "wait", d: stepped(random, random_ns, x, y), "stroke-width": 1 }),
    ...rings,
    svg("path", {
      class: "wait",
      d: stepped(growth, end_ns, x, y),
      "stroke-width": 2.5,
      "stroke-dasharray": dash(look).join(" "),
    }),
    ...marks,
  );
}

function key(responder: string, look: number): HTMLElement {
  return h(
    "span",
    { class: `key ${lookClass(look)}` },
    svg(
      "svg",
      { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
      svg("path", { class: "wait", d: "M0 6H34", "stroke-width": 2.5, "stroke-dasharray": dash(look).join(" ") }),
      svg("path", { class: "mark", d: marker(look), transform: "translate(17 6) scale(0.8)" }),
    ),
    ` ${responder}`,
  );
}

function numbers({ responders }: Hunt): HTMLElement {
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers of the growth"));
  const rows = (who: string, { responder }: Hunted, points: readonly GrowthPoint[]) =>
    points.map(({ virtual_ns, latency_ns, trial }) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, responder),
        h("td", { class: "text" }, who),
        ...[virtual_ns, latency_ns, trial].map((n) => h("td", {}, integer(n))),
      ),
    );
  const heads = ["after (ns)", "longest (ns)", "trial"].map((head) => h("th", { scope: "col" }, head));
  const table = () =>
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h("tr", {}, ...["responder", "strategy"].map((head) => h("th", { scope: "col", class: "text" }, head)), ...heads),
      ),
      h(
        "tbody",
        {},
        ...responders.flatMap((of) => [...rows("all strategies", of, of.growth), ...rows("random instants alone", of, of.random)]),
      ),
    );
  details.addEventListener("toggle", () => details.append(scrollBox("Numbers of the growth", table(), "tall")), {
    once: true,
  });
  return details;
}
