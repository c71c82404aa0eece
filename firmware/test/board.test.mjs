// SPDX-License-Identifier: GPL-2.0-or-later
// The firmware in the emulator, through the whole protocol over USB. emulator.mjs says what the emulator does not have.

import assert from "node:assert/strict";
import { test } from "node:test";
import { protocol } from "./host.mjs";
import { ALL, assertAddsUp, assertOnSchedule, COUNT_TICKS, GAP, start } from "./rig.mjs";
import { random, schedule } from "./schedule.mjs";

const U64 = (1n << 64n) - 1n;

test("a host finds a generator that announces its clock, its resolution and its limits", () => {
  const { board, host } = start();
  const identity = host.identify();
  assert.equal(Buffer.from(board.replies[3].filter((_, n) => n > 1 && n % 2 === 0)).toString(), "onset generator");
  const { clock, tick_ns, tick_per, resolution_ticks, gap_ticks, train } = identity;
  assert.deepEqual({ clock, tick_ns, tick_per, resolution_ticks, gap_ticks, train },
    { clock: "counter", tick_ns: 8, tick_per: 1, resolution_ticks: 2n, gap_ticks: BigInt(GAP), train: 8192 });
  assert.deepEqual(identity.pins, Array.from({ length: 16 }, (_, pin) => (pin < 8 ? protocol.RESPONDERS[pin] : null)));
  assert.equal(host.damaged, 0);
});

test("what is outside the limits is refused with them, and changes nothing", () => {
  const { host } = start();
  const refused = (command, why, setting, range) => {
    const answer = host.ask(command);
    assert.deepEqual([answer.is, answer.why, answer.setting], ["refused", why, setting], JSON.stringify(command.is));
    if (range) assert.deepEqual([answer.range.least, answer.range.most], range.map(BigInt));
  };
  refused({ is: "set", setting: "period", value: 1249n }, 6, "period", [GAP, 3942000000000000n]);
  refused({ is: "set", setting: "high", value: 2n }, 6, "high");
  refused({ is: "set", setting: "responders", value: 256n }, 6, "responders", [1, 255]);
  refused({ is: "stop" }, 9, null);
  refused({ is: "start", timing: 1 }, 10, null, [1, 8192]);
  host.set({ period: 2000, high: 100, jitter: 751 });
  refused({ is: "start", timing: 0 }, 6, "jitter", [0, 750]);
  host.set({ jitter: 750, high: 1248 });
  refused({ is: "start", timing: 0 }, 6, "high", [3, 1247]);
  assert.equal(host.identify().settings.high.value, 1248n);
  assert.equal(host.ask({ is: "train", first: 0, times_ticks: [10n, 2000n] }).value, 2n);
  refused({ is: "train", first: 1, times_ticks: [9000n] }, 11, null, [2, 2]);
  refused({ is: "train", first: 2, times_ticks: [3249n] }, 12, null, [3250, U64]);
  assert.equal(host.identify().held, 2);
});

test("answers that come one after the other within a few cycles keep their order and their times, behind any pad", () => {
  // The pads of the line, the answers and the link may take different times; two flip-flops lie behind each.
  for (const linkCycles of [0, 1]) {
    const settings = { period: 30_001, high: 100, count: 60, grace: 50_000 };
    const { board, host } = start(settings, (b) => Object.assign(b, { linkCycles }));
    const delays = (n) => Array.from({ length: ALL }, (_, r) => 40 + (n % 7) + Math.floor((r * n) / 4));
    board.onRise = (n, cycle) => delays(n).forEach((delay, r) => board.toggle(r, cycle + delay));
    host.start();
    assertAddsUp(host.finish(50_000), host);
    assert.equal(host.measurements.length, settings.count * ALL);
    for (const { trigger, responder, latency_ticks } of host.measurements) {
      const delay = delays(Number(trigger))[protocol.RESPONDERS.indexOf(responder)];
      assert.ok(Math.abs(Number(latency_ticks) - delay) <= COUNT_TICKS, `${latency_ticks} for ${delay}`);
    }
  }
});

