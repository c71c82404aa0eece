// SPDX-License-Identifier: GPL-2.0-or-later
// Commands that the reader can copy. A command is one line, however long it is.

import { h } from "./element.ts";

/** How long a button shows its result. */
const SAID_MS = 2_000;

/** A command with the button that copies all of it. */
export function command(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "copy", title: "Copy the whole command", "aria-live": "polite" }, "copy");
  const code = h("code", { title: text }, text);
  button.addEventListener("click", () => {
    void copy(text).then((copied) => {
      if (!copied) getSelection()?.selectAllChildren(code);
      button.replaceChildren(copied ? "copied" : "selected");
      setTimeout(() => button.replaceChildren("copy"), SAID_MS);
    });
  });
  return h("span", { class: "command" }, code, button);
}

/** Copies; false where the browser allows no page of a file to. */
async function copy(text: string): Promise<boolean> {
  try {
    // Browsers give the clipboard only to a page that they deem secure. Not all browsers deem a page from a file
    // secure.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = h("textarea", { class: "unseen", "aria-hidden": "true", tabindex: -1 });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}
