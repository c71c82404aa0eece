// SPDX-License-Identifier: GPL-2.0-or-later
// The host of the protocol: web/src/generator.ts speaks it, and this asks and awaits.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildSync } from "esbuild";

async function load() {
  const here = new URL(".", import.meta.url).pathname;
  const directory = mkdtempSync(join(tmpdir(), "onset-firmware-"));
  try {
    const out = join(directory, "generator.mjs");
    buildSync({ entryPoints: [join(here, "../../web/src/generator.ts")], outfile: out, format: "esm", bundle: true });
    return await import(pathToFileURL(out));
  } finally {
    // What is imported is in memory, and what fails leaves nothing either.
    rmSync(directory, { recursive: true });
  }
}

/** Speaks to a board in the emulator. */
export class Host {
  batches = [];
  stopped = [];
  #deframer = new protocol.Deframer();
  #answers = [];
  #number = 0;

  constructor(board) {
    this.board = board;
    board.send([0]);
  }

  get damaged() {
    return this.#deframer.damaged;
  }

  /** Sorts what has come. */
  hear() {
    for (const frame of this.#deframer.push(Uint8Array.from(this.board.received.splice(0)))) {
      const message = protocol.read(frame);
      if (message.is === "batch") this.batches.push(message);
      else if (message.is === "stopped") this.stopped.push(message);
      else this.#answers.push({ number: frame.number, message });
    }
  }

  /** Asks, and lets time pass until the answer has come. */
  ask(command, micros = 20_000) {
    const number = ++this.#number;
    this.board.send(protocol.writeCommand(command, number));
    const find = () => {
      if (this.board.received.length) this.hear();
      return this.#answers.some((answer) => answer.number === number);
    };
    assert.ok(this.board.run(micros, find), `no answer to ${command.is}`);
    const at = this.#answers.findIndex((answer) => answer.number === number);
    return this.#answers.splice(at, 1)[0].message;
  }

  identify() {
    return this.ask({ is: "identify", oldest: protocol.VERSION, newest: protocol.VERSION });
  }

  set(settings) {
    for (const [setting, value] of Object.entries(settings)) {
      const answer = this.ask({ is: "set", setting, value: BigInt(value) });
      assert.equal(answer.is, "accepted", `${setting}=${value}: ${JSON.stringify(answer, (_, v) => `${v}`)}`);
    }
  }

  start(timing = 0) {
    this.stopped = [];
    this.batches = [];
    return this.ask({ is: "start", timing });
  }

  /** Until the run has ended; how it did. */
  finish(micros) {
    const done = () => {
      if (this.board.received.length) this.hear();
      return this.stopped.length > 0;
    };
    assert.ok(this.board.run(micros, done), "the run has not ended");
    return this.stopped[0];
  }

  get measurements() {
    return this.batches.flatMap((batch) => batch.measurements);
  }
}

export const protocol = await load();