test("a batch says when it was closed by the clock that raises the line, and comes soon after", () => {
  const { board, host } = start({ period: 30_001, high: 100, count: 400, grace: 0, batch: 8, age: 125_000 });
  board.onRise = (n, cycle) => board.toggle(7, cycle + 200);
  const lags = [];
  const hear = host.hear.bind(host);
  host.hear = () => {
    const before = host.batches.length;
    hear();
    for (const batch of host.batches.slice(before)) lags.push(board.cycle - Number(batch.at_ticks));
  };
  host.start();
  host.finish(200_000);
  assert.ok(lags.length > 50, `${lags.length}`);
  // A host that knows only these learns the rate of the clock: the quickest batches are as late at the end as at the
  // beginning. Here that rate is exact, as the emulated crystal is.
  const quickest = (some) => Math.min(...some);
  const half = lags.length >> 1;
  const [first, second] = [quickest(lags.slice(0, half)), quickest(lags.slice(half))];
  const span = 400 * 30_001;
  assert.ok(Math.abs(second - first) / (span / 2) < 1e-3, `${first} ${second}`);
  // A frame of USB is a millisecond.
  assert.ok(lags.every((lag) => lag - first < 3 * 125_000), `${Math.max(...lags) - first}`);
});

test("the displacements of seed 1 are those of the protocol's page", () => {
  const { board, host } = start({ period: 10_000, jitter: 1000, seed: 1, phase: 0, count: 5, grace: 0 });
  host.start();
  host.finish(2000);
  const shown = [34, 914, 877, 923, 726];
  assertOnSchedule(board, shown.map((d, n) => BigInt(10_000 * n + d)));
});

test("the line is high for as long as was asked for, to the tick", () => {
  const { board, host } = start({ period: 1253, high: 3, count: 4, grace: 0 });
  const falls = [];
  board.onFall = (cycle) => falls.push(cycle);
  for (const high of [3, 4, 625, 1250]) {
    host.set({ high });
    falls.length = board.rises.length = 0;
    host.start();
    host.finish(2000);
    assert.deepEqual(falls.map((fall, n) => fall - board.rises[n]), [high, high, high, high]);
    assertOnSchedule(board, [0n, 1253n, 2506n, 3759n]);
  }
});

test("a train is raised at its instants, also where they are far apart", () => {
  const { board, host } = start({ high: 100, grace: 0 });
  const times = [5n, 1255n, 2506n, 200_000n, 201_251n];
  host.ask({ is: "train", first: 0, times_ticks: times.slice(0, 2) });
  host.ask({ is: "train", first: 2, times_ticks: times.slice(2) });
  assert.equal(host.start(1).train, 5);
  assert.equal(host.finish(5000).triggers, 5n);
  assertOnSchedule(board, times);
});

test("answers of nobody, of everybody at once, and too many are losses of their kind", () => {
  const { board, host } = start({ period: 5000, high: 100, count: 4, responders: 0x82, grace: 25_000, phase: 5000 });
  board.onRise = (n, cycle) => {
    if (n === 1) board.toggle(7, cycle + 300);
    if (n === 2) board.toggle(7, cycle + 400), board.toggle(7, cycle + 500);
  };
  host.start();
  const { tallies } = host.finish(5000);
  const counts = ({ measured, unanswered, superseded, spurious }) =>
    [measured, unanswered, superseded, spurious].map(Number);
  assert.deepEqual(counts(tallies[0]), [0, 4, 0, 0]);
  assert.deepEqual(counts(tallies[1]), [2, 1, 1, 1]);
  const [first, second] = host.measurements;
  assert.deepEqual([first.trigger, second.trigger], [0n, 2n]);
  assert.ok(Math.abs(Number(first.latency_ticks) - 5300) <= COUNT_TICKS, `${first.latency_ticks}`);
});

