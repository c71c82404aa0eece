// SPDX-License-Identifier: GPL-2.0-or-later
//! What was seen inside a run, as the page has it: windows, ledgers, latencies with their parts.

use super::code::{Code, Stack};
use super::icicle::{self, Node};
use crate::followed::{self, Account, CauseShare, Explained, Held, replay_of_answer};
use sample::{Insns, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use trace::{
    BoundReport, Bucket, Disturbed, LatencyKind, PartReport, ReaderLosses, Stage, Sum, TermReport,
    WindowKind, WindowRow,
};

/// Rows of a ledger; the others are one line.
const ROWS_KEPT: usize = 40;
/// Causes of a latency; the others are one line.
const CAUSES_KEPT: usize = 20;
/// Parts of a latency that are drawn one by one: more have no place in a line as wide as a page.
pub const PARTS_KEPT: usize = 150;
/// The same of a responder's worst answers but the latest: they would be most of the page.
const PARTS_KEPT_BELOW: usize = 50;

/// What was seen inside a run.
#[derive(Serialize)]
pub struct Inside<'a> {
    missing: &'a [String],
    losses: ReaderLosses,
    virtual_ns: Nanos,
    triggers: u64,
    windows: Vec<Windows<'a>>,
    ledgers: Vec<Ledger>,
    worst: Vec<Worst>,
    bound: Option<Bound>,
    scheduling_ns: &'a BTreeMap<&'static str, Nanos>,
    exceeded: &'a [Held],
}

/// The bound of the scheduling latency.
#[derive(Serialize)]
struct Bound {
    st: Term,
    poid: Term,
    paie: Term,
    psd: Term,
    interference_free_ns: Nanos,
    interrupts_ns: Option<Nanos>,
    bound_ns: Option<Nanos>,
}

/// The longest of one term.
#[derive(Serialize)]
struct Term {
    ns: Nanos,
    at_ns: Nanos,
    stack: Stack,
    inside: Stack,
}

/// The windows of a kind.
#[derive(Serialize)]
struct Windows<'a> {
    kind: WindowKind,
    count: u64,
    stacks: u64,
    total_ns: Nanos,
    share: f64,
    without_length: u64,
    rows: Vec<Window<'a>>,
}

/// The windows of one stack.
#[derive(Serialize)]
struct Window<'a> {
    count: u64,
    total_ns: Nanos,
    share: f64,
    max_ns: Nanos,
    max_insns: Insns,
    max_at_ns: Nanos,
    hardirq_ns: Nanos,
    softirq_ns: Nanos,
    other_tasks_ns: Nanos,
    histogram: &'a [Bucket],
    stack: Stack,
    inside: Stack,
    closed_by: Stack,
}

/// The ledger of a responder.
#[derive(Serialize)]
struct Ledger {
    responder: &'static str,
    samples: u64,
    from_ns: Nanos,
    total_ns: Nanos,
    kinds: BTreeMap<LatencyKind, Sum>,
    rows: Vec<Row>,
    others: Others,
    icicle: Vec<Node>,
}

#[derive(Serialize)]
struct Row {
    cause: usize,
    count: u64,
    total_ns: Nanos,
    stretches: u64,
    longest_ns: Nanos,
    share: f64,
    max_ns: Nanos,
    max_stretches: u64,
    max_trigger: u64,
    replay: String,
}

/// What has no line of its own.
#[derive(Serialize)]
struct Others {
    rows: usize,
    total_ns: Nanos,
    stretches: u64,
    longest_ns: Nanos,
    share: f64,
}

/// One latency with its parts.
#[derive(Serialize)]
pub struct Latency {
    responder: &'static str,
    trigger: u64,
    at_ns: Nanos,
    latency_ns: Nanos,
    insns: Insns,
    task: String,
    stages: BTreeMap<Stage, Nanos>,
    kinds: BTreeMap<LatencyKind, Sum>,
    disturbances: Vec<Disturbed>,
    unexplained_ns: Nanos,
    parts: Vec<Part>,
    causes: Vec<Share>,
    others: Others,
}

/// One of a run's worst answers, and the command that has it again.
#[derive(Serialize)]
struct Worst {
    #[serde(flatten)]
    latency: Latency,
    replay: String,
}

#[derive(Clone, Serialize)]
struct Part {
    stage: Stage,
    /// Absent where several short parts of one stage are together.
    cause: Option<usize>,
    pieces: u64,
    from_ns: Nanos,
    ns: Nanos,
    insns: Insns,
}

