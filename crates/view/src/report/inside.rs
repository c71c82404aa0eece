// SPDX-License-Identifier: GPL-2.0-or-later
//! What onset saw inside a run, as the page shows it: windows, ledgers, and latencies with their parts.

use super::code::{Code, Stack};
use super::icicle::{self, Node};
use lab::followed::{self, Account, CauseShare, Explained, Held, replay_of_answer};
use sample::{Insns, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use trace::{
    BoundReport, Disturbed, LatencyKind, PartReport, ReaderLosses, Stage, Sum, TermReport,
    WindowBucket, WindowKind, WindowRow,
};

/// How many rows of a ledger are shown; the others are one line.
const ROWS_KEPT: usize = 40;
/// How many causes of a latency are shown; the others are one line.
const CAUSES_KEPT: usize = 20;
/// How many parts of a latency are drawn one by one: more have no room in a line as wide as a page.
pub const PARTS_KEPT: usize = 150;
/// The same for the worst answers of a responder except the longest, since these would fill most of the page.
const PARTS_KEPT_BELOW: usize = 50;

/// What the follower saw when onset replayed the run with the same instructions.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inside<'a> {
    /// What onset cannot see in this kernel, and why.
    missing: &'a [String],
    /// How many records the follower lost, by kind.
    losses: ReaderLosses,
    /// How long the follower watched.
    virtual_ns: Nanos,
    /// How many triggers came in that time.
    triggers: u64,
    /// The windows by kind; a kind without windows is absent.
    windows: Vec<Windows<'a>>,
    /// One ledger for each responder, in the order of the run.
    ledgers: Vec<Ledger>,
    /// The worst answers of each responder, at most 5, the longest first.
    worst: Vec<Worst>,
    /// The bound; null if onset cannot see enough in this kernel.
    bound: Option<Bound>,
    /// By responder, the longest scheduling latency of the answers that the bound covers, among the answers in its
    /// ledger and its worst answers.
    scheduling_ns: &'a BTreeMap<&'static str, Nanos>,
    /// The answers among them that exceed the bound. Each is a fault of the follower or of the analysis.
    exceeded: &'a [Held],
}

/// The bound of the scheduling latency, after ECRTS 2020 (docs/methods/bound.md).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Bound {
    /// D_ST.
    st: Term,
    /// D_POID.
    poid: Term,
    /// D_PAIE.
    paie: Term,
    /// D_PSD.
    psd: Term,
    /// max(st, poid) + paie + psd.
    interference_free_ns: Nanos,
    /// The time that interrupts may take in an interval as long as the bound; null if there is no bound.
    interrupts_ns: Option<Nanos>,
    /// The bound; null if no interval up to 2^24 ns fulfils the equation.
    bound_ns: Option<Nanos>,
}

/// A term of the bound: the longest stretch that the follower saw, without interrupts.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Term {
    /// Its length.
    ns: Nanos,
    /// When the stretch began, on the virtual clock.
    at_ns: Nanos,
    /// Index of the stack that began it.
    stack: Stack,
    /// Index of the stack in which the CPU was when the follower looked last during the stretch.
    inside: Stack,
}

/// All windows of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Windows<'a> {
    /// The kind: what the windows keep from happening.
    kind: WindowKind,
    /// How many windows there are.
    count: u64,
    /// How many stacks opened these windows.
    stacks: u64,
    /// The sum of their lengths.
    total_ns: Nanos,
    /// Their share of the time that the follower watched; above 1 if windows of several tasks overlap.
    share: f64,
    /// How many windows began before the run or ended after it: these are not in the other numbers.
    without_length: u64,
    /// The rows with the longest windows, at most 12.
    rows: Vec<Window<'a>>,
}

