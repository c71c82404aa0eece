// SPDX-License-Identifier: GPL-2.0-or-later
// What stands where nothing can be drawn.

/** Why answers, so many, are not drawn. Only imported ones have no times and no numbers. */
export function emptyText(answers: number): string {
  return answers === 0 ? "Nothing was answered here." : "The file that was imported does not say when its loops were.";
}
