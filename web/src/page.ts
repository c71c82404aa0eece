// SPDX-License-Identifier: GPL-2.0-or-later
// The page from top to bottom. What the view selects is drawn again whenever the address changes; a
// control only ever changes the address.

import { redrawCharts, removeCharts, sizeChartsForPaper } from "./chart.ts";
import { showConfiguration, showExperiments, showFiles } from "./configuration.ts";
import type { Code, Report } from "./contract.ts";
import { type Controls, controls } from "./controls.ts";
import { h } from "./element.ts";
import { showHunts } from "./hunt.ts";
import { showInside } from "./inside.ts";
import { showLadder } from "./ladder.ts";
import { showLosses, showWarnings, showWorst } from "./losses.ts";
import { showResponder } from "./responder.ts";
import { showHeader, showVerdicts } from "./summary.ts";
import { showPapers } from "./papers.ts";
import { type Matrix, transpose } from "./transpose.ts";
import { firstView, matrixOf, readView, type View, viewHash } from "./view.ts";

/** Fills `page` with the report and keeps it in step with the address. */
export function showReport(page: HTMLElement, report: Report): void {
  document.title = `${report.title} — onset`;
  followScheme();
  page.replaceChildren(showHeader(report), ...showRuns(report), ...showHunts(report), showFooter(report));
  // In the page before it is filled: a chart takes its width from where it stands.
  if (report.runs.length > 0) followView(report);
}

/** What is shown of runs; nothing where a report has none. */
function showRuns(report: Report): HTMLElement[] {
  if (report.runs.length === 0) return [];
  const matrices = transpose(report);
  const go = (change: Partial<View>) => goTo(change, matrices);
  return [
    ...showPapers(report, matrices, go),
    showVerdicts(matrices, go),
    h("div", { id: "bar" }),
    h("div", { id: "body" }),
    showWarnings(report),
    showExperiments(report),
    showFiles(report),
  ];
}

function showFooter({ tool, schema }: Report): HTMLElement {
  const text = `onset ${tool.version} (${tool.revision}) · report schema ${schema} · this page makes no network requests`;
  return h("footer", {}, text);
}

/** Changes the address, which the page then follows. */
function goTo(change: Partial<View>, matrices: readonly Matrix[]): void {
  const now = readView(location.hash, matrices);
  // Loads, responders and flavours of one experiment mean nothing in another.
  const other = change.experiment !== undefined && change.experiment !== now.experiment;
  const from = other ? firstView(matrixOf({ experiment: change.experiment ?? "" }, matrices)) : now;
  location.hash = viewHash({ ...from, ...change }, matrices);
}

/** Draws what the address selects, now and whenever it changes. */
function followView(report: Report): void {
  const matrices = transpose(report);
  const go = (change: Partial<View>) => goTo(change, matrices);
  const [bar, body] = ["bar", "body"].map((id) => document.getElementById(id) as HTMLElement) as [
    HTMLElement,
    HTMLElement,
  ];
  let shown: { matrix: Matrix; controls: Controls } | undefined;
  const show = () => {
    const view = readView(location.hash, matrices);
    const matrix = matrixOf(view, matrices);
    if (shown?.matrix !== matrix) {
      shown = { matrix, controls: controls(matrix, matrices, go) };
      bar.replaceChildren(shown.controls.element);
    }
    shown.controls.reflect(view);
    showBody(body, matrix, view, report.code, go);
  };
  addEventListener("hashchange", show);
  show();
}

function showBody(
  body: HTMLElement,
  matrix: Matrix,
  view: View,
  code: Code,
  go: (change: Partial<View>) => void,
): void {
  const lanes = matrix.lanes(view.load).filter((lane) => view.flavours.includes(lane.name));
  removeCharts();
  // In the page before they are filled: a chart takes its width from where it stands.
  const ladder = h("section", { id: "ladder" });
  const responder = h("section", { id: "responder" });
  const rest = h(
    "div",
    {},
    showInside(view, lanes, code),
    showWorst(view, lanes),
    showLosses(view, lanes, matrix),
    showConfiguration(view, lanes),
  );
  body.replaceChildren(ladder, responder, rest);
  showLadder(ladder, view, lanes, matrix, go);
  showResponder(responder, view, lanes);
}

/** Charts are pixels: they are drawn again when the colours change, and in ink and to size for paper. */
function followScheme(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
  const opened = new Set<HTMLDetailsElement>();
  const paper = (printing: boolean) => {
    document.documentElement.toggleAttribute("data-paper", printing);
    if (printing) {
      for (const details of document.querySelectorAll<HTMLDetailsElement>("details.printed:not([open])")) {
        details.open = true;
        opened.add(details);
      }
    } else {
      for (const details of opened) details.open = false;
      opened.clear();
    }
    sizeChartsForPaper(printing);
    redrawCharts();
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
}
