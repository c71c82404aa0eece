// SPDX-License-Identifier: GPL-2.0-or-later
// The time of a responder's longest latencies by cause: an icicle, whose boxes are as wide as their share, and rows
// that add up to the total.

import { type Arrow, type Box, showBoxes } from "./boxes.ts";
import { causeCells, causeLook, kindsLine, othersRow, SUM_HEADS, sumCells } from "./causes.ts";
import type { Code, IcicleNode, Ledger } from "./contract.ts";
import { command } from "./copy.ts";
import { h } from "./element.ts";
import { duration, exactNs, integer, percentage, several, sumText } from "./format.ts";
import { type About, clockText } from "./save.ts";
import { scrollBox } from "./scroll.ts";

/** The ledger of a run; `name` names the run's flavour, `of` the view that it is in ({@link showBoxes}). */
export function showLedger(name: string, ledger: Ledger, code: Code, of: string): HTMLElement {
  const { responder, samples, from_ns, total_ns } = ledger;
  if (samples === 0) return h("p", { class: "empty" }, "Nothing was answered here.");
  const [which, above] = from_ns === 0 ? ["All ", ""] : ["", `of ${duration(from_ns)} or more (p99) `];
  return h(
    "figure",
    { class: "ledger" },
    h(
      "figcaption",
      {},
      h(
        "p",
        {},
        `${which}${several(samples, "answer")} of ${responder} ${above}took ${duration(total_ns)} together. The width of a box is its share of that time. Causes are at the top. Below each cause is who took the time, then the functions from the outermost to the innermost.`,
      ),
    ),
    icicle(`Ledger of ${responder}, ${name}`, ledger, code, of),
    h("p", { class: "sum" }, `Of it ${kindsLine(ledger.kinds, total_ns)}.`),
    scrollBox(`Ledger of ${responder}, ${name}`, rowsTable(ledger, code), "short"),
    h("p", { class: "origin" }, "Write ", h("code", {}, "explain"), " in place of ", h("code", {}, "replay"), " in the command of a row: it then shows all parts of that answer."),
  );
}

function icicle(label: string, ledger: Ledger, code: Code, of: string): HTMLElement {
  const { icicle, total_ns, responder, samples } = ledger;
  const whole = Math.max(1, total_ns);
  // Each box has the colour of the cause above it.
  let look = "";
  const boxes = icicle.map(({ depth, what, frame, from_ns, share, ...sum }): Box => {
    const text = code.frames[frame] ?? "";
    if (depth === 0) look = causeLook(text);
    const says = `${text}: ${sumText(sum)}; ${percentage(share)} of the time${what === "who" ? ", by whom" : ""}`;
    return { row: depth, from: from_ns / whole, share: sum.ns / whole, look, text, says };
  });
  const about: About = { title: label, clock: clockText("virtual"), of: [{ name: responder, count: samples }] };
  const hint = "Point at a box, or use the arrow keys, to read it.";
  return showBoxes(label, boxes, hint, about, of, (from, arrow) => step(icicle, from, arrow));
}

/** Down goes to the first box below, up to the box above, left and right to the neighbours in the same row. */
export function step(nodes: readonly IcicleNode[], from: number, arrow: Arrow): number | undefined {
  const depth = nodes[from]?.depth ?? 0;
  if (arrow === "ArrowDown") return nodes[from + 1]?.depth === depth + 1 ? from + 1 : undefined;
  const wanted = arrow === "ArrowUp" ? depth - 1 : depth;
  const by = arrow === "ArrowRight" ? 1 : -1;
  for (let index = from + by; index >= 0 && index < nodes.length; index += by) {
    if (nodes[index]?.depth === wanted) return index;
  }
  return undefined;
}

function rowsTable({ rows, others }: Ledger, code: Code): HTMLTableElement {
  const numbers = (heads: string[]) => heads.map((head) => h("th", { scope: "col" }, head));
  return h(
    "table",
    { class: "causes" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...numbers(SUM_HEADS),
        ...["cause", "stack, innermost first"].map((head) => h("th", { scope: "col", class: "text" }, head)),
        ...numbers(["answers", "most in one answer"]),
        h("th", { scope: "col", class: "text" }, "replay that answer"),
      ),
    ),
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        h(
          "tr",
          {},
          ...sumCells({ ns: row.total_ns, stretches: row.stretches, longest_ns: row.longest_ns }, row.share),
          ...causeCells(code, row.cause),
          h("td", {}, integer(row.count)),
          h(
            "td",
            { title: `${exactNs(row.max_ns)} ns in ${several(row.max_stretches, "stretch")}` },
            row.max_stretches > 1 ? `${duration(row.max_ns)} in ${integer(row.max_stretches)}` : duration(row.max_ns),
          ),
          h("td", { class: "text" }, command(row.replay)),
        ),
      ),
      ...othersRow(others, 3),
    ),
  );
}
