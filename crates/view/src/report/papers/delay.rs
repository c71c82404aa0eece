// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), tables 1 and 2: how much longer than 50 ms a task slept, in ms, under
//! disk and under network load.
//!
//! What corresponds to the paper's kernels today: A and C have timers that only the tick drives; B and E have timers of
//! high resolution; D became `preempt=voluntary`, and F became `preempt=full`. PREEMPT_RT is not in the paper.

use super::claim::{Claim, Expects, Said, Scale, unreached};
use super::runs::{Mode, Repetition, Run, Runs};
use super::{Column, Printed, Row, Statistic, Table, Unit, figure, printed};
use std::collections::BTreeSet;

const MS: Unit = Unit::Millis;
/// The paper's task sleeps 50 ms in tables 1 and 2.
const FIFTY: &str = "nanosleep-50ms";
/// The columns of all tables of delays. The paper has no first column, but a column of text about it (§2, problem 2).
pub(super) const STATISTICS: [Statistic; 4] =
    [Statistic::First, Statistic::Min, Statistic::Mean, Statistic::Max];

const DISK: [Printed; 6] = [
    ("A Linux 2.2.13", &["0.2", "11.2", "119.6"]),
    ("B A + UTIME", &["-9.8", "1.7", "125.2"]),
    ("C Linux 2.4.0-test6", &["0.2", "10.9", "103.5"]),
    ("D C + Low Latency C4", &["3.1", "9.9", "11.9"]),
    ("E C + Rapid Reaction", &["0.019", "0.341", "5.2"]),
    ("F C + Preemption 1.5", &["0.8", "12.2", "119.9"]),
];
const NET: [Printed; 6] = [
    ("A Linux 2.2.13", &["1.7", "10.0", "10.1"]),
    ("B A + UTIME", &["-0.7", "0.012", "0.3"]),
    ("C Linux 2.4.0-test6", &["4.6", "10.0", "10.2"]),
    ("D C + Low Latency C4", &["8.4", "10.0", "10.1"]),
    ("E C + Rapid Reaction", &["0.020", "0.031", "0.141"]),
    ("F C + Preemption 1.5", &["5.3", "9.99", "10.2"]),
];

pub(super) fn columns() -> Vec<Column> {
    ["first period", "min delay", "mean delay", "max delay"].map(|name| MS.column(name)).into()
}

/// The note of every table of delays about its columns.
pub(super) const FIRST: &str = "First period: the delay of the first sleep, the least of all seeds. The paper prints no such column, but includes the first sleep in its figures, \
 and says that with timers of the tick it is normally the least. onset's rows: min and max over all seeds, mean of the seed in the middle; small print: from \
    seed to seed.";

/// The note about the length of a tick, which decides how long its timers sleep.
pub(super) fn tick_note(runs: &Runs) -> String {
    let ticks = runs.runs.iter().filter_map(|run| run.tick()).map(|ns| figure(MS.of_ns(ns)));
    match &ticks.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()[..] {
        [] => String::new(),
        all => format!(" A tick is {} ms; the paper's tick was 10 ms.", all.join(" and ")),
    }
}

/// Table 1.
pub(super) fn disk(runs: &Runs) -> Table {
    let load = runs.under("disk");
    let seeds = runs.repetitions();
    let on = |mode, ticks| move |r: &Repetition| r.run(mode, ticks, "disk")?.excess(FIFTY);
    let heavier = runs
        .each(|r| ratio(on(Mode::None, true)(r), r.run(Mode::None, true, "idle")?.excess(FIFTY)));
    let preemption = runs.each(|r| ratio(on(Mode::None, true)(r), on(Mode::Full, true)(r)));
    let claims = vec![
        TIMERS_DISK.told(&load.each(timers("disk")), seeds),
        HEAVY.told(&heavier, seeds),
        LOW_LATENCY.told(
            &runs.each(|r| ratio(on(Mode::None, true)(r), on(Mode::Voluntary, true)(r))),
            seeds,
        ),
        told_if_reached(&PREEMPTION, (&preemption, seeds), &heavier),
        BOTH.told(&runs.each(|r| ratio(on(Mode::None, true)(r), on(Mode::Full, false)(r))), seeds),
        first_of(&FIRST_DISK, &load, "disk"),
    ];
    table(
        &load,
        "2001-1",
        "Delay of a task that sleeps 50 ms, disk load",
        "Heursch, Rzehak 2001, table 1",
        &DISK,
        claims,
    )
}

