// SPDX-License-Identifier: GPL-2.0-or-later
// The protocol's side of the firmware, on this machine: golden bytes, the schedule, and anything a line may bring.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bootChecksum } from "../image.mjs";
import { protocol } from "./host.mjs";
import { schedule } from "./schedule.mjs";

const HOST = new URL("../../target/firmware/host", import.meta.url).pathname;
const GOLDEN = new URL("../../crates/wire/golden/generator.txt", import.meta.url);

const host = (args, input = "") => execFileSync(HOST, args, { input, encoding: "utf8" });

/** Name and bytes of each line. */
function golden() {
  const lines = readFileSync(GOLDEN, "utf8").trim().split("\n");
  return lines.map((line) => line.split(": ")).map(([name, hex]) => ({ name, hex }));
}

test("the golden streams are read as the page reads them, and frames are written with the same bytes", () => {
  const streams = golden();
  assert.ok(streams.length > 30);
  const read = host(["frames"], streams.map(({ hex }) => `${hex}\n`).join("")).trim().split("\n");
  assert.equal(read.length, streams.length);
  let whole = 0;
  streams.forEach(({ name, hex }, n) => {
    const deframer = new protocol.Deframer();
    const expected = deframer.push(Buffer.from(hex, "hex"));
    const parts = read[n].split(";");
    assert.equal(Number(parts.pop()), deframer.damaged, name);
    assert.equal(parts.length, expected.length, name);
    parts.forEach((part, i) => {
      const [version, kind, number, payload, written] = part.split(" ");
      const { payload: bytes, ...head } = expected[i];
      assert.deepEqual([Number(version), Number(kind), Number(number)], [head.version, head.kind, head.number], name);
      assert.equal(payload, Buffer.from(bytes).toString("hex"), name);
      if (head.version !== protocol.VERSION) return;
      assert.equal(written, Buffer.from(protocol.write(expected[i])).toString("hex"), name);
      if (parts.length === 1 && deframer.damaged === 0 && written === hex) whole++;
    });
  });
  assert.ok(whole > 20, `${whole} streams are one frame`);
});

test("the schedule is the protocol's, also with the largest numbers", () => {
  const runs = [
    { phase: 0, period: 1250, jitter: 0, seed: 1, count: 100 },
    { phase: 500, period: 125_000, jitter: 100_000, seed: 0xffffffffffffffffn, count: 1000 },
    { phase: 1, period: 2n ** 51n, jitter: 2n ** 51n - 2000n, seed: 7, count: 500 },
  ];
  for (const run of runs) {
    const { phase, period, jitter, seed, count } = run;
    const lines = host(["schedule", phase, period, jitter, seed, count].map(String)).trim().split("\n");
    assert.equal(lines.pop(), "end");
    assert.deepEqual(lines.map(BigInt), schedule(run));
  }
  const beyond = host(["schedule", "0", String(2n ** 63n), "0", "1", "3"]).trim().split("\n");
  assert.deepEqual(beyond, ["0", String(2n ** 63n), "beyond"]);
});

test("a level that is longer than the line's words are is put in pieces, and no tick is lost", () => {
  const LEAD = 1250n;
  const runs = [
    { phase: 0, period: 1253, jitter: 0, seed: 1, count: 500, high: 1250 },
    { phase: 77, period: 2n ** 33n + 5n, jitter: 2n ** 32n, seed: 5, count: 60, high: 2n ** 32n + 1n },
    { phase: 2n ** 31n, period: 2n ** 31n + 4n, jitter: 0, seed: 1, count: 300, high: 2n ** 31n },
    { phase: 2n ** 44n, period: 2n ** 31n + 2n ** 30n, jitter: 9, seed: 3, count: 100, high: 2n ** 30n + 1n },
  ];
  for (const run of runs) {
    const { phase, period, jitter, seed, count, high } = run;
    const lines = host(["levels", phase, period, jitter, seed, count, high].map(String)).trim().split("\n");
    assert.equal(lines.pop(), "end");
    const edges = [];
    let [now, level] = [0n, "0"];
    for (const [next, ticks] of lines.map((line) => line.split(" "))) {
      assert.ok(BigInt(ticks) >= 3n && BigInt(ticks) <= 2n ** 31n, ticks);
      if (next !== level) edges.push(now - LEAD);
      [now, level] = [now + BigInt(ticks), next];
    }
    edges.push(now - LEAD);
    const due = schedule(run);
    assert.deepEqual(edges, due.flatMap((instant) => [instant, instant + BigInt(high)]));
  }
});

test("no bytes harm it, and what it counts adds up, whoever answers and whoever reads", (t) => {
  for (const seed of [1, 2, 3, 4]) {
    const said = host(["fuzz", String(seed), "300000"]);
    const [frames, runs, damaged] = said.match(/\d+/g).map(Number);
    t.diagnostic(`seed ${seed}: ${said.trim()}`);
    assert.ok(frames > 5_000 && runs > 100 && damaged > 1000, said);
  }
});

test("the checksum of the second stage is the bootrom's", () => {
  // CRC-32/MPEG-2 of the usual nine bytes.
  assert.equal(bootChecksum(Buffer.from("123456789")), 0x0376e6e7);
});
