// SPDX-License-Identifier: GPL-2.0-or-later
// The greatest and the least of numbers, however many: a call takes only so many arguments, and a report has more
// slices of time than that. Pure.

/** The greatest of these and of `least`. */
export function greatest(numbers: Iterable<number>, least = -Infinity): number {
  let found = least;
  for (const n of numbers) found = Math.max(found, n);
  return found;
}

/** The least of these and of `greatest`. */
export function smallest(numbers: Iterable<number>, greatest = Infinity): number {
  let found = greatest;
  for (const n of numbers) found = Math.min(found, n);
  return found;
}
