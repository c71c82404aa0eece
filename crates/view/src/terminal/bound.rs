// SPDX-License-Identifier: GPL-2.0-or-later
//! The bound of the scheduling latency: its terms, and beside it the longest scheduling latency that was measured.

use super::stack;
use super::table::{Align, Table};
use lab::bound::{Answered, Bounded};
use sample::Nanos;
use trace::{TermReport, Unbounded};

/// How many frames of a term's stack the table shows; JSON has all.
const FRAMES: usize = 4;

/// Everything about a cell.
pub fn bound(bounded: &Bounded) -> String {
    let Bounded { flavour, load, triggers, .. } = bounded;
    let mut text = format!("{flavour} · {load}   {triggers} triggers\n");
    for missing in &bounded.missing {
        text += &format!("  ! not seen: {missing}\n");
    }
    text += &terms(bounded);
    text += &responders(bounded).text();
    for held in &bounded.exceeded {
        text += &format!("  ! {held}\n");
    }
    text
}

/// The terms and their sum. Below each term is the function that began it, and the function that ran in it.
fn terms(bounded: &Bounded) -> String {
    let bound = &bounded.bound;
    let columns = [("term", Align::Left), ("longest", Align::Right), ("began at", Align::Right)];
    let mut table = Table::new(&[&columns[..], &[("", Align::Left)]].concat())
        .indented(2)
        .sparing(&["began at"]);
    let terms = [
        ("D_POID", &bound.poid, "preemption or interrupts off, for other reasons than to schedule"),
        (
            "D_ST",
            &bound.st,
            "from interrupts off in the scheduler, until preemption is on after the switch",
        ),
        (
            "D_PAIE",
            &bound.paie,
            "preemption and interrupts on, until the requested scheduler begins",
        ),
        ("D_PSD", &bound.psd, "preemption off to schedule"),
    ];
    for (name, term, what) in &terms {
        table.row([(*name).into(), term.ns.to_string(), term.at_ns.to_string(), (*what).into()]);
    }
    let mut sum = |name: &str, ns: Option<Nanos>, what: &str| {
        let ns = ns.map_or("none".into(), |ns| ns.to_string());
        table.row([name.into(), ns, String::new(), what.into()]);
    };
    let free = Some(bound.interference_free_ns);
    sum("", free, "the sum without interrupts: max(D_ST, D_POID) + D_PAIE + D_PSD");
    sum("I(L)", bound.interrupts_ns, "interrupts in an interval of length L");
    sum("L", bound.bound_ns, "the bound: the longest time from the line to the switch");
    // The heading is the first line.
    let below = std::iter::once(None).chain(terms.iter().map(|(_, term, _)| Some(*term)));
    let below = below.chain(std::iter::repeat(None));
    let line = |(line, term): (&String, Option<&TermReport>)| {
        format!("{line}\n{}", term.map_or_else(String::new, places))
    };
    table.lines().iter().zip(below).map(line).collect()
}

/// The innermost frames of the stack that began the term, and where the CPU was in it.
fn places(term: &TermReport) -> String {
    let inside = stack::below(&term.inside, &term.stack);
    let one = |said: &str, frames: &[String]| {
        let more = if frames.len() > FRAMES { " < …" } else { "" };
        let frames = frames[..frames.len().min(FRAMES)].join(" < ");
        if frames.is_empty() { frames } else { format!("          {said}{frames}{more}\n") }
    };
    one("", &term.stack) + &one("inside: ", inside)
}

fn responders(bounded: &Bounded) -> Table {
    let columns = [("responder", Align::Left), ("latest switch", Align::Right)];
    let more = [("of the bound", Align::Right), ("trigger", Align::Right), ("held", Align::Right)];
    let last = [("not covered", Align::Left)];
    let mut table =
        Table::new(&[&columns[..], &more, &last].concat()).indented(2).sparing(&["trigger"]);
    for answered in &bounded.responders {
        let Answered { responder, held, longest, .. } = answered;
        let (ns, trigger) = longest.map_or(("–".into(), "–".into()), |longest| {
            (longest.scheduling_ns.to_string(), longest.trigger.to_string())
        });
        let share = longest.zip(bounded.bound.bound_ns).map_or("–".into(), |(longest, bound)| {
            format!("{:.1} %", longest.scheduling_ns.percent_of(bound))
        });
        table.row([
            responder.to_string(),
            ns,
            share,
            trigger,
            held.to_string(),
            not_covered(answered),
        ]);
    }
    table
}

fn not_covered(answered: &Answered) -> String {
    let one = |(why, count): (&Unbounded, &u64)| format!("{count} {}", reason(*why));
    answered.unbounded.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn reason(why: Unbounded) -> &'static str {
    match why {
        Unbounded::NotSwitched => "without a switch to the task",
        Unbounded::ThreadedHandler => "by a threaded handler",
        Unbounded::Lock => "after a wait for a lock",
        Unbounded::Task => "after another task",
        Unbounded::Unexplained => "unexplained",
    }
}
