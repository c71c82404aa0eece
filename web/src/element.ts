// SPDX-License-Identifier: GPL-2.0-or-later
// Elements from names, attributes and children. Text only ever becomes a text node, so nothing in a
// report can turn into markup.

type Child = Node | string | number | false | null | undefined;
type Attributes = Record<string, string | number | boolean | undefined>;

/** An HTML element. An attribute that is `false` or undefined is left out, one that is `true` is empty. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== false && child !== null && child !== undefined) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

/**
 * A table that scrolls inside its own box, reachable with the keyboard, so that the page itself never scrolls sideways.
 * The frame around it shows at which edges there is more.
 */
export function scrollBox(label: string, table: HTMLTableElement, kind = ""): HTMLElement {
  const box = h("div", { class: `scroll ${kind}`.trim(), role: "region", "aria-label": label, tabindex: 0 }, table);
  const frame = h("div", { class: "frame" }, box);
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
  return frame;
}
