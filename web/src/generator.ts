// SPDX-License-Identifier: GPL-2.0-or-later
// What a generator of triggers says, from the bytes of a connection or of a recording: docs/generator-protocol.md. The
// numbers have up to 64 bits, so they are BigInt. Times end in `_ticks`: the identity says how long a tick is.

/** The version of the protocol that is read here. */
export const VERSION = 2;

/** The most bytes of a frame before it is stuffed, with its header and checksum. */
export const FRAME_MAX = 1536;

/** The most measurements of a batch. */
export const BATCH_MAX = 22;

const HEADER = 4;
const CHECKSUM = 4;

export const RESPONDERS = [
  "hardirq", "threaded_irq", "tasklet", "bh_work", "work", "work_highpri", "kthread", "task",
  "tasklet_hi", "timer_softirq", "waitqueue",
] as const;
/** Pins of a generator: nobody answers at those that it has not. */
const PINS = 16;
export type Responder = (typeof RESPONDERS)[number];

/** In the order of their numbers, which begin with 1. */
export const SETTINGS = [
  "period", "high", "batch", "count", "jitter", "seed", "phase", "responders", "grace", "age",
] as const;
export type Setting = (typeof SETTINGS)[number];

/** What one frame carries. */
export interface Frame {
  version: number;
  kind: number;
  number: number;
  payload: Uint8Array;
}

export interface Range {
  least: bigint;
  most: bigint;
  step: bigint;
}

export interface Tally {
  responder: Responder;
  measured: bigint;
  unanswered: bigint;
  superseded: bigint;
  spurious: bigint;
  tainted: bigint;
  dropped: bigint;
  overrun: bigint;
}

export interface Measurement {
  trigger: bigint;
  at_ticks: bigint;
  responder: Responder;
  latency_ticks: bigint;
}

export interface Identity {
  clock: "virtual" | "counter";
  /** The run that goes on; 0 where none does. */
  running: number;
  /** So many nanoseconds are `tick_per` ticks. */
  tick_ns: number;
  tick_per: number;
  /** Null where nobody knows. */
  accuracy_ppb: number | null;
  held: number;
  resolution_ticks: bigint;
  pins: (Responder | null)[];
  gap_ticks: bigint;
  train: number;
  name: string;
  settings: Record<Setting, Range & { value: bigint }>;
}

export type Command =
  | { is: "identify"; oldest: number; newest: number }
  | { is: "set"; setting: Setting; value: bigint }
  | { is: "train"; first: number; times_ticks: bigint[] }
  | { is: "start"; timing: number }
  | { is: "stop" }
  | { is: "test" };

export type Message =
  | Command
  | ({ is: "identity" } & Identity)
  | { is: "accepted"; command: number; setting: Setting | null; value: bigint }
  | { is: "refused"; why: number; command: number; setting: Setting | null; value: bigint; range: Range }
  | { is: "started"; run: number; timing: number; train: number; settings: Record<Setting, bigint> }
  | { is: "stopped"; run: number; ended: number; fault: number; triggers: bigint; at_ticks: bigint; tallies: Tally[] }
  | { is: "self-test"; triggers: bigint; offset_ticks: bigint; jitter_ticks: bigint; late_ticks: bigint }
  | {
      is: "batch";
      run: number;
      first: bigint;
      triggers: bigint;
      at_ticks: bigint;
      tallies: Tally[];
      measurements: Measurement[];
    };

/** A frame that says nothing that is understood here; `optional` ones are passed over. */
export class NotUnderstood extends Error {
  constructor(
    readonly why: "version" | "unknown" | "optional" | "malformed",
    readonly value: number,
  ) {
    super(`${why} ${value}`);
  }
}

/** CRC-32 of IEEE 802.3. */
export function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** A frame as it goes into the stream: without a zero byte, and one behind it. */
export function write({ version, kind, number, payload }: Frame): Uint8Array {
  const body = [version, kind, number & 0xff, number >> 8, ...payload];
  if (body.length + CHECKSUM > FRAME_MAX) throw new RangeError(`a frame of ${body.length + CHECKSUM} bytes`);
  const crc = checksum(Uint8Array.from(body));
  body.push(...[0, 8, 16, 24].map((shift) => (crc >>> shift) & 0xff));
  const out = [0];
  let code = 0;
  const close = (): void => {
    out[code] = out.length - code;
    code = out.push(0) - 1;
  };
  for (const byte of body) {
    if (byte !== 0) out.push(byte);
    if (byte === 0 || out.length - code === 0xff) close();
  }
  // What follows the last block is the zero byte that ends the frame.
  close();
  return Uint8Array.from(out);
}

