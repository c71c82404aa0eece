// SPDX-License-Identifier: GPL-2.0-or-later
// Percentile plot: the share of answers whose latency is at most a given one. The axis counts nines, so that the tail
// has as much room as the rest.

import uPlot from "uplot";
import { drawChart, type Limit, ZOOM } from "./chart.ts";
import type { Series } from "./contract.ts";
import { duration, nines, tick } from "./format.ts";
import type { Answers } from "./histogram.ts";
import { colour, dash, swatch } from "./look.ts";
import type { Pen } from "./pen.ts";
import type { About } from "./save.ts";
import { logRange, type Range } from "./ticks.ts";

/** Draws into `host`; draws nothing if there was no answer. */
export function drawPercentiles(
  host: HTMLElement,
  answers: readonly Answers[],
  limits: Limit[],
  about: About,
): boolean {
  const curves = answers.map(({ series }) => nineAxis(series));
  const x = logRange(
    curves.flatMap(([xs]) => [...xs]),
    1,
  );
  const y = logRange([
    ...answers.flatMap(({ series }) => series.curve.map((point) => point.latency_ns)),
    ...limits.map(({ value }) => value),
  ]);
  if (x === null || y === null) return false;
  drawChart(host, {
    name: "percentiles",
    label: "Percentile plot. The numbers are in the table below.",
    height_px: 300,
    x: {
      label: "share of answers at or below",
      range: { low: 1, high: Math.max(10, x.high * 1.3) },
      log: true,
      text: (oneIn) => nines(oneIn),
      marks: wholeNines,
    },
    y: { label: "latency", range: y, log: true, text: tick },
    data: uPlot.join(curves),
    series: answers.map(({ name, look }) => ({
      label: name,
      stroke: () => colour(look),
      dash: dash(look),
      width: 2,
      spanGaps: true,
      points: { show: false },
    })),
    limits,
    about,
    paint: (pen) => answers.forEach(({ look }, i) => markEnd(pen, look, curves[i])),
    read: (oneIn) => readAt(oneIn, answers),
    hint: `Point at the chart to read its percentiles. Each line ends at the maximum. ${ZOOM}`,
  });
  return true;
}

/** Only whole nines are marked, 0, 90, 99, 99.9 … %, and the median where there is room. */
function wholeNines({ low, high }: Range, budget: number): number[] {
  const decades = Array.from({ length: Math.floor(Math.log10(high)) + 1 }, (_, i) => 10 ** i);
  const marks = budget > 2 * decades.length ? [1, 2, ...decades.slice(1)] : decades;
  return marks.filter((mark) => mark >= low);
}

/**
 * The curve over 1/(1−quantile), "one in how many lies above". The last of n answers has none above it
 * and would be at infinity; it is drawn at n.
 */
function nineAxis({ curve, count }: Series): [number[], number[]] {
  const xs: number[] = [];
  const ys: number[] = [];
  for (const { quantile, latency_ns } of curve) {
    const x = quantile >= 1 ? count : Math.min(1 / (1 - quantile), count);
    if (x === xs.at(-1)) ys[ys.length - 1] = latency_ns;
    else (xs.push(x), ys.push(latency_ns));
  }
  return [xs, ys];
}

function markEnd(pen: Pen, look: number, curve: [number[], number[]] | undefined): void {
  const x = curve?.[0].at(-1);
  const y = curve?.[1].at(-1);
  if (x === undefined || y === undefined) return;
  pen.mark(look, pen.place(x, "x"), pen.place(y, "y"));
}

function readAt(oneIn: number, answers: readonly Answers[]): (Node | string)[] {
  const quantile = 1 - 1 / oneIn;
  const found = answers.flatMap(({ name, look, series }) => {
    const point = series.curve.find((point) => point.quantile >= quantile) ?? series.curve.at(-1);
    return point === undefined ? [] : [swatch(look), ` ${name} ${duration(point.latency_ns)}  `];
  });
  return [`${nines(oneIn)} at or below: `, ...found];
}