/// All windows of one kind that one stack opened.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WindowRow"))]
struct Window<'a> {
    /// How many windows there are.
    count: u64,
    /// The sum of their lengths.
    total_ns: Nanos,
    /// Their share of the time that the follower watched.
    share: f64,
    /// The longest window.
    max_ns: Nanos,
    /// Instructions in the longest window.
    max_insns: Insns,
    /// When the longest window opened, on the virtual clock.
    max_at_ns: Nanos,
    /// The part of the total that interrupts took, where they could come.
    hardirq_ns: Nanos,
    /// The part of the total that softirqs took, where they could be served.
    softirq_ns: Nanos,
    /// The part of the total that other tasks took, where they could run.
    other_tasks_ns: Nanos,
    /// Counts of windows by length, in rising order. Empty ones are absent.
    histogram: &'a [WindowBucket],
    /// Index of the stack that opened them.
    stack: Stack,
    /// Index of the stack that the follower saw inside the longest window. It has no frames if the follower took none.
    inside: Stack,
    /// Index of the stack that closed the longest window.
    closed_by: Stack,
}

/// The time of the answers of a responder from some latency on, by cause. Rows and others add up to the total.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ledger {
    /// The responder.
    responder: String,
    /// How many answers are in the ledger.
    samples: u64,
    /// The shortest latency in the ledger: the p99 of the run. It is 0 if the run is too short for that; then all
    /// answers are in the ledger.
    from_ns: Nanos,
    /// The sum of these latencies.
    total_ns: Nanos,
    /// The same sum, divided into the kinds of latency of the RT patch's paper.
    kinds: BTreeMap<LatencyKind, Sum>,
    /// The rows with the greatest totals, at most 40.
    rows: Vec<Row>,
    /// The other rows together.
    others: Others,
    /// The rows as a tree.
    icicle: Vec<Node>,
}

/// The account of one cause.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LedgerRow"))]
struct Row {
    /// Index of the cause.
    cause: usize,
    /// In how many answers the cause took time.
    count: u64,
    /// Its time in all these answers.
    total_ns: Nanos,
    /// How many stretches this sum has.
    stretches: u64,
    /// The longest of these stretches.
    longest_ns: Nanos,
    /// Its share of the ledger's total, 0 to 1.
    share: f64,
    /// The greatest time that the cause took in one answer.
    max_ns: Nanos,
    /// In how many stretches it took that time.
    max_stretches: u64,
    /// The trigger of that answer.
    max_trigger: u64,
    /// The command that replays it.
    replay: String,
}

/// Everything that has no line of its own.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Others {
    /// How many lines that would be.
    rows: usize,
    /// Their time together.
    total_ns: Nanos,
    /// How many stretches this sum has.
    stretches: u64,
    /// The longest of these stretches.
    longest_ns: Nanos,
    /// Their share of the whole, 0 to 1.
    share: f64,
}

/// One latency, explained. Its parts add up to it exactly.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The responder.
    responder: String,
    /// Number of the trigger, from 0.
    trigger: u64,
    /// When the trigger came, since measuring began.
    at_ns: Nanos,
    /// The latency.
    latency_ns: Nanos,
    /// How many instructions it has.
    insns: Insns,
    /// The task of the responder with its priority; empty if an interrupt or softirqs answered.
    task: String,
    /// Time by stage; a stage that the answer does not pass is absent.
    stages: BTreeMap<Stage, Nanos>,
    /// Time by the kinds of latency of the RT patch's paper.
    kinds: BTreeMap<LatencyKind, Sum>,
    /// Interrupts of the disturbing device.
    disturbances: Vec<Disturbed>,
    /// The part that onset cannot explain.
    unexplained_ns: Nanos,
    /// The parts in their order, from the line to the pin.
    parts: Vec<Part>,
    /// The parts by cause, the longest first, at most 20.
    causes: Vec<Share>,
    /// The other causes together.
    others: Others,
}

/// One of a run's worst answers, and the command that replays it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WorstAnswer"))]
struct Worst {
    #[serde(flatten)]
    latency: Latency,
    /// The command that replays it.
    replay: String,
}

