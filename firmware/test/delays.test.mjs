// SPDX-License-Identifier: GPL-2.0-or-later
// Known delays in, the same delays out, through PIO, DMA, the protocol and USB of the emulated board.

import assert from "node:assert/strict";
import { test } from "node:test";
import { protocol } from "./host.mjs";
import { ALL, assertAddsUp, assertOnSchedule, COUNT_TICKS, start } from "./rig.mjs";
import { random, schedule } from "./schedule.mjs";

test("10,000 known delays come out within one count, on a schedule that is the virtual generator's to the tick", (t) => {
  const periodic = { period: 50_001, jitter: 3000, seed: 42, phase: 77, count: 10_000 / ALL };
  const settings = { ...periodic, high: 700, grace: 1_250_000 };
  const { board, host } = start(settings);
  const draw = random(1);
  const delays = [];
  board.onRise = (n, cycle) => {
    // The hard handler comes first: nobody else was told of a trigger before it. 1 in 8 answers are seen with its own.
    const first = 20 + draw(900);
    delays[n] = Array.from({ length: ALL }, (_, r) => (r === 0 || draw(8) === 0 ? first : first + draw(4000)));
    delays[n].forEach((delay, responder) => board.toggle(responder, cycle + delay));
  };
  const begun = board.cycle;
  host.start();
  const stopped = host.finish(700_000);
  t.diagnostic(`${board.cycle - begun} cycles of the board`);
  assert.deepEqual([stopped.ended, stopped.triggers], [2, BigInt(settings.count)]);
  assertAddsUp(stopped, host);
  const due = schedule(settings);
  assertOnSchedule(board, due);
  assert.equal(host.measurements.length, 10_000);
  let worst = 0;
  for (const { trigger, at_ticks, responder, latency_ticks } of host.measurements) {
    assert.equal(at_ticks, due[Number(trigger)]);
    const delay = delays[Number(trigger)][protocol.RESPONDERS.indexOf(responder)];
    worst = Math.max(worst, Math.abs(Number(latency_ticks) - delay));
  }
  t.diagnostic(`the largest difference is ${worst} ticks of 8 ns`);
  assert.ok(worst <= COUNT_TICKS, `${worst} ticks`);
});
