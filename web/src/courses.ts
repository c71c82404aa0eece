// SPDX-License-Identifier: GPL-2.0-or-later
// Who runs when: a lane for each thread of the probe inversion, as figures 1 and 2 of the 2007 internals paper draw it.

import type { WaitCourse, WaitThread } from "./contract.ts";
import type { Place } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { duration, tick } from "./format.ts";
import { type Edges, type Mark, marks } from "./marks.ts";
import { showPanel, WIDTH } from "./panel.ts";
import type { About } from "./save.ts";
import { digitsOf, linearTicks } from "./ticks.ts";
import { ZOOM } from "./zooming.ts";

const HEIGHT = 170;
const LEFT = 72;
const TOP = 10;
const BOTTOM = 40;
const EDGES: Edges = { left: LEFT, right: WIDTH - 24, foot: HEIGHT - BOTTOM };
const LANES: readonly WaitThread[] = ["high", "middle", "low"];
const LANE = (EDGES.foot - TOP) / LANES.length;
const BAR = 18;

/** A panel for each kernel and mutex. */
export function showCourses(courses: readonly WaitCourse[], about: About, name: string): HTMLElement | null {
  if (courses.length === 0) return null;
  return h(
    "figure",
    { class: "courses" },
    h(
      "figcaption",
      {},
      h(
        "p",
        {},
        "Who runs when, in the repetition with the longest wait: a bar is a stretch in which the thread runs, a dark bar one in which it holds the mutex. ",
        `The line is the wait of the high thread. A switch is a part of the bar before it. ${ZOOM}`,
      ),
    ),
    h("div", { class: "screens" }, ...courses.map((course, i) => panel(course, about, `${name}.course.${i}`))),
  );
}

function panel(course: WaitCourse, about: About, name: string): HTMLElement {
  const { flavour, inherits, work_ns, turns, asked_ns, locked_ns } = course;
  const label = `${flavour}, ${inherits ? "priority inheritance" : "plain mutex"}`;
  const text = `the middle thread works ${duration(work_ns)}; the high one waits ${duration(locked_ns - asked_ns)}`;
  return showPanel({
    name,
    label,
    text,
    about,
    height: HEIGHT,
    box: [LEFT, TOP, EDGES.right - LEFT, EDGES.foot - TOP],
    x: { log: false, range: { low: 0, high: Math.max(turns.at(-1)?.to_ns ?? 0, 1) } },
    draw: (at) => ({ frame: frame(at), inside: inside(course, at) }),
  });
}

const middle = (thread: WaitThread) => TOP + (LANES.indexOf(thread) + 0.5) * LANE;

function inside({ turns, asked_ns, locked_ns }: WaitCourse, { x }: Place): SVGElement[] {
  const y = middle("high");
  return [
    svg("line", { class: "waits-for", x1: x(asked_ns), x2: x(locked_ns), y1: y, y2: y }),
    ...turns.map(({ thread, holds, from_ns, to_ns }) =>
      svg(
        "rect",
        {
          class: holds ? "turn holds" : "turn",
          x: x(from_ns),
          // A switch to a thread that waits at once is short, and must be visible.
          width: Math.max(x(to_ns) - x(from_ns), 1.5),
          y: middle(thread) - BAR / 2,
          height: BAR,
        },
        svg("title", {}, `${thread}${holds ? ", holds the mutex" : ""}: ${duration(to_ns - from_ns)}`),
      ),
    ),
  ];
}

function frame({ shown, x }: Place): SVGElement[] {
  const across = linearTicks(shown.x, 5);
  return [
    ...marks(
      EDGES,
      LANES.map((thread): Mark => [middle(thread), thread]),
      across.map((ns): Mark => [x(ns), ns === 0 ? "0" : tick(ns, digitsOf(across))]),
    ),
    svg("text", { x: (LEFT + EDGES.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "time since the low thread began"),
  ];
}
