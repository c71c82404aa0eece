// SPDX-License-Identifier: GPL-2.0-or-later
// The page from top to bottom. What the view selects is drawn again whenever the address changes; a
// control only ever changes the address.

import { redrawCharts, removeCharts, sizeChartsForPaper } from "./chart.ts";
import { showConfiguration, showExperiments, showFiles } from "./configuration.ts";
import type { Report } from "./contract.ts";
import { type Controls, controls } from "./controls.ts";
import { h } from "./element.ts";
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
  const matrices = transpose(report);
  const go = (change: Partial<View>) => {
    const now = readView(location.hash, matrices);
    // Loads, responders and flavours of one experiment mean nothing in another.
    const other = change.experiment !== undefined && change.experiment !== now.experiment;
    const from = other ? firstView(matrixOf({ experiment: change.experiment ?? "" }, matrices)) : now;
    location.hash = viewHash({ ...from, ...change }, matrices);
  };
  const bar = h("div", { id: "bar" });
  const body = h("div", { id: "body" });
  page.replaceChildren(
    showHeader(report),
    ...showPapers(report, matrices, go),
    showVerdicts(matrices, go),
    bar,
    body,
    showWarnings(report),
    showExperiments(report),
    showFiles(report),
    h(
      "footer",
      {},
      `onset ${report.tool.version} (${report.tool.revision}) · report schema ${report.schema} · this page makes no network requests`,
    ),
  );
  let shown: { matrix: Matrix; controls: Controls } | undefined;
  const show = () => {
    const view = readView(location.hash, matrices);
    const matrix = matrixOf(view, matrices);
    if (shown?.matrix !== matrix) {
      shown = { matrix, controls: controls(matrix, matrices, go) };
      bar.replaceChildren(shown.controls.element);
    }
    shown.controls.reflect(view);
    showBody(body, matrix, view, go);
  };
  addEventListener("hashchange", show);
  followScheme();
  show();
}

function showBody(body: HTMLElement, matrix: Matrix, view: View, go: (change: Partial<View>) => void): void {
  const lanes = matrix.lanes(view.load).filter((lane) => view.flavours.includes(lane.name));
  removeCharts();
  // In the page before they are filled: a chart takes its width from where it stands.
  const ladder = h("section", { id: "ladder" });
  const responder = h("section", { id: "responder" });
  const rest = h("div", {}, showWorst(view, lanes), showLosses(view, lanes, matrix), showConfiguration(view, lanes));
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
