// SPDX-License-Identifier: GPL-2.0-or-later
// What a reader can take along: each chart as a picture, each table as CSV. A picture is an SVG first; the PNG is that,
// painted by the browser at the device's own resolution. Text only ever becomes a text node there, so nothing of a run
// turns into markup.

import { csv, formulas } from "./csv.ts";
import { h, svg } from "./element.ts";
import { integer } from "./format.ts";
import { colour, dash, marker, swatch, token } from "./look.ts";
import { FONT } from "./pen.ts";

/** What a picture says beside its axes. */
export interface About {
  title: string;
  /** The clock of its times, in words. */
  clock: string;
  /** What is drawn: its name, its look where it has one, and how many answers it has and lacks. */
  of: { name: string; look?: number; count: number; lost?: number }[];
}

/** A chart to be saved. */
export interface Picture {
  about: About;
  width: number;
  height: number;
  body: SVGElement;
}

/** The clocks in words; of `counter` docs/generator-protocol.md. */
const CLOCKS: Record<string, string> = {
  virtual: "virtual time",
  monotonic: "time of CLOCK_MONOTONIC",
  tsc: "time of the TSC",
  counter: "time of the generator's counter",
};

/** A clock in words. */
export function clockText(clock: string): string {
  return CLOCKS[clock] ?? clock;
}

const numbers = ({ count, lost }: About["of"][number]) =>
  `n ${integer(count)}${lost === undefined ? "" : `, lost ${integer(lost)}`}`;

/** The line below a chart: on how many answers it is based, what was lost, and by which clock. */
export function basis({ clock, of }: About): HTMLElement {
  const each = of.map((one) =>
    h("span", {}, one.look !== undefined && swatch(one.look), ` ${one.name}: ${numbers(one)}`),
  );
  return h("p", { class: "basis" }, ...each, h("span", {}, clock));
}

/** The buttons that save what `picture` then draws. */
export function saveButtons(picture: () => Picture): HTMLElement {
  const said = h("span", { class: "said-saved", role: "status" });
  const button = (kind: string, save: (text: string, of: Picture) => Promise<Blob>) => {
    const element = h("button", { type: "button", class: "take", title: `Save this chart as ${kind}` }, kind);
    element.addEventListener("click", () => {
      const of = picture();
      const failed = () => (said.textContent = `This browser cannot make a ${kind} of it.`);
      void save(documentOf(of), of).then((blob) => download(blob, of.about.title, kind.toLowerCase()), failed);
    });
    return element;
  };
  const vector = button("SVG", async (text) => new Blob([text], { type: "image/svg+xml" }));
  return h("span", { class: "save" }, button("PNG", raster), vector, said);
}

/** The button that saves a table. */
export function csvButton(label: string, table: HTMLTableElement): HTMLElement {
  const said = h("span", { class: "said-saved", role: "status" });
  const button = h("button", { type: "button", class: "take", title: `Save “${label}” as CSV` }, "CSV");
  button.addEventListener("click", () => {
    const { text, cells } = csv(table);
    download(new Blob([text], { type: "text/csv;charset=utf-8" }), label, "csv");
    const suspect = formulas(cells);
    // The file has what the table has. Whoever opens it in a spreadsheet is to know.
    if (suspect > 0) said.textContent = `${integer(suspect)} cells begin like a formula: have a spreadsheet read them as text.`;
  });
  return h("span", { class: "save" }, button, said);
}

function download(blob: Blob, title: string, kind: string): void {
  const name = title.normalize("NFKD").replace(/[^A-Za-z0-9.=]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80);
  const link = h("a", { href: URL.createObjectURL(blob), download: `onset-${name}.${kind}` });
  link.click();
  // The browser takes what it needs of it at once, or soon.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const PAD = 12;
const LINE = 18;

/** Words in lines of at most so many letters. A word longer than a line is cut. */
function wrapped(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/[ \t\r\n]+/).flatMap((word) => word.match(new RegExp(`.{1,${most}}`, "gu")) ?? [])) {
    if (line !== "" && line.length + 1 + word.length > most) (lines.push(line), (line = ""));
    line += line === "" ? word : ` ${word}`;
  }
  return line === "" ? lines : [...lines, line];
}

