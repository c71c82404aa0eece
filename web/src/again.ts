// SPDX-License-Identifier: GPL-2.0-or-later
// How to have a latency again.

import { h } from "./element.ts";

/** The command, to be copied. */
export function command(replay: string): HTMLElement {
  return h("code", { class: "command" }, replay);
}

/** The command in a sentence. */
export function again(replay: string): HTMLElement {
  return h("p", {}, "Have it again: ", command(replay));
}
