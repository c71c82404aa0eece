// SPDX-License-Identifier: GPL-2.0-or-later
// The commands that replay and explain a latency.

import { command } from "./copy.ts";
import { h } from "./element.ts";

/** Both commands of a latency. */
export function again(replay: string): HTMLElement {
  const explain = replay.replace(/^onset replay /, "onset explain ");
  return h(
    "div",
    { class: "again" },
    h("span", {}, "Replay it:"),
    command(replay),
    h("span", {}, "Explain it:"),
    command(explain),
  );
}

/** Where the paths in the commands of this page begin. */
export const WHERE = "Paths begin at the directory of this page.";
