// SPDX-License-Identifier: GPL-2.0-or-later
// Search in stacks: a field that leaves of each table with stacks the rows that have all its words. What is searched
// for is in the address. The tables' own sums stay those of all rows.

import type { Code } from "./contract.ts";
import { h } from "./element.ts";
import { integer } from "./format.ts";
import { readWord, wordHash } from "./zoom.ts";

/** The rows that have stacks; the row of all others has none. */
const ROWS = "table.causes > tbody > tr:not(.others), table.finds > tbody > tr";

/** Whether a text has all words, in any order and any case. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** The field; it searches in `page`. Hidden where the report has no stacks. */
export function searchField(page: HTMLElement, code: Code): HTMLElement {
  const field = h("input", { type: "search", name: "find", size: 16, placeholder: "function, task …", autocomplete: "off" });
  const told = h("span", { class: "found", role: "status" });
  const label = h("label", { class: "choice", title: "Key: /" }, h("span", {}, "Search in stacks"), field);
  const element = h("div", { class: "search", role: "search", hidden: code.frames.length === 0 }, label, told);
  let isAll = true;
  const search = () => {
    const wasAll = isAll;
    isAll = field.value.trim() === "";
    if (isAll && wasAll) return;
    const rows = [...page.querySelectorAll<HTMLTableRowElement>(ROWS)];
    for (const row of rows) row.hidden = !hasWords(row.textContent ?? "", field.value.trim());
    const found = rows.filter((row) => !row.hidden).length;
    const text = isAll ? "" : `${integer(found)} of ${integer(rows.length)} rows`;
    if (told.textContent !== text) told.textContent = text;
  };
  field.addEventListener("input", () => {
    history.replaceState(history.state, "", wordHash(location.hash, "find", field.value.trim()));
    search();
  });
  const follow = () => {
    field.value = readWord(location.hash, "find") ?? "";
    search();
  };
  addEventListener("hashchange", follow);
  // Another view, an opened table, another answer: their rows are searched as well.
  // What is read under the pointer has no rows, and changes with each of its moves.
  const isRead = ({ target }: MutationRecord) => target instanceof Element && target.closest(".readout") !== null;
  const changed = (all: readonly MutationRecord[]) => all.every(isRead) || search();
  new MutationObserver(changed).observe(page, { childList: true, subtree: true });
  addEventListener("keydown", (event) => {
    const isWriting = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (event.key !== "/" || isWriting || event.ctrlKey || event.metaKey || event.altKey || element.hidden) return;
    event.preventDefault();
    field.focus();
  });
  follow();
  return element;
}
