// SPDX-License-Identifier: GPL-2.0-or-later
// When triggers come, by docs/generator-protocol.md, and numbers that look random and come again.

const U64 = (1n << 64n) - 1n;

function mix(x) {
  let z = (x + 0x9e3779b97f4a7c15n) & U64;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & U64;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & U64;
  return z ^ (z >> 31n);
}

export function displacement(seed, n, jitter) {
  return (mix(seed ^ mix(n)) * (jitter + 1n)) >> 64n;
}

/** The instants of a periodic run, in ticks. */
export function schedule({ phase, period, jitter, seed, count }) {
  const instants = Array.from({ length: count }, (_, n) => BigInt(n));
  const at = (n) => BigInt(phase) + n * BigInt(period) + displacement(BigInt(seed), n, BigInt(jitter));
  return instants.map(at);
}

/** Whole numbers below what is asked for, from a seed. */
export function random(seed) {
  let n = 0n;
  return (below) => Number(((mix(BigInt(seed) ^ mix(n++)) >> 32n) * BigInt(below)) >> 32n);
}