test("a host that stalls loses batches that are counted, and the measurement goes on", () => {
  const settings = { period: 8000, high: 100, count: 500, batch: 1, responders: 1, grace: 10_000, phase: 0, jitter: 0 };
  const { board, host } = start(settings);
  board.onRise = (n, cycle) => board.toggle(0, cycle + 100 + n);
  host.start();
  board.stalls = true;
  board.run(34_000);
  assert.equal(host.stopped.length, 0);
  board.resume();
  const stopped = host.finish(20_000);
  const [tally] = stopped.tallies;
  assert.deepEqual([stopped.triggers, tally.measured], [500n, 500n]);
  assert.ok(tally.dropped > 100n, `${tally.dropped} dropped`);
  assertAddsUp(stopped, host);
  assertOnSchedule(board, schedule({ ...settings, seed: 1 }));
  // Those that came are in their order, and the first number of each batch tells how many are missing before it.
  let next = 0n;
  let missing = 0n;
  for (const batch of host.batches) {
    missing += batch.first - next;
    next = batch.first + BigInt(batch.measurements.length);
  }
  assert.equal(missing + (tally.measured - next), tally.dropped);
});

test("a stop ends the run early, and what was raised until then is what counts", () => {
  const { board, host } = start({ period: 3000, high: 100, responders: 1, grace: 10_000, phase: 0 });
  board.onRise = (n, cycle) => board.toggle(0, cycle + 100);
  host.start();
  board.run(700);
  assert.equal(host.ask({ is: "start", timing: 0 }).why, 8);
  assert.equal(host.ask({ is: "set", setting: "period", value: 5000n }).why, 8);
  assert.equal(host.ask({ is: "set", setting: "batch", value: 3n }).is, "accepted");
  assert.equal(host.ask({ is: "stop" }).is, "accepted");
  const stopped = host.finish(5000);
  assert.equal(stopped.ended, 1);
  assert.equal(stopped.triggers, BigInt(board.rises.length));
  assertAddsUp(stopped, host);
  // A host that comes back hears once more how the run ended.
  board.request(0x21, 0x22, 0);
  board.request(0x21, 0x22, 1);
  host.hear();
  assert.equal(host.ask({ is: "stop" }).why, 2);
  host.stopped = [];
  host.identify();
  assert.deepEqual(host.finish(1000), stopped);
});

test("the self-test tells offset and jitter of the loop, before a run and after it", () => {
  const { board, host } = start({ period: 2500, high: 100, count: 10, responders: 1, grace: 0 });
  for (const cycles of [0, 1, 7, 40]) {
    board.loopCycles = cycles;
    const result = host.ask({ is: "test" });
    assert.equal(result.is, "self-test");
    assert.equal(result.triggers, 256n);
    assert.ok(Math.abs(Number(result.offset_ticks) - cycles) <= COUNT_TICKS, `${result.offset_ticks} for ${cycles}`);
    assert.ok(result.jitter_ticks <= 2n && result.late_ticks <= 2n);
    host.start();
    host.finish(2000);
  }
});

test("a self-test without the wire, and a line that does not rise, are faults that are told", () => {
  const { board, host } = start({ period: 2500, high: 100, count: 10, responders: 1, grace: 0 });
  board.loopCycles = null;
  const { is, why, value } = host.ask({ is: "test" });
  assert.deepEqual({ is, why, value }, { is: "refused", why: 14, value: 1n });
  const line = board.mcu.gpio[10];
  line.setInputValue = () => {};
  host.start();
  const { ended, fault, triggers } = host.finish(5000);
  assert.deepEqual({ ended, fault, triggers }, { ended: 3, fault: 2, triggers: 0n });
});

test("a pin that chatters beyond what is taken ends the run with a fault, and the generator lives", () => {
  const { board, host } = start({ period: 2500, high: 100, responders: 1, grace: 0 });
  host.start();
  for (let n = 1; n < 12_000; n++) board.toggle(3, board.cycle + n * 12);
  const { ended, fault } = host.finish(5000);
  assert.deepEqual({ ended, fault }, { ended: 3, fault: 4 });
  board.run(1500);
  host.set({ count: 2 });
  host.start();
  assert.equal(host.finish(2000).ended, 2);
});

