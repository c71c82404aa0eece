// SPDX-License-Identifier: GPL-2.0-or-later
// The screen of an oscilloscope in infinite persistence, drawn from the places and counts of the edges.

import type { Screen, Screens } from "./contract.ts";
import { h, svg } from "./element.ts";
import { duration, integer, tick } from "./format.ts";
import { type About, saveDrawing } from "./save.ts";

/** Places across the screen, by the contract, and its height in the same unit. */
const WIDTH = 500;
const HEIGHT = 120;
const HIGH = 25;
const LOW = 95;

/** One screen for each flavour and load, all on one time base. */
export function showScreens({ division_ns, width_ns, screens }: Screens, about: About): HTMLElement {
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
          "A bright line has more edges than a dim one, on a logarithmic scale.",
      ),
    ),
    h("div", { class: "screens" }, ...screens.map((screen) => showScreen(screen, division_ns, width_ns, about))),
  );
}

function showScreen(screen: Screen, division_ns: number, width_ns: number, about: About): HTMLElement {
  const division = WIDTH / 10;
  const due = [division, division + (width_ns / division_ns) * division];
  const edges = screen.beyond === 1 ? "1 edge is" : `${integer(screen.beyond)} edges are`;
  const beyond = screen.beyond === 0 ? "" : `; ${edges} beyond the right end`;
  const text = `latest edge ${duration(screen.latest_ns)}${beyond}`;
  const level = (from: number, to: number, y: number) =>
    svg("line", { class: "level", x1: from, x2: Math.min(to, WIDTH), y1: y, y2: y });
  const drawing = svg(
    "svg",
    { class: "scope", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${screen.label}: ${text}` },
    svg("rect", { class: "glass", width: WIDTH, height: HEIGHT }),
    ...Array.from({ length: 9 }, (_, i) => {
      const x = (i + 1) * division;
      return svg("line", { class: "grid", x1: x, x2: x, y1: 0, y2: HEIGHT });
    }),
    ...due.map((x) => svg("line", { class: "due", x1: x, x2: x, y1: 0, y2: HEIGHT })),
    level(0, screen.low[0], LOW),
    level(screen.high[0], screen.high[1], HIGH),
    level(screen.low[1], WIDTH, LOW),
    ...screen.edges.map(({ place, brightness }) =>
      // The dimmest line is a single edge, which must be visible.
      svg("rect", {
        class: "lit",
        x: place,
        width: 1,
        y: HIGH,
        height: LOW - HIGH,
        opacity: 0.25 + 0.75 * brightness,
      }),
    ),
  );
  return h(
    "div",
    {},
    h("p", { class: "panel-name" }, screen.label),
    drawing,
    h("p", { class: screen.beyond > 0 ? "readout some" : "readout" }, text),
    saveDrawing(drawing, { ...about, title: `${about.title}: ${screen.label}` }),
  );
}
