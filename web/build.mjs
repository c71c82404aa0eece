// SPDX-License-Identifier: GPL-2.0-or-later
// Builds dist/report.html: one file that holds the page, its style and its script, and a marker that
// `onset report` replaces by the report's JSON. With --tests, bundles the tests for plain Node instead,
// so that they run on versions that do not read TypeScript.

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
    throw new Error(`template.html: expected ${name} once, found it ${parts.length - 1} times`);
  }
  return parts.join(text);
}

async function buildReport() {
  const script = await bundle("src/main.ts");
  const style = await bundle("src/style.css");
  // A closing tag or a second marker inside them would break the page or swallow the report.
  for (const [name, text] of [
    ["script", script],
    ["style", style],
  ]) {
    if (text.toLowerCase().includes(`</${name}`) || text.includes(MARKER)) {
      throw new Error(`the bundled ${name} cannot be inlined: it holds </${name} or ${MARKER}`);
    }
  }
  let page = await readFile(here("src/template.html"), "utf8");
  page = fill(page, "%POLICY_SCRIPT%", allowed(script));
  page = fill(page, "%POLICY_STYLE%", allowed(style));
  page = fill(page, "%STYLE%", style);
  page = fill(page, "%SCRIPT%", script);
  if (page.split(MARKER).length !== 2) {
    throw new Error(`template.html: ${MARKER} must stand in the page exactly once`);
  }
  await mkdir(here("dist"), { recursive: true });
  await writeFile(here("dist/report.html"), page);
  console.log(`dist/report.html  ${(Buffer.byteLength(page) / 1000).toFixed(1)} kB`);
}

async function buildTests() {
  await build({
    entryPoints: ["unit", "browser", "reading", "generator"].map((name) => here(`test/${name}.test.ts`)),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    packages: "external",
    outdir: here("dist/test"),
    outExtension: { ".js": ".mjs" },
  });
}

await (process.argv.includes("--tests") ? buildTests() : buildReport());
