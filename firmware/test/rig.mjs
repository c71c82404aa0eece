// SPDX-License-Identifier: GPL-2.0-or-later
// A board that is switched on and has a host, and what has to hold of each run.

import assert from "node:assert/strict";
import { Board } from "./emulator.mjs";
import { Host } from "./host.mjs";

const image = (name) => new URL(`../../target/firmware/${name}.elf`, import.meta.url).pathname;
export const ALL = 8;
export const COUNT_TICKS = 2;
export const GAP = 1250;

export function start(settings = {}, setUp = () => {}, name = "firmware") {
  const board = new Board(image(name));
  setUp(board);
  board.powerOn();
  const host = new Host(board);
  assert.equal(host.identify().is, "identity");
  host.set(settings);
  return { board, host };
}

const sum = (tally) => tally.measured + tally.unanswered + tally.superseded + tally.tainted + tally.overrun;

/** What has to hold of every end of a run. */
export function assertAddsUp(stopped, host) {
  for (const tally of stopped.tallies) {
    assert.equal(sum(tally), stopped.triggers, tally.responder);
    const come = host.measurements.filter((m) => m.responder === tally.responder).length;
    assert.equal(BigInt(come) + tally.dropped, tally.measured, tally.responder);
  }
}

/** The line rose at the instants of the schedule, to the tick; their place to each other is all that is known. */
export function assertOnSchedule(board, due) {
  assert.equal(board.rises.length, due.length);
  const since = board.rises.map((rise) => rise - board.rises[0]);
  assert.deepEqual(since, due.map((instant) => Number(instant - due[0])));
}
