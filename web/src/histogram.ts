// SPDX-License-Identifier: GPL-2.0-or-later
// Latency histogram: how many answers have which latency. All flavours are in one chart, and both axes are logarithmic.

import uPlot from "uplot";
import { type ChartParts, drawChart, type Limit, ZOOM } from "./chart.ts";
import type { Series } from "./contract.ts";
import { duration, integer, tick } from "./format.ts";
import { colour, dash, swatch } from "./look.ts";
import type { About } from "./save.ts";
import { logRange } from "./ticks.ts";

/** One flavour's answers with its look. */
export interface Answers {
  name: string;
  look: number;
  series: Series;
  /** The limits of this flavour on its maximum. */
  limits: Limit[];
  /** Whether it has any limit on this responder. */
  limited: boolean;
}

/** The axis begins below one answer, so that a single answer is visible above it. */
const COUNT_LOW = 0.6;

/** Draws into `host`; draws nothing if there was no answer. */
export function drawHistogram(host: HTMLElement, answers: readonly Answers[], limits: Limit[], about: About): boolean {
  const columns = answers.flatMap(({ series }) => series.columns);
  const x = logRange(
    columns.flatMap(({ low_ns, high_ns }) => [low_ns, high_ns]),
    1.15,
  );
  const y = logRange(
    columns.map(({ count }) => count),
    1.6,
  );
  if (x === null || y === null) return false;
  const paths = uPlot.paths.stepped?.({ align: 1 });
  const tables = answers.map(({ series }) => outline(series));
  const parts: ChartParts = {
    name: "histogram",
    label: "Latency histogram, counts on a logarithmic scale. The numbers are in the table below.",
    height_px: 260,
    x: { label: "latency", range: x, log: true, text: tick },
    y: { label: "answers", range: { low: COUNT_LOW, high: y.high }, log: true, text: (n) => (n < 1 ? "" : integer(n)) },
    data: uPlot.join(tables),
    series: answers.map(({ name, look }) => ({
      label: name,
      stroke: () => colour(look),
      fill: () => `${colour(look)}1c`,
      dash: dash(look),
      width: 1.5,
      spanGaps: true,
      points: { show: false },
      ...(paths && { paths }),
    })),
    stepped: true,
    limits,
    about,
    read: (latency_ns) => readAt(latency_ns, answers),
    hint: `Point at the chart to read its counts. ${ZOOM}`,
  };
  drawChart(host, parts);
  return true;
}

/** The columns as the corners of a stepped line that returns to zero wherever columns do not touch. */
function outline({ columns }: Series): uPlot.AlignedData {
  const x: number[] = [];
  const y: number[] = [];
  let end_ns = -1;
  for (const { low_ns, high_ns, count } of columns) {
    if (low_ns > end_ns + 1) {
      if (x.length > 0) (x.push(end_ns), y.push(0));
      // A step up needs a place before it. One millionth to the left is too near to be seen.
      (x.push(Math.max(low_ns, 0.5) * (1 - 1e-6)), y.push(0));
    }
    (x.push(Math.max(low_ns, 0.5)), y.push(count));
    end_ns = high_ns;
  }
  if (x.length > 0) (x.push(end_ns), y.push(0));
  return [x, y];
}

function readAt(latency_ns: number, answers: readonly Answers[]): (Node | string)[] {
  const found = answers.flatMap(({ name, look, series }) => {
    const column = series.columns.find(({ low_ns, high_ns }) => low_ns <= latency_ns && latency_ns <= high_ns);
    return column === undefined
      ? []
      : [
          swatch(look),
          ` ${name} ${integer(column.count)} in ${duration(column.low_ns)} … ${duration(column.high_ns)}  `,
        ];
  });
  return found.length > 0 ? found : [`${duration(latency_ns)}: no answers`];
}
