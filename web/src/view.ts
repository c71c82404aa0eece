// SPDX-License-Identifier: GPL-2.0-or-later
// What the reader looks at. It is in the address, after the #, so that a link shows what its sender saw.

import { greatest } from "./extremes.ts";
import { type Matrix, seriesOf } from "./transpose.ts";

/** The selection that every part of the page below the verdicts follows. */
export interface View {
  experiment: string;
  load: string;
  responder: string;
  /** Names of lanes, never empty. */
  flavours: string[];
}

/** The part of the report that a view shows. */
export function matrixOf({ experiment }: Pick<View, "experiment">, matrices: readonly Matrix[]): Matrix {
  const found = matrices.find((matrix) => matrix.experiment === experiment) ?? matrices[0];
  // The parser refuses a report without runs.
  if (found === undefined) throw new Error("a report without an experiment");
  return found;
}

/** The most important responder: a task in user space, since an application is one. */
const TASK = "task";

/**
 * The first view: the responder `task`, or the first responder with a limit, or the last one; the load with its longest
 * latency; all flavours.
 */
export function firstView(matrix: Matrix): View {
  const responder = firstResponder(matrix);
  const latest = (load: string) =>
    greatest(matrix.lanes(load).map(({ run }) => seriesOf(run, responder)?.max_ns ?? 0), 0);
  const load = matrix.loads.reduce(
    (worst, load) => (latest(load) > latest(worst) ? load : worst),
    matrix.loads[0] ?? "",
  );
  return { experiment: matrix.experiment, load, responder, flavours: matrix.flavours };
}

function firstResponder({ responders, loads, lanes }: Matrix): string {
  if (responders.includes(TASK)) return TASK;
  const limited = loads.flatMap(lanes).flatMap(({ run }) => run.findings.map((finding) => finding.responder));
  return limited.find((name) => responders.includes(name)) ?? responders.at(-1) ?? "";
}

/** The view that the hash of an address asks for. Parts that it lacks, or that do not exist, are as at first. */
export function readView(hash: string, matrices: readonly Matrix[]): View {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const matrix = matrixOf({ experiment: asked.get("experiment") ?? "" }, matrices);
  const first = firstView(matrix);
  const among = (known: string[], name: string | null, otherwise: string) =>
    name !== null && known.includes(name) ? name : otherwise;
  const flavours = matrix.flavours.filter((name) => asked.getAll("flavour").includes(name));
  return {
    experiment: matrix.experiment,
    load: among(matrix.loads, asked.get("load"), first.load),
    responder: among(matrix.responders, asked.get("responder"), first.responder),
    flavours: flavours.length > 0 ? flavours : first.flavours,
  };
}

/** The hash of a view, with its #. All flavours, and the only experiment, are the normal case and are not listed. */
export function viewHash(view: View, matrices: readonly Matrix[]): string {
  const hash = new URLSearchParams({ load: view.load, responder: view.responder });
  if (matrices.length > 1) hash.set("experiment", view.experiment);
  if (view.flavours.length < matrixOf(view, matrices).flavours.length) {
    for (const name of view.flavours) hash.append("flavour", name);
  }
  return `#${hash}`;
}