/// A part of a latency.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Part {
    /// The stage to which it belongs.
    stage: Stage,
    /// Index of the cause; null if this is the sum of several short parts of one stage.
    cause: Option<usize>,
    /// How many parts these are; 1 if it has a cause.
    pieces: u64,
    /// When it begins, since the trigger.
    from_ns: Nanos,
    /// Its length.
    ns: Nanos,
    /// How many instructions.
    insns: Insns,
}

/// The part of a latency that one cause took.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CausePart"))]
struct Share {
    /// Index of the cause.
    cause: usize,
    #[serde(flatten)]
    sum: Sum,
    /// Its share of the latency, 0 to 1.
    share: f64,
}

/// The inside of a run as the page shows it; `bundle` is the path of the run, relative to the page.
pub fn inside<'a>(bundle: &Path, seen: &'a followed::Inside, code: &mut Code) -> Inside<'a> {
    let kinds = seen.totals.iter().map(|(kind, total)| {
        let cut = seen.windows.cut.get(kind).copied().unwrap_or_default();
        let own = seen.windows.windows.iter().filter(|row| row.kind == *kind);
        Windows {
            kind: *kind,
            count: total.count,
            stacks: total.stacks,
            total_ns: total.total_ns,
            share: total.total_ns.share_of(seen.virtual_ns),
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
        share: row.total_ns.share_of(whole),
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
        responder: responder.clone(),
        samples: report.samples,
        from_ns: report.from_ns,
        total_ns: report.total_ns,
        kinds: report.kinds.clone(),
        rows: kept.iter().map(|r| row(r, code)).collect(),
        others: Others::of(others.iter().map(trace::LedgerRow::all), report.total_ns),
        icicle: icicle::nodes(&report.rows, report.total_ns, code),
    }
}

/// The worst answers of each responder follow one another, the longest first.
fn worst(bundle: &Path, all: &[Explained], code: &mut Code) -> Vec<Worst> {
    let mut worst = Vec::new();
    for of_one in all.chunk_by(|a, b| a.responder == b.responder) {
        let kept = std::iter::once(PARTS_KEPT).chain(std::iter::repeat(PARTS_KEPT_BELOW));
        for (explained, kept) in of_one.iter().zip(kept) {
            let trigger = explained.report.trigger;
            let replay = replay_of_answer(bundle, &explained.responder, trigger);
            worst.push(Worst { latency: latency(explained, kept, code), replay });
        }
    }
    worst
}

/// A latency as the page shows it, with at most this many of its parts one by one.
pub fn latency(explained: &Explained, parts_kept: usize, code: &mut Code) -> Latency {
    let report = &explained.report;
    let (kept, others) = explained.causes.split_at(explained.causes.len().min(CAUSES_KEPT));
    let share = |c: &CauseShare, code: &mut Code| Share {
        cause: code.cause(&c.cause),
        sum: c.sum,
        share: c.share,
    };
    Latency {
        responder: explained.responder.clone(),
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

/// The parts in their order. If there are more than `kept`, these are the longest parts, and between them sums of the
/// other parts of a stage. Either way they add up to the latency.
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
                last.ns += report.ns;
                last.insns += report.insns;
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
        let share = time.share_of(whole);
        Others { rows, total_ns: time, stretches, longest_ns: longest, share }
    }
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
        assert_eq!(parts.iter().map(|p| p.ns).sum::<Nanos>(), Nanos(from));
        assert_eq!(parts.iter().map(|p| p.pieces).sum::<u64>(), 5_000);
        assert_eq!(parts.iter().filter(|p| p.ns.0 >= 1_000 && p.cause.is_some()).count(), 50);
        let ends = parts.windows(2).all(|w| w[0].from_ns + w[0].ns == w[1].from_ns);
        assert!(ends, "each begins where the one before ends");
    }
}