#[derive(Serialize)]
struct Share {
    cause: usize,
    #[serde(flatten)]
    sum: Sum,
    share: f64,
}

/// As the page has it; `bundle` is where the run is.
pub fn inside<'a>(bundle: &Path, seen: &'a followed::Inside, code: &mut Code) -> Inside<'a> {
    let kinds = seen.totals.iter().map(|(kind, total)| {
        let cut = seen.windows.cut.get(kind).copied().unwrap_or_default();
        let own = seen.windows.windows.iter().filter(|row| row.kind == *kind);
        Windows {
            kind: *kind,
            count: total.count,
            stacks: total.stacks,
            total_ns: total.total_ns,
            share: share(total.total_ns, seen.virtual_ns),
            without_length: cut.at_begin + cut.at_end,
            rows: own.map(|row| window(row, seen.virtual_ns, code)).collect(),
        }
    });
    Inside {
        missing: &seen.missing,
        losses: seen.losses,
        virtual_ns: seen.virtual_ns,
        triggers: seen.triggers,
        windows: kinds.collect(),
        ledgers: seen.accounts.iter().map(|account| ledger(bundle, account, code)).collect(),
        worst: worst(bundle, &seen.worst, code),
        bound: seen.bound.as_ref().map(|report| bound(report, code)),
        scheduling_ns: &seen.scheduling,
        exceeded: &seen.exceeded,
    }
}

fn bound(report: &BoundReport, code: &mut Code) -> Bound {
    let mut term = |term: &TermReport| Term {
        ns: term.ns,
        at_ns: term.at_ns,
        stack: code.stack(&term.stack),
        inside: code.stack(&term.inside),
    };
    Bound {
        st: term(&report.st),
        poid: term(&report.poid),
        paie: term(&report.paie),
        psd: term(&report.psd),
        interference_free_ns: report.interference_free_ns,
        interrupts_ns: report.interrupts_ns,
        bound_ns: report.bound_ns,
    }
}

fn window<'a>(row: &'a WindowRow, whole: Nanos, code: &mut Code) -> Window<'a> {
    Window {
        count: row.count,
        total_ns: row.total_ns,
        share: share(row.total_ns, whole),
        max_ns: row.max_ns,
        max_insns: row.max_insns,
        max_at_ns: row.max_at_ns,
        hardirq_ns: row.hardirq_ns,
        softirq_ns: row.softirq_ns,
        other_tasks_ns: row.other_tasks_ns,
        histogram: &row.histogram,
        stack: code.stack(&row.stack),
        inside: code.stack(&row.inside),
        closed_by: code.stack(&row.max_closed_by),
    }
}

fn ledger(bundle: &Path, Account { responder, report }: &Account, code: &mut Code) -> Ledger {
    let (kept, others) = report.rows.split_at(report.rows.len().min(ROWS_KEPT));
    let row = |row: &trace::LedgerRow, code: &mut Code| Row {
        cause: code.cause(&row.cause),
        count: row.count,
        total_ns: row.total_ns,
        stretches: row.stretches,
        longest_ns: row.longest_ns,
        share: row.share,
        max_ns: row.max_ns,
        max_stretches: row.max_stretches,
        max_trigger: row.max_trigger,
        replay: replay_of_answer(bundle, responder, row.max_trigger),
    };
    Ledger {
        responder,
        samples: report.samples,
        from_ns: report.from_ns,
        total_ns: report.total_ns,
        kinds: report.kinds.clone(),
        rows: kept.iter().map(|r| row(r, code)).collect(),
        others: Others::of(others.iter().map(trace::LedgerRow::all), report.total_ns),
        icicle: icicle::nodes(&report.rows, report.total_ns, code),
    }
}

/// Those of each responder follow one another, the longest first.
fn worst(bundle: &Path, all: &[Explained], code: &mut Code) -> Vec<Worst> {
    let mut worst = Vec::new();
    for of_one in all.chunk_by(|a, b| a.responder == b.responder) {
        let kept = std::iter::once(PARTS_KEPT).chain(std::iter::repeat(PARTS_KEPT_BELOW));
        for (explained, kept) in of_one.iter().zip(kept) {
            let trigger = explained.report.trigger;
            let replay = replay_of_answer(bundle, explained.responder, trigger);
            worst.push(Worst { latency: latency(explained, kept, code), replay });
        }
    }
    worst
}

