// SPDX-License-Identifier: GPL-2.0-or-later
// The words and the elements by which the page shows causes, stages and stacks.

import type { Code, Latency, Others, Stage, Sum } from "./contract.ts";
import { h } from "./element.ts";
import { ABSENT, duration, exactNs, integer, percentage, sumText } from "./format.ts";

/** The colour of each cause: causes of one kind have the same colour. The time of the path itself has none. */
const LOOKS: Record<string, string> = {
  irqs_off: "look-1",
  preempt_off: "look-4",
  interrupt: "look-3",
  softirq: "look-3",
  task: "look-0",
  kernel: "look-2",
  lock: "look-2",
  sleep: "look-0",
  unexplained: "look-bad",
};

/** The class that colours a cause. */
export function causeLook(cause: string): string {
  return LOOKS[cause] ?? "look-path";
}

/** Each stage in one or two words, and what it is. */
const STAGES: Record<Stage, [word: string, text: string]> = {
  line: ["line", "from the raised line to the interrupt's entry"],
  entry: ["entry", "from the entry to the driver's handler"],
  handler: ["handler", "from the handler to the wake-up"],
  wake_up: ["wake-up", "from the wake-up to the request for the scheduler"],
  need_resched: ["request", "from the request for the scheduler to its begin"],
  schedule: ["scheduler", "from the scheduler's begin to the switch"],
  resumed: ["switch", "from the switch to user space"],
  user: ["user space", "from user space to the pin"],
};

/** The stages, in the order in which an answer passes them. */
export const STAGE_ORDER = Object.keys(STAGES) as Stage[];

/** What a stage is. */
export function stageText(stage: Stage): string {
  return STAGES[stage][1];
}

/** A stage in one or two words. */
export function stageWord(stage: Stage): string {
  return STAGES[stage][0];
}

const KINDS: [keyof Latency["kinds"], string][] = [
  ["interrupt", "interrupt latency"],
  ["wakeup", "wakeup latency"],
  ["priority_inversion", "priority inversion"],
  ["interrupt_inversion", "interrupt inversion"],
  ["other", "none of these"],
];

/** A time, divided into the kinds of latency of “Internals of the RT Patch”. */
export function kindsLine(kinds: Latency["kinds"], whole_ns: number): string {
  const part = (sum: Sum) => `${sumText(sum)} (${percentage(sum.ns / Math.max(1, whole_ns))})`;
  return KINDS.map(([kind, name]) => `${name} ${part(kinds[kind] ?? NOTHING)}`).join("; ");
}

const NOTHING: Sum = { ns: 0, stretches: 0, longest_ns: 0 };

/** Heads of the columns of {@link sumCells}. */
export const SUM_HEADS = ["time", "share", "stretches", "longest"];

/** A sum as cells: its time, its share of a whole, how many stretches it has, and the longest of them. */
export function sumCells({ ns, stretches, longest_ns }: Sum, share: number): HTMLElement[] {
  const known = stretches > 0;
  return [
    h("td", { class: "max", title: `${exactNs(ns)} ns` }, duration(ns)),
    h("td", {}, percentage(share)),
    h("td", {}, known ? integer(stretches) : ABSENT),
    h("td", { title: `${exactNs(longest_ns)} ns` }, known ? duration(longest_ns) : ABSENT),
  ];
}

/** The names of a stack, innermost first. */
export function framesOf(code: Code, stack: number): string[] {
  return (code.stacks[stack] ?? []).map((frame) => code.frames[frame] ?? "");
}

/** A cause in one line: its word, who took the time, and the two innermost functions. */
export function causeLine(code: Code, index: number): string {
  const cause = code.causes[index];
  if (cause === undefined) return "";
  const frames = framesOf(code, cause.stack).slice(0, 2).join(" < ");
  return [cause.cause, cause.who, frames].filter((text) => text !== "").join(" · ");
}

/** A stack that shows this many of its innermost functions, and all of them when the reader opens it. */
export function showStack(code: Code, stack: number, innermost = 2): HTMLElement {
  const frames = framesOf(code, stack);
  if (frames.length === 0) return h("span", { class: "zero" }, "no stack");
  if (frames.length <= innermost) return h("code", {}, frames.join(" < "));
  return h(
    "details",
    { class: "stack" },
    h("summary", {}, h("code", {}, frames.slice(0, innermost).join(" < "))),
    h("ol", {}, ...frames.map((frame) => h("li", {}, h("code", {}, frame)))),
  );
}

/** A cause as two cells: its word with who took the time, and its stack. */
export function causeCells(code: Code, index: number): HTMLElement[] {
  const cause = code.causes[index] ?? { cause: "", who: "", stack: -1 };
  return [
    h(
      "td",
      { class: "text" },
      h("span", { class: `key-box ${causeLook(cause.cause)}`, "aria-hidden": "true" }),
      cause.cause,
      cause.who !== "" && h("small", {}, ` ${cause.who}`),
    ),
    h("td", { class: "text" }, showStack(code, cause.stack)),
  ];
}

/** The line for causes without rows of their own; nothing if there are none. `columns` counts cells after the stack. */
export function othersRow({ rows, total_ns, stretches, longest_ns, share }: Others, columns: number): HTMLElement[] {
  if (rows === 0) return [];
  const empty = Array.from({ length: columns }, () => h("td", {}));
  const name = rows === 1 ? "1 other" : `${integer(rows)} others`;
  const numbers = sumCells({ ns: total_ns, stretches, longest_ns }, share);
  return [h("tr", { class: "others" }, ...numbers, h("td", { class: "text" }, name), h("td", {}), ...empty)];
}
