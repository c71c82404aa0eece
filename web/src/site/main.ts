// SPDX-License-Identifier: GPL-2.0-or-later
// The script of the page that `onset serve` shows: which part is shown, by its address.

import { redrawCharts } from "../chart.ts";
import { h } from "../element.ts";
import { exposed, PAGES, read, type Page } from "./address.ts";
import { showHistory } from "./history.ts";
import { showLive } from "./live.ts";
import { showBin, showRuns } from "./runs.ts";

const NAMES: Record<Page, string> = { runs: "Runs", history: "History", bin: "Bin", live: "Live" };
const main = document.getElementById("page") as HTMLElement;
const place = h("div", { id: "place" });
const links = PAGES.map((page) => h("a", { href: `#${page}` }, NAMES[page]));
const doubt = exposed(location.hostname, location.port);
const notice = doubt === null ? [] : [h("p", { class: "exposed", role: "note" }, doubt)];
main.replaceChildren(h("nav", { "aria-label": "Pages" }, h("strong", {}, "onset"), ...links), ...notice, place);

let close = () => {};
function show(): void {
  close();
  const address = read(location.hash);
  document.title = `onset · ${NAMES[address.page]}`;
  links.forEach((link, n) => {
    if (PAGES[n] === address.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  close = { runs: showRuns, history: showHistory, bin: showBin, live: showLive }[address.page](place, address);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
addEventListener("hashchange", show);
show();
