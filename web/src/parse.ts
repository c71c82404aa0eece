// SPDX-License-Identifier: GPL-2.0-or-later
// Reads the report in the page, and checks that this viewer understands it. The command computes all statistics from
// the bundles. The viewer draws, and computes only positions on a screen.

import { type Code, type Report, SCHEMA } from "./contract.ts";

/** A report that cannot be shown, with the reason and what to do, in words for the reader. */
export class Unreadable extends Error {
  constructor(
    readonly reason: string,
    readonly action: string,
  ) {
    super(`${reason} ${action}`);
  }
}

const AGAIN = "Write the report again with: onset report RUN… -o report.html";

/** The report in the page's JSON. Throws {@link Unreadable} if this viewer cannot draw it. */
export function parseReport(text: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Unreadable("This page holds no report: its data are missing or incomplete.", AGAIN);
  }
  const schema = isRecord(value) ? value["schema"] : undefined;
  if (schema !== SCHEMA) {
    throw new Unreadable(
      `This page's data have schema number ${JSON.stringify(schema) ?? "(none)"}; this viewer reads schema ${SCHEMA}.`,
      `The viewer and the command come from different versions of onset. ${AGAIN}`,
    );
  }
  const report = value as Report;
  const { runs, hunts, proof } = report;
  const isList = Array.isArray(runs) && Array.isArray(hunts);
  if (!isList || (runs.length + hunts.length === 0 && proof === null)) {
    throw new Unreadable("This report holds no runs, no hunts and no proof.", AGAIN);
  }
  const stranger = runs.find((run) => run.clock !== report.clock);
  if (stranger !== undefined) {
    throw new Unreadable(
      `Run ${stranger.run} was measured with the clock “${stranger.clock}”, the report with “${report.clock}”: ` +
        "Numbers of different clocks cannot share an axis.",
      "Write one report for each clock.",
    );
  }
  if (!isWhole(report.code)) {
    throw new Unreadable("This report refers to names of functions that it does not hold.", AGAIN);
  }
  return report;
}

/** Whether every index leads to a name. */
function isWhole({ frames, stacks, causes }: Code): boolean {
  return (
    stacks.every((stack) => stack.every((frame) => frame in frames)) && causes.every(({ stack }) => stack in stacks)
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
