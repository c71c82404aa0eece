// SPDX-License-Identifier: GPL-2.0-or-later
// The script of the page: reads the report out of the page and shows it.

import { parseReport, Unreadable } from "./parse.ts";
import { h } from "./element.ts";
import { showReport } from "./page.ts";

const page = document.getElementById("page") as HTMLElement;
try {
  showReport(page, parseReport(document.getElementById("onset-report")?.textContent ?? ""));
} catch (error) {
  const expected = error instanceof Unreadable;
  const reason = expected ? error.reason : `The viewer failed on this report: ${String(error)}.`;
  const action = expected ? error.action : "This is a fault of onset. Please report it together with this file.";
  page.replaceChildren(
    h(
      "div",
      { class: "unreadable", role: "alert" },
      h("h1", {}, "This report cannot be shown"),
      h("p", {}, reason),
      h("p", {}, action),
    ),
  );
  if (!expected) throw error;
}
