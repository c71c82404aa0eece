// SPDX-License-Identifier: GPL-2.0-or-later
// Builds the pages, each one file with its style and its script: dist/report.html, which has a marker that
// `onset report` replaces by the JSON of a report, and dist/site.html, which `onset serve` shows. With --tests, bundles
// the tests for plain Node instead, so that they run on versions that do not read TypeScript.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const MARKER = "__ONSET_REPORT__";

async function bundle(entry) {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome109", "firefox115", "safari16"],
    charset: "utf8",
    legalComments: "none",
  });
  return result.outputFiles[0].text.trim();
}

/** The source expression that allows exactly this inline text in a content security policy. */
function allowed(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Puts `text` in the place of `name`, which the template must hold exactly once. */
function fill(template, name, text) {
  const parts = template.split(name);
  if (parts.length !== 2) {
    throw new Error(`the template: expected ${name} once, found it ${parts.length - 1} times`);
  }
  return parts.join(text);
}

/**
 * Builds one page of one file. `marker` stands exactly once in a page that is filled later, and in no part of it.
 */
async function buildPage(name, { script: entry, style: look, template, marker }) {
  const script = await bundle(entry);
  const style = await bundle(look);
  // A closing tag or a second marker inside them would break the page or swallow the report.
  for (const [name, text] of [
    ["script", script],
    ["style", style],
  ]) {
    if (text.toLowerCase().includes(`</${name}`) || text.includes(MARKER)) {
      throw new Error(`the bundled ${name} cannot be inlined: it holds </${name} or ${MARKER}`);
    }
  }
  let page = await readFile(here(template), "utf8");
  page = fill(page, "%POLICY_SCRIPT%", allowed(script));
  page = fill(page, "%POLICY_STYLE%", allowed(style));
  page = fill(page, "%STYLE%", style);
  page = fill(page, "%SCRIPT%", script);
  if (marker !== undefined && page.split(marker).length !== 2) {
    throw new Error(`${template}: ${marker} must stand in the page exactly once`);
  }
  await mkdir(here("dist"), { recursive: true });
  await writeFile(here(`dist/${name}`), page);
  console.log(`dist/${name}  ${(Buffer.byteLength(page) / 1000).toFixed(1)} kB`);
}

async function buildPages() {
  const report = { script: "src/main.ts", style: "src/style.css", template: "src/template.html", marker: MARKER };
  const site = { script: "src/site/main.ts", style: "src/site/site.css", template: "src/site/site.html" };
  await buildPage("report.html", report);
  await buildPage("site.html", site);
}

async function buildTests() {
  await build({
    entryPoints: ["unit", "scope", "save", "browser", "prices", "courses", "reading", "generator", "site", "live"]
      .map((name) => here(`test/${name}.test.ts`))
      .concat(here("test/figures.ts"), here("test/growth.ts")),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    packages: "external",
    outdir: here("dist/test"),
    outExtension: { ".js": ".mjs" },
  });
}

await (process.argv.includes("--tests") ? buildTests() : buildPages());
