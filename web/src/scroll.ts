// SPDX-License-Identifier: GPL-2.0-or-later
// The box in which a table stands.

import { h } from "./element.ts";
import { csvButton } from "./save.ts";

/**
 * A table that scrolls inside its own box, reachable with the keyboard, so that the page itself never scrolls sideways.
 * The frame around it shows at which edges there is more; the button below it saves the table.
 */
export function scrollBox(label: string, table: HTMLTableElement, kind = ""): HTMLElement {
  const box = h("div", { class: `scroll ${kind}`.trim(), role: "region", "aria-label": label, tabindex: 0 }, table);
  const frame = h("div", { class: "frame" }, box);
  const whole = h("div", { class: "tabled" }, frame, csvButton(label, table));
  const follow = () => {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
    const below = box.scrollHeight - box.clientHeight - box.scrollTop;
    // On a scaled page, less than a pixel is left.
    frame.toggleAttribute("data-right", right > 1);
    frame.toggleAttribute("data-below", below > 1);
  };
  box.addEventListener("scroll", follow, { passive: true });
  const observer = new ResizeObserver(follow);
  observer.observe(box);
  observer.observe(table);
  return whole;
}
