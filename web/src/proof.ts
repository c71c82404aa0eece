// SPDX-License-Identifier: GPL-2.0-or-later
// What each knob does to a machine or to kernels: the verdict, the answers before and after, and the cost.

import type { KernelProof, MachineProof, Paired, Proof, ProofRow } from "./contract.ts";
import { h } from "./element.ts";
import { duration, seed } from "./format.ts";
import { scrollBox } from "./scroll.ts";

/** The section; nothing without a proof. */
export function showProof(proof: Proof | null): HTMLElement[] {
  if (proof === null) return [];
  const { machine } = proof;
  return [
    h(
      "section",
      { id: "proof" },
      h("h2", {}, "What each knob does"),
      h("p", { class: "lead" }, machine === null ? GUESTS : blocks(machine)),
      ...(machine === null ? [] : showScreening(proof, machine)),
      ...proof.kernels.flatMap((kernel) => showKernel(proof, kernel)),
      ...(machine === null ? [] : [h("p", {}, remains(machine))]),
    ),
  ];
}

const RATIO = "Ratios are with the change, divided by without it: the median of the pairs, with its interval.";
const GUESTS =
  "A pair is a guest without the change and one with it, under the same load, seed and triggers. The control is a word that means nothing to " +
  `the kernel. ${RATIO}`;

function blocks({ block_ns, cpus, seed: lots }: MachineProof): string {
  return (
    `A pair is two blocks of ${duration(block_ns)} on CPU ${cpus}, one without the change and one with it, in an order that is drawn ` +
    `(seed ${seed(lots)}). The control changes nothing. ${RATIO}`
  );
}

function remains({ chosen }: MachineProof): string {
  const undone = "Every change was taken back after its block.";
  if (chosen.length === 0) return `Nothing is shown to help. ${undone}`;
  return `These help: ${chosen.join(", ")}. ${undone} onset tune apply --goal changes what helps, and onset tune undo takes that back.`;
}

function showScreening({ responder, statistic }: Proof, { screening }: MachineProof): HTMLElement[] {
  if (screening.length === 0) return [];
  const rows = screening.map(({ change, latency }) => [
    change,
    latency !== null && latency.fell > latency.rose ? "goes on" : "ruled out",
    ratio(latency),
    counts(latency),
  ]);
  const heads = ["screening", "", `${responder}.${statistic}`, "fell, rose, same"];
  return [scrollBox("Screening", table(heads, rows), "wide")];
}

function showKernel({ responder, statistic, load }: Proof, { flavour, rows }: KernelProof): HTMLElement[] {
  const costs = rows.find((row) => row.costs.length > 0)?.costs ?? [];
  const energy = rows.some((row) => row.energy !== null);
  const heads = [
    ...["change", "effect", "without", "with", `${responder}.${statistic}`, "fell, rose, same"],
    ...["load’s time", "task switches", ...(energy ? ["energy"] : []), ...costs.map(({ cost }) => cost)],
  ];
  const name = `${flavour} · ${load}`;
  return [
    h("h3", {}, name),
    scrollBox(name, table(heads, rows.map((row) => cells(row, energy))), "wide"),
    ...rows.flatMap(({ change, absent }) => absent.map((why) => h("p", { class: "doubt" }, `${change}: ${why}`))),
  ];
}

function cells(row: ProofRow, energy: boolean): string[] {
  const { change, latency, without_ns, with_ns, load_time, context_switches, costs } = row;
  const more = costs.map((cost) => signed(Math.round(cost.with - cost.without)));
  const times = [without_ns, with_ns].map((ns) => (ns === null ? "" : duration(ns)));
  return [
    change,
    effect(latency),
    ...times,
    ratio(latency),
    counts(latency),
    ratio(load_time),
    ratio(context_switches),
    ...(energy ? [ratio(row.energy)] : []),
    ...more,
  ];
}

function table(heads: readonly string[], rows: readonly string[][]): HTMLTableElement {
  const head = h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...rest]) =>
    h("tr", {}, h("th", { scope: "row" }, first ?? ""), ...rest.map((text) => h("td", {}, text))),
  );
  return h("table", {}, h("thead", {}, head), h("tbody", {}, ...body));
}

function effect(latency: Paired | null): string {
  if (latency === null) return "not measured";
  const { effect } = latency;
  switch (effect.verdict) {
    case "helps":
      return "helps";
    case "harms":
      return "harms";
    case "no_effect_seen":
      return "no effect seen";
    case "cannot_tell":
      return effect.more_pairs === null ? "cannot tell" : `cannot tell; ${effect.more_pairs} more pairs would`;
  }
}

function ratio(paired: Paired | null): string {
  if (paired === null) return "";
  const { ratio_median, ratio_interval } = paired;
  const [low, high] = (ratio_interval ?? []) as number[];
  const interval = low === undefined || high === undefined ? "" : ` (${low.toFixed(3)} … ${high.toFixed(3)})`;
  return `× ${ratio_median.toFixed(3)}${interval}`;
}

function counts(latency: Paired | null): string {
  return latency === null ? "" : `${latency.fell}, ${latency.rose}, ${latency.same}`;
}

function signed(n: number): string {
  return n > 0 ? `+${n}` : `${n}`;
}
