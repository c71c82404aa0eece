// SPDX-License-Identifier: GPL-2.0-or-later
// How an oscilloscope is set, and the same in a word of the address: `task rise 20000 1500 7000`. Pure.

import { tick } from "../format.ts";
import { type Edge, EDGES } from "./capture.ts";

/** How an oscilloscope is set. */
export interface Settings {
  /** The name of the pin that starts a sweep, and by which edge. */
  pin: string;
  edge: Edge;
  /** The time of a division; the screen has ten, and the trigger is at the end of the first. */
  division_ns: number;
  /** Times after the trigger. */
  cursors: [a: number | null, b: number | null];
}

/** Times of a division. */
export const DIVISIONS: readonly number[] = [2, 3, 4, 5, 6, 7, 8].flatMap((decade) =>
  [1, 2, 5].map((step) => step * 10 ** decade),
);

/** The division at which everything up to `latest_ns` after the trigger is on the screen. */
export function divisionFor(latest_ns: number): number {
  return DIVISIONS.find((division) => 9 * division >= latest_ns) ?? (DIVISIONS.at(-1) as number);
}

/** From where to where the screen goes. */
export function screen({ division_ns }: Settings): readonly [number, number] {
  return [-division_ns, 9 * division_ns];
}

/** Reads the word; what it lacks, or what there is not, is as in `first`. */
export function readSettings(word: string | null, pins: readonly string[], first: Settings): Settings {
  const [pin = "", edge = "", division = "", ...cursors] = (word ?? "").split(" ");
  const time = (text: string | undefined) => (text === undefined || !/^-?\d+$/.test(text) ? null : Number(text));
  return {
    pin: pins.includes(pin) ? pin : first.pin,
    edge: EDGES.find((known) => known === edge) ?? first.edge,
    division_ns: DIVISIONS.find((known) => String(known) === division) ?? first.division_ns,
    cursors: [time(cursors[0]), time(cursors[1])],
  };
}

/** Writes it. */
export function settingsWord({ pin, edge, division_ns, cursors }: Settings): string {
  const places = cursors.map((place) => (place === null ? "-" : String(Math.round(place))));
  return [pin, edge, division_ns, ...places].join(" ");
}

/** A time after the trigger, or before it. */
export function since(ns: number, digits?: number): string {
  const size = ns === 0 ? "0" : tick(Math.abs(ns), digits);
  return ns < 0 ? `−${size}` : size;
}