/// A claim that nothing differs under load, which a load that does not reach the task does not decide. `heavier` has
/// the factors by which it does.
pub(super) fn told_if_reached(
    said: &Said,
    (values, repetitions): (&[f64], &'static str),
    heavier: &[f64],
) -> Claim {
    match heavier.iter().copied().reduce(f64::max) {
        None => said.untold(format!(
            "This claim needs {}, and of preempt=none without load, to know that the load reaches the task.",
            said.needs
        )),
        Some(most) => match unreached(most, "the task", "the worst delay beyond the mean") {
            Some(why) => said.untold(why),
            None => said.told(values, repetitions),
        },
    }
}

/// Table 2.
pub(super) fn net(runs: &Runs) -> Table {
    let load = runs.under("net");
    let seeds = runs.repetitions();
    let excess = |r: &Repetition, load| r.run(Mode::None, true, load)?.excess(FIFTY);
    let claims = vec![
        TIMERS_NET.told(&load.each(timers("net")), seeds),
        LIGHT.told(&runs.each(|r| ratio(excess(r, "disk"), excess(r, "net"))), seeds),
        first_of(&FIRST_NET, &load, "net"),
    ];
    table(
        &load,
        "2001-2",
        "Delay of a task that sleeps 50 ms, network load",
        "Heursch, Rzehak 2001, table 2",
        &NET,
        claims,
    )
}

const TIMERS_DISK: Said = Said {
    paper: "Timers that only the tick drives lengthen each sleep: 10.9 ms in the mean (C) against 0.341 ms with timers of microseconds (E), × 32.0.",
    what: "Mean delay with timers of the tick, divided by the mean delay with precise timers (preempt=none)",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 2.0,
    needs: TIMERS_NEED,
};
const TIMERS_NET: Said = Said {
    paper: "Timers that only the tick drives lengthen each sleep: 10.0 ms in the mean (C) against 0.031 ms with timers of microseconds (E), × 323.",
    ..TIMERS_DISK
};
const TIMERS_NEED: &str = "sound runs of preempt=none, with highres=off and without it";
const HEAVY: Said = Said {
    paper: "Disk load is heavy: with it the worst delay is 92.6 ms above the mean (C); without load it is 0.05 ms above (table 4), × 1852.",
    what: "Worst minus mean delay under disk load, divided by the same without load (preempt=none, timers of the tick)",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 2.0,
    needs: "sound runs of preempt=none highres=off, under disk load and without load",
};
const LIGHT: Said = Said {
    paper: "The ping load is small compared with the disk load: with it the worst delay is 0.2 ms above the mean (C), with disk load 92.6 ms, × 463.",
    what: "Worst minus mean delay under disk load, divided by the same under network load (preempt=none, timers of the tick)",
    needs: "sound runs of preempt=none highres=off under disk and network load",
    ..HEAVY
};
const LOW_LATENCY: Said = Said {
    paper: "Points of preemption in the kernel (D) remove most of that: worst minus mean is 92.6 ms without them (C), 2.0 ms with them, × 46.3.",
    what: "Worst minus mean delay of preempt=none, divided by that of preempt=voluntary, under disk load (timers of the tick)",
    effect: 1.5,
    needs: "sound runs of preempt=none and preempt=voluntary, both with highres=off, under disk load",
    ..HEAVY
};
const PREEMPTION: Said = Said {
    paper: "The preemptible kernel of that time (F) does not help: worst minus mean is 92.6 ms without it (C), 107.7 ms with it, × 0.860.",
    what: "Worst minus mean delay of preempt=none, divided by that of preempt=full, under disk load (timers of the tick)",
    expects: Expects::Same,
    effect: 1.5,
    needs: "sound runs of preempt=none and preempt=full, both with highres=off, under disk load",
    ..HEAVY
};
const BOTH: Said = Said {
    paper: "Both patches together (E) are best: worst minus mean is 92.6 ms without them (C), 4.9 ms with them, × 18.9.",
    what: "Worst minus mean delay of preempt=none with timers of the tick, divided by that of preempt=full with precise timers, under disk load",
    effect: 1.5,
    needs: "sound runs of preempt=none highres=off and of preempt=full under disk load",
    ..HEAVY
};
const FIRST_DISK: Said = Said {
    paper: "Problem 2: the first sleep begins anywhere between two ticks, the others begin right after a tick. So the delay of the first one differs: normally it is \
            the least, 0.2 ms where the mean is 10.9 ms (C), 1.07 ticks apart.",
    what: "Largest difference between the first sleep's delay and the mean, of all kernels with timers of the tick",
    scale: Scale::Ticks,
    expects: Expects::Exactly,
    effect: 0.1,
    needs: "sound runs with highres=off, of a kernel that says how long its tick is",
};
const FIRST_NET: Said = Said {
    paper: "Problem 2: the first sleep begins anywhere between two ticks, the others begin right after a tick. So the delay of the first one differs: normally it is \
            the least, 4.6 ms where the mean is 10.0 ms (C), 0.54 ticks apart.",
    ..FIRST_DISK
};

/// Both above 0, in that order.
pub(super) fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a.filter(|a| *a > 0.0)?, b.filter(|b| *b > 0.0)?);
    Some(a / b)
}

