// SPDX-License-Identifier: GPL-2.0-or-later
// How long the viewer takes for a million samples, in Chromium: prints figures, and asserts no wall time. `make bench`.

import { test } from "node:test";
import { visit, write } from "./chromium.ts";
import { scopeOf } from "./edges.ts";
import { fixture } from "./fixture.ts";

/** Eight responders answer each. */
const TRIGGERS = 125_000;
const ROUNDS = 5;

test("a million samples on the oscilloscope", async () => {
  const report = fixture();
  report.runs = report.runs.slice(3, 4);
  report.runs[0]!.scope = scopeOf(report.runs[0]!, TRIGGERS);
  const path = await write("million", report);
  await visit(path, async (page) => {
    const opened = await page.evaluate(() => performance.now());
    const figures = await page.evaluate(async (rounds) => {
      const frame = () => new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
      const timed = async (act: () => void): Promise<number> => {
        await frame();
        const begun = performance.now();
        act();
        await frame();
        return performance.now() - begun;
      };
      const of = async (act: (round: number) => void): Promise<number[]> => {
        const times = [];
        for (let round = 0; round < rounds; round++) times.push(await timed(() => act(round)));
        return times.sort((a, b) => a - b);
      };
      const select = (name: string) => document.querySelector(`select[name=${name}]`) as HTMLSelectElement;
      const turn = (name: string, value: string) => {
        select(name).value = value;
        select(name).dispatchEvent(new Event("change"));
      };
      const press = (key: string) => document.querySelector("#scope .plot")?.dispatchEvent(new KeyboardEvent("keydown", { key }));
      const painted = await of((round) => turn("scope-division", round % 2 === 0 ? "100000" : "200000"));
      const wide = await of((round) => turn("scope-division", round % 2 === 0 ? "10000000" : "5000000"));
      turn("scope-division", "100000");
      const zoomed = await of(() => press("+"));
      press("0");
      const byPin = await of((round) => turn("scope-edge", round % 2 === 0 ? "either" : "rise"));
      return { painted, wide, zoomed, byPin };
    }, ROUNDS);
    const text = (times: number[]) => `median ${times[ROUNDS >> 1]!.toFixed(0)} ms, most ${times.at(-1)!.toFixed(0)} ms of ${ROUNDS}`;
    console.log(`a million samples, from the page's start to the end of its first drawing: ${opened.toFixed(0)} ms`);
    console.log(`a million samples painted, one sweep a screen: ${text(figures.painted)} (at most 1000)`);
    console.log(`a million samples painted, each in a hundred sweeps: ${text(figures.wide)} (at most 1000)`);
    console.log(`a million samples zoomed in: ${text(figures.zoomed)} (at most 100)`);
    console.log(`a million samples, another trigger: ${text(figures.byPin)} (at most 1000)`);
  });
});
