// SPDX-License-Identifier: GPL-2.0-or-later
// Made-up edges for the oscilloscope: the fixture's runs as a line and pins. The same every time.

import type { Report, Run } from "../src/contract.ts";
import { fixture, uniform } from "./fixture.ts";

/** Edges as crates/view/src/edges.rs writes them: time in ns, pin and level of each, in the order of time. */
export function encodeEdges(edges: readonly (readonly [at: number, pin: number, level: number])[]): string {
  const bytes: number[] = [];
  let before = 0;
  for (const [at, pin, level] of edges) {
    let since = at - before;
    before = at;
    for (; since >= 0x80; since = Math.floor(since / 0x80)) bytes.push((since % 0x80) + 0x80);
    bytes.push(since, 2 * pin + level);
  }
  return Buffer.from(bytes).toString("base64");
}

/** The fixture with the edges of each run under “mixed”: a trigger each millisecond, of which one is answered late. */
export function scoped(triggers = 2_000): Report {
  const report = fixture();
  for (const run of report.runs.filter(({ load }) => load === "mixed")) {
    run.scope = scopeOf(run, triggers);
  }
  return report;
}

/** When the trigger was that was answered latest, and after how long, by every pin of {@link scoped}. */
export const LATE = { trigger: 777, latency_ns: 601_234 };

/** The edges of a run with so many triggers. */
export function scopeOf({ series, flavour }: Run, triggers: number): Run["scope"] {
  const next = uniform(flavour.length);
  const edges: [number, number, number][] = [];
  for (let trigger = 0; trigger < triggers; trigger++) {
    const at = 1_000_000 * (trigger + 1) + Math.floor(400_000 * next());
    edges.push([at, 0, 1], [at + 50_000, 0, 0]);
    series.forEach(({ quantiles, responder }, i) => {
      const typical = (quantiles["0.5"] ?? 0) * (0.9 + 0.2 * next() + (next() < 0.02 ? 8 * next() : 0));
      const latency = trigger === LATE.trigger && responder === "task" ? LATE.latency_ns : Math.round(typical);
      edges.push([at + latency, i + 1, (trigger + 1) % 2]);
    });
  }
  edges.sort(([a], [b]) => a - b);
  const samples = triggers * series.length;
  const end = (edges.at(-1)?.[0] ?? 0) + 1;
  const pins = ["trigger", ...series.map(({ responder }) => responder)];
  return { pins, samples, samples_of_run: samples, stretches: [[0, end]], edges: encodeEdges(edges) };
}
