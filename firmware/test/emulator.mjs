// SPDX-License-Identifier: GPL-2.0-or-later
// An RP2040 with the firmware, its wires, and a host on USB. The emulator is rp2040js; what it does not have is here:
//
// * PIO at the pace of the processor. rp2040js runs PIO by a timer of node; here each cycle of the processor is one of
//   PIO, and only machines that are enabled step.
// * What the bootrom does before the second stage: it checks the CRC-32, and copies the stage to the end of the RAM.
// * Wires. A pad of rp2040js does not hear what it drives, so the line and the link are connected to themselves.
// * The two flip-flops behind each pad: PIO sees an input two cycles late.
//
// What neither has, and hardware does: level shifters and pads that take parts of a cycle, the pace of the DMA (here
// it moves a word at once), FIFOs of eight words (here four), waits of the processor for the bus, and the pace of USB
// (here a packet of the device is gone at once, unless the host stalls).

import { readFileSync } from "node:fs";
import { RP2040 } from "rp2040js";
import { bootChecksum, flashOf } from "../image.mjs";

export const PIN_ANSWERS = 2;
export const PIN_LINE = 10;
export const PIN_LOOP = 11;
const PIN_LINK = 25;
const HIGH = 1;
const CYCLE_NS = 8;
const RAM = 0x20000000;
const BOOT2_AT = 0x20041f00;
const DATA = 2;
const RESET_US = 10_000;
const FLIP_FLOPS = 2;

function ignore() {
  // What rp2040js has to say of registers that it does not have.
}

