// SPDX-License-Identifier: GPL-2.0-or-later
//! One latency: its stages in their order, its causes with their stacks, and its kinds of latency after the RT patch's
//! paper.

use super::causes::{self, Item, share};
use super::table::{Align, Table};
use lab::followed::Explained;
use sample::Nanos;
use std::collections::BTreeMap;
use trace::{Beginning, CauseReport, Disturbed, LatencyKind, Stage, Sum, without_place};

/// All explanations, and what this kernel hides.
pub fn explanations(title: &str, missing: &[String], explanations: &[Explained]) -> String {
    let mut text = format!("{title}\n");
    for missing in missing {
        text += &format!("  ! not seen: {missing}\n");
    }
    for explained in explanations {
        text.push('\n');
        text += &explanation(explained);
    }
    text
}

fn explanation(explained: &Explained) -> String {
    let report = &explained.report;
    let whole = report.latency_ns;
    let task = match report.task.as_str() {
        "" => String::new(),
        task => format!(", by {task}"),
    };
    let (name, number, at) = (&explained.responder, report.trigger, explained.at_ns);
    let mut text = match report.beginning {
        Beginning::Trigger => {
            format!("{name} answered trigger {number} (at {at}) after {whole}{task}\n")
        }
        Beginning::Due => {
            format!("{name}: sample {number} (at {at}) is {whole}{task}{}\n", mainly(explained))
        }
    };
    for Disturbed { from_ns, timers } in &report.disturbances {
        let apart = Nanos(from_ns.unsigned_abs());
        let side = if *from_ns < 0 { "before" } else { "after" };
        text += &format!("  disturbed {apart} {side} the trigger (timers: {timers})\n");
    }
    text += &stages(report.beginning, report.stages.iter().map(|(stage, ns)| (*stage, *ns)), whole);
    text += &causes(explained);
    text += &format!(
        "  the sum is {} ns, which is the latency, in {} instructions\n",
        whole.0, report.insns.0
    );
    text += &format!("  {}\n", kinds(&report.kinds, whole));
    text
}

fn stages(
    beginning: Beginning,
    stages: impl Iterator<Item = (Stage, Nanos)>,
    whole: Nanos,
) -> String {
    let columns = [("stage", Align::Left), ("from", Align::Right), ("time", Align::Right)];
    let mut table = Table::new(&[&columns[..], &[("share", Align::Right)]].concat()).indented(2);
    let mut from = Nanos(0);
    for (stage, ns) in stages {
        let what = match beginning {
            Beginning::Trigger => what(stage),
            Beginning::Due => what_of_due(stage),
        };
        table.row([what.into(), from.to_string(), ns.to_string(), share(ns, whole)]);
        from += ns;
    }
    table.text()
}

fn what(stage: Stage) -> &'static str {
    match stage {
        Stage::Line => "from the raised line to the interrupt's entry",
        Stage::Entry => "from the entry to the driver's handler",
        Stage::Handler => "from the handler to the wake-up",
        Stage::WakeUp => "from the wake-up to the request for the scheduler",
        Stage::NeedResched => "from the request for the scheduler to its begin",
        Stage::Schedule => "from the scheduler's begin to the switch",
        Stage::Resumed => "from the switch to user space",
        Stage::User => "from user space to the pin",
    }
}

/// The same of a task that was due.
fn what_of_due(stage: Stage) -> &'static str {
    match stage {
        Stage::Line => "from the expiry to the entry of the timer's interrupt",
        Stage::Entry => "from the entry to the wake-up",
        Stage::Handler => "from the instant that was due to the wake-up",
        Stage::User => "from user space to the clock's reading",
        _ => what(stage),
    }
}

/// The longest cause in a few words: a task, an interrupt, or the function whose stretch it was.
fn mainly(explained: &Explained) -> String {
    let Some(longest) = explained.causes.first() else { return String::new() };
    let CauseReport { cause, who, stack } = &longest.cause;
    // The first frames of a stretch are those by which the kernel turns something off.
    let own = stack.iter().find(|frame| !is_primitive(frame));
    let by = match (who.is_empty(), own) {
        (false, _) => format!(" of {who}"),
        (true, Some(frame)) => format!(" in {}", without_place(frame)),
        (true, None) => String::new(),
    };
    let (time, part) = (longest.sum.time, share(longest.sum.time, explained.report.latency_ns));
    format!("; {time} of it ({part}) {cause}{by}")
}

/// Whether the frame is one of the functions by which everybody takes a lock.
fn is_primitive(frame: &str) -> bool {
    ["_raw_spin_", "_raw_read_", "_raw_write_", "__raw_spin_"]
        .iter()
        .any(|name| frame.starts_with(name))
}

fn causes(explained: &Explained) -> String {
    let whole = explained.report.latency_ns;
    let causes =
        explained.causes.iter().map(|c| Item { cause: &c.cause, sum: c.sum, note: String::new() });
    causes::table(&causes.collect::<Vec<_>>(), whole)
}

/// The kinds of latency of the paper, in one line.
pub fn kinds(kinds: &BTreeMap<LatencyKind, Sum>, whole: Nanos) -> String {
    let named = [
        (LatencyKind::Interrupt, "interrupt latency"),
        (LatencyKind::Wakeup, "wakeup latency"),
        (LatencyKind::PriorityInversion, "priority inversion"),
        (LatencyKind::InterruptInversion, "interrupt inversion"),
        (LatencyKind::Other, "none of these"),
    ];
    let one = |(kind, name): (LatencyKind, &str)| {
        let sum = kinds.get(&kind).copied().unwrap_or_default();
        format!("{name} {sum} ({})", share(sum.time, whole))
    };
    named.map(one).join("; ")
}
