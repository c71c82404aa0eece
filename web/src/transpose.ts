// SPDX-License-Identifier: GPL-2.0-or-later
// Turns the list of runs, in the order of execution, into load × flavour × responder, as a reader reads them. Pure.
// It picks and orders, and computes no statistic.

import type { Report, Run, Series, StatisticFinding, Unequal } from "./contract.ts";
import { seed } from "./format.ts";

/** A run with the name and the look that it has everywhere on the page. */
export interface Lane {
  /** The flavour, with its seed or run identity where the flavour alone would be ambiguous. */
  name: string;
  /** Index into the palette; the same for this flavour under every load. */
  look: number;
  run: Run;
}

/** One experiment of the report by load. */
export interface Matrix {
  experiment: string;
  /** In the order of the report. */
  loads: string[];
  /** Names of lanes in the order of the report; the index is the look. */
  flavours: string[];
  /** In the order of the report, which is that of each run. */
  responders: string[];
  /** The flavours that lack responders which other runs have. */
  unequal: Unequal | undefined;
  /** The lanes of one load, in the order of `flavours`. */
  lanes(load: string): Lane[];
}

/** Transposes the report: runs of different experiments measured different things and never stand side by side. */
export function transpose(report: Report): Matrix[] {
  const experiments = [...new Set(report.runs.map((run) => run.experiment))];
  return experiments.map((experiment) =>
    matrixOf(
      experiment,
      report.runs.filter((run) => run.experiment === experiment),
      // Only the responders of triggers answer beside each other.
      report.unequal.find((of) => [of.experiment, `${of.experiment}: trigger`].includes(experiment)),
    ),
  );
}

function matrixOf(experiment: string, runs: readonly Run[], unequal: Unequal | undefined): Matrix {
  const names = laneNames(runs);
  const flavours = [...new Set(names)];
  const all = runs.map((run, i): Lane => {
    const name = names[i] ?? run.run;
    return { name, look: flavours.indexOf(name), run };
  });
  return {
    experiment,
    loads: [...new Set(runs.map((run) => run.load))],
    flavours,
    responders: [...new Set(runs.flatMap((run) => run.series.map((s) => s.responder)))],
    unequal,
    lanes: (load) => all.filter((lane) => lane.run.load === load).sort((a, b) => a.look - b.look),
  };
}

/** The flavour of each run. If a load has the flavour more than once, with the seed, and if necessary the run. */
function laneNames(runs: readonly Run[]): string[] {
  const seeded = (run: Run) => `${run.flavour} · seed ${seed(run.seed)}`;
  const byFlavour = repeated(runs, (run) => run.flavour);
  const bySeed = repeated(runs, seeded);
  return runs.map((run) => {
    if (!byFlavour.has(run.flavour)) return run.flavour;
    return bySeed.has(run.flavour) ? `${run.flavour} · ${run.run}` : seeded(run);
  });
}

/** Flavours for which some load has one name more than once. */
function repeated(runs: readonly Run[], name: (run: Run) => string): Set<string> {
  const seen = new Set<string>();
  const flavours = new Set<string>();
  for (const run of runs) {
    const key = JSON.stringify([run.load, name(run)]);
    if (seen.has(key)) flavours.add(run.flavour);
    seen.add(key);
  }
  return flavours;
}

/** The name of a run in texts: flavour and load, and the experiment if the report has several. */
export function runName(run: Run, report: Report): string {
  const name = `${run.flavour}, ${run.load}`;
  return report.runs.every(({ experiment }) => experiment === run.experiment) ? name : `${name}, ${run.experiment}`;
}

/** What `responder` answered in this run, if it took part. */
export function seriesOf(run: Run, responder: string): Series | undefined {
  return run.series.find((series) => series.responder === responder);
}

/** A limit on a statistic with the lanes that have it. */
export interface LimitOf {
  finding: StatisticFinding;
  /** Names of the lanes. */
  whose: string[];
}

/** The limits on statistics of `responder` among the runs of some lanes, each once, with those that it belongs to. */
export function limitsOn(lanes: readonly Lane[], responder: string): LimitOf[] {
  const limits = new Map<string, LimitOf>();
  for (const { name, run } of lanes) {
    for (const finding of run.findings) {
      if (finding.responder !== responder || !("statistic" in finding)) continue;
      const key = `${finding.statistic} ${finding.bound_ns}`;
      const known = limits.get(key);
      if (known === undefined) limits.set(key, { finding, whose: [name] });
      else known.whose.push(name);
    }
  }
  return [...limits.values()];
}

/** All kinds of loss together. */
export function lossesTotal({ losses }: Series): number {
  return Object.values(losses).reduce((sum, n) => sum + n, 0);
}

/** One row of the configuration side by side; null where a run has no such entry. */
export interface ConfigurationRow {
  key: string;
  values: (string | null)[];
  differs: boolean;
}

/** The configurations of some runs side by side, by group, every key that any of them has. */
export function configurationRows(runs: readonly Run[]): { group: string; rows: ConfigurationRow[] }[] {
  const groups = new Map<string, Map<string, (string | null)[]>>();
  runs.forEach((run, i) => {
    for (const { group, entries } of run.configuration) {
      const rows = groups.get(group) ?? new Map<string, (string | null)[]>();
      groups.set(group, rows);
      for (const { key, value } of entries) {
        const values = rows.get(key) ?? runs.map(() => null);
        values[i] = value;
        rows.set(key, values);
      }
    }
  });
  return [...groups].map(([group, rows]) => ({
    group,
    rows: [...rows].map(([key, values]) => ({ key, values, differs: new Set(values).size > 1 })),
  }));
}
