// SPDX-License-Identifier: GPL-2.0-or-later
//! Where time went: by cause and by the code or task that took it, and below that the stacks.

use super::count::several;
use super::stack;
use super::table::{Align, Table};
use sample::Nanos;
use std::collections::BTreeMap;
use trace::{CauseReport, Sum};

/// Causes and stacks with a smaller share of the whole are shown together; JSON has each.
const SHARE_SHOWN: f64 = 0.01;
/// How many stacks of one cause are shown.
const STACKS: usize = 3;
/// Columns before a stack; the time of the stack is there.
const INDENT: usize = 21;

/// The stretches of one cause with one stack.
pub struct Item<'a> {
    /// The cause.
    pub cause: &'a CauseReport,
    /// Its stretches.
    pub sum: Sum,
    /// Further lines about it. A cause with neither a stack nor further lines has only its row.
    pub note: String,
}

/// The items, longest first; items with the same cause and the same "who" are together. The last line is the time that
/// onset cannot explain.
pub fn table(items: &[Item], whole: Nanos) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<&Item>> = BTreeMap::new();
    let understood = items.iter().filter(|item| item.cause.cause != "unexplained");
    for item in understood {
        groups.entry((&item.cause.cause, &item.cause.who)).or_default().push(item);
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(k, items)| (sum(&items), k, items)).collect();
    groups.sort_by_key(|(sum, key, _)| (std::cmp::Reverse(sum.time), *key));
    let is_shown = |sum: Sum| sum.time.0 as f64 >= SHARE_SHOWN * whole.0 as f64;
    let shown = groups.iter().take_while(|(sum, ..)| is_shown(*sum)).count();
    let (shown, rest) = groups.split_at(shown);
    let numbers = ["time", "share", "stretches", "longest"].map(|name| (name, Align::Right));
    let texts = ["cause", "who"].map(|name| (name, Align::Left));
    let mut table = Table::new(&[&numbers[..], &texts].concat()).indented(2).sparing(&["longest"]);
    let mut row = |sum: Sum, cause: &str, who: &str| {
        let numbers = [sum.time.to_string(), share(sum.time, whole)];
        let texts = [cause.into(), who.into()];
        table.row(numbers.into_iter().chain(of_how_many(sum)).chain(texts));
    };
    shown.iter().for_each(|(sum, (cause, who), _)| row(*sum, cause, who));
    if !rest.is_empty() {
        let others = rest.iter().map(|(sum, ..)| *sum).collect();
        row(others, &several(rest.len() as u64, "other"), "");
    }
    let unexplained = items.iter().filter(|item| item.cause.cause == "unexplained");
    let unexplained: Vec<&Item> = unexplained.collect();
    row(sum(&unexplained), "unexplained", "");
    let lines = table.lines();
    let (heading, lines) = lines.split_first().expect("a table has a heading");
    let mut text = format!("{heading}\n");
    for (index, line) in lines.iter().enumerate() {
        text += &format!("{line}\n");
        if let Some((_, _, items)) = shown.get(index) {
            text += &stacks(items, whole);
        }
    }
    text + &stacks(&unexplained, whole)
}

/// The longest stacks of a cause, each behind its time.
fn stacks(items: &[&Item], whole: Nanos) -> String {
    let is_told = |item: &&&Item| !item.cause.stack.is_empty() || !item.note.is_empty();
    let mut items: Vec<_> = items.iter().filter(is_told).collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.sum.time));
    let mut text = String::new();
    for item in items.iter().take(STACKS) {
        let time = item.sum.time.to_string();
        let mut lines = stack::lines(&item.cause.stack, INDENT);
        if lines.is_empty() && items.len() > 1 {
            lines.push("no stack".into());
        }
        if let Some(first) = lines.first_mut() {
            *first = format!("{time:>width$}  {}", first.trim_start(), width = INDENT - 2);
        }
        lines.iter().for_each(|line| text += &format!("{line}\n"));
        // If there is only one stack, the row above has said it.
        if items.len() > 1 && item.sum.stretches != 1 {
            text += &format!("{:INDENT$}{}\n", "", item.sum);
        }
        item.note.lines().for_each(|line| text += &format!("{:INDENT$}{line}\n", ""));
    }
    let rest: Vec<&Item> = items.iter().skip(STACKS).map(|item| **item).collect();
    if !rest.is_empty() {
        let (sum, others) = (sum(&rest), several(rest.len() as u64, "other stack"));
        let (time, part) = (sum.time.to_string(), share(sum.time, whole));
        let [stretches, longest] = of_how_many(sum);
        let text_of = format!("from {others} ({part}), {stretches} stretches, longest {longest}");
        text += &format!("{time:>19}  {text_of}\n");
    }
    text
}

fn sum(items: &[&Item]) -> Sum {
    items.iter().map(|item| item.sum).collect()
}

/// How many stretches there are, and the longest of them: a question mark where that is not known, and no text where
/// there are none.
fn of_how_many(sum: Sum) -> [String; 2] {
    match sum.stretches {
        0 if sum.time.0 > 0 => ["?", "?"].map(Into::into),
        0 => ["–", "–"].map(Into::into),
        n => [n.to_string(), sum.longest.to_string()],
    }
}

/// A share in per cent.
pub fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.1} %", part.percent_of(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_one_cause_stand_below_it_and_what_is_not_understood_is_last() {
        let cause = |cause: &str, who: &str, stack: &[&str]| CauseReport {
            cause: cause.into(),
            who: who.into(),
            stack: stack.iter().map(|s| s.to_string()).collect(),
        };
        let causes = [
            (cause("irqs_off", "", &["a+0x1", "b+0x2"]), &[100, 120, 80][..]),
            (cause("unexplained", "", &[]), &[5]),
            (cause("task", "tar nice 0", &[]), &[500]),
            (cause("irqs_off", "", &["c+0x3"]), &[400]),
            (cause("switch", "", &[]), &[4]),
        ];
        let items = causes.iter().map(|(cause, lengths)| {
            let sum: Sum = lengths.iter().map(|ns| Sum::of(Nanos(*ns))).collect();
            let noted = [300, 500].contains(&sum.time.0);
            let note = if noted { "in 2 samples:\nagain".into() } else { String::new() };
            Item { cause, sum, note }
        });
        let text = table(&items.collect::<Vec<_>>(), Nanos(1_209));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "time   share  stretches  longest  cause        who",
                "700 ns  57.9 %          4   400 ns  irqs_off",
                "400 ns  c+0x3",
                "300 ns  a+0x1 < b+0x2",
                "300 ns in 3 stretches, longest 120 ns",
                "in 2 samples:",
                "again",
                "500 ns  41.4 %          1   500 ns  task         tar nice 0",
                "in 2 samples:",
                "again",
                "4 ns   0.3 %          1     4 ns  1 other",
                "5 ns   0.4 %          1     5 ns  unexplained",
            ]
        );
    }
}
