// SPDX-License-Identifier: GPL-2.0-or-later
// What a user keeps of a live run while it goes on: notes with their time, and a table of all latencies.

import { h } from "../element.ts";
import { duration, several } from "../format.ts";
import type { Told } from "./told.ts";

/** The controls for the form, the list of the marks, and what brings both up to date. */
interface Keeping {
  readonly controls: readonly HTMLElement[];
  readonly marks: HTMLElement;
  readonly show: (told: Told) => void;
}

/** `mark` has the server keep a note. */
export function keep(mark: (note: string) => void): Keeping {
  const note = h("input", { id: "note", placeholder: "the door was opened", autocomplete: "off", maxlength: 200 });
  const button = h("button", { type: "button" }, "Mark");
  button.addEventListener("click", () => mark(note.value));
  // The table begins with the click and ends with the run.
  const log = h("a", { class: "log", href: "api/live/log.csv", download: "onset-live.csv" }, "Log as CSV from now on");
  const marks = h("ul", { class: "marks", "aria-label": "Marks" });
  const show = (told: Told) => {
    const isRunning = told.standing === "running";
    button.disabled = !isRunning;
    log.toggleAttribute("hidden", !isRunning);
    marks.replaceChildren(...told.marks.map((one) => h("li", {}, sentence(one))));
  };
  return { controls: [h("label", {}, "Note", note), h("span", { class: "buttons" }, button, log)], marks, show };
}

function sentence({ at_ns, triggers, note }: Told["marks"][number]): string {
  return `${duration(at_ns)}, after ${several(triggers, "trigger")}: ${note === "" ? "mark" : note}`;
}
