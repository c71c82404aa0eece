// SPDX-License-Identifier: GPL-2.0-or-later
// The live page: connect to a generator, and see what it measures while it does.

import { h } from "../element.ts";
import { ABSENT, duration, integer, several } from "../format.ts";
import { write, type Address } from "./address.ts";
import { saveButtons } from "../save.ts";
import { liveScope } from "../scope/live.ts";
import { readWord, readZoom, zoomHash } from "../zoom.ts";
import { axis, course, type Drawn, histogram, type Line, picture } from "./draw.ts";
import { keep } from "./keep.ts";
import { alarm, limitsOf, type Limit, type Passed, readLimits, Watch } from "./limits.ts";
import type { Channel, Drift, Standing, Told } from "./told.ts";
import { scrollBox } from "../scroll.ts";

/** A field of the form: its name in the address and in what is sent, its label, an example, what it says first. */
const FIELDS = [
  ["place", "Generator", "127.0.0.1:7010", "127.0.0.1:7010"],
  ["frequency", "Frequency", "1kHz", "1kHz"],
  ["duty", "Duty", "10%", ""],
  ["jitter", "Jitter", "100us", ""],
  ["count", "Triggers", "10000", ""],
  ["limit", "Limits", "task.max < 100us", ""],
] as const;

/** A field for each of [FIELDS], filled as the address says. */
function fields(words: ReadonlyMap<string, string>): Map<string, HTMLInputElement> {
  const field = ([name, , example, first]: (typeof FIELDS)[number]) => {
    const value = words.get(name) ?? first;
    return [name, h("input", { id: name, name, placeholder: example, value, autocomplete: "off" })] as const;
  };
  return new Map(FIELDS.map(field));
}

function formOf(
  inputs: ReadonlyMap<string, HTMLInputElement>,
  record: HTMLElement,
  buttons: readonly HTMLElement[],
  more: readonly HTMLElement[],
): HTMLFormElement {
  return h(
    "form",
    { class: "live" },
    ...FIELDS.map(([name, label]) => h("label", {}, label, inputs.get(name))),
    h("label", { class: "record" }, record, "Record to a bundle"),
    h("span", { class: "buttons" }, ...buttons),
    ...more,
  );
}

/** Shows the page in `place`, until what it returns is called. */
export function showLive(place: HTMLElement, { words }: Address): () => void {
  const inputs = fields(words);
  const value = (name: string) => inputs.get(name)?.value.trim() ?? "";
  const record = h("input", { type: "checkbox", id: "record", checked: words.get("record") === "yes" });
  const start = h("button", { type: "submit" }, "Start");
  const [stop, reset] = [h("button", { type: "button" }, "Stop"), h("button", { type: "button" }, "Reset")];
  const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const refused = h("p", { class: "refused", role: "alert" });
  const state = h("p", { class: "state" }, "Not connected to the server yet.");
  const aloud = h("p", { class: "aloud", role: "status" });
  const drift = h("p", { class: "exposed", role: "note", hidden: true }, DOUBT);
  const [alarms, watch] = [alarm(), new Watch()];
  let latest: Told | null = null;
  let drawn: Drawn | null = null;
  // The table stays while its rows change, so that who scrolls or saves it is not disturbed.
  const table = h("table", {});
  const save = saveButtons(() => picture(table, drawn));
  const ladder = h("div", { id: "ladder-live", hidden: true }, scrollBox("Latencies of each responder", table), save);
  const scope = liveScope();
  const keeping = keep((note) => void post("mark", refused, { note }));
  const form = formOf(inputs, record, [start, stop, pause, reset], keeping.controls);
  const parts = [form, refused, state, aloud, drift, alarms.element, ladder, keeping.marks, scope.element];
  place.replaceChildren(h("h1", {}, "Live"), ...parts);
  const show = () => {
    if (latest === null) return;
    const { limits, wrong } = readLimits(value("limit"));
    const passed = watch.take(latest, limits);
    state.textContent = sentence(latest);
    say(aloud, standingText(latest));
    start.disabled = ["connecting", "running", "stopping"].includes(latest.standing);
    stop.disabled = latest.standing !== "running";
    keeping.show(latest);
    alarms.show(passed, wrong);
    drift.hidden = latest.drift?.is_doubtful !== true;
    ladder.hidden = latest.channels.length === 0;
    if (isPressed(pause)) return;
    drawn = { told: latest, axis: axis(latest.channels, limits.map(({ bound_ns }) => bound_ns)) };
    table.replaceChildren(...rowsOf(drawn, limits, passed));
  };
  const remember = () => {
    const own = FIELDS.map(([name]) => [name, value(name)] as const);
    rememberWords([...own, ["record", record.checked ? "yes" : ""]]);
  };
  form.addEventListener("input", () => (remember(), show()));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    remember();
    const body = asked(value, record.checked);
    if (typeof body === "string") refused.textContent = body;
    else void post("start", refused, body);
  });
  stop.addEventListener("click", () => void post("stop", refused));
  reset.addEventListener("click", () => void post("reset", refused).then((isDone) => isDone && scope.clear()));
  pause.addEventListener("click", () => {
    turn(pause);
    show();
    scope.pause(isPressed(pause));
  });

  const events = listen([state, aloud], (told) => {
    latest = told;
    show();
    scope.take(told);
  });
  return () => {
    events.close();
    scope.clear();
  };
}

