// SPDX-License-Identifier: GPL-2.0-or-later
//! The windows of a cell, ranked, each with the stack that opened it.

use super::count::several;
use super::stack;
use super::table::{Align, Table};
use lab::windows::SeenWindows;
use sample::Nanos;
use trace::{WindowKind, WindowRow};

/// One table for each kind.
pub fn windows(seen: &SeenWindows) -> String {
    let mut text = format!(
        "{} · {}   {} of virtual time, {}\n",
        seen.flavour,
        seen.load,
        seen.virtual_ns,
        several(seen.triggers, "trigger")
    );
    for missing in &seen.missing {
        text += &format!("  ! not seen: {missing}\n");
    }
    for kind in &seen.kinds {
        text += &of_kind(seen, *kind);
    }
    text
}

fn of_kind(seen: &SeenWindows, kind: WindowKind) -> String {
    let all = seen.totals.get(&kind).copied().unwrap_or_default();
    let cut = seen.report.cut.get(&kind).copied().unwrap_or_default();
    let cut = match cut.at_begin + cut.at_end {
        0 => String::new(),
        n => format!(", {n} without a length"),
    };
    let mut text = format!(
        "  {}: {} windows opened by {} stacks, {} of the time{cut}\n",
        title(kind),
        all.count,
        all.stacks,
        share(all.total_ns, seen.virtual_ns)
    );
    let rows: Vec<&WindowRow> = seen.report.windows.iter().filter(|w| w.kind == kind).collect();
    let lines = table(&rows, seen.virtual_ns).lines();
    let (heading, lines) = lines.split_first().expect("a table has a heading");
    if !rows.is_empty() {
        text += &format!("{heading}\n");
    }
    for (line, row) in lines.iter().zip(&rows) {
        text += &format!("{line}\n");
        for frames in stack::lines(&row.stack, 8) {
            text += &format!("{frames}\n");
        }
        text += &inside(&row.inside, &row.stack);
        if row.stack.is_empty() {
            text += "        (no stack: the window is too short to get one, or the follower could not take one)\n";
        }
    }
    text
}

/// Where the CPU was in the longest window. Callers that the opener also has are above already.
pub(super) fn inside(inside: &[String], opener: &[String]) -> String {
    let frames = stack::below(inside, opener);
    let mut text = String::new();
    for (index, frames) in stack::lines(frames, 16).iter().enumerate() {
        let said = if index == 0 { "inside: " } else { "" };
        text += &format!("        {said:8}{}\n", frames.trim_start());
    }
    text
}

/// The part of a row's total that others took than the code that opened the windows.
type Part = fn(&WindowRow) -> Nanos;

/// One line for each row. It says who took the time if somebody else took a part than the code that opened the windows.
fn table(rows: &[&WindowRow], whole: Nanos) -> Table {
    let parts: [(&str, Part); 3] = [
        ("hardirqs", |row| row.hardirq_ns),
        ("softirqs", |row| row.softirq_ns),
        ("other tasks", |row| row.other_tasks_ns),
    ];
    let has = |of: &Part| rows.iter().any(|row| of(row).0 > 0);
    let parts = parts.iter().filter(|(_, of)| has(of));
    let mut columns = vec!["longest", "instructions", "count", "total", "of the time"];
    columns.extend(parts.clone().map(|(name, _)| name));
    let columns: Vec<_> = columns.into_iter().map(|name| (name, Align::Right)).collect();
    let spare = ["of the time", "other tasks", "softirqs", "hardirqs", "instructions"];
    let mut table = Table::new(&columns).indented(4).sparing(&spare);
    for row in rows {
        let cells = [
            row.max_ns.to_string(),
            row.max_insns.0.to_string(),
            row.count.to_string(),
            row.total_ns.to_string(),
            share(row.total_ns, whole),
        ];
        table.row(cells.into_iter().chain(parts.clone().map(|(_, of)| part(of(row)))));
    }
    table
}

pub(super) fn title(kind: WindowKind) -> &'static str {
    match kind {
        WindowKind::IrqsOff => "interrupts off (irqs_off)",
        WindowKind::PreemptOff => "preemption off (preempt_off)",
        WindowKind::BhOff => "bottom halves off (bh_off)",
        WindowKind::MigrationOff => "migration off (migration_off)",
    }
}

fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.2} %", part.percent_of(whole))
}

fn part(time: Nanos) -> String {
    if time.0 == 0 { "–".into() } else { time.to_string() }
}
