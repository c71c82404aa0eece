// SPDX-License-Identifier: GPL-2.0-or-later
// Hunts: how the longest latencies grew, what each strategy did, and the finds.

import { again, WHERE } from "./again.ts";
import { causeCells, showStack, SUM_HEADS, sumCells } from "./causes.ts";
import type { Code, HuntEnd, Find, FindCause, Hunt, Hunted, Losses, OtherFind, Report } from "./contract.ts";
import { h } from "./element.ts";
import { ABSENT, duration, exactNs, integer, percentage, seed, several, sumText } from "./format.ts";
import { showGrowth } from "./growth.ts";
import { showLatency } from "./latency.ts";
import { scrollBox } from "./scroll.ts";

const ENDS: Record<HuntEnd, string> = {
  budget: "the budget was used up",
  stale: "the hunt found nothing new any more",
  enough: "it found a latency that is long enough",
  interrupted: "the user interrupted it",
  failed: "a failure of the rig ended it",
};

/** The sections, one for each hunt. */
export function showHunts({ hunts, code }: Report): HTMLElement[] {
  return hunts.map((hunt, index) => showHunt(hunt, `hunt-${index + 1}`, code));
}

function showHunt(hunt: Hunt, id: string, code: Code): HTMLElement {
  const { flavour, load, trials, triggers, virtual_ns, stacks_seen, stacks_fired_into, ended } = hunt;
  const end = ended === null ? "it has not ended" : ENDS[ended];
  return h(
    "section",
    { class: "hunt", id },
    h("h2", {}, "Hunt: ", h("em", {}, flavour), " under ", h("em", {}, load)),
    h(
      "p",
      { class: "lead" },
      `${several(trials, "trial")} with ${several(triggers, "trigger")} in ${duration(virtual_ns)} of virtual time, seed ${seed(hunt.seed)}; `,
      `triggers aimed at ${integer(stacks_fired_into)} of ${integer(stacks_seen)} stacks that opened a stretch with interrupts or preemption off; ${end}. `,
      h("code", {}, hunt.directory),
      `. ${WHERE}`,
    ),
    h("div", { class: "columns" }, showGrowth(hunt, `growth.${id}`), showStrategies(hunt)),
    ...hunt.responders.map((hunted) => showFind(hunt, hunted, code, id)),
    ...hunt.died.map(({ trial, under, text }) =>
      h("div", { class: "callout" }, h("p", {}, `The guest of trial ${integer(trial)}${where(under, ",")} died.`), h("pre", {}, text)),
    ),
    ...hunt.forked_otherwise.map((trial) =>
      h(
        "div",
        { class: "callout" },
        h(
          "p",
          {},
          `Trial ${integer(trial)} came out otherwise in a fork than in a restored guest, which is a fault of onset. Replay the finds before you believe them.`,
        ),
      ),
    ),
  );
}

/** The words for one of several guests, followed by `after`; empty if there is only one guest. */
function where(under: string | null, after = ""): string {
  return under === null ? "" : `, under ${under}${after}`;
}

function showStrategies({ strategies, responders }: Hunt): HTMLElement {
  const heads = ["trials", "triggers", "virtual", ...responders.map(({ responder }) => responder)];
  const rows = strategies.map(({ strategy, trials, triggers, virtual_ns, worst_ns }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, strategy)),
      h("td", {}, integer(trials)),
      h("td", {}, integer(triggers)),
      h("td", { title: `${exactNs(virtual_ns)} ns` }, duration(virtual_ns)),
      ...responders.map(({ responder, find }) => {
        const ns = worst_ns[responder];
        if (ns === undefined) return h("td", { class: "absent" }, ABSENT);
        const won = ns === find?.latency_ns;
        return h("td", { class: won ? "max" : "", title: `${exactNs(ns)} ns` }, duration(ns));
      }),
    ),
  );
  return h(
    "div",
    {},
    h("h3", {}, "The longest latency that each strategy found by itself"),
    scrollBox(
      "Strategies",
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col", class: "text" }, "strategy"),
            ...heads.map((head) => h("th", { scope: "col" }, head)),
          ),
        ),
        h("tbody", {}, ...rows),
      ),
    ),
  );
}