/** The SVG document of a picture: title, chart, and on what it is based. */
export function documentOf({ about, width, height, body }: Picture): string {
  const whole = width + 2 * PAD;
  // About as many letters as fit, with some room to spare.
  const titles = wrapped(about.title, Math.floor(width / 9.5));
  const top = PAD + titles.length * 22;
  const text = (content: string, at: Record<string, string | number>) =>
    svg("text", { fill: token("--text"), ...at }, content);
  const keys: SVGElement[] = [];
  let y = top + height + LINE;
  for (const one of about.of) {
    const words = wrapped(`${one.name}: ${numbers(one)}`, Math.floor((width - 40) / 7));
    if (one.look !== undefined) keys.push(key(one.look, y - 4));
    for (const words_ of words) {
      keys.push(text(words_, { x: PAD + (one.look === undefined ? 0 : 42), y, "font-size": 12 }));
      y += LINE;
    }
  }
  const root = svg(
    "svg",
    { width: whole, height: y + PAD, viewBox: `0 0 ${whole} ${y + PAD}`, "font-family": FONT },
    svg("title", {}, about.title),
    svg("rect", { width: whole, height: y + PAD, fill: token("--ground") }),
    ...titles.map((title, i) => text(title, { x: PAD, y: PAD + 14 + i * 22, "font-size": 16, "font-weight": 650 })),
    svg("g", { transform: `translate(${PAD} ${top})` }, body),
    ...keys,
    text(about.clock, { x: PAD, y, "font-size": 12, fill: token("--muted") }),
  );
  return clean(new XMLSerializer().serializeToString(root));
}

/** XML has no place for most control characters; what cannot stand there is shown as what it is not. */
function clean(text: string): string {
  return text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
}

function key(look: number, y: number): SVGElement {
  const dashes = dash(look).join(" ");
  return svg(
    "g",
    { transform: `translate(${PAD} ${y})` },
    svg("path", { d: "M0 0H34", stroke: colour(look), "stroke-width": 2, "stroke-dasharray": dashes === "" ? undefined : dashes }),
    svg("path", { d: marker(look), transform: "translate(17 0)", fill: colour(look) }),
  );
}

/** The picture's pixels, as many as the screen has for it. */
async function raster(text: string): Promise<Blob> {
  const image = new Image();
  // The page's policy allows pictures of data, and of nothing else.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", {
    width: Math.round(image.width * devicePixelRatio),
    height: Math.round(image.height * devicePixelRatio),
  });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => (blob === null ? failed(new Error("no PNG")) : done(blob)), "image/png");
  });
}

/** What of a drawing's style style.css says, and a saved one must say itself. */
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "opacity",
  "font-size",
  "font-weight",
  "text-anchor",
] as const;

/** A copy of a drawing of the page that looks the same without the page. */
export function standalone<E extends SVGElement>(drawing: E): E {
  const copy = drawing.cloneNode(true) as E;
  const all = (root: SVGElement) => [root, ...root.querySelectorAll<SVGElement>("*")];
  const to = all(copy);
  all(drawing).forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[i]?.setAttribute(name, style.getPropertyValue(name));
    to[i]?.removeAttribute("class");
  });
  // Labels at the ends of an axis are beyond its box.
  copy.setAttribute("overflow", "visible");
  return copy;
}

/** The buttons of a drawing that is an SVG already. */
export function saveDrawing(drawing: SVGSVGElement, about: About): HTMLElement {
  return saveButtons(() => {
    const { width, height } = drawing.viewBox.baseVal;
    const body = standalone(drawing);
    for (const [name, value] of [["width", width], ["height", height]] as const) body.setAttribute(name, String(value));
    return { about, width, height, body };
  });
}
