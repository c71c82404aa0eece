// SPDX-License-Identifier: GPL-2.0-or-later
// In what the chosen runs were set up differently: what has to be known before their numbers are compared.

import { h } from "../element.ts";
import { several } from "../format.ts";
import { scrollBox } from "../scroll.ts";

/** The most runs whose set-up is held against each other here. The report shows all. */
const RUNS_MAX = 8;
/** What always differs, and what is a result or a text. */
const LEFT_OUT = /^(created|load_counters|probe_counters|truth|experiment\.source)\b/;

/** Every value of a manifest's `about`, by its path. */
export function flat(value: unknown, path = ""): Map<string, string> {
  if (value === null || typeof value !== "object") return new Map([[path, value === null ? "" : String(value)]]);
  const inner = Object.entries(value).flatMap(([key, of]) => [...flat(of, path === "" ? key : `${path}.${key}`)]);
  return new Map(inner);
}

/** The entries that not all have alike, with the value of each; an absent one is empty. */
export function differences(abouts: readonly unknown[]): [string, string[]][] {
  const all = abouts.map((about) => flat(about));
  const keys = [...new Set(all.flatMap((of) => [...of.keys()]))].filter((key) => !LEFT_OUT.test(key));
  const rows = keys.map((key): [string, string[]] => [key, all.map((of) => of.get(key) ?? "")]);
  return rows.filter(([, values]) => values.some((value) => value !== values[0]));
}

/** Shows in `place` in what the runs differ, once their manifests are here and `isWanted` still. */
export async function showDifferences(
  place: HTMLElement,
  runs: readonly string[],
  isWanted: () => boolean,
): Promise<void> {
  const shown = runs.slice(0, RUNS_MAX);
  if (shown.length < 2) return place.replaceChildren();
  const answers = shown.map(async (run) => {
    const answer = await fetch(`${encodeURIComponent(run)}/manifest.json`);
    if (!answer.ok) throw new Error(`${run}: ${(await answer.text()).trim()}`);
    return ((await answer.json()) as { about: unknown }).about;
  });
  const abouts = await Promise.all(answers).catch((error: unknown) => String(error));
  if (!isWanted()) return;
  if (typeof abouts === "string") return place.replaceChildren(h("p", { class: "refused" }, abouts));
  const rows = differences(abouts);
  const more = runs.length > shown.length ? ` The first ${shown.length} of the ${several(runs.length, "run")} are held against each other.` : "";
  const none = rows.length === 0 ? "They were set up alike." : "";
  const head = h("tr", {}, h("th", { scope: "col", class: "text" }, "entry"), ...shown.map((run) => h("th", { scope: "col", class: "text" }, run)));
  const body = rows.map(([key, values]) =>
    h("tr", {}, h("th", { scope: "row" }, key), ...values.map((value) => h("td", { class: "text" }, value === "" ? "–" : value))),
  );
  const table = h("table", { class: "differences" }, h("thead", {}, head), h("tbody", {}, ...body));
  const title = h("h2", {}, "In what the chosen runs differ");
  const notes = none + more === "" ? [] : [h("p", { class: "state" }, none + more)];
  place.replaceChildren(title, ...notes, ...(rows.length === 0 ? [] : [scrollBox("Differences", table)]));
}