/// The mean delay with timers of the tick by that with precise ones.
fn timers(load: &'static str) -> impl Fn(&Repetition) -> Option<f64> {
    move |r| {
        let mean = |ticks| r.run(Mode::None, ticks, load)?.value(FIFTY, Statistic::Mean);
        ratio(mean(true), mean(false))
    }
}

/// Problem 2 of the paper: the largest difference between the first sleep of `FIFTY` and the mean, in ticks. The first
/// sleep may begin in any phase, so a single run may have begun with a tick.
fn first_of(said: &Said, runs: &Runs, load: &'static str) -> Claim {
    let apart = |run: &Run| first_apart(run, FIFTY);
    let most = |r: &Repetition| r.all(true, load).filter_map(apart).reduce(f64::max);
    said.told(&runs.each(most), runs.repetitions())
}

/// By how many ticks the first sleep's delay was less or more than the mean.
pub(super) fn first_apart(run: &Run, series: &str) -> Option<f64> {
    let value = |statistic| run.value(series, statistic);
    Some((value(Statistic::Mean)? - value(Statistic::First)?).abs() / run.tick()?)
}

/// The paper's rows, with a place for the first period, which it does not print.
pub(super) fn theirs((label, figures): &Printed) -> Row {
    let mut row = printed(&(label, figures));
    row.cells.insert(0, super::Cell::word(super::ABSENT));
    row
}

fn table(
    runs: &Runs,
    id: &'static str,
    heading: &'static str,
    source: &'static str,
    paper: &[Printed],
    claims: Vec<Claim>,
) -> Table {
    let ours = runs.rows(MS, &STATISTICS.map(|statistic| (FIFTY, statistic)));
    Table {
        id,
        heading,
        source,
        columns: columns(),
        rows: paper.iter().map(theirs).chain(ours).collect(),
        absent: runs.absent(),
        note: format!("{}{} {FIRST}", runs.note(), tick_note(runs)),
        claims,
        picture: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;

    #[test]
    fn every_figure_of_the_paper_is_a_number() {
        for (label, figures) in DISK.iter().chain(&NET) {
            assert_eq!(figures.len() + 1, columns().len(), "{label}");
            assert!(figures.iter().all(|text| number(text).is_some()), "{label}");
        }
    }

    #[test]
    fn a_relation_to_nothing_is_none() {
        assert_eq!(ratio(Some(3.0), Some(2.0)), Some(1.5));
        assert_eq!((ratio(Some(3.0), Some(0.0)), ratio(Some(-1.0), Some(2.0))), (None, None));
    }
}