/// A latency as the page has it, with so many of its parts one by one.
pub fn latency(explained: &Explained, parts_kept: usize, code: &mut Code) -> Latency {
    let report = &explained.report;
    let (kept, others) = explained.causes.split_at(explained.causes.len().min(CAUSES_KEPT));
    let share = |c: &CauseShare, code: &mut Code| Share {
        cause: code.cause(&c.cause),
        sum: c.sum,
        share: c.share,
    };
    Latency {
        responder: explained.responder,
        trigger: report.trigger,
        at_ns: explained.at_ns,
        latency_ns: report.latency_ns,
        insns: report.insns,
        task: report.task.clone(),
        stages: report.stages.clone(),
        kinds: report.kinds.clone(),
        disturbances: report.disturbances.clone(),
        unexplained_ns: explained.unexplained_ns,
        parts: parts(&report.parts, parts_kept, code),
        causes: kept.iter().map(|c| share(c, code)).collect(),
        others: Others::of(others.iter().map(|c| c.sum), report.latency_ns),
    }
}

/// The parts in their order; where there are more than `kept`, the longest, and between them the others of a stage together.
/// Either way they add up to the latency.
fn parts(all: &[PartReport], kept: usize, code: &mut Code) -> Vec<Part> {
    let mut lengths: Vec<Nanos> = all.iter().map(|part| part.ns).collect();
    lengths.sort_by_key(|ns| std::cmp::Reverse(*ns));
    let shortest = lengths.get(kept).copied();
    let mut parts: Vec<Part> = Vec::new();
    for report in all {
        let long = shortest.is_none_or(|shortest| report.ns > shortest);
        match parts.last_mut() {
            Some(last) if !long && last.cause.is_none() && last.stage == report.stage => {
                last.pieces += 1;
                last.ns.0 += report.ns.0;
                last.insns.0 += report.insns.0;
            }
            _ => parts.push(Part {
                stage: report.stage,
                cause: long.then(|| code.cause(&report.cause)),
                pieces: 1,
                from_ns: report.from_ns,
                ns: report.ns,
                insns: report.insns,
            }),
        }
    }
    parts
}

impl Others {
    fn of(sums: impl ExactSizeIterator<Item = Sum>, whole: Nanos) -> Others {
        let rows = sums.len();
        let Sum { time, stretches, longest } = sums.collect();
        let share = share(time, whole);
        Others { rows, total_ns: time, stretches, longest_ns: longest, share }
    }
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / whole.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::CauseReport;

    fn part(stage: Stage, cause: &str, from: u64, ns: u64) -> PartReport {
        let cause = CauseReport { cause: cause.into(), who: String::new(), stack: Vec::new() };
        PartReport { stage, cause, from_ns: Nanos(from), ns: Nanos(ns), insns: Insns(ns) }
    }

    #[test]
    fn few_parts_stay_as_they_are() {
        let all = [part(Stage::Line, "irqs_off", 0, 3), part(Stage::Entry, "entry", 3, 9)];
        let parts = parts(&all, PARTS_KEPT, &mut Code::default());
        assert_eq!(
            parts.iter().map(|p| (p.cause, p.ns.0)).collect::<Vec<_>>(),
            [(Some(0), 3), (Some(1), 9)]
        );
    }

    #[test]
    fn of_very_many_parts_the_long_ones_stay_and_all_still_add_up() {
        let mut all = Vec::new();
        let mut from = 0;
        for n in 0..5_000u64 {
            let ns = if n % 100 == 7 { 1_000 + n } else { n % 13 };
            let stage = if n < 2_500 { Stage::NeedResched } else { Stage::Schedule };
            all.push(part(stage, "irqs_off", from, ns));
            from += ns;
        }
        let parts = parts(&all, PARTS_KEPT, &mut Code::default());
        assert!(parts.len() <= 2 * PARTS_KEPT + 2, "{}", parts.len());
        assert_eq!(parts.iter().map(|p| p.ns.0).sum::<u64>(), from);
        assert_eq!(parts.iter().map(|p| p.pieces).sum::<u64>(), 5_000);
        assert_eq!(parts.iter().filter(|p| p.ns.0 >= 1_000 && p.cause.is_some()).count(), 50);
        let ends = parts.windows(2).all(|w| w[0].from_ns.0 + w[0].ns.0 == w[1].from_ns.0);
        assert!(ends, "each begins where the one before ends");
    }
}