/** A command's bytes; its answer repeats the number. */
export function writeCommand(command: Command, number: number): Uint8Array {
  const frame = (kind: number, bytes: number[]): Uint8Array =>
    write({ version: VERSION, kind, number, payload: Uint8Array.from(bytes) });
  switch (command.is) {
    case "identify":
      return frame(0x01, [command.oldest, command.newest]);
    case "set":
      return frame(0x02, [...little(SETTINGS.indexOf(command.setting) + 1), ...little(command.value)]);
    case "train":
      return frame(0x03, [...little(command.first), ...command.times_ticks.flatMap(little)]);
    case "start":
      return frame(0x04, [command.timing]);
    case "stop":
      return frame(0x05, []);
    case "test":
      return frame(0x06, []);
  }
}

/** Eight bytes. Throws where the number has more. */
function little(value: number | bigint): number[] {
  const word = BigInt(value);
  if (BigInt.asUintN(64, word) !== word) throw new RangeError(`${value} has more than 64 bits`);
  return Array.from({ length: 8 }, (_, n) => Number((word >> BigInt(8 * n)) & 0xffn));
}

/** Finds frames in a stream that comes in pieces, cut anywhere. It holds one frame and never more. */
export class Deframer {
  /** How often bytes between two delimiters were no frame. */
  damaged = 0;
  private readonly body = new Uint8Array(FRAME_MAX);
  /** Bytes of the frame that have come; more than there is room for where it is too long. */
  private length = 0;
  /** How many bytes follow before the next one that says how far. */
  private left = 0;
  /** Whether a zero is due there. */
  private zero = false;
  private begun = false;

  /** The frames that end in these bytes. */
  push(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    for (const byte of bytes) {
      if (byte !== 0) this.take(byte);
      else if (this.begun) {
        this.begun = false;
        const frame = this.end();
        if (frame) frames.push(frame);
        else this.damaged++;
      }
    }
    return frames;
  }

  private take(byte: number): void {
    if (!this.begun) {
      this.begun = true;
      this.zero = false;
      this.left = this.length = 0;
    }
    if (this.left > 0) {
      this.left--;
      this.keep(byte);
      return;
    }
    if (this.zero) this.keep(0);
    this.left = byte - 1;
    this.zero = byte !== 0xff;
  }

  private keep(byte: number): void {
    if (this.length < FRAME_MAX) this.body[this.length] = byte;
    this.length = Math.min(this.length + 1, FRAME_MAX + 1);
  }

  private end(): Frame | null {
    if (this.left > 0 || this.length > FRAME_MAX || this.length < HEADER + CHECKSUM) return null;
    const whole = this.body.slice(0, this.length);
    const view = new DataView(whole.buffer);
    const end = this.length - CHECKSUM;
    if (view.getUint32(end, true) !== checksum(whole.subarray(0, end))) return null;
    const payload = whole.subarray(HEADER, end);
    return { version: view.getUint8(0), kind: view.getUint8(1), number: view.getUint16(2, true), payload };
  }
}

class Malformed extends Error {}

/** The fields of a payload, one after the other. */
class Fields {
  private readonly view: DataView;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.view.byteLength - this.at;
  }

  private next(bytes: number): number {
    if (this.left < bytes) throw new Malformed();
    this.at += bytes;
    return this.at - bytes;
  }

  u8(): number {
    return this.view.getUint8(this.next(1));
  }

  u16(): number {
    return this.view.getUint16(this.next(2), true);
  }

  u32(): number {
    return this.view.getUint32(this.next(4), true);
  }

  u64(): bigint {
    return this.view.getBigUint64(this.next(8), true);
  }

  /** Bytes that mean nothing. */
  zeros(count: number): void {
    for (let i = 0; i < count; i++) if (this.u8() !== 0) throw new Malformed();
  }

  above0(): number {
    return this.u32() || fail();
  }

  one<T>(list: readonly T[], number: number): T {
    return list[number] ?? fail();
  }

  setting(): Setting | null {
    const number = this.u8();
    return number === 0 ? null : this.one(SETTINGS, number - 1);
  }

  /** A set of responders, a bit each. */
  responders(): number {
    const mask = this.u16();
    return mask >> RESPONDERS.length ? fail() : mask;
  }

  range(): Range {
    return { least: this.u64(), most: this.u64(), step: this.u64() };
  }

  settings<T>(each: () => T): Record<Setting, T> {
    return Object.fromEntries(SETTINGS.map((setting) => [setting, each()])) as Record<Setting, T>;
  }

  tallies(mask: number): Tally[] {
    return RESPONDERS.filter((_, pin) => (mask >> pin) & 1).map((responder) => ({
      responder,
      measured: this.u64(),
      unanswered: this.u64(),
      superseded: this.u64(),
      spurious: this.u64(),
      tainted: this.u64(),
      dropped: this.u64(),
      overrun: this.u64(),
    }));
  }
}

function fail(): never {
  throw new Malformed();
}

