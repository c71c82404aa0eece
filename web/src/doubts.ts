// SPDX-License-Identifier: GPL-2.0-or-later
// The warnings of a report by kind, and the words that the symptoms of one kind have in common. Pure.

import type { Run, Warning } from "./contract.ts";

/** One kind of warning: its texts, and its symptoms with their runs. */
export interface Doubt {
  code: string;
  cause: string;
  action: string;
  seen: Seen[];
}

/** A symptom, and the runs that have it in these words. */
export interface Seen {
  symptom: string;
  warning: Warning;
  runs: Run[];
}

/** The warnings of all runs, one entry per kind; symptoms that read the same are one. */
export function doubts(runs: readonly Run[]): Doubt[] {
  const found = new Map<string, Doubt>();
  for (const run of runs) {
    for (const warning of run.warnings) {
      const { code, symptom, cause, action } = warning;
      const key = JSON.stringify([code, cause, action]);
      const doubt = found.get(key) ?? { code, cause, action, seen: [] };
      found.set(key, doubt);
      const same = doubt.seen.find((s) => s.symptom === symptom);
      if (same === undefined) doubt.seen.push({ symptom, warning, runs: [run] });
      else same.runs.push(run);
    }
  }
  return [...found.values()];
}

/** Symptoms of one kind as a table: their common sentence, and a row of what each has in the place of an ellipsis. */
export interface Symptoms {
  sentence: string;
  /** The names of the parts that differ. */
  heads: string[];
  rows: { cells: string[]; runs: Run[] }[];
}

/** The sign in a sentence at the places where symptoms differ. */
const GAP = "…";

/** Symptoms that differ in more than names and numbers have no common sentence: each is a cell. */
export function tabulate(seen: readonly Seen[]): Symptoms {
  const words = seen.map(({ symptom }) => symptom.split(" "));
  const length = words[0]?.length ?? 0;
  if (words.some((other) => other.length !== length)) return sentences(seen);
  const differing = Array.from({ length }, (_, i) => i).filter((i) => new Set(words.map((of) => of[i])).size > 1);
  const cells = words.map((of) => differing.map((i) => bare(of[i] ?? "")));
  const heads = differing.map((_, column) => head(seen, cells, column));
  const counted = (column: number) => cells.every((of) => /^\d+$/.test(of[column] ?? ""));
  if (heads.some((name, column) => name === "" && !counted(column))) return sentences(seen);
  const common = (words[0] ?? []).map((word, i) => (differing.includes(i) ? word.replace(bare(word), GAP) : word));
  return {
    sentence: common.join(" "),
    heads,
    rows: seen.map(({ runs }, i) => ({ cells: cells[i] ?? [], runs })),
  };
}

function sentences(seen: readonly Seen[]): Symptoms {
  return { sentence: "", heads: ["symptom"], rows: seen.map(({ symptom, runs }) => ({ cells: [symptom], runs })) };
}

/** A word without the marks that follow it in a sentence. */
function bare(word: string): string {
  return word.replace(/[,;:.]+$/, "");
}

/** The field of the warnings that a column holds. */
function head(seen: readonly Seen[], cells: readonly string[][], column: number): string {
  const holds = (field: string) => seen.every(({ warning }, row) => String(warning[field]) === cells[row]?.[column]);
  return Object.keys(seen[0]?.warning ?? {}).find(holds)?.replaceAll("_", " ") ?? "";
}
