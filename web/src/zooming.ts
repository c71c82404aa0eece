// SPDX-License-Identifier: GPL-2.0-or-later
// Charts that show a part of themselves: by a box that the reader draws, by keys, and by a double click that goes back.
// Charts of one name show the same part. It is in the address, so that a link shows what its sender saw.

import { h } from "./element.ts";
import type { Range } from "./ticks.ts";
import { isWhole, moved, type Part, readZoom, within, zoomHash } from "./zoom.ts";

/** All of an axis. */
export interface Scale {
  readonly range: Range;
  readonly log: boolean;
}

/** What a chart has along its sides. */
export interface Axes {
  readonly x: Scale;
  readonly y: Scale;
}

/** A chart that can be zoomed. */
export interface Zoomed {
  /** The name in the address. Charts with the same name have the same axes and zoom together. */
  readonly name: string;
  readonly axes: Axes;
  /** What takes the keys. */
  readonly host: HTMLElement;
  /** The part that it shows. */
  readonly shown: Part;
  /** The button that is there while the chart does not show everything. */
  readonly all: HTMLElement;
  /** Whether its arrow keys lead elsewhere, and do not move the part. */
  readonly hasArrows?: boolean;
  /** Draws it again. */
  show(): void;
}

/** How to zoom, for a chart's hint, and for readers who do not see it. */
export const ZOOM = "Draw a box to zoom in, double click to go back.";
export const KEYS = "Keys: plus and minus zoom, arrows move, Backspace goes back, 0 shows all.";

/** So many steps back are kept. */
const PAST_MAX = 32;

let live: Zoomed[] = [];
/** The parts that were shown before the present one, the latest last, by the name of the charts. */
const past = new Map<string, Part[]>();

/** The data inside the axes. */
function cut({ x, y }: Axes, part: Part): Part {
  return { x: within(x.range, part.x, x.log), y: within(y.range, part.y, y.log) };
}

/** What a chart of this name shows at first: what the address says, or all. */
export function firstPart(name: string, axes: Axes): Part {
  return cut(axes, readZoom(location.hash, name) ?? { x: axes.x.range, y: axes.y.range });
}

/** Whether a part is the whole. */
export function isAll({ x, y }: Axes, shown: Part): boolean {
  return isWhole(x.range, shown.x, x.log) && isWhole(y.range, shown.y, y.log);
}

/** The button that a chart needs. */
export function allButton(): HTMLElement {
  return h("button", { type: "button", class: "all", hidden: true }, "show all");
}

/** Has a chart zoom. What it returns ends that, and leaves the way back to the next chart of the name. */
export function zoomed(one: Zoomed): () => void {
  live.push(one);
  one.all.hidden = isAll(one.axes, one.shown);
  one.all.addEventListener("click", () => goTo(one.name, null));
  one.host.addEventListener("keydown", (event) => pressed(event, one));
  return () => {
    live = live.filter((other) => other !== one);
  };
}

/** The charts of a name that are on the page. Others were taken off it. */
function here(name: string): Zoomed[] {
  live = live.filter(({ host }) => host.isConnected);
  return live.filter((one) => one.name === name);
}

/** Forgets the parts that were shown before: another chart has the name from now on. */
export function forget(name: string): void {
  past.delete(name);
}

/** Keeps the part that is shown, and shows another one; with null all. */
export function goTo(name: string, part: Part | null): void {
  const [shown] = here(name);
  if (shown === undefined) return;
  const { x, y } = shown.shown;
  const isOther = part === null ? !isAll(shown.axes, shown.shown) : true;
  if (isOther) past.set(name, [...(past.get(name) ?? []), { x: { ...x }, y: { ...y } }].slice(-PAST_MAX));
  zoom(name, part);
}

/** Shows the part that was shown before; all, where nothing was. */
export function goBack(name: string): void {
  zoom(name, past.get(name)?.pop() ?? null);
}

/** Shows a part of all charts of this name, or the whole charts, and keeps this part in the address. */
function zoom(name: string, part: Part | null): void {
  for (const one of here(name)) {
    const { axes, shown, all } = one;
    Object.assign(shown, cut(axes, part ?? { x: axes.x.range, y: axes.y.range }));
    if (isAll(axes, shown)) part = null;
    all.hidden = part === null;
    one.show();
  }
  // This replaces the address in the history. So "back" leads to the earlier view, and not through each zoom.
  history.replaceState(history.state, "", zoomHash(location.hash, name, part));
}

/** How a key changes the shown part; moves are in widths of this part. */
const STEPS: Record<string, { stretch: number; move: { x: number; y: number } }> = {
  "+": { stretch: 0.5, move: { x: 0, y: 0 } },
  "=": { stretch: 0.5, move: { x: 0, y: 0 } },
  "-": { stretch: 2, move: { x: 0, y: 0 } },
  ArrowLeft: { stretch: 1, move: { x: -0.2, y: 0 } },
  ArrowRight: { stretch: 1, move: { x: 0.2, y: 0 } },
  ArrowUp: { stretch: 1, move: { x: 0, y: 0.2 } },
  ArrowDown: { stretch: 1, move: { x: 0, y: -0.2 } },
};

function pressed(event: KeyboardEvent, { name, axes, shown, hasArrows = false }: Zoomed): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (hasArrows && event.key.startsWith("Arrow")) return;
  const { x, y } = axes;
  const step = STEPS[event.key];
  // Where the chart shows everything, arrows scroll the page: there is nothing to which the chart could move.
  if (event.key.startsWith("Arrow") && isAll(axes, shown)) return;
  if (event.key === "0" || event.key === "Escape") goTo(name, null);
  else if (event.key === "Backspace") goBack(name);
  else if (step === undefined) return;
  else {
    const { stretch, move } = step;
    goTo(name, {
      x: moved(x.range, shown.x, x.log, { stretch, move: move.x }),
      y: moved(y.range, shown.y, y.log, { stretch, move: move.y }),
    });
  }
  event.preventDefault();
}
