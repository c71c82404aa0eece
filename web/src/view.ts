// SPDX-License-Identifier: GPL-2.0-or-later
// What is being looked at. It lives in the address, after the #, so that a link shows what its sender saw.

import type { Matrix } from "./transpose.ts";

/** The selection that every part of the page below the verdicts follows. */
export interface View {
  experiment: string;
  load: string;
  responder: string;
  /** Names of lanes, never empty. */
  flavours: string[];
}

/** The part of the report that a view looks at. */
export function matrixOf({ experiment }: Pick<View, "experiment">, matrices: readonly Matrix[]): Matrix {
  const found = matrices.find((matrix) => matrix.experiment === experiment) ?? matrices[0];
  // The contract refuses a report without runs.
  if (found === undefined) throw new Error("a report without an experiment");
  return found;
}

/** Where a reader of an experiment starts: the load with the latest answer, the first responder with a limit, all flavours. */
export function firstView(matrix: Matrix): View {
  const latest = (load: string) =>
    Math.max(...matrix.lanes(load).flatMap(({ run }) => run.series.map((series) => series.max_ns ?? 0)), 0);
  const load = matrix.loads.reduce(
    (worst, load) => (latest(load) > latest(worst) ? load : worst),
    matrix.loads[0] ?? "",
  );
  const limited = matrix.lanes(load).flatMap(({ run }) => run.findings.map((finding) => finding.responder));
  const responder = limited.find((name) => matrix.responders.includes(name)) ?? matrix.responders.at(-1) ?? "";
  return { experiment: matrix.experiment, load, responder, flavours: matrix.flavours };
}

/** The view that an address' hash asks for. What it does not say, or what does not exist, is as at first. */
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