test("at the highest rate every instant is raised and measured, or counted as overrun", (t) => {
  for (const [responders, count] of [[1, 1000], [0xff, 800]]) {
    const { board, host } = start({ period: GAP, high: 100, count, responders, grace: 125_000 });
    board.onRise = (n, cycle) => {
      for (let r = 0; r < ALL; r++) if ((responders >> r) & 1) board.toggle(r, cycle + 100 + 13 * r);
    };
    host.start();
    const stopped = host.finish(100_000);
    const overrun = Number(stopped.tallies[0].overrun);
    t.diagnostic(`${stopped.tallies.length} responders at 100 kHz: ${overrun} of ${count} instants overrun`);
    assert.deepEqual([stopped.ended, stopped.triggers], [2, BigInt(count)]);
    assert.equal(board.rises.length, count - overrun);
    assertAddsUp(stopped, host);
    for (const rise of board.rises) assert.equal((rise - board.rises[0]) % GAP, 0);
  }
});

test("a run goes on where the DMA has used up its counts, and a second channel renews them", () => {
  const settings = { period: 6000, high: 100, count: 1500, responders: 1, grace: 10_000, phase: 0, jitter: 0 };
  const { board, host } = start(settings, () => {}, "renewal");
  board.onRise = (n, cycle) => board.toggle(0, cycle + 100 + (n % 50));
  const renewed = [0, 1, 2].map(() => 0);
  for (const channel of board.mcu.dma.channels.slice(0, 3)) {
    const begin = channel.start.bind(channel);
    channel.start = () => (renewed[channel.index]++, begin());
  }
  host.start();
  const stopped = host.finish(120_000);
  // Once at the start, and then for each 1024 words.
  assert.ok(renewed.every((count) => count >= 3), `${renewed}`);
  assert.deepEqual([stopped.ended, stopped.triggers], [2, 1500n]);
  assertAddsUp(stopped, host);
  assertOnSchedule(board, schedule({ ...settings, seed: 1 }));
  for (const { trigger, latency_ticks } of host.measurements) {
    const delay = 100 + (Number(trigger) % 50);
    assert.ok(Math.abs(Number(latency_ticks) - delay) <= COUNT_TICKS, `${latency_ticks} for ${delay}`);
  }
});

test("no bytes harm the board: a run goes on beside them, and commands are heard after them", () => {
  const periodic = { period: 20_011, jitter: 5000, seed: 9, phase: 0, count: 400 };
  const settings = { ...periodic, high: 100, responders: 1, grace: 1000 };
  const { board, host } = start(settings);
  board.onRise = (n, cycle) => board.toggle(0, cycle + 150);
  const started = host.start();
  const draw = random(2);
  const any = (count) => Array.from({ length: count }, () => draw(256));
  for (let n = 0; n < 150; n++) {
    // Bytes; frames of any kind with a right checksum; and settings that are only nearly allowed. A run can be stopped.
    const kind = draw(256);
    const payload = Uint8Array.from(kind === 2 ? [draw(12), 0, 0, 0, 0, 0, 0, 0, ...any(8)] : any(draw(40)));
    const frame = { version: draw(9) ? 1 : draw(256), kind: kind === 5 ? 6 : kind, number: 30_000 + n, payload };
    board.send(draw(3) ? protocol.write(frame) : any(draw(300)));
    board.run(50);
  }
  board.send([0]);
  const stopped = host.finish(80_000);
  assert.deepEqual([stopped.run, stopped.ended, stopped.triggers], [started.run, 2, 400n]);
  assert.equal(host.damaged, 0);
  assertAddsUp(stopped, host);
  assertOnSchedule(board, schedule(settings));
  assert.equal(host.identify().is, "identity");
});

test("a device that is asked for what it has not answers the next request", () => {
  const { board, host } = start();
  for (const [type, request, value] of [[0x80, 6, 0x600], [0x40, 99, 0], [0xa1, 77, 0], [0x80, 6, 0x309], [0x02, 1, 0]])
    board.request(type, request, value);
  assert.equal(host.identify().is, "identity");
});
