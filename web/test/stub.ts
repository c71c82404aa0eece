// SPDX-License-Identifier: GPL-2.0-or-later
// A server of the page of `onset serve`, for tests: it says what a test has it say.

import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { History, Past } from "../src/site/history.ts";
import type { Listed } from "../src/site/runs.ts";
import type { Told } from "../src/site/told.ts";
import { visitServer } from "./chromium.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
export const EXAMPLE = JSON.parse(await readFile(at("../../test/told.json"), "utf8")) as Told;
const SITE = await readFile(at("../site.html"), "utf8");

export const RUNS: Listed[] = [
  { flavour: "7.3-rt", load: "mixed", verdict: "pass", samples: 10_000 },
  { flavour: "6.12 preempt=none", load: "mixed", verdict: "fail", samples: 900 },
  { flavour: "7.3-rt", load: "idle", verdict: "pass", samples: 20_000 },
].map((run, n) => ({
  ...run,
  run: `2026112${n}-120000-run-000${n}`,
  damaged: null,
  title: "<b>ladder</b>",
  created: `2026-11-2${n}T12:00:00Z`,
  instrument: "trigger",
  seed: 1,
  complete: n !== 1,
}));

/** A history: the worst latency of each run is its number in milliseconds. */
export function past(n: number, more: Partial<Past> = {}): Past {
  const numbers = {
    count: 10_000,
    losses: { superseded: n, dropped: 0 },
    p50_ns: 5_000,
    p99_ns: 90_000,
    max_ns: n * 1e6,
    columns: [{ low_ns: 4_000, high_ns: 6_000, count: 9_999 }, { low_ns: n * 1e6 - 10, high_ns: n * 1e6 + 10, count: 1 }],
  };
  const run = RUNS[0];
  return {
    run: `202611${10 + n}-120000-run-000${n}`,
    created: `2026-11-${10 + n}T12:00:00Z`,
    title: "<b>ladder</b>",
    flavour: run?.flavour ?? "",
    load: "mixed",
    instrument: "trigger",
    kernel: "7.3.1-rt",
    clock: "virtual",
    verdict: n === 2 ? "fail" : "pass",
    complete: true,
    numbers,
    ...more,
  };
}
export const HISTORY: History = {
  responder: "task",
  responders: ["hardirq", "task"],
  runs: [
    past(1, { verdict: "invalid" }),
    past(2, { complete: false }),
    past(3, { flavour: "6.12" }),
    past(4),
    past(5, { numbers: null }),
  ],
  omitted: 3,
  damaged: 1,
};

/** A server of the page: what it was asked, and how it tells pages something. */
export class Stub {
  readonly asked: string[] = [];
  refusal: string | null = null;
  private readonly pages = new Set<ServerResponse>();
  private readonly server: Server = createServer((request, response) => void this.answer(request, response));

  async open(): Promise<string> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  tell(told: Told): void {
    for (const page of this.pages) page.write(`data: ${JSON.stringify(told)}\n\n`);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request) body += String(part);
    const { method = "", url = "" } = request;
    if (url === "/") response.setHeader("content-type", "text/html").end(SITE);
    else if (url === "/api/bin") response.end(JSON.stringify({ schema: 1, runs: RUNS.slice(0, 2) }));
    else if (url.startsWith("/api/history")) {
      this.asked.push(url);
      response.end(JSON.stringify({ schema: 1, ...HISTORY }));
    } else if (url.endsWith("/manifest.json")) {
      const n = Number(url.split("/")[1]?.at(-1));
      const { flavour, load } = RUNS[n] as Listed;
      const left = { created: `2026-11-2${n}`, experiment: { source: `${n}` } };
      const about = { ...left, flavour, load, kernel: { release: `7.3.${n}` } };
      response.end(JSON.stringify({ about }));
    } else if (url === "/api/runs") response.end(JSON.stringify({ schema: 1, runs: RUNS }));
    else if (url === "/api/live") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      this.pages.add(response);
      this.tell({ ...EXAMPLE, standing: "idle", channels: [] });
    } else if (method === "POST") {
      this.asked.push(`${url} ${body}`);
      if (this.refusal !== null) response.writeHead(409);
      response.end(this.refusal ?? "");
    } else response.writeHead(404).end();
  }
}

export async function served(
  hash: string,
  check: (page: Page, stub: Stub) => Promise<void>,
  options: Parameters<typeof visitServer>[3] = {},
): Promise<void> {
  const stub = new Stub();
  const address = await stub.open();
  try {
    await visitServer(address, hash, (page) => check(page, stub), options);
  } finally {
    stub.close();
  }
}