/** Pauses the drawing, or has it go on. */
function turn(pause: HTMLButtonElement): void {
  const paused = !isPressed(pause);
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Go on" : "Pause";
}

const isPressed = (pause: HTMLButtonElement) => pause.getAttribute("aria-pressed") === "true";

/** Has a reader who does not see the page hear this, once. */
function say(aloud: HTMLElement, text: string): void {
  if (aloud.textContent !== text) aloud.textContent = text;
}

/** Has `take` take what the server tells; `told` say so where it tells nothing. */
function listen(told: readonly HTMLElement[], take: (told: Told) => void): EventSource {
  const events = new EventSource("api/live");
  events.addEventListener("message", (event: MessageEvent<string>) => take(JSON.parse(event.data) as Told));
  events.addEventListener("error", () => {
    for (const one of told) say(one, "The server does not answer. Is `onset serve` still running?");
  });
  return events;
}

/** Puts what the form says into the address, beside how the oscilloscope is set. */
function rememberWords(own: readonly (readonly [string, string])[]): void {
  const { hash } = location;
  const words = [...own, ["scope", readWord(hash, "scope") ?? ""] as const];
  history.replaceState(null, "", zoomHash(write("live", words), "scope", readZoom(hash, "scope")));
}

/** What the form asks the server for, or why it asks for nothing. */
function asked(value: (name: string) => string, record: boolean): object | string {
  const words = ["place", "frequency", "duty", "jitter"].map((name) => [name, value(name)] as const);
  const count = value("count");
  if (!/^\d*$/.test(count)) return `Triggers is a whole number, as in 10000, and not ${count}`;
  const given = Object.fromEntries(words.filter(([, text]) => text !== ""));
  return { ...given, record, ...(count === "" ? {} : { count: Number(count) }) };
}

/** Whether the server does it; why it does not is said in `refused`. */
async function post(what: string, refused: HTMLElement, body?: object): Promise<boolean> {
  refused.textContent = "";
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body ?? {}) };
  const answer = await fetch(`api/live/${what}`, init).catch(() => null);
  if (answer === null) refused.textContent = "The server does not answer. Is `onset serve` still running?";
  else if (!answer.ok) refused.textContent = (await answer.text()).trim();
  return answer?.ok === true;
}

const DOUBT =
  "The generator's clock and the clock of the server's machine are further apart than crystals are off. If that machine's clock is right, each latency is wrong by that share of itself, and by no more.";

/** As in `+40.1 ± 2.3 ppm`, or `+0.004 ± 0.012 ppm` where so much is known. */
function ppm({ gain_ppb, uncertainty_ppb }: Drift): string {
  const digits = uncertainty_ppb < 100 ? 3 : 1;
  const [gain, off] = [gain_ppb, uncertainty_ppb].map((ppb) => (Math.abs(ppb) / 1e3).toFixed(digits));
  return `${gain_ppb < 0 ? "−" : "+"}${gain} ± ${off} ppm`;
}

