// SPDX-License-Identifier: GPL-2.0-or-later
//! One latency: its stages in their order, its causes with their stacks, and its kinds of latency after the RT patch's
//! paper.

use super::causes::{self, Item, share};
use super::table::{Align, Table};
use lab::followed::Explained;
use sample::Nanos;
use std::collections::BTreeMap;
use trace::{Disturbed, LatencyKind, Stage, Sum};

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
    let mut text = format!(
        "{} answered trigger {} (at {}) after {whole}{task}\n",
        explained.responder, report.trigger, explained.at_ns
    );
    for Disturbed { from_ns, timers } in &report.disturbances {
        let apart = Nanos(from_ns.unsigned_abs());
        let side = if *from_ns < 0 { "before" } else { "after" };
        text += &format!("  disturbed {apart} {side} the trigger (timers: {timers})\n");
    }
    text += &stages(report.stages.iter().map(|(stage, ns)| (*stage, *ns)), whole);
    text += &causes(explained);
    text += &format!(
        "  the sum is {} ns, which is the latency, in {} instructions\n",
        whole.0, report.insns.0
    );
    text += &format!("  {}\n", kinds(&report.kinds, whole));
    text
}

fn stages(stages: impl Iterator<Item = (Stage, Nanos)>, whole: Nanos) -> String {
    let columns = [("stage", Align::Left), ("from", Align::Right), ("time", Align::Right)];
    let mut table = Table::new(&[&columns[..], &[("share", Align::Right)]].concat()).indented(2);
    let mut from = Nanos(0);
    for (stage, ns) in stages {
        table.row([what(stage).into(), from.to_string(), ns.to_string(), share(ns, whole)]);
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
