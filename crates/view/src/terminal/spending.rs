// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the instructions of a cost went: the functions that executed most, or those by which two runs differ most.

use super::table::{Align, Table};
use crate::costs::instructions;
use lab::followed::{PROGRAMS, Spending, UNNAMED};
use probes::row;
use std::collections::{BTreeMap, BTreeSet};

/// The most functions that are shown for a cost.
const SHOWN: usize = 12;

/// A title, and the costs of the run that has it.
type Run<'a> = (&'a str, &'a [Spending]);

/// The costs of a run by function; and against another run.
pub fn spending((title, costs): Run, against: Option<Run>) -> String {
    let mut text = match against {
        None => format!("{title}\n"),
        Some((other, _)) => format!("{title} against {other}\n"),
    };
    if costs.is_empty() {
        text += "  No cost of this run was measured; `onset show` tells what was lost.\n";
    }
    for cost in costs {
        let other = against.map(|(_, others)| others.iter().find(|o| o.series == cost.series));
        text.push('\n');
        text += &match other {
            None => alone(cost),
            Some(Some(other)) => beside(cost, other),
            Some(None) => format!("{}: the other run has no such cost\n", cost.series),
        };
    }
    text
}

/// What one operation is, in a few words.
fn about(cost: &Spending) -> String {
    let about = row(&cost.series).map(|row| format!(" ({})", row.about));
    format!("{}{}", cost.series, about.unwrap_or_default())
}

fn alone(cost: &Spending) -> String {
    let whole = cost.per_operation(cost.insns as i64);
    let mut text = format!("{}: {} of one operation\n", about(cost), instructions(whole));
    let columns =
        [("function", Align::Left), ("instructions", Align::Right), ("share", Align::Right)];
    let mut table = Table::new(&columns).indented(2);
    let mut lines: Vec<(&str, f64)> = cost.by_name().into_iter().collect();
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut line = |name: &str, insns: f64| {
        table.row([name.to_owned(), plain(insns), format!("{} %", plain(100.0 * insns / whole))]);
    };
    let (first, rest) = lines.split_at(SHOWN.min(lines.len()));
    first.iter().for_each(|(name, insns)| line(name, *insns));
    if let Some(left) = left(rest, |(_, insns)| *insns) {
        line(&left.0, left.1);
    }
    text += &table.text();
    text + &sum(cost)
}

/// The lines that are not shown: how many, and their sum.
fn left<T>(rest: &[T], insns: impl Fn(&T) -> f64) -> Option<(String, f64)> {
    (!rest.is_empty()).then(|| (format!("{} others", rest.len()), rest.iter().map(insns).sum()))
}

fn sum(cost: &Spending) -> String {
    let unnamed = cost.per_operation(cost.unnamed_insns);
    format!(
        "  The sum is the cost: {} instructions of {} operations. {unnamed:.1} instructions of one operation have no name.\n",
        cost.insns, cost.operations
    )
}

fn beside(cost: &Spending, other: &Spending) -> String {
    let (whole, before) =
        (cost.per_operation(cost.insns as i64), other.per_operation(other.insns as i64));
    let (now, then) = (cost.by_name(), other.by_name());
    let names: BTreeSet<&str> = now.keys().chain(then.keys()).copied().collect();
    let of = |all: &BTreeMap<&str, f64>, name| all.get(name).copied().unwrap_or(0.0);
    let mut lines: Vec<(&str, f64, f64)> =
        names.into_iter().map(|name| (name, of(&now, name), of(&then, name))).collect();
    let more = |line: &(&str, f64, f64)| line.1 - line.2;
    lines.sort_by(|a, b| more(b).abs().total_cmp(&more(a).abs()));
    let mut text = format!(
        "{}: {} of one operation, against {}: {}{}\n",
        about(cost),
        instructions(whole),
        instructions(before),
        signed(whole - before),
        mostly(&lines, whole - before),
    );
    let columns = [
        ("function", Align::Left),
        ("here", Align::Right),
        ("there", Align::Right),
        ("difference", Align::Right),
    ];
    let mut table = Table::new(&columns).indented(2);
    lines.retain(|line| more(line) != 0.0);
    let (first, rest) = lines.split_at(SHOWN.min(lines.len()));
    for (name, now, then) in first {
        table.row([
            (*name).to_owned(),
            format!("{now:.1}"),
            format!("{then:.1}"),
            signed(now - then),
        ]);
    }
    if let Some((name, sum)) = left(rest, more) {
        table.row([name, String::new(), String::new(), signed(sum)]);
    }
    text += &table.text();
    text + &format!("  The sum of the differences is {}.\n", signed(whole - before))
}

