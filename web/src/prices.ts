// SPDX-License-Identifier: GPL-2.0-or-later
// What each kernel gets and what it pays: its longest answer of `task` beside each cost. The report says which kernels
// no other one beats.

import type { Price, Prices } from "./contract.ts";
import { type Place, showDrawing } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { duration, integer, tick } from "./format.ts";
import { lookClass, marker } from "./look.ts";
import { type Edges, type Mark, marks } from "./marks.ts";
import { type About, clockText, saveDrawing } from "./save.ts";
import { scrollBox } from "./scroll.ts";
import { digitsOf, linearTicks, logRange, marksOf } from "./ticks.ts";
import { type Scale, ZOOM } from "./zooming.ts";

/** The chart's own units; it is scaled to the page. */
const WIDTH = 320;
const HEIGHT = 240;
const LEFT = 66;
const RIGHT = 18;
const TOP = 12;
const BOTTOM = 38;
const EDGES: Edges = { left: LEFT, right: WIDTH - RIGHT, foot: HEIGHT - BOTTOM };

/** The section; nothing if too little is known. */
export function showPrices(prices: Prices | null, clock: string): HTMLElement[] {
  if (prices === null) return [];
  const { costs, unit, kernels } = prices;
  const charts = costs.map((cost, n) => showChart(prices, n, cost, clock));
  const keys = kernels.map((kernel, look) =>
    h("span", { class: `key ${lookClass(look)}` }, symbol(look, kernel.on_front), ` ${kernel.flavour}`),
  );
  const heads = ["kernel", "longest answer of task", "under", "answers", ...costs, "on the front"];
  const table = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...kernels.map(showRow)),
  );
  return [
    h(
      "section",
      { id: "prices" },
      h("h2", {}, "Who pays what"),
      h(
        "p",
        { class: "lead" },
        `The longest answer of task against what services cost on an idle system, in ${unit} of one operation. Lower and further left is better. ` +
          "A filled mark is a kernel on the Pareto front: no other one is as good in the longest answer and in all costs, and better in one.",
      ),
      h("div", { class: "panels" }, ...charts),
      h("p", { class: "keys" }, ...keys),
      scrollBox("Who pays what", table, "wide"),
    ),
  ];
}

function showChart({ unit, kernels }: Prices, n: number, cost: string, clock: string): HTMLElement {
  const most = Math.max(1, ...kernels.map((kernel) => kernel.costs[n] ?? 0));
  const x: Scale = { log: false, range: { low: 0, high: 1.1 * most } };
  const longest = kernels.map((kernel) => kernel.worst_ns);
  const y: Scale = { log: true, range: logRange(longest, 1.6) ?? { low: 1, high: 10 } };
  const about: About = {
    title: `Longest answer of task against the cost of ${cost}`,
    clock: clockText(clock),
    of: kernels.map(({ flavour, answers }, look) => ({ name: flavour, look, count: answers })),
  };
  const { element, drawing } = showDrawing({
    name: `price.${cost}`,
    label: `The longest answer of task of each kernel against the cost of ${cost}. The numbers are in the table below.`,
    look: "waits",
    width: WIDTH,
    height: HEIGHT,
    box: [LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM],
    x,
    y,
    draw: (at) => ({
      frame: axes(at, `${cost}, ${unit}`),
      inside: kernels.map((kernel, look) => mark(kernel, look, n, at)),
    }),
  });
  const under = h("div", { class: "under" }, h("p", { class: "readout" }, ZOOM), saveDrawing(drawing, about));
  return h("figure", {}, element, under);
}

function axes({ shown, x, y }: Place, name: string): SVGElement[] {
  const heights = marksOf({ log: true }, shown.y, 5);
  const up = heights.map((ns): Mark => [y(ns), tick(ns, digitsOf(heights))]);
  return [
    ...marks(EDGES, up, linearTicks(shown.x, 4).map((n): Mark => [x(n), integer(n)])),
    svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, name),
    svg(
      "text",
      { transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" },
      "longest answer",
    ),
  ];
}

function mark(
  { flavour, worst_ns, costs, load, on_front }: Price,
  look: number,
  n: number,
  { x, y }: Place,
): SVGElement {
  const cost = costs[n] ?? 0;
  return svg(
    "g",
    { class: lookClass(look) },
    svg(
      "path",
      {
        class: on_front ? "mark" : "hollow",
        d: marker(look),
        transform: `translate(${x(cost)} ${y(worst_ns)}) scale(1.3)`,
      },
      svg("title", {}, `${flavour}: ${duration(worst_ns)} under ${load}, ${integer(Math.round(cost))}`),
    ),
  );
}

function symbol(look: number, isFilled: boolean): SVGSVGElement {
  return svg(
    "svg",
    { width: 16, height: 14, viewBox: "0 0 16 14", "aria-hidden": "true" },
    svg("path", { class: isFilled ? "mark" : "hollow", d: marker(look), transform: "translate(8 7)" }),
  );
}

function showRow({ flavour, worst_ns, load, answers, costs, on_front }: Price): HTMLElement {
  const numbers = [duration(worst_ns), load, integer(answers), ...costs.map((cost) => integer(Math.round(cost)))];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, flavour),
    ...numbers.map((text) => h("td", {}, text)),
    h("td", {}, on_front ? "yes" : "no"),
  );
}
