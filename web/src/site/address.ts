// SPDX-License-Identifier: GPL-2.0-or-later
// What is shown, in the address of the page: `#live?frequency=2kHz`. So a link shows the same again.

/** What a page shows, and how. */
export interface Address {
  readonly page: Page;
  readonly words: ReadonlyMap<string, string>;
}

export const PAGES = ["runs", "live"] as const;
export type Page = (typeof PAGES)[number];

/** Reads the part of an address behind the `#`. What is no page is the runs. */
export function read(hash: string): Address {
  const [name = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const page = PAGES.find((known) => known === name) ?? "runs";
  return { page, words: new Map(new URLSearchParams(query)) };
}

/** Writes it. Words that are empty are left out. */
export function write(page: Page, words: Iterable<readonly [string, string]>): string {
  const query = new URLSearchParams([...words].filter(([, value]) => value !== "").map(([k, v]) => [k, v]));
  const text = query.toString();
  return text === "" ? `#${page}` : `#${page}?${text}`;
}