/** The losses, visible beside the longest latency; nothing if there are none. */
function lost(losses: Losses): HTMLElement | false {
  const kinds = Object.entries(losses).filter(([, n]) => n > 0);
  const text = kinds.map(([kind, n]) => `${integer(n)} ${kind}`).join(", ");
  return kinds.length > 0 && h("p", { class: "doubted" }, `Triggers without an answer of their own: ${text}.`);
}

function showFind({ flavour }: Hunt, hunted: Hunted, code: Code, id: string): HTMLElement {
  const { responder, losses, find, others } = hunted;
  if (find === null) return h("div", { class: "empty" }, h("p", {}, `${responder} never answered.`), lost(losses));
  const { latency_ns, strategy, trial, under, explanation } = find;
  return h(
    "article",
    { class: "find" },
    h(
      "h3",
      {},
      `${responder}: ${duration(latency_ns)} `,
      h("small", {}, `found by ${strategy} in trial ${integer(trial)}${where(under)}`),
    ),
    lost(losses),
    ...origin(find, code),
    ...find.missing.map((what) => h("p", { class: "doubted" }, `Not seen in this kernel: ${what}.`)),
    find.causes.length > 0 && showCauses(responder, find.causes, code),
    explanation !== null && showLatency(`Find of ${responder}, ${flavour}`, explanation, code, id),
    others.length > 0 && showOthers(responder, others, code),
  );
}

/** The causes of the longest latency, if the page does not have its explanation. */
function showCauses(responder: string, causes: readonly FindCause[], code: Code): HTMLElement {
  const rows = causes.map(({ share, cause, ...sum }) =>
    h("tr", {}, ...sumCells(sum, share), ...causeCells(code, cause)),
  );
  const table = findsTable(`Causes of the worst of ${responder}`, "causes", [...SUM_HEADS, "cause", "stack"], rows);
  return h("div", {}, h("h4", {}, "Where its time went"), table);
}

/** The columns of numbers in the table of other finds. */
const NUMBERS = ["latency", ...SUM_HEADS];

/** The other finds, each with its main cause and the file for `onset replay`. */
function showOthers(responder: string, others: OtherFind[], code: Code): HTMLElement {
  const elsewhere = others.some(({ under }) => under !== null);
  const text = (...content: (string | HTMLElement | false)[]) => h("td", { class: "text" }, ...content);
  const heads = ["latency", "found by", ...(elsewhere ? ["under"] : []), "share", "mainly", "stack", "file"];
  const rows = others.map(({ latency_ns, trial, strategy, under, disturbed, main, file }) =>
    h(
      "tr",
      {},
      h("td", { title: `${exactNs(latency_ns)} ns` }, duration(latency_ns)),
      text(`${strategy}, trial ${integer(trial)}`, disturbed && h("small", {}, " disturbed")),
      elsewhere && text(under ?? ABSENT),
      main === null ? h("td", {}, ABSENT) : h("td", { title: `of it ${sumText(main)}` }, mainShare(main)),
      ...(main === null ? [text("not explained"), text()] : causeCells(code, main.cause)),
      text(file === null ? ABSENT : h("code", {}, file)),
    ),
  );
  return h(
    "div",
    {},
    h("h4", {}, "Other finds"),
    findsTable(`Other finds of ${responder}`, "finds", heads, rows),
  );
}

/** The share of a cause, and the number of its stretches. */
function mainShare({ share, stretches }: FindCause): string {
  return stretches > 1 ? `${percentage(share)} in ${integer(stretches)}` : percentage(share);
}

function findsTable(label: string, of: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  const head = (name: string) => h("th", { scope: "col", class: NUMBERS.includes(name) ? "" : "text" }, name);
  return scrollBox(
    label,
    h("table", { class: of }, h("thead", {}, h("tr", {}, ...heads.map(head))), h("tbody", {}, ...rows)),
  );
}

/** The command that replays the find, and the stretch at which the trigger was aimed. */
function origin({ replay, stack }: Find, code: Code): HTMLElement[] {
  const replayed =
    replay === null
      ? h("p", { class: "doubted" }, "The hunt ended before it wrote this find to a file. Go on with the hunt to get the file.")
      : again(replay);
  const aimed = (code.stacks[stack]?.length ?? 0) > 0;
  const into = aimed
    ? h("div", { class: "opener" }, h("span", {}, "The trigger was aimed at a stretch opened by "), showStack(code, stack))
    : h("p", {}, "The trigger was not aimed at a stretch.");
  return [replayed, into];
}
