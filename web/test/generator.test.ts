// SPDX-License-Identifier: GPL-2.0-or-later
// The generator protocol's golden bytes, which Rust writes, say here what they say there and in C.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Command, Frame, Message, Range, Tally } from "../src/generator.ts";
import { Deframer, NotUnderstood, read, write, writeCommand } from "../src/generator.ts";

// From where the bundled test lies, web/dist/test.
const golden = (name: string): string =>
  readFileSync(new URL(`../../../crates/wire/golden/${name}`, import.meta.url), "utf8");

const lines = (name: string): [string, string][] =>
  golden(name)
    .trimEnd()
    .split("\n")
    .map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]);

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));

const kindText = (kind: number): string => `0x${kind.toString(16).padStart(2, "0")}`;
const rangeText = ({ least, most, step }: Range): string => `${least}..${most}/${step}`;

function talliesText(tallies: Tally[]): string {
  const text = (t: Tally): string =>
    [t.measured, t.unanswered, t.superseded, t.spurious, t.tainted, t.dropped, t.overrun].join(",");
  return tallies.map((tally) => ` ${tally.responder}=${text(tally)}`).join("");
}

/** A message in the words of golden/generator-read.txt, after its name and number. */
function fieldsText(m: Message): string {
  switch (m.is) {
    case "identify":
      return ` oldest=${m.oldest} newest=${m.newest}`;
    case "set":
      return ` ${m.setting}=${m.value}`;
    case "train":
      return ` first=${m.first} times=${m.times_ticks.join(",")}`;
    case "start":
      return ` timing=${m.timing}`;
    case "stop":
    case "test":
      return "";
    case "identity": {
      const clock = m.clock === "virtual" ? 1 : 2;
      const settings = Object.entries(m.settings).map(([name, of]) => ` ${name}=${of.value} ${rangeText(of)}`);
      const tick = `tick=${m.tick_ns}/${m.tick_per} accuracy=${m.accuracy_ppb ?? "unknown"}`;
      const head = ` clock=${clock} running=${m.running} ${tick} held=${m.held} resolution=${m.resolution_ticks}`;
      const pins = m.pins.map((pin) => pin ?? "none").join(",");
      return `${head} pins=${pins} gap=${m.gap_ticks} train=${m.train} name="${m.name}"${settings.join("")}`;
    }
    case "accepted":
      return ` command=${kindText(m.command)} ${m.setting ?? "none"}=${m.value}`;
    case "refused": {
      const asked = `${m.setting ?? "none"}=${m.value}`;
      return ` why=${m.why} command=${kindText(m.command)} ${asked} ${rangeText(m.range)}`;
    }
    case "started": {
      const settings = Object.entries(m.settings).map(([name, value]) => ` ${name}=${value}`);
      return ` run=${m.run} timing=${m.timing} train=${m.train}${settings.join("")}`;
    }
    case "stopped": {
      const head = ` run=${m.run} ended=${m.ended} fault=${m.fault} triggers=${m.triggers} at=${m.at_ticks}`;
      return head + talliesText(m.tallies);
    }
    case "self-test":
      return ` triggers=${m.triggers} offset=${m.offset_ticks} jitter=${m.jitter_ticks} late=${m.late_ticks}`;
    case "batch": {
      const each = m.measurements.map((n) => ` ${n.trigger}/${n.at_ticks}/${n.responder}/${n.latency_ticks}`);
      const head = ` run=${m.run} first=${m.first} triggers=${m.triggers} at=${m.at_ticks}`;
      return head + talliesText(m.tallies) + each.join("");
    }
  }
}

function frameText(frame: Frame): string {
  try {
    const message = read(frame);
    return `${message.is} ${frame.number}${fieldsText(message)}`;
  } catch (e) {
    if (!(e instanceof NotUnderstood)) throw e;
    if (e.why === "version") return `version ${e.value}`;
    return `${e.why === "optional" ? "passed over" : e.why} ${kindText(e.value)}`;
  }
}

/** What a stream says that comes in pieces of so many bytes. */
function streamText(bytes: Uint8Array, piece: number): string {
  const [deframer, said] = [new Deframer(), [] as string[]];
  for (let at = 0; at < bytes.length; at += piece) {
    said.push(...deframer.push(bytes.subarray(at, at + piece)).map(frameText));
  }
  if (deframer.damaged > 0) said.push(`damaged ${deframer.damaged}`);
  return said.join("; ");
}

test("the golden bytes of the generator protocol say here what they say to Rust, however they are cut", () => {
  const said = lines("generator-read.txt");
  const streams = lines("generator.txt");
  assert.ok(streams.length > 30);
  for (const piece of [1, 7, 4096]) {
    const read = streams.map(([name, hex]) => [name, streamText(bytesOf(hex), piece)]);
    assert.deepEqual(read, said);
  }
});

test("commands and frames are written to the golden bytes again", () => {
  let commands = 0;
  for (const [name, hex] of lines("generator.txt").slice(0, 25)) {
    const bytes = bytesOf(hex);
    const [frame] = new Deframer().push(bytes);
    assert.ok(frame, name);
    assert.deepEqual(write(frame), bytes, name);
    if (frame.kind & 0x80) continue;
    assert.deepEqual(writeCommand(read(frame) as Command, frame.number), bytes, name);
    commands++;
  }
  assert.equal(commands, 8);
});

test("frames of every length and content are read as they were written", () => {
  for (const length of [0, 1, 245, 246, 247, 248, 500, 501, 502, 1528]) {
    for (const byte of [0, 1, 255]) {
      const frame = { version: 2, kind: 7, number: 0x0102, payload: new Uint8Array(length).fill(byte) };
      const bytes = write(frame);
      assert.ok(bytes.length <= 1544 && bytes.indexOf(0) === bytes.length - 1);
      assert.deepEqual(new Deframer().push(bytes), [frame]);
    }
  }
  const long = { version: 2, kind: 7, number: 0, payload: new Uint8Array(1529) };
  assert.throws(() => write(long), RangeError);
  assert.throws(() => writeCommand({ is: "set", setting: "seed", value: 1n << 64n }, 0), RangeError);
});

test("a flipped bit of a golden frame makes no other frame", () => {
  for (const [name, hex] of lines("generator.txt").slice(0, 8)) {
    const bytes = bytesOf(hex);
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const flipped = Uint8Array.from([...bytes, 0]);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const deframer = new Deframer();
      assert.deepEqual(deframer.push(flipped), [], `${name}, bit ${bit}`);
      assert.ok(deframer.damaged > 0);
    }
  }
});

test("a payload that is cut or longer is malformed and never read beyond its end", () => {
  for (const [name, hex] of lines("generator.txt").slice(0, 25)) {
    const [frame] = new Deframer().push(bytesOf(hex));
    assert.ok(frame, name);
    for (let length = 0; length <= frame.payload.length + 1; length++) {
      if (length === frame.payload.length) continue;
      const payload = new Uint8Array(length);
      payload.set(frame.payload.subarray(0, length));
      // A train of fewer times is one.
      if (name.startsWith("train") && length % 8 === 0 && length > 0) continue;
      assert.throws(() => read({ ...frame, payload }), NotUnderstood, `${name}, ${length} bytes`);
    }
  }
});
