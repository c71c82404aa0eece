// SPDX-License-Identifier: GPL-2.0-or-later
// What is shown, in the address of the page: `#live?frequency=2kHz`. So a link shows the same again.

/** What a page shows, and how. */
export interface Address {
  readonly page: Page;
  readonly words: ReadonlyMap<string, string>;
}

export const PAGES = ["runs", "history", "bin", "live"] as const;
export type Page = (typeof PAGES)[number];

/**
 * Why the way between this browser and `onset serve` is not safe; null where both are on one machine. The server has no
 * certificate, so what leaves the machine is not encrypted.
 */
export function exposed(hostname: string, port: string): string | null {
  if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return null;
  const way = `ssh -L ${port}:127.0.0.1:${port} ${hostname}`;
  return `Nothing between this browser and ${hostname} is encrypted: whoever can listen on the network can read this page and its address, which opens it. \`${way}\` encrypts it, with \`onset serve --listen 127.0.0.1:${port}\` there.`;
}

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