const STANDINGS: Record<Standing, string> = {
  idle: "No generator is connected. `onset generator --flavour 7.3-rt --load mixed` makes one of a guest.",
  connecting: "Connecting …",
  running: "Running",
  stopping: "Stopping: waiting for the last answers",
  ended: "Ended",
  failed: "Failed",
};

/** What is said aloud of how things stand: without the numbers, which change four times a second. */
function standingText({ standing, message }: Told): string {
  return message === null ? STANDINGS[standing] : `${STANDINGS[standing]}: ${message}`;
}

/** How things stand, in words. */
export function sentence(told: Told): string {
  const so = STANDINGS[told.standing];
  if (told.standing === "idle" || told.standing === "connecting") return so;
  if (told.generator === "") return told.message === null ? so : `${so}: ${told.message}`;
  const clock = told.clock === "virtual" ? "virtual time" : "its own counter";
  const parts = [`${so} · ${told.generator} · ${clock}`];
  if (told.period_ns !== null) parts.push(`one trigger every ${duration(told.period_ns)}, the line is high for ${duration(told.high_ns)}`);
  parts.push(several(told.triggers, "trigger"), duration(told.measured_ns));
  if (told.drift !== null) parts.push(`its clock ${ppm(told.drift)}`);
  if (told.damaged_frames > 0) parts.push(several(told.damaged_frames, "damaged frame"));
  if (told.message !== null) parts.push(told.message);
  if (told.bundle !== null) parts.push(`recorded as ${told.bundle}`);
  return parts.join(" · ");
}

/** What was lost, each kind with its number. */
export function lost(losses: Readonly<Record<string, number>>): string {
  const counts = Object.entries(losses).filter(([, n]) => n > 0);
  return counts.length === 0 ? "0" : counts.map(([kind, n]) => `${integer(n)} ${kind}`).join(", ");
}

/** Head and rows of the ladder. */
function rowsOf({ told, axis: shared }: Drawn, limits: readonly Limit[], passed: readonly Passed[]): HTMLElement[] {
  if (told.channels.length === 0) return [];
  const range = `${duration(shared.low)} … ${duration(shared.high)}`;
  const heads = ["min", "mean", "p99", "max", "answers", "lost"];
  const rows = told.channels.map((channel) => {
    const { responder, min_ns, mean_ns, max_ns, quantiles, count, losses } = channel.summary;
    const isPassed = passed.some((one) => one.responder === responder);
    const cells = [min_ns, mean_ns, quantiles["0.99"] ?? null].map((ns) => h("td", {}, duration(ns)));
    return h(
      "tr",
      { class: isPassed ? "late" : "" },
      h("th", { scope: "row" }, responder, isPassed && h("small", {}, " limit passed")),
      h("td", {}, histogram(channel, shared, linesOf(channel, limits, passed))),
      ...cells,
      h("td", { class: "max" }, max_ns === null ? ABSENT : duration(max_ns)),
      h("td", {}, integer(count)),
      h("td", { class: "text" }, lost(losses)),
      // What it shows are maxima.
      h("td", {}, course(channel, shared, told.measured_ns, linesOf(channel, limits, passed, "max"))),
    );
  });
  const head = h(
    "tr",
    {},
    h("th", { scope: "col", class: "text" }, "responder"),
    h("th", { scope: "col", class: "text" }, `how often, ${range}`),
    ...heads.map((name) => h("th", { scope: "col", class: name === "lost" ? "text" : "" }, name)),
    h("th", { scope: "col", class: "text" }, `longest over time, ${range}`),
  );
  return [h("thead", {}, head), h("tbody", {}, ...rows)];
}

/** The limits of a responder as lines; only those of one statistic, if it is given. */
function linesOf(channel: Channel, limits: readonly Limit[], passed: readonly Passed[], only?: string): Line[] {
  const own = limitsOf(channel, limits).filter(({ statistic }) => only === undefined || statistic === only);
  const isOf = (one: Passed, limit: Limit) => one.limit === limit && one.responder === channel.summary.responder;
  return own.map((limit) => {
    return { ns: limit.bound_ns, text: limit.text, isPassed: passed.some((one) => isOf(one, limit)) };
  });
}