fn plain(insns: f64) -> String {
    let sign = if insns < 0.0 { "−" } else { "" };
    format!("{sign}{:.1}", insns.abs())
}

fn signed(insns: f64) -> String {
    let sign = if insns < 0.0 { "" } else { "+" };
    format!("{sign}{}", plain(insns))
}

/// The two functions of the kernel that changed the cost most in the direction in which it changed: `, +388.0 of them
/// in rt_spin_lock and rt_spin_unlock`.
fn mostly(lines: &[(&str, f64, f64)], whole: f64) -> String {
    let grew = |line: &&(&str, f64, f64)| {
        (line.1 - line.2) * whole.signum() > 0.0 && ![PROGRAMS, UNNAMED].contains(&line.0)
    };
    let [first, second] = match lines.iter().filter(grew).take(2).collect::<Vec<_>>()[..] {
        [first, second] => [first, second],
        _ => return String::new(),
    };
    let sum = first.1 - first.2 + second.1 - second.2;
    format!(", {} of them in {} and {}", signed(sum), first.0, second.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::followed::Share;

    fn cost(
        series: &str,
        functions: &[(&str, i64)],
        programs_insns: i64,
        unnamed_insns: i64,
    ) -> Spending {
        let share =
            |(function, insns): &(&str, i64)| Share { function: (*function).into(), insns: *insns };
        let functions: Vec<Share> = functions.iter().map(share).collect();
        let named: i64 = functions.iter().map(|share| share.insns).sum();
        let insns = (named + programs_insns + unnamed_insns) as u64;
        Spending {
            series: series.into(),
            operations: 10,
            insns,
            functions,
            programs_insns,
            unnamed_insns,
        }
    }

    #[test]
    fn a_cost_is_shown_by_function_with_its_sum() {
        let functions = [("do_syscall_64", 900), ("entry_SYSCALL_64", 350), ("kfree", -5)];
        let text = spending(("6.12 · idle", &[cost("null_call", &functions, 60, 15)]), None);
        for line in [
            "null_call (getppid): 132 instructions of one operation",
            "do_syscall_64             90.0  68.2 %",
            "(unnamed)                  1.5   1.1 %",
            "kfree                     −0.5  −0.4 %",
            "The sum is the cost: 1320 instructions of 10 operations. 1.5 instructions of one operation have no name.",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_is_not_shown_is_summed_and_nothing_is_left_out() {
        let names: Vec<String> = (0..20).map(|n| format!("f{n:02}")).collect();
        let functions: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 10)).collect();
        let text = spending(("a", &[cost("stat", &functions, 0, 0)]), None);
        assert!(text.contains("10 others"), "{text}");
        assert!(text.contains("f11") && !text.contains("f12"), "{text}");
    }

    #[test]
    fn two_runs_are_shown_by_what_differs_and_the_cause_is_named() {
        let rt = [cost(
            "stat",
            &[("rt_spin_lock", 2_000), ("rt_spin_unlock", 1_880), ("kfree", 50)],
            500,
            0,
        )];
        let none = [cost("stat", &[("kfree", 90), ("_raw_spin_lock", 20)], 500, 0)];
        let text = spending(("6.12-rt", &rt), Some(("6.12", &none)));
        for line in [
            "6.12-rt against 6.12",
            "443 instructions of one operation, against 61 instructions: +382.0, +388.0 of them in rt_spin_lock and rt_spin_unlock",
            "kfree             5.0    9.0        −4.0",
            "The sum of the differences is +382.0.",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("(programs)"), "{text}");
        let lacking = spending(("6.12-rt", &rt), Some(("6.12", &[])));
        assert!(lacking.contains("stat: the other run has no such cost"), "{lacking}");
    }
}
