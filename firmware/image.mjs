// SPDX-License-Identifier: GPL-2.0-or-later
// Finishes firmware.elf: puts the checksum behind the second stage of the boot, and writes the image that a Pico takes
// by drag and drop. usage: node image.mjs FIRMWARE.ELF FIRMWARE.UF2

import { readFileSync, writeFileSync } from "node:fs";

const FLASH = 0x10000000;
const BOOT2_BYTES = 252;
const PT_LOAD = 1;

/** CRC-32 that the bootrom computes: polynomial 0x04c11db7, not reflected, begins with all ones, not inverted. */
export function bootChecksum(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/** What the flash holds, from its beginning: the parts of the file that are loaded, at their physical addresses. */
export function flashOf(elf) {
  const view = new DataView(elf.buffer, elf.byteOffset, elf.byteLength);
  const [table, size, count] = [view.getUint32(28, true), view.getUint16(42, true), view.getUint16(44, true)];
  const parts = [];
  for (let n = 0; n < count; n++) {
    const at = table + n * size;
    const [type, offset, , address, bytes] = [0, 4, 8, 12, 16].map((field) => view.getUint32(at + field, true));
    if (type === PT_LOAD && bytes > 0) parts.push({ offset, address, bytes });
  }
  const flash = new Uint8Array(Math.max(...parts.map((part) => part.address + part.bytes)) - FLASH);
  for (const { offset, address, bytes } of parts) flash.set(elf.subarray(offset, offset + bytes), address - FLASH);
  return { flash, first: parts.find((part) => part.address === FLASH) };
}

/** Blocks of 512 bytes, each with 256 of the flash and where they go. */
export function uf2Of(flash) {
  const blocks = Math.ceil(flash.length / 256);
  const out = Buffer.alloc(blocks * 512);
  for (let n = 0; n < blocks; n++) {
    const words = [0x0a324655, 0x9e5d5157, 0x2000, FLASH + n * 256, 256, n, blocks, 0xe48bff56];
    words.forEach((word, i) => out.writeUInt32LE(word, n * 512 + i * 4));
    out.set(flash.subarray(n * 256, n * 256 + 256), n * 512 + 32);
    out.writeUInt32LE(0x0ab16f30, n * 512 + 508);
  }
  return out;
}

if (process.argv[1]?.endsWith("image.mjs")) {
  const [, , elfName, uf2Name] = process.argv;
  const elf = readFileSync(elfName);
  const { flash, first } = flashOf(elf);
  elf.writeUInt32LE(bootChecksum(flash.subarray(0, BOOT2_BYTES)), first.offset + BOOT2_BYTES);
  writeFileSync(elfName, elf);
  writeFileSync(uf2Name, uf2Of(flashOf(elf).flash));
}
