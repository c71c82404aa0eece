// SPDX-License-Identifier: GPL-2.0-or-later
// The screen of an oscilloscope in infinite persistence, drawn from the places and counts of the edges.

import type { Screen, Screens } from "./contract.ts";
import { showDrawing } from "./drawing.ts";
import { h, svg } from "./element.ts";
import { duration, integer, tick } from "./format.ts";
import { type About, saveDrawing } from "./save.ts";
import { ZOOM } from "./zooming.ts";

/** Places across the screen, by the contract, and its height in the same unit. */
const WIDTH = 500;
const HEIGHT = 120;
const HIGH = 25;
const LOW = 95;

/** One screen for each flavour and load, all on one time base, which zoom together. */
export function showScreens({ division_ns, width_ns, screens }: Screens, about: About, name: string): HTMLElement {
  return h(
    "figure",
    {},
    h(
      "figcaption",
      {},
      h(
        "p",
        {},
        `Every pulse on top of the others, ${tick(division_ns)} a division; dotted where the edges are due. ` +
          `A bright line has more edges than a dim one, on a logarithmic scale. ${ZOOM}`,
      ),
    ),
    h("div", { class: "screens" }, ...screens.map((screen) => showScreen(screen, division_ns, width_ns, about, name))),
  );
}

function showScreen(
  screen: Screen,
  division_ns: number,
  width_ns: number,
  about: About,
  name: string,
): HTMLElement {
  const division = WIDTH / 10;
  const due = [division, division + (width_ns / division_ns) * division];
  const edges = screen.beyond === 1 ? "1 edge is" : `${integer(screen.beyond)} edges are`;
  const beyond = screen.beyond === 0 ? "" : `; ${edges} beyond the right end`;
  const text = `latest edge ${duration(screen.latest_ns)}${beyond}`;
  const { element, drawing } = showDrawing({
    name,
    label: `${screen.label}: ${text}`,
    look: "scope",
    width: WIDTH,
    height: HEIGHT,
    box: [0, 0, WIDTH, HEIGHT],
    x: { log: false, range: { low: 0, high: WIDTH } },
    draw: ({ shown, isAll, x }) => {
      const upright = (look: string, place: number) =>
        svg("line", { class: look, x1: x(place), x2: x(place), y1: 0, y2: HEIGHT });
      const level = (from: number, to: number, y: number) =>
        svg("line", { class: "level", x1: x(from), x2: x(Math.min(to, WIDTH)), y1: y, y2: y });
      // Times count from where the first edge is due.
      const time = (place: number) => {
        const ns = Math.round(((place - division) / division) * division_ns);
        return `${ns < 0 ? "−" : ""}${tick(Math.abs(ns))}`;
      };
      const part = [shown.x.low, shown.x.high].map(time).join(" … ");
      return {
        frame: [svg("rect", { class: "glass", width: WIDTH, height: HEIGHT })],
        inside: [
          ...Array.from({ length: 9 }, (_, i) => upright("grid", (i + 1) * division)),
          ...due.map((place) => upright("due", place)),
          level(0, screen.low[0], LOW),
          level(screen.high[0], screen.high[1], HIGH),
          level(screen.low[1], WIDTH, LOW),
          ...screen.edges.map(({ place, brightness }) =>
            // The dimmest line is a single edge, which must be visible.
            svg("rect", {
              class: "lit",
              x: x(place),
              width: x(place + 1) - x(place),
              y: HIGH,
              height: LOW - HIGH,
              opacity: 0.25 + 0.75 * brightness,
            }),
          ),
          ...(isAll ? [] : [svg("text", { x: WIDTH - 8, y: HEIGHT - 8, "text-anchor": "end" }, part)]),
        ],
      };
    },
  });
  return h(
    "div",
    {},
    h("p", { class: "panel-name" }, screen.label),
    element,
    h("p", { class: screen.beyond > 0 ? "readout some" : "readout" }, text),
    saveDrawing(drawing, { ...about, title: `${about.title}: ${screen.label}` }),
  );
}