const quiet = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export class Board {
  /** Cycles since power came. */
  cycle = 0;
  /** What has come from the device, since it was last taken. */
  received = [];
  /** Whether the host takes nothing. */
  stalls = false;
  /** Cycles at which the line rose. */
  rises = [];
  /** Called at each rise of the line. */
  onRise = () => {};
  /** Called at each fall. */
  onFall = () => {};
  /** From the line to the loop pin; null where there is no wire. */
  loopCycles = 0;
  /** How much later the link is seen than it is raised, beside the flip-flops. */
  linkCycles = 0;
  #edges = new Map();
  #sending = [];
  #reads = null;
  #held = null;

  constructor(elfName) {
    const mcu = new RP2040();
    this.mcu = mcu;
    mcu.logger = quiet;
    for (const pio of mcu.pio) pio.run = () => {};
    this.#boot(flashOf(readFileSync(elfName)).flash);
    this.#remember();
    this.#wire();
    this.#connect();
  }

  #boot(flash) {
    const { mcu } = this;
    const said = new DataView(flash.buffer, flash.byteOffset).getUint32(252, true);
    if (bootChecksum(flash.subarray(0, 252)) !== said) throw new Error("the bootrom would not start this image");
    mcu.flash.set(flash);
    mcu.sram.set(flash.subarray(0, 256), BOOT2_AT - RAM);
    mcu.core.SP = BOOT2_AT;
    mcu.core.LR = 0;
    mcu.core.PC = BOOT2_AT;
  }

  /** The levels of all pins, which rp2040js asks each pin for at each look: the same bits, kept where they change. */
  #remember() {
    let levels = this.mcu.gpioValues;
    for (const pin of this.mcu.gpio) {
      const set = pin.setInputValue;
      pin.setInputValue = (value) => {
        set.call(pin, value);
        levels = pin.inputValue ? levels | (1 << pin.index) : levels & ~(1 << pin.index);
      };
    }
    Object.defineProperty(this.mcu, "gpioValues", { get: () => levels });
  }

  #wire() {
    const { gpio } = this.mcu;
    gpio[PIN_LINK].addListener((state) => this.#input(PIN_LINK, state === HIGH, this.linkCycles));
    gpio[PIN_LINE].addListener((state, before) => {
      const isHigh = state === HIGH;
      if (isHigh === (before === HIGH)) return;
      this.#input(PIN_LINE, isHigh, 0);
      if (this.loopCycles !== null) this.#input(PIN_LOOP, isHigh, this.loopCycles);
      if (isHigh) {
        this.rises.push(this.cycle);
        this.onRise(this.rises.length - 1, this.cycle);
      } else this.onFall(this.cycle);
    });
  }

  #input(pin, isHigh, cycles) {
    this.at(this.cycle + cycles + FLIP_FLOPS, () => this.mcu.gpio[pin].setInputValue(isHigh));
  }

  /** Does something in a cycle to come; in this one, at once. */
  at(cycle, deed) {
    if (cycle <= this.cycle) deed();
    else if (this.#edges.has(cycle)) this.#edges.get(cycle).push(deed);
    else this.#edges.set(cycle, [deed]);
  }

  /** The responder's pin changes its level in a cycle to come. */
  toggle(responder, cycle) {
    const pin = this.mcu.gpio[PIN_ANSWERS + responder];
    this.at(cycle + FLIP_FLOPS, () => pin.setInputValue(!pin.rawInputValue));
  }

  #step() {
    const { mcu } = this;
    this.cycle++;
    mcu.clock.tick(CYCLE_NS);
    const pio = mcu.pio[0];
    for (const machine of pio.machines) if (machine.enabled) machine.step();
    pio.checkChangedPins();
    const deeds = this.#edges.get(this.cycle);
    if (deeds) {
      this.#edges.delete(this.cycle);
      for (const deed of deeds) deed();
    }
  }

  /** Lets time pass: so many microseconds at most, and no longer than until `done`. Whether that came. */
  run(micros, done = () => false) {
    const end = this.cycle + micros * 125;
    while (this.cycle < end) {
      for (let left = this.mcu.core.executeInstruction(); left > 0; left--) this.#step();
      if (done()) return true;
    }
    return false;
  }

  /** A host on USB: it resets, configures and opens the device, as an operating system does. */
  #connect() {
    const usb = this.mcu.usbCtrl;
    const requests = [
      [0x00, 5, 1, 0, 0],
      [0x80, 6, 0x100, 0, 18],
      [0x80, 6, 0x200, 0, 255],
      [0x80, 6, 0x302, 0x409, 255],
      [0x00, 9, 1, 0, 0],
      [0x21, 0x22, 1, 0, 0],
    ];
    this.replies = [];
    const next = () => {
      const [type, request, value, index, length] = requests[this.replies.length] ?? [];
      if (type === undefined) return;
      const bytes = [type, request, value & 0xff, value >> 8, index & 0xff, index >> 8, length, 0];
      usb.sendSetupPacket(Uint8Array.from(bytes));
      this.replies.push([]);
    };
    usb.onUSBEnabled = () => usb.resetDevice();
    usb.onResetReceived = next;
    usb.onEndpointWrite = (endpoint, buffer) => {
      if (endpoint === DATA) this.received.push(...buffer);
      else if (endpoint === 0) {
        this.replies.at(-1)?.push(...buffer);
        if (buffer.length < 64) next();
      }
    };
    usb.onEndpointRead = (endpoint) => {
      if (endpoint !== DATA) return;
      this.#reads = () => {
        if (!this.#sending.length) return;
        this.#reads = null;
        usb.endpointReadDone(DATA, Uint8Array.from(this.#sending.splice(0, 64)), 20);
      };
      this.#reads();
    };
    // A packet that the device gives away is done when the host has taken it.
    const ready = usb.indicateBufferReady.bind(usb);
    usb.indicateBufferReady = (endpoint, out) => {
      if (endpoint === DATA && !out && this.stalls) this.#held = () => ready(endpoint, out);
      else ready(endpoint, out);
    };
  }

  /** The host reads again. */
  resume() {
    this.stalls = false;
    this.#held?.();
    this.#held = null;
  }

  get isOpen() {
    return this.replies.length === 6;
  }

  /** Until the host has opened the device. */
  powerOn() {
    if (!this.run(2 * RESET_US, () => this.isOpen)) throw new Error("the host has not opened the device");
    this.run(100);
  }

  /** Bytes of the host. */
  send(bytes) {
    this.#sending.push(...bytes);
    this.#reads?.();
  }

  request(type, request, value) {
    const bytes = [type, request, value & 0xff, value >> 8, 0, 0, 0, 0];
    this.mcu.usbCtrl.sendSetupPacket(Uint8Array.from(bytes));
    this.run(50);
  }
}
