// SPDX-License-Identifier: GPL-2.0-or-later
// One latency from the line to the pin: its stages, its parts below them, and the causes of the parts.

import { type Arrow, type Box, showBoxes } from "./boxes.ts";
import {
  causeCells,
  causeLine,
  causeLook,
  kindsLine,
  othersRow,
  STAGE_ORDER,
  stageText,
  stageWord,
  SUM_HEADS,
  sumCells,
} from "./causes.ts";
import type { Code, Latency, Part } from "./contract.ts";
import { h } from "./element.ts";
import { duration, exactNs, integer, percentage } from "./format.ts";
import { clockText } from "./save.ts";
import { scrollBox } from "./scroll.ts";

/** The latency; `name` names it for readers who do not see it, `of` the view that it is in ({@link showBoxes}). */
export function showLatency(name: string, latency: Latency, code: Code, of: string): HTMLElement {
  const { trigger, at_ns, latency_ns, insns, task, unexplained_ns } = latency;
  const by = task === "" ? "" : `, by ${task}`;
  return h(
    "figure",
    { class: "latency" },
    h(
      "figcaption",
      {},
      h("p", {}, `Trigger ${integer(trigger)}, at ${duration(at_ns)}: answered after `, h("b", {}, duration(latency_ns)), by, "."),
    ),
    strips(name, latency, code, of),
    h(
      "p",
      { class: "sum" },
      `Together ${exactNs(latency_ns)} ns in ${integer(insns)} instructions, which is the latency; unexplained ${duration(unexplained_ns)}. `,
      `Of it ${kindsLine(latency.kinds, latency_ns)}.`,
    ),
    scrollBox(`Causes of ${name}`, causesTable(latency, code), "short"),
    numbers(name, latency, code),
  );
}

/** Stages in the upper strip, parts in the strip below, and below that the disturbances, if there are any. */
function strips(name: string, latency: Latency, code: Code, of: string): HTMLElement {
  const whole = Math.max(1, latency.latency_ns);
  const stages = stageBoxes(latency, whole);
  const parts = latency.parts.map((part): Box => {
    const cause = part.cause === null ? undefined : code.causes[part.cause];
    return {
      row: 1,
      from: part.from_ns / whole,
      share: part.ns / whole,
      look: cause === undefined ? "look-several" : causeLook(cause.cause),
      text: cause?.cause ?? "several",
      says: `${duration(part.ns)} (${exactNs(part.ns)} ns, ${percentage(part.ns / whole)}) from ${duration(part.from_ns)} on: ${partText(part, code)}`,
    };
  });
  const marks = latency.disturbances.map(({ from_ns, timers }): Box => {
    const started = timers === 0 ? "" : `, whose handler starts ${integer(timers)} ${timers === 1 ? "timer" : "timers"}`;
    return {
      row: 2,
      from: Math.max(0, from_ns / whole),
      share: 0,
      look: "look-mark",
      text: "",
      says: `${duration(Math.abs(from_ns))} ${from_ns < 0 ? "before" : "after"} the trigger: the other device interrupts${started}`,
    };
  });
  const boxes = [...stages, ...parts, ...marks];
  const next = (from: number, arrow: Arrow) => neighbour(boxes, from, arrow);
  const disturbed = marks.length > 0;
  return showBoxes(
    `${name}: stages above, causes below${disturbed ? ", disturbances at the bottom" : ""}`,
    boxes,
    `Stages above, causes below, from the line to the pin${disturbed ? "; marks at the bottom show where another device disturbed" : ""}. Point at a box, or use the arrow keys, to read it.`,
    {
      title: `${name}: trigger ${integer(latency.trigger)}, answered after ${duration(latency.latency_ns)}`,
      clock: clockText("virtual"),
      of: [{ name: latency.responder, count: 1 }],
    },
    of,
    next,
  );
}

/** An answer goes through its stages one after the other, so each is one stretch. */
function stageBoxes(latency: Latency, whole: number): Box[] {
  let from_ns = 0;
  return STAGE_ORDER.flatMap((stage): Box[] => {
    const ns = latency.stages[stage];
    if (ns === undefined) return [];
    const box = {
      row: 0,
      from: from_ns / whole,
      share: ns / whole,
      look: "look-stage",
      text: stageWord(stage),
      says: `${duration(ns)} (${exactNs(ns)} ns, ${percentage(ns / whole)}) from ${duration(from_ns)} on: stage ${stageText(stage)}`,
    };
    from_ns += ns;
    return [box];
  });
}

/** Left and right go along a strip. Up and down go to the same time in the next strip, or to its first box. */
export function neighbour(boxes: readonly Box[], from: number, arrow: Arrow): number | undefined {
  const box = boxes[from];
  if (box === undefined) return undefined;
  if (arrow === "ArrowLeft" || arrow === "ArrowRight") {
    const to = from + (arrow === "ArrowLeft" ? -1 : 1);
    return boxes[to]?.row === box.row ? to : undefined;
  }
  const row = box.row + (arrow === "ArrowDown" ? 1 : -1);
  const first = boxes.findIndex((other) => other.row === row);
  const count = boxes.filter((other) => other.row === row && other.from <= box.from).length;
  return first < 0 ? undefined : first + Math.max(0, count - 1);
}

function partText(part: Part, code: Code): string {
  const where = ` (stage ${stageWord(part.stage)})`;
  if (part.cause === null) return `${integer(part.pieces)} short parts${where}`;
  return causeLine(code, part.cause) + where;
}

function causesTable({ causes, others }: Latency, code: Code): HTMLTableElement {
  const heads = SUM_HEADS.map((head) => h("th", { scope: "col" }, head));
  const texts = ["cause", "stack, innermost first"].map((head) => h("th", { scope: "col", class: "text" }, head));
  return h(
    "table",
    { class: "causes" },
    h("thead", {}, h("tr", {}, ...heads, ...texts)),
    h(
      "tbody",
      {},
      ...causes.map(({ cause, share, ...sum }) => h("tr", {}, ...sumCells(sum, share), ...causeCells(code, cause))),
      ...othersRow(others, 0),
    ),
  );
}

/** Every part with its exact length, built when somebody opens it. */
function numbers(name: string, { parts }: Latency, code: Code): HTMLElement {
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers of its parts"));
  const table = () =>
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["from (ns)", "length (ns)", "instructions"].map((head) => h("th", { scope: "col" }, head)),
          ...["stage", "cause"].map((head) => h("th", { scope: "col", class: "text" }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        ...parts.map((part) =>
          h(
            "tr",
            {},
            ...[part.from_ns, part.ns, part.insns].map((n) => h("td", {}, integer(n))),
            h("td", { class: "text" }, stageWord(part.stage)),
            h(
              "td",
              { class: "text" },
              part.cause === null ? `${integer(part.pieces)} short parts` : causeLine(code, part.cause),
            ),
          ),
        ),
      ),
    );
  details.addEventListener("toggle", () => details.append(scrollBox(`Parts of ${name}`, table(), "tall")), {
    once: true,
  });
  return details;
}
