// SPDX-License-Identifier: GPL-2.0-or-later
// The windows of a run by kind, the longest first, each with its distribution and the stack that opened it; and the
// bound that follows from the longest.

import { showStack } from "./causes.ts";
import type { Bound, Code, Inside, WindowKind, WindowRow, Windows } from "./contract.ts";
import { h, svg } from "./element.ts";
import { greatest, smallest } from "./extremes.ts";
import { ABSENT, duration, exactNs, integer, percentage, several } from "./format.ts";
import { scrollBox } from "./scroll.ts";

const KINDS: Record<WindowKind, string> = {
  irqs_off: "interrupts off",
  preempt_off: "preemption off",
  bh_off: "bottom halves off",
  migration_off: "migration off",
};

/** All kinds; `name` names the run's flavour. */
export function showWindows(name: string, { windows, virtual_ns }: Inside, code: Code): HTMLElement {
  const kinds = windows.map((of, index) => {
    const { kind, count, stacks, total_ns, share, without_length } = of;
    const cut = without_length === 0 ? "" : `; ${integer(without_length)} without a length`;
    const text = `${several(count, "window")} opened by ${several(stacks, "stack")}, ${duration(total_ns)} of ${duration(virtual_ns)} (${percentage(share)})${cut}`;
    return h(
      "details",
      { class: "printed", open: index === 0 },
      h("summary", {}, h("b", {}, KINDS[kind]), ` ${text}`),
      scrollBox(`Windows with ${KINDS[kind]}, ${name}`, windowsTable(of, code), "wide"),
    );
  });
  return h("div", { class: "windows" }, ...kinds);
}

/** The parts of the total that are not the opener's own time. */
const PARTS = { hardirq_ns: "hardirqs", softirq_ns: "softirqs", other_tasks_ns: "other tasks" } as const;
type Part = keyof typeof PARTS;

function windowsTable(of: Windows, code: Code): HTMLTableElement {
  const parts = (Object.keys(PARTS) as Part[]).filter((part) => of.rows.some((row) => row[part] > 0));
  const heads = ["longest", "instructions", "count", "total", "of the time", ...parts.map((part) => PARTS[part])];
  const span = exponents(of.rows);
  const lengths = span === null ? "" : `${duration(2 ** (span[0] - 1))} … ${duration(2 ** span[1])}`;
  return h(
    "table",
    { class: "causes" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...heads.map((head) => h("th", { scope: "col" }, head)),
        h("th", { scope: "col", class: "text", title: "both axes logarithmic" }, `lengths, ${lengths}`),
        h("th", { scope: "col", class: "text" }, "opened by, innermost first"),
      ),
    ),
    h("tbody", {}, ...of.rows.map((row) => windowRow(row, parts, span, code))),
  );
}

function windowRow(row: WindowRow, parts: Part[], span: [number, number] | null, code: Code): HTMLElement {
  const time = (ns: number, kind = "") => h("td", { class: kind, title: `${exactNs(ns)} ns` }, duration(ns));
  return h(
    "tr",
    {},
    time(row.max_ns, "max"),
    h("td", {}, integer(row.max_insns)),
    h("td", {}, integer(row.count)),
    time(row.total_ns),
    h("td", {}, percentage(row.share)),
    ...parts.map((part) => time(row[part])),
    h("td", { class: "text" }, span === null ? ABSENT : histogram(row, span)),
    h("td", { class: "text" }, ...places(code, row.stack, row.inside)),
  );
}

/** The stack that opened a stretch, and below it the stack that ran inside, if the follower saw one. */
function places(code: Code, stack: number, inside: number): HTMLElement[] {
  const opener = showStack(code, stack, 3);
  if ((code.stacks[inside]?.length ?? 0) === 0) return [opener];
  return [opener, h("div", { class: "seen-inside" }, "inside: ", showStack(code, inside, 3))];
}

/** Bucket of lengths below 2^this ns. */
function exponent(below_ns: number | undefined): number {
  return below_ns === undefined ? 64 : Math.round(Math.log2(below_ns));
}

/** The first and the last bucket of a table: all its rows share them. */
function exponents(rows: readonly WindowRow[]): [number, number] | null {
  const all = rows.flatMap(({ histogram }) => histogram.map(({ below_ns }) => exponent(below_ns)));
  return all.length === 0 ? null : [smallest(all), greatest(all)];
}

/** A bar's width and the height of the highest, in CSS pixels. */
const BAR = 7;
const HIGH = 20;

function histogram(row: WindowRow, [first, last]: [number, number]): SVGSVGElement {
  const most = greatest(row.histogram.map(({ count }) => count));
  // The scale is logarithmic, and one window is visible on it.
  const height = (count: number) => (HIGH * Math.log(count + 1)) / Math.log(most + 1);
  const width = (last - first + 1) * BAR;
  const bars = row.histogram.map(({ below_ns, count }) => {
    const place = exponent(below_ns);
    const text = `${duration(2 ** (place - 1))} … ${duration(2 ** place)}: ${integer(count)}`;
    const [x, y] = [(place - first) * BAR, HIGH - height(count)];
    return svg("rect", { x, y, width: BAR - 1, height: height(count) }, svg("title", {}, text));
  });
  const says = `${several(row.count, "window")}, at most ${duration(row.max_ns)}`;
  const axis = svg("line", { class: "grid", x1: 0, x2: width, y1: HIGH + 0.5, y2: HIGH + 0.5 });
  return svg("svg", { class: "lengths", width, height: HIGH + 1, role: "img", "aria-label": says }, axis, ...bars);
}

const TERMS: [keyof Bound & ("st" | "poid" | "paie" | "psd"), string, string][] = [
  ["poid", "D_POID", "preemption or interrupts off, for other reasons than to schedule"],
  ["st", "D_ST", "from interrupts off in the scheduler, until preemption is on after the switch"],
  ["paie", "D_PAIE", "preemption and interrupts on, until the requested scheduler begins"],
  ["psd", "D_PSD", "preemption off to schedule"],
];

/** The bound, its terms, and the longest scheduling latencies. */
export function showBound({ bound, scheduling_ns, exceeded }: Inside, code: Code): HTMLElement {
  if (bound === null) {
    return h("p", { class: "empty" }, "No bound of the scheduling latency: onset cannot see enough of it in this kernel.");
  }
  const seen = Object.entries(scheduling_ns).map(([responder, ns]) => `${responder} ${duration(ns)}`);
  const whole =
    bound.bound_ns === null
      ? "There is no bound: interrupts came too densely."
      : `${duration(bound.bound_ns)} is the sum of the longer of D_POID and D_ST, of D_PAIE and D_PSD, and of ${duration(bound.interrupts_ns)} of interrupts in an interval as long as the bound.`;
  const rows = TERMS.map(([key, name, text]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", { class: "max", title: `${exactNs(bound[key].ns)} ns` }, duration(bound[key].ns)),
      h("td", { class: "text" }, h("div", {}, text), ...places(code, bound[key].stack, bound[key].inside)),
    ),
  );
  return h(
    "details",
    { class: "printed bound" },
    h(
      "summary",
      {},
      h("b", {}, "bound of the scheduling latency"),
      ` ${duration(bound.bound_ns)} `,
      exceeded.length > 0 && h("span", { class: "chip fail" }, "exceeded"),
    ),
    h("p", { class: "origin" }, whole),
    seen.length > 0 &&
      h("p", { class: "origin" }, `Longest scheduling latency of the answers explained here: ${seen.join(", ")}.`),
    scrollBox("Terms of the bound", h("table", {}, h("tbody", {}, ...rows))),
  );
}
