// SPDX-License-Identifier: GPL-2.0-or-later
// The page from top to bottom. The page draws what the view selects again whenever the address changes. A control only
// changes the address.

import { redrawCharts, removeCharts, sizeChartsForPaper } from "./chart.ts";
import { showConfiguration, showExperiments, showFiles } from "./configuration.ts";
import { type Contents, contents, isPart } from "./contents.ts";
import type { Code, Report } from "./contract.ts";
import { type Controls, controls } from "./controls.ts";
import { showCosts } from "./costs.ts";
import { h } from "./element.ts";
import { keepFocus } from "./focus.ts";
import { showHunts } from "./hunt.ts";
import { showInside } from "./inside.ts";
import { showLadder } from "./ladder.ts";
import { showLosses, showWorst } from "./losses.ts";
import { showResponder } from "./responder.ts";
import { scopeSection } from "./scope/panel.ts";
import { searchField } from "./search.ts";
import { showHeader, showVerdicts } from "./summary.ts";
import { showOverview } from "./overview.ts";
import { showPapers } from "./papers.ts";
import { showPrices } from "./prices.ts";
import { showProof } from "./proof.ts";
import { type Matrix, transpose } from "./transpose.ts";
import { firstView, matrixOf, readView, type View, viewHash } from "./view.ts";
import { showWarnings } from "./warnings.ts";
import { keepWords } from "./zoom.ts";

/** Fills `page` with the report and keeps it in step with the address. */
export function showReport(page: HTMLElement, report: Report): void {
  document.title = `${report.title} — onset`;
  followScheme();
  const list = contents();
  const search = searchField(page, report.code);
  page.replaceChildren(
    showHeader(report),
    list.element,
    ...showRuns(report),
    ...(report.runs.length === 0 ? [search] : []),
    ...showHunts(report),
    ...showProof(report.proof),
    showFooter(report),
  );
  // The element is put into the page before it is filled, since a chart takes its width from its place.
  if (report.runs.length > 0) followView(page, report, list, search);
  list.refresh(page);
}

/** The sections about runs; nothing if a report has no runs. */
function showRuns(report: Report): HTMLElement[] {
  if (report.runs.length === 0) return [];
  const matrices = transpose(report);
  const go = (change: Partial<View>) => goTo(change, matrices);
  return [
    ...showOverview(report),
    ...showPapers(report, matrices, go),
    ...showPrices(report.prices, report.clock),
    ...showCosts(report.costs),
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
  // The loads, responders and flavours of one experiment mean nothing in another experiment.
  const other = change.experiment !== undefined && change.experiment !== now.experiment;
  const from = other ? firstView(matrixOf({ experiment: change.experiment ?? "" }, matrices)) : now;
  const hash = viewHash({ ...from, ...change }, matrices);
  // Another responder or load has other axes. With one flavour more or less the axes stay.
  const only = Object.keys(change).every((key) => key === "flavours");
  location.hash = keepWords(hash, location.hash, only ? ["find", "scope", "zoom"] : ["find", "scope"]);
}

/** Draws what the address selects, now and whenever it changes. */
function followView(page: HTMLElement, report: Report, list: Contents, search: HTMLElement): void {
  const matrices = transpose(report);
  const go = (change: Partial<View>) => goTo(change, matrices);
  const [bar, body] = ["bar", "body"].map((id) => document.getElementById(id) as HTMLElement) as [
    HTMLElement,
    HTMLElement,
  ];
  let shown: { matrix: Matrix; controls: Controls } | undefined;
  const show = () => keepFocus(page, draw);
  const draw = () => {
    if (shown !== undefined && isPart(location.hash)) return;
    const view = readView(location.hash, matrices);
    const matrix = matrixOf(view, matrices);
    if (shown?.matrix !== matrix) {
      shown = { matrix, controls: controls(matrix, matrices, go) };
      shown.controls.element.append(search);
      bar.replaceChildren(shown.controls.element);
    }
    shown.controls.reflect(view);
    showBody(body, matrix, view, report.code, go);
    list.refresh(page);
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
  // The elements are put into the page before they are filled, since a chart takes its width from its place.
  const ladder = h("section", { id: "ladder" });
  const responder = h("section", { id: "responder" });
  const scope = scopeSection(view, lanes);
  const rest = h(
    "div",
    {},
    showInside(view, lanes, code),
    showWorst(view, lanes),
    showLosses(view, lanes, matrix),
    showConfiguration(view, lanes),
  );
  body.replaceChildren(ladder, responder, ...(scope === null ? [] : [scope.section]), rest);
  showLadder(ladder, view, lanes, matrix, go);
  showResponder(responder, view, lanes);
  scope?.fill();
}

/** Charts are pixels. They are drawn again when the colours change, and for paper in ink and in the right size. */
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
