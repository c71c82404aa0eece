// SPDX-License-Identifier: GPL-2.0-or-later
// The knobs of an oscilloscope.

import { h } from "../element.ts";
import { tick } from "../format.ts";
import { type Edge, EDGES } from "./capture.ts";
import { DIVISIONS, type Settings, since } from "./settings.ts";

/** A time as people write it, in ns, also before the trigger; null for what is none. */
export function readTime(text: string): number | null {
  const match = /^\s*([-−]?)(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)?\s*$/.exec(text);
  const size = Number(match?.[2]);
  if (match === null || (match[3] === undefined && size !== 0)) return null;
  const scale = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[match[3] ?? "ns"] ?? 1;
  return Math.round(size * scale) * (match[1] === "" ? 1 : -1) || 0;
}

/** The knobs, and a function that turns them as the settings are. */
export interface Knobs {
  element: HTMLElement;
  reflect(settings: Settings): void;
}

function choice<T extends string>(
  label: string,
  name: string,
  options: readonly (readonly [T, string])[],
  chosen: (value: T) => void,
) {
  const select = h("select", { name }, ...options.map(([value, text]) => h("option", { value }, text)));
  select.addEventListener("change", () => chosen(select.value as T));
  return { select, element: h("label", { class: "choice" }, h("span", {}, label), select) };
}

/** Knobs for these pins that call `change` with what the reader turned. */
export function knobs(pins: readonly string[], change: (change: Partial<Settings>) => void): Knobs {
  let cursors: Settings["cursors"] = [null, null];
  const pin = choice("Trigger", "scope-pin", pins.map((name) => [name, name] as const), (value) => change({ pin: value }));
  const words: Record<Edge, string> = { rise: "rising edge", fall: "falling edge", either: "either edge" };
  const edge = choice("by its", "scope-edge", EDGES.map((one) => [one, words[one]] as const), (value) => change({ edge: value }));
  const times = DIVISIONS.map((ns) => [String(ns), tick(ns)] as const);
  const division = choice("Time a division", "scope-division", times, (value) => change({ division_ns: Number(value) }));
  const fields = ([0, 1] as const).map((which) => {
    const input = h("input", { name: `cursor-${"ab"[which]}`, size: 9, placeholder: "none", autocomplete: "off" });
    input.addEventListener("change", () => {
      const place = input.value.trim() === "" ? null : readTime(input.value);
      const isWrong = place === null && input.value.trim() !== "";
      input.setCustomValidity(isWrong ? "Write a time with its unit, as in 12.5us" : "");
      if (isWrong) input.reportValidity();
      else change({ cursors: which === 0 ? [place, cursors[1]] : [cursors[0], place] });
    });
    return { input, element: h("label", { class: "choice" }, h("span", {}, `Cursor ${"AB"[which]}`), input) };
  });
  const group = { class: "knobs", role: "group", "aria-label": "How the oscilloscope is set" };
  const element = h("div", group, pin.element, edge.element, division.element, ...fields.map((field) => field.element));
  return {
    element,
    reflect(settings) {
      cursors = settings.cursors;
      pin.select.value = settings.pin;
      edge.select.value = settings.edge;
      division.select.value = String(settings.division_ns);
      fields.forEach(({ input }, i) => {
        const place = cursors[i] ?? null;
        input.value = place === null ? "" : since(place, 12);
      });
    },
  };
}
