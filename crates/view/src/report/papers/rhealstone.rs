// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), tables 6 and 7: means of the Rhealstone components in µs, and beside
//! them the components that the paper left out. The tables ask how much timers of microseconds (B, E) and points of
//! preemption (D) cost.

use super::claim::{Expects, Said, Scale, untold};
use super::delay::ratio;
use super::runs::{Mode, Repetition, Run, Runs, basis, summary};
use super::{
    ABSENT, Cell, Column, Printed, Row, Statistic, Table, Unit, Whose, printed, time_cell,
};
use std::rc::Rc;

const US: Unit = Unit::Micros;

const TABLE_6: [Printed; 6] = [
    ("A Linux 2.2.13", &["1.5", "3.1", ABSENT, ABSENT]),
    ("B A + UTIME", &["1.6", "3.4", ABSENT, ABSENT]),
    ("C Linux 2.4.0-test6", &["1.1", "3.4", ABSENT, ABSENT]),
    ("G Linux 2.4.9", &["1.1", "3.4", ABSENT, ABSENT]),
    ("D C + Low Latency C4", &["1.1", "3.5", ABSENT, ABSENT]),
    ("E C + Rapid Reaction", &["1.2", "3.6", ABSENT, ABSENT]),
];
const TABLE_7: [Printed; 6] = [
    ("A Linux 2.2.13", &["5.6", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("B A + UTIME", &["5.2", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("C Linux 2.4.0-test6", &["6.8", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("G Linux 2.4.9", &["5.3", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("D C + Low Latency C4", &["6.8", "3.6", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("E C + Rapid Reaction", &["5.8", "3.6", ABSENT, ABSENT, ABSENT, ABSENT]),
];

const PREEMPTION: &str = "preemption";
const MESSAGE: &str = "message_passing-sysv";
const SHUFFLE: &str = "semaphore_shuffle-sysv";
const INTERRUPT: &str = "interrupt_latency";
const DEADLOCK: &str = "deadlock_breaking";

/// Table 6.
pub(super) fn preemption(runs: &Runs) -> Table {
    let runs = runs.under("idle");
    let seeds = runs.repetitions();
    let claims = vec![
        TIMERS_6.told(&runs.each(|r| timers(r, &[PREEMPTION, MESSAGE])), seeds),
        POINTS_6.told(&runs.each(|r| points(r, &[PREEMPTION, MESSAGE])), seeds),
        MESSAGES.told(&runs.each(|r| ratio(mean(r, MESSAGE), mean(r, PREEMPTION))), seeds),
        untold(
            "Linux 2.4 preempts more quickly than 2.2: 1.1 µs (C) against 1.5 µs (A).",
            "onset measures neither of these kernels.",
        ),
    ];
    let series = [PREEMPTION, MESSAGE, "task_switch", "message_passing-posix"];
    let ours = runs.rows(US, &series.map(|s| (s, Statistic::Mean)));
    Table {
        id: "2001-6",
        heading: "Rhealstone: preemption and message passing",
        source: "Heursch, Rzehak 2001, table 6",
        columns: ["preemption", "message, System V", "task switch", "message, POSIX"]
            .map(|n| US.column(n))
            .into(),
        rows: TABLE_6.iter().map(printed).chain(ours).collect(),
        absent: absent(&runs, &series),
        note: format!(
            "{} Preemption: a thread that loops makes a thread of higher priority ready, which runs at once. No interrupt is part of this time. None can be part of the \
            paper's either, whose interrupt alone took 3.5 µs. {MEANS}",
            runs.note()
        ),
        claims,
        picture: None,
    }
}

/// Table 7.
pub(super) fn semaphore(runs: &Runs) -> Table {
    let runs = runs.under("idle");
    let seeds = runs.repetitions();
    let claims = vec![
        TIMERS_7.told(&runs.each(|r| timers(r, &[INTERRUPT])), seeds),
        SHUFFLED.told(&runs.each(|r| ratio(of(r, true, SHUFFLE), of(r, false, SHUFFLE))), seeds),
        POINTS_7.told(&runs.each(|r| points(r, &[SHUFFLE, INTERRUPT])), seeds),
        LONGER.told(&runs.each(|r| ratio(mean(r, SHUFFLE), mean(r, INTERRUPT))), seeds),
        INHERITED.told(&runs.each(resolved), seeds),
        untold(
            "A semaphore of 2.4.9 changes hands more quickly than one of 2.4.0-test6: 5.3 µs (G) against 6.8 µs (C).",
            "onset measures neither of these kernels.",
        ),
    ];
    let series = [SHUFFLE, INTERRUPT, "semaphore_shuffle-posix", DEADLOCK];
    let mut columns: Vec<Column> =
        ["semaphore, System V", "interrupt response", "semaphore, POSIX", "deadlock breaking"]
            .map(|n| US.column(n))
            .into();
    columns.extend(["all, System V", "all, POSIX"].map(|name| Column { name, unit: "1/s" }));
    let groups = runs.groups();
    let ours = groups.iter().filter_map(|group| row_with_figures(group, &series));
    Table {
        id: "2001-7",
        heading: "Rhealstone: semaphore and interrupt",
        source: "Heursch, Rzehak 2001, table 7",
        columns,
        rows: TABLE_7.iter().map(printed).chain(ours).collect(),
        absent: absent(&runs, &series),
        note: format!(
            "{} {} “All” is Kar's figure in Rhealstones a second. If it has fewer than six components, the cell says so. {MEANS}",
            runs.note(),
            vantage(&runs),
        ),
        claims,
        picture: None,
    }
}

const MEANS: &str =
    "The means are of the seed in the middle. The small print is the range over all seeds.";

/// The note about where onset sees the interrupt's response.
fn vantage(runs: &Runs) -> &'static str {
    if runs.is_rig() {
        "The paper's interrupt went from the port through a wire to the port, while its program ran. In the rig, the generator raises the interrupt from \
        outside, in a guest of its own without load, and sees the response at the pin of the hard handler."
    } else {
        "The paper's interrupt went from the port through a wire to the port. On this machine, the time is from the instant when the driver's timer was due to its hard handler."
    }
}

const TIMERS_6: Said = Said {
    paper: "Timers of microseconds cost hardly anything: preemption takes 1.1 µs without them (C), 1.2 µs with them (E), × 1.09; messages take 3.4 and 3.6 µs, × 1.06.",
    what: "Mean with precise timers, divided by the mean with timers of the tick: the quotient farthest from 1, of both components and all kernels",
    scale: Scale::Factor,
    expects: Expects::Same,
    effect: 1.1,
    needs: "sound runs of one kernel, with highres=off and without it",
};
const POINTS_6: Said = Said {
    paper: "Points of preemption cost hardly anything: preemption takes 1.1 µs without them (C) and with them (D), × 1.00; messages take 3.4 and 3.5 µs, × 1.03.",
    what: "Mean of preempt=voluntary, divided by the mean of preempt=none: the quotient farthest from 1, of both components",
    needs: "sound runs of preempt=voluntary and preempt=none",
    ..TIMERS_6
};
const MESSAGES: Said = Said {
    paper: "To pass a message takes longer than to preempt: 3.4 µs against 1.1 µs (C), × 3.09.",
    what: "Mean of a System V message, divided by the mean of a preemption (preempt=none)",
    expects: Expects::More,
    needs: "a sound run of preempt=none with both components",
    ..TIMERS_6
};
const TIMERS_7: Said = Said {
    paper: "Timers of microseconds make an interrupt's response hardly longer: 3.5 µs without them (C), 3.6 µs with them (E), × 1.03.",
    what: "Mean response with precise timers, divided by the mean with timers of the tick: the quotient farthest from 1, of all kernels",
    ..TIMERS_6
};
const SHUFFLED: Said = Said {
    paper: "With timers of microseconds a semaphore changes hands more quickly than without them: 5.8 µs (E) against 6.8 µs (C), × 1.17.",
    what: "Mean with timers of the tick, divided by the mean with precise timers (preempt=none)",
    expects: Expects::More,
    ..TIMERS_6
};
const POINTS_7: Said = Said {
    paper: "Points of preemption cost hardly anything: a semaphore takes 6.8 µs without them (C) and with them (D), × 1.00; an interrupt takes 3.5 and 3.6 µs, × 1.03.",
    ..POINTS_6
};
const LONGER: Said = Said {
    paper: "A semaphore's change of hands takes longer than an interrupt's response: 6.8 µs against 3.5 µs (C), × 1.94.",
    what: "Mean of a System V semaphore's change of hands, divided by the mean of an interrupt's response (preempt=none)",
    needs: "a sound run of preempt=none with both components; on a machine the driver must be loaded",
    ..MESSAGES
};
const INHERITED: Said = Said {
    paper: "Breaking a deadlock by priority inheritance cannot be measured: Linux has none.",
    what: "Share of deadlocks that inheritance broke, for the kernel with the smallest share",
    scale: Scale::Share,
    expects: Expects::Same,
    effect: 0.5,
    needs: "a sound run with deadlock breaking",
};

/// The mean of a component on `preempt=none`, with precise timers or, where there is no such run, with those of the
/// tick.
fn mean(r: &Repetition, series: &str) -> Option<f64> {
    of(r, false, series).or_else(|| of(r, true, series))
}

fn of(r: &Repetition, ticks: bool, series: &str) -> Option<f64> {
    r.run(Mode::None, ticks, "idle")?.value(series, Statistic::Mean)
}

/// The ratio that is farthest from 1.
fn farthest(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    ratios.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
}

/// The cost of precise timers: for all components and kernels that were run with both kinds of timers.
fn timers(r: &Repetition, series: &[&str]) -> Option<f64> {
    let pairs = r.all(false, "idle").filter_map(|run| Some((run, r.run(run.mode, true, "idle")?)));
    let cost = |(precise, ticking): (&Run, &Run)| -> Vec<f64> {
        let mean = |run: &Run, name: &&str| run.value(name, Statistic::Mean);
        series.iter().filter_map(|n| ratio(mean(precise, n), mean(ticking, n))).collect()
    };
    farthest(pairs.flat_map(cost))
}

/// The cost of points of preemption.
fn points(r: &Repetition, series: &[&str]) -> Option<f64> {
    let with = r.run(Mode::Voluntary, false, "idle")?;
    let without = r.run(Mode::None, false, "idle")?;
    let mean = |run: &Run, name: &str| run.value(name, Statistic::Mean);
    farthest(series.iter().filter_map(|n| ratio(mean(with, n), mean(without, n))))
}

/// How many deadlocks inheritance broke. If it does not work, the probe taints the repetition.
fn resolved(r: &Repetition) -> Option<f64> {
    let share = |run: &Run| {
        let found = summary(run.manifest(), DEADLOCK)?;
        let tried = found.count + found.losses.tainted;
        (tried > 0).then(|| found.count as f64 / tried as f64)
    };
    r.iter().filter_map(share).reduce(f64::min)
}

fn row_with_figures(group: &[Rc<Run>], series: &[&str]) -> Option<Row> {
    let mean = |name: &&str| {
        let values: Vec<f64> =
            group.iter().filter_map(|r| r.value(name, Statistic::Mean)).collect();
        time_cell(&values, Statistic::Mean, US)
    };
    let mut cells: Vec<Cell> = series.iter().map(mean).collect();
    cells.extend(["sysv", "posix"].map(|interface| combined(group, interface)));
    let basis = basis(group, series.iter().copied())?;
    let label = group[0].flavour().into();
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

/// The combined figure of the run in the middle, with the number of its components if it is not six.
fn combined(group: &[Rc<Run>], interface: &str) -> Cell {
    let whole = format!("rhealstones_per_second_{interface}");
    let of = |run: &Rc<Run<'_>>| {
        run.manifest().about.probe_counters.iter().find_map(|(key, n)| {
            let rest = key.strip_prefix(&whole)?;
            let parts = rest.strip_prefix("_of_").map_or(String::new(), |n| format!(" of {n}"));
            Some((*n, parts))
        })
    };
    let mut found: Vec<(u64, String)> = group.iter().filter_map(of).collect();
    found.sort();
    let text = found.get(found.len() / 2).map(|(n, parts)| format!("{n}{parts}"));
    let spread = match &found[..] {
        [(least, _), .., (greatest, _)] if least != greatest => {
            Some(format!("{least} … {greatest}"))
        }
        _ => None,
    };
    Cell { spread, ..Cell::word(text.unwrap_or(ABSENT.into())) }
}

fn absent(runs: &Runs, series: &[&str]) -> Vec<String> {
    let mut absent = runs.absent();
    for manifest in runs.manifests() {
        let missing = series.iter().filter(|s| summary(manifest, s).is_none_or(|s| s.count == 0));
        let missing = missing.map(|s| format!("{s} of {}", manifest.about.flavour));
        absent.extend(missing.filter(|m| !absent.contains(m)).collect::<Vec<_>>());
    }
    absent
}