function identity(from: Fields): Message {
  const clock = from.one([undefined, "virtual", "counter"] as const, from.u8()) ?? fail();
  from.zeros(3);
  const running = from.u32();
  const [tick_ns, tick_per, accuracy] = [from.above0(), from.above0(), from.u32()];
  const [held, resolution_ticks] = [from.u32(), from.u64()];
  const numbers = Array.from({ length: PINS }, () => from.u8());
  const pins = numbers.map((number) => (number === 0xff ? null : from.one(RESPONDERS, number)));
  const [gap_ticks, train] = [from.u64(), from.u32()];
  from.zeros(4);
  const letters = Array.from({ length: 32 }, () => from.u8());
  const name = String.fromCharCode(...letters).replace(/\0*$/, "");
  if (!/^[ -~]*$/.test(name)) fail();
  const settings = from.settings(() => ({ value: from.u64(), ...from.range() }));
  const accuracy_ppb = accuracy === 0xffffffff ? null : accuracy;
  const clocks = { clock, running, tick_ns, tick_per, accuracy_ppb, held, resolution_ticks };
  return { is: "identity", ...clocks, pins, gap_ticks, train, name, settings };
}

function started(from: Fields): Message {
  const [run, timing] = [from.above0(), from.u8()];
  if (timing > 1) fail();
  from.zeros(3);
  const train = from.u32();
  from.zeros(4);
  return { is: "started", run, timing, train, settings: from.settings(() => from.u64()) };
}

function stopped(from: Fields): Message {
  const [run, ended] = [from.above0(), from.u8()];
  from.zeros(1);
  const [mask, fault] = [from.responders(), from.u16()];
  from.zeros(6);
  if (ended < 1 || ended > 4 || (fault !== 0 && ended !== 3)) fail();
  const [triggers, at_ticks] = [from.u64(), from.u64()];
  return { is: "stopped", run, ended, fault, triggers, at_ticks, tallies: from.tallies(mask) };
}

function batch(from: Fields): Message {
  const [run, mask, count] = [from.above0(), from.responders(), from.u8()];
  if (count > BATCH_MAX) fail();
  from.zeros(1);
  const [first, triggers, at_ticks] = [from.u64(), from.u64(), from.u64()];
  const tallies = from.tallies(mask);
  const measurements = Array.from({ length: count }, () => {
    const [trigger, at, word] = [from.u64(), from.u64(), from.u64()];
    const pin = Number(word >> 56n);
    if (!((mask >> pin) & 1)) fail();
    const latency_ticks = word & 0xff_ffff_ffff_ffffn;
    return { trigger, at_ticks: at, responder: from.one(RESPONDERS, pin), latency_ticks };
  });
  return { is: "batch", run, first, triggers, at_ticks, tallies, measurements };
}

function command(kind: number, from: Fields): Command | null {
  switch (kind) {
    case 0x01:
      return { is: "identify", oldest: from.u8(), newest: from.u8() };
    case 0x02: {
      const setting = from.setting() ?? fail();
      from.zeros(7);
      return { is: "set", setting, value: from.u64() };
    }
    case 0x03: {
      const first = from.u32();
      from.zeros(4);
      return { is: "train", first, times_ticks: Array.from({ length: from.left / 8 }, () => from.u64()) };
    }
    case 0x04: {
      const timing = from.u8();
      return timing > 1 ? fail() : { is: "start", timing };
    }
    case 0x05:
      return { is: "stop" };
    case 0x06:
      return { is: "test" };
    default:
      return null;
  }
}

function report(kind: number, from: Fields): Message | null {
  switch (kind) {
    case 0x81:
      return identity(from);
    case 0x82: {
      const [answered, setting] = [from.u8(), from.setting()];
      from.zeros(6);
      return { is: "accepted", command: answered, setting, value: from.u64() };
    }
    case 0x83: {
      const [why, answered, setting] = [from.u8(), from.u8(), from.setting()];
      if (why < 1 || why > 14) fail();
      from.zeros(5);
      return { is: "refused", why, command: answered, setting, value: from.u64(), range: from.range() };
    }
    case 0x84:
      return started(from);
    case 0x85:
      return stopped(from);
    case 0x86: {
      const [triggers, offset_ticks] = [from.u64(), from.u64()];
      return { is: "self-test", triggers, offset_ticks, jitter_ticks: from.u64(), late_ticks: from.u64() };
    }
    case 0x87:
      return batch(from);
    default:
      return null;
  }
}

/** What a frame says. Throws NotUnderstood where it says nothing that is understood. */
export function read({ version, kind, payload }: Frame): Message {
  if (version !== VERSION && kind !== 0x01 && kind !== 0x83) throw new NotUnderstood("version", version);
  const from = new Fields(payload);
  try {
    const message = kind & 0x80 ? report(kind, from) : command(kind, from);
    if (!message) throw new NotUnderstood(kind & 0x40 ? "optional" : "unknown", kind);
    return from.left === 0 ? message : fail();
  } catch (e) {
    if (e instanceof Malformed) throw new NotUnderstood("malformed", kind);
    throw e;
  }
}
