// SPDX-License-Identifier: GPL-2.0-or-later
// A table of the page as CSV (RFC 4180): what it says, in full. Groups of digits are one number; where each cell of a
// column knows its exact nanoseconds, the column has these and says so; a stack has all of its functions. Nothing is
// changed in order to please a spreadsheet.

import { greatest } from "./extremes.ts";

/** A field, quoted where it has to be. */
export function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows of fields as a file. */
export function file(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** How many cells a spreadsheet may take for a formula. */
export function formulas(cells: readonly (readonly string[])[]): number {
  return cells.flat().filter((cell) => /^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell))).length;
}

/** A grid of cells: what spans several columns or rows is in each of them. */
function grid(rows: Iterable<HTMLTableRowElement>): HTMLTableCellElement[][] {
  const all: HTMLTableCellElement[][] = [];
  [...rows].forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (all[y]?.[x] !== undefined) x++;
      for (let down = 0; down < cell.rowSpan; down++) {
        const line = (all[y + down] ??= []);
        for (let right = 0; right < cell.colSpan; right++) line[x + right] = cell;
      }
    }
  });
  return all;
}

/** What a cell says: without pictures and buttons that copy, with a stack in full. */
export function says(cell: Element, but = "svg, .copy, small.spread"): string {
  const copy = cell.cloneNode(true) as Element;
  for (const part of copy.querySelectorAll(but)) part.remove();
  for (const stack of copy.querySelectorAll("details.stack")) {
    stack.replaceWith([...stack.querySelectorAll("li")].map((line) => line.textContent).join(" < "));
  }
  // Elements beside each other are words beside each other.
  for (const block of copy.querySelectorAll("*")) block.before(" ");
  const text = (copy.textContent ?? "").replace(/[^\S\u202f]+/g, " ").trim();
  return text.replace(/(?<=\d)\u202f(?=\d{3})/g, "");
}

const EXACT = /^(-?[\d\u202f]+) ns/;

/** The exact nanoseconds that a cell knows. */
function exact(cell: Element): string | null {
  return EXACT.exec(cell.getAttribute("title") ?? "")?.[1]?.replaceAll("\u202f", "") ?? null;
}

function isAbsent(cell: Element): boolean {
  return ["—", ""].includes(says(cell));
}

const isPicture = (cell: Element) => cell.querySelector("svg") !== null && says(cell) === "";

/** The table as rows of texts, and as a file. */
export function csv(table: HTMLTableElement): { text: string; cells: string[][] } {
  const heads = grid(table.tHead?.rows ?? []);
  const body = grid([...table.tBodies].flatMap((part) => [...part.rows].filter((row) => !row.hidden)));
  const width = greatest([...heads, ...body].map((row) => row.length), 0);
  const columns: string[][] = [];
  for (let x = 0; x < width; x++) {
    const cells = body.map((row) => row[x]);
    const there = cells.filter((cell) => cell !== undefined && !isAbsent(cell)) as HTMLTableCellElement[];
    const own = heads.flatMap(({ [x]: head }) => (head === undefined ? [] : head));
    const words = new Set(own.map((head) => says(head, "svg, .chips, .chip")));
    words.delete("");
    // What is a picture in the page has no numbers to take along.
    if (there.length === 0 && cells.some((cell) => cell !== undefined && isPicture(cell))) continue;
    const times = there.filter((cell) => exact(cell) !== null);
    const isExact = times.length > 0 && there.every((cell) => exact(cell) !== null || cell.colSpan > 1);
    const name = [...words].join(" ") + (isExact ? " (ns)" : "");
    const text = (cell: HTMLTableCellElement | undefined, y: number) => {
      if (cell === undefined) return "";
      // A cell across several columns is said once.
      if (cell.colSpan > 1 && body[y]?.[x - 1] === cell) return "";
      return isExact ? (exact(cell) ?? (isAbsent(cell) ? "" : says(cell))) : says(cell);
    };
    columns.push([...(heads.length > 0 ? [name] : []), ...cells.map(text)]);
  }
  const rows = columns[0]?.map((_, y) => columns.map((column) => column[y] ?? "")) ?? [];
  return { text: file(rows), cells: rows };
}
