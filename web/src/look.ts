// SPDX-License-Identifier: GPL-2.0-or-later
// The look of a flavour: colour, dash and marker, so that a reader can tell flavours apart without colours.

import { svg } from "./element.ts";

/** Colours that style.css names `--look-0` …, chosen for contrast on both grounds and for all colour visions. */
const COLOURS = 6;

/** On and off lengths of the line, in CSS pixels. */
const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3], [4, 4], [12, 3]] as const;

/** Outlines around the origin that fit a circle of radius 5. */
const MARKERS = [
  "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
  "M-3.6 -3.6H3.6V3.6H-3.6Z",
  "M0 -5L4.6 3.4H-4.6Z",
  "M0 -5L4.6 0L0 5L-4.6 0Z",
  "M-4.6 -3.4H4.6L0 5Z",
  "M-1.5 -5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
] as const;

/** The class that sets `--look` to the colour. */
export function lookClass(look: number): string {
  return `look-${look % COLOURS}`;
}

/** The colour in the present scheme, for a canvas. */
export function colour(look: number): string {
  return token(`--look-${look % COLOURS}`);
}

/** A colour of style.css by its name, in the present scheme. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The dash of the line. Shifted each time the colours start over, so that the pair stays distinct. */
export function dash(look: number): number[] {
  return [...(DASHES[(look + Math.floor(look / COLOURS)) % DASHES.length] ?? [])];
}

/** The marker's outline around the origin, as an SVG path. */
export function marker(look: number): string {
  return MARKERS[(look + Math.floor(look / COLOURS)) % MARKERS.length] ?? MARKERS[0];
}

/** A short piece of the flavour's line with its marker, for legends. */
export function swatch(look: number): SVGSVGElement {
  return svg(
    "svg",
    { class: `swatch ${lookClass(look)}`, width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
    svg("path", { class: "stroke", d: "M0 6H34", "stroke-dasharray": dash(look).join(" ") }),
    svg("path", { class: "mark", d: marker(look), transform: "translate(17 6)" }),
  );
}
