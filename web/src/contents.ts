// SPDX-License-Identifier: GPL-2.0-or-later
// The contents of the page, as links to its parts. A link scrolls and does not change the address, since the address
// holds the view.

import { h } from "./element.ts";

/** The list, and a function that updates it from the page. */
export interface Contents {
  element: HTMLElement;
  refresh(page: HTMLElement): void;
}

export function contents(): Contents {
  const list = h("ol", {});
  const element = h("nav", { id: "contents", "aria-label": "Contents", hidden: true }, list);
  let shown = "";
  return {
    element,
    refresh(page) {
      const parts = [...page.querySelectorAll<HTMLElement>("section[id] > h2")].map((heading) => ({
        // In a section of two parts, the heading has the name of the second part.
        id: heading.id || (heading.parentElement?.id ?? ""),
        text: heading.dataset["contents"] ?? heading.textContent ?? "",
      }));
      const now = JSON.stringify(parts);
      if (now === shown) return;
      shown = now;
      element.hidden = parts.length < 2;
      list.replaceChildren(...parts.map(({ id, text }) => h("li", {}, link(id, text))));
    },
  };
}

/** A link to a part of the page. */
export function link(id: string, text: string): HTMLElement {
  const element = h("a", { href: `#${id}` }, text);
  element.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goToPart(id);
  });
  return element;
}

/** Whether an address' hash names a part of the page and not a view. */
export function isPart(hash: string): boolean {
  return hash.length > 1 && !hash.includes("=");
}

/** Scrolls to a part; whoever uses the keyboard goes on from there. */
function goToPart(id: string): void {
  const part = document.getElementById(id);
  if (part === null) return;
  const heading = part.matches("h2") ? part : (part.querySelector<HTMLElement>("h2") ?? part);
  part.scrollIntoView();
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
