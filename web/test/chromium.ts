// SPDX-License-Identifier: GPL-2.0-or-later
// Debian's Chromium with a report in it, and what can be read off its page.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Report } from "../src/contract.ts";

/** What the build made; these tests are bundled into a folder beside it. */
export const TEMPLATE = fileURLToPath(new URL("../report.html", import.meta.url));
/** What `onset report` replaces. */
export const MARKER = "__ONSET_REPORT__";

let browser: Browser;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "onset-web-"));
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});

after(async () => {
  await browser?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Puts JSON into the template as `onset report` does. */
export async function write(name: string, report: unknown): Promise<string> {
  const template = await readFile(TEMPLATE, "utf8");
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  const path = join(directory, `${name}.html`);
  await writeFile(
    path,
    template.replace(MARKER, () => json),
  );
  return path;
}

/**
 * Opens a page of a server, hands it over, and fails on any console error but the expected one, or on a request to
 * anybody else.
 */
export async function visitServer(
  address: string,
  hash: string,
  check: (page: Page) => Promise<void>,
  options: BrowserContextOptions & { expected?: RegExp } = {},
): Promise<void> {
  const { expected = /$^/, ...context } = options;
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...context });
  const faults: string[] = [];
  page.on("console", (message) => {
    const isFault = ["error", "warning"].includes(message.type()) && !expected.test(message.text());
    if (isFault) faults.push(message.text());
  });
  page.on("pageerror", (error) => void faults.push(String(error)));
  page.on("request", (request) => {
    const isOurs = request.url().startsWith(`${address}/`) || request.url().startsWith("data:");
    if (!isOurs) faults.push(`request for ${request.url()}`);
  });
  try {
    await page.goto(`${address}/${hash}`);
    await check(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
  }
}

/** Opens a page, hands it over, and fails on any console error or on any request but that for the page. */
export async function visit(
  path: string,
  check: (page: Page) => Promise<void>,
  options: BrowserContextOptions & { hash?: string } = {},
): Promise<void> {
  const { hash = "", ...context } = options;
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...context });
  const url = pathToFileURL(path).href;
  const faults: string[] = [];
  page.on("console", (message) => void (["error", "warning"].includes(message.type()) && faults.push(message.text())));
  page.on("pageerror", (error) => void faults.push(String(error)));
  page.on(
    "request",
    (request) =>
      void (
        request.url().split("#")[0] !== url &&
        !request.url().startsWith("data:") &&
        faults.push(`request for ${request.url()}`)
      ),
  );
  try {
    await page.goto(url + hash);
    await check(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
  }
}

/** Draws a box with the mouse over the first of these, by shares of its width and height. */
export async function drag(
  page: Page,
  selector: string,
  [fromX, fromY, toX, toY]: readonly [fromX: number, fromY: number, toX: number, toY: number],
): Promise<void> {
  const over = page.locator(selector).first();
  await over.scrollIntoViewIfNeeded();
  const { x, y, width, height } = (await over.boundingBox())!;
  await page.mouse.move(x + fromX * width, y + fromY * height);
  await page.mouse.down();
  await page.mouse.move(x + toX * width, y + toY * height, { steps: 4 });
  await page.mouse.up();
}

/** Every cell text of a table, row by row. */
export function cells(page: Page, rows: string): Promise<string[][]> {
  return page.$$eval(rows, (found) =>
    found.map((row) => [...row.children].map((cell) => (cell as HTMLElement).innerText.trim())),
  );
}

/** For each canvas, the share of its pixel columns that hold the colour of the flavour with this look. */
export function coverage(page: Page, canvas: string, look: number): Promise<number[]> {
  return page.$$eval(
    canvas,
    (found, look) => {
      const hex = getComputedStyle(document.documentElement).getPropertyValue(`--look-${look}`).trim();
      const wanted = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
      return found.map((element) => {
        const { width, height } = element as HTMLCanvasElement;
        // Read from a copy: Chromium warns on the console about a canvas that is read back repeatedly.
        const copy = new OffscreenCanvas(width, height).getContext("2d")!;
        copy.drawImage(element as HTMLCanvasElement, 0, 0);
        const { data } = copy.getImageData(0, 0, width, height);
        const columns = new Set<number>();
        for (let i = 0; i < data.length; i += 4) {
          // Thin lines are smoothed: nearly opaque and nearly the colour is the colour.
          if (data[i + 3]! > 200 && wanted.every((part, j) => Math.abs(part - data[i + j]!) < 24))
            columns.add((i / 4) % width);
        }
        return columns.size / width;
      });
    },
    look,
  );
}

/** The picture in a canvas, for comparison. */
export const pixels = (page: Page, canvas: string) =>
  page.$eval(canvas, (element) => (element as HTMLCanvasElement).toDataURL());
/** The report that the page holds. */
export const reportIn = (page: Page) =>
  page.$eval("#onset-report", (element) => JSON.parse(element.textContent!) as Report);
