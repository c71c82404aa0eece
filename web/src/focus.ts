// SPDX-License-Identifier: GPL-2.0-or-later
// The focus of the keyboard where a choice has a part of the page drawn anew, with the control that was used.

/** What a control is called; it has the same name once it is drawn anew. */
function nameOf(control: Element): string {
  const label = control.getAttribute("aria-label") ?? control.getAttribute("name");
  return label ?? (control.matches("button, a") ? (control.textContent ?? "") : "");
}

/** Has `draw` draw anew what is in `root`. If that takes the control away that has the focus, its like gets it. */
export function keepFocus(root: Element, draw: () => void): void {
  const had = document.activeElement;
  const isHere = had !== null && had !== document.body && root.contains(had);
  // A section keeps its name.
  const section = isHere ? (had.closest("section[id]")?.id ?? null) : null;
  const [tag, name] = isHere ? [had.tagName, nameOf(had)] : ["", ""];
  draw();
  if (!isHere || had.isConnected || name === "") return;
  const within = (section === null ? null : document.getElementById(section)) ?? root;
  const like = [...within.getElementsByTagName(tag)].find((one) => nameOf(one) === name);
  if (like instanceof HTMLElement) like.focus({ preventScroll: true });
}
