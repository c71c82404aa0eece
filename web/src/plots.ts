// SPDX-License-Identifier: GPL-2.0-or-later
// Points over time and histograms, as figures 3 to 8 of the 2007 internals paper show them: a panel for each kernel and
// load, each with axes of its own.

import type { HistogramPanel, Histograms, Scatter, ScatterPanel } from "./contract.ts";
import type { Place } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { greatest } from "./extremes.ts";
import { duration, integer, tick } from "./format.ts";
import { type Edges, type Mark, marks } from "./marks.ts";
import { showPanel, WIDTH } from "./panel.ts";
import type { About } from "./save.ts";
import { digitsOf, linearTicks, type Range } from "./ticks.ts";
import { ZOOM } from "./zooming.ts";

const HEIGHT = 200;
const LEFT = 56;
const BOTTOM = 40;
const EDGES: Edges = { left: LEFT, right: WIDTH - 10, foot: HEIGHT - BOTTOM };

/** The points of each panel. */
export function showScatter({ panels }: Scatter, about: About, name: string): HTMLElement {
  const text = "Each point is a sample, over the time since measuring began; of each short slice of time the least and the greatest. ";
  return figure(text, panels.map((panel, i) => scatterPanel(panel, about, `${name}.${i}`)));
}

/** The columns of each panel. */
export function showHistograms({ panels }: Histograms, about: About, name: string): HTMLElement {
  const text = "How many samples are how late. Each panel has its own axes. ";
  return figure(text, panels.map((panel, i) => histogramPanel(panel, about, `${name}.${i}`)));
}

function figure(text: string, panels: HTMLElement[]): HTMLElement {
  return h("figure", {}, h("figcaption", {}, h("p", {}, text + ZOOM)), h("div", { class: "screens" }, ...panels));
}

function scatterPanel({ label, points, count }: ScatterPanel, about: About, name: string): HTMLElement {
  const most = greatest(points.map(({ latency_ns }) => latency_ns));
  const first = points[0]?.at_ns ?? 0;
  const last = Math.max(points.at(-1)?.at_ns ?? 0, first + 1);
  const dots = ({ x, y }: Place) =>
    points.map(({ at_ns, latency_ns }) => svg("circle", { class: "dot", cx: x(at_ns), cy: y(latency_ns), r: 1.6 }));
  const axis = { x: { low: first, high: last }, y: { low: 0, high: 1.05 * Math.max(most, 1) } };
  const text = `greatest of ${integer(count)}: ${duration(most)}`;
  return panel({ label, text, axis, about, name, latency: "y", inside: dots });
}

function histogramPanel({ label, column_ns, counts }: HistogramPanel, about: About, name: string): HTMLElement {
  const most = greatest(counts, 1);
  const bars = ({ x, y }: Place) =>
    counts.flatMap((count, i) => {
      if (count === 0) return [];
      const [left, right, top] = [x(i * column_ns), x((i + 1) * column_ns), y(count)];
      // A single sample among thousands must be visible.
      const height = Math.max(y(0) - top, 1.5);
      return [svg("rect", { class: "bar", x: left, width: Math.max(right - left - 0.5, 0.5), y: y(0) - height, height })];
    });
  const axis = { x: { low: 0, high: counts.length * column_ns }, y: { low: 0, high: 1.05 * most } };
  const text = `${integer(counts.reduce((sum, count) => sum + count, 0))} samples, ${duration(column_ns)} a column`;
  return panel({ label, text, axis, about, name, latency: "x", inside: bars });
}

interface Plot {
  label: string;
  text: string;
  axis: { x: Range; y: Range };
  about: About;
  name: string;
  /** Which axis has the latencies: the other one has time, or counts. */
  latency: "x" | "y";
  inside: (at: Place) => SVGElement[];
}

function panel({ axis, latency, inside, ...of }: Plot): HTMLElement {
  return showPanel({
    ...of,
    height: HEIGHT,
    box: [LEFT, 10, WIDTH - LEFT - 10, HEIGHT - BOTTOM - 10],
    x: { log: false, range: axis.x },
    y: { log: false, range: axis.y },
    draw: (at) => ({ frame: frame(at, latency), inside: inside(at) }),
  });
}

function frame({ shown, x, y }: Place, latency: "x" | "y"): SVGElement[] {
  const [across, up] = [linearTicks(shown.x, 5), linearTicks(shown.y, 5)];
  const time = (ns: number, all: number[]) => (ns === 0 ? "0" : tick(ns, digitsOf(all)));
  return [
    ...marks(
      EDGES,
      up.map((value): Mark => [y(value), latency === "y" ? time(value, up) : integer(value)]),
      across.map((value): Mark => [x(value), time(value, across)]),
    ),
    svg(
      "text",
      { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" },
      latency === "x" ? "latency" : "time since measuring began",
    ),
  ];
}
