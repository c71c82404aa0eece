// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), tables 3 to 5: other periods than 50 ms, in ms.
//!
//! The paper's period of 2 ms is a busy wait: for a SCHED_FIFO task, its kernel spun instead of sleeping so briefly.
//! onset uses the method `busy` of the probe, in user space.

use super::claim::{Claim, Expects, Said, Scale};
use super::delay::{
    FIRST, STATISTICS, columns, first_apart, ratio, theirs, tick_note, told_if_reached,
};
use super::runs::{Mode, Repetition, Run, Runs, row, summary};
use super::{Printed, Row, Statistic, Table, Unit};

const MS: Unit = Unit::Millis;
const BUSY: &str = "busy-2ms";

/// A period: the row of the paper, and the series of onset.
type Period = (Printed, &'static str);

const PRECISE: [Period; 8] = [
    (("2.000, busy wait", &["-0.001", "0.00086", "0.080"]), BUSY),
    (("3.250", &["0.018", "0.020", "0.110"]), "nanosleep-3.25ms"),
    (("4.000", &["0.017", "0.020", "0.126"]), "nanosleep-4ms"),
    (("13.350", &["0.017", "0.031", "0.208"]), "nanosleep-13.35ms"),
    (("27.500", &["0.009", "0.021", "0.112"]), "nanosleep-27.5ms"),
    (("38.750", &["0.010", "0.021", "0.156"]), "nanosleep-38.75ms"),
    (("50.000", &["0.013", "0.021", "0.078"]), "nanosleep-50ms"),
    (("53.350", &["0.010", "0.025", "0.393"]), "nanosleep-53.35ms"),
];
const TICKING: [Period; 8] = [
    (("2.000, busy wait", &["-0.005", "-0.0046", "0.003"]), BUSY),
    (("3.250", &["11.3", "16.7", "16.8"]), "nanosleep-3.25ms"),
    (("4.000", &["11.6", "16.0", "16.0"]), "nanosleep-4ms"),
    (("13.350", &["15.5", "16.6", "16.7"]), "nanosleep-13.35ms"),
    (("27.500", &["6.7", "12.5", "16.7"]), "nanosleep-27.5ms"),
    (("38.750", &["7.2", "11.2", "11.3"]), "nanosleep-38.75ms"),
    (("50.000", &["6.4", "10.0", "10.05"]), "nanosleep-50ms"),
    (("53.350", &["8.9", "16.6", "16.7"]), "nanosleep-53.35ms"),
];
const TWO: [Period; 3] = [
    (("50.000", &["0.242", "10.9", "110"]), "nanosleep-50ms"),
    (("50.000", &["0.018", "0.3", "2.9"]), "nanosleep-50ms"),
    (("53.530", &["0.020", "0.3", "3.3"]), "nanosleep-53.53ms"),
];

/// Table 3.
pub(super) fn precise(runs: &Runs) -> Table {
    let runs = runs.under("idle").with_timers(false);
    let seeds = runs.repetitions();
    let claims = vec![
        ANY_PERIOD.told(&runs.each(|r| most_to_least(r, false)), seeds),
        BUSY_PRECISE.told(&runs.each(|r| slept_to_busy(r)), seeds),
        first_of(&FIRST_PRECISE, &runs, false),
    ];
    table(
        &runs,
        "2001-3",
        "Other periods, precise timers, no load",
        "Heursch, Rzehak 2001, table 3",
        &PRECISE,
        claims,
    )
}

/// Table 4.
pub(super) fn ticking(runs: &Runs) -> Table {
    let runs = runs.under("idle").with_timers(true);
    let seeds = runs.repetitions();
    let claims = vec![
        ROUNDED.told(&runs.each(rounded), seeds),
        ONE_MORE.told(&runs.each(one_more), seeds),
        BUSY_TICKING.told(&runs.each(short_to_busy), seeds),
        first_of(&FIRST_TICKING, &runs, true),
    ];
    table(
        &runs,
        "2001-4",
        "Other periods, timers that the tick drives, no load",
        "Heursch, Rzehak 2001, table 4",
        &TICKING,
        claims,
    )
}

/// Table 5.
pub(super) fn under_disk(runs: &Runs) -> Table {
    let excess = |r: &Repetition, load| r.run(Mode::None, true, load)?.excess(TWO[1].1);
    let heavier = runs.each(|r| ratio(excess(r, "disk"), excess(r, "idle")));
    let runs = runs.under("disk");
    let seeds = runs.repetitions();
    let fifty = TWO[1].1;
    let of = |mode, ticks, series, statistic| {
        move |r: &Repetition| r.run(mode, ticks, "disk")?.value(series, statistic)
    };
    let standard = |statistic| of(Mode::None, true, fifty, statistic);
    let both = |statistic| of(Mode::Full, false, fifty, statistic);
    let mean_of = |series| of(Mode::Full, false, series, Statistic::Mean);
    let claims = vec![
        told_if_reached(
            &WHOLE_OR_NOT,
            (&runs.each(|r| ratio(mean_of(TWO[2].1)(r), mean_of(fifty)(r))), seeds),
            &heavier,
        ),
        MEAN_DISK.told(
            &runs.each(|r| ratio(standard(Statistic::Mean)(r), both(Statistic::Mean)(r))),
            seeds,
        ),
        WORST_DISK.told(
            &runs.each(|r| ratio(standard(Statistic::Max)(r), both(Statistic::Max)(r))),
            seeds,
        ),
    ];
    let mut rows: Vec<Row> = TWO
        .iter()
        .zip(["C Linux 2.4.0-test6", "E Rapid Reaction", "E Rapid Reaction"])
        .map(|((printed, _), name)| {
            let row = theirs(printed);
            Row { label: format!("{name}, {} ms", row.label), ..row }
        })
        .collect();
    for group in runs.groups() {
        let ours = TWO[1..].iter().filter_map(|(printed, series)| {
            let label = format!("{}, {} ms", group[0].flavour(), printed.0);
            row(&group, label, MS, &STATISTICS.map(|statistic| (*series, statistic)))
        });
        rows.extend(ours);
    }
    Table {
        rows,
        ..table(
            &runs,
            "2001-5",
            "Two periods under disk load",
            "Heursch, Rzehak 2001, table 5",
            &TWO[1..],
            claims,
        )
    }
}

const ANY_PERIOD: Said = Said {
    paper: "With timers of microseconds a period need not be a multiple of the tick: mean delays of all periods that sleep are from 0.020 to 0.031 ms, × 1.55.",
    what: "Largest mean delay of all periods that sleep, divided by the smallest",
    scale: Scale::Factor,
    expects: Expects::Same,
    effect: 2.0,
    needs: "a sound run with precise timers",
};
const BUSY_PRECISE: Said = Said {
    paper: "A busy wait is more exact than a sleep: its mean delay is 0.00086 ms at 2 ms, that of a sleep 0.020 ms at 3.25 ms, × 23.3.",
    what: "Mean delay of the sleep of 3.25 ms, divided by that of the busy wait of 2 ms",
    expects: Expects::More,
    needs: "a sound run with precise timers, with busy and nanosleep",
    ..ANY_PERIOD
};
const FIRST_PRECISE: Said = Said {
    paper: "With timers of microseconds, set by the time of the call, the first period is as long as the others: least 0.009 to 0.018 ms, mean \
            0.020 to 0.031 ms, less than 0.01 ticks apart.",
    what: "Largest difference between the first sleep's delay and the mean, of all periods",
    scale: Scale::Ticks,
    expects: Expects::Same,
    effect: 0.1,
    needs: "a sound run with precise timers, of a kernel that says how long its tick is",
};
const ROUNDED: Said = Said {
    paper: "With timers of the tick a period that is no multiple of the tick is rounded up: mean delays are from 10.0 ms (50 ms) to 16.7 ms (3.25 ms), 0.67 \
            ticks apart.",
    what: "Largest mean delay of all periods that sleep, minus the smallest",
    expects: Expects::Exactly,
    effect: 0.2,
    needs: "a sound run with highres=off, of a kernel that says how long its tick is",
    ..FIRST_PRECISE
};
const ONE_MORE: Said = Said {
    paper: "And to that the kernel adds a whole tick: a task that asks for 50 ms, a multiple of the tick, sleeps 60 ms. This holds for every period, 1 tick.",
    what: "Mean delay minus the time of rounding up to the next tick, for the period with the smallest result",
    effect: 0.5,
    ..ROUNDED
};
const BUSY_TICKING: Said = Said {
    paper: "Only a busy wait can keep a period below two ticks: a sleep of 3.25 ms is 16.7 ms too long, a busy wait of 2 ms ends 0.0046 ms early, \
            1.67 ticks apart.",
    what: "Mean delay of the sleep of 3.25 ms, minus that of the busy wait of 2 ms",
    effect: 0.1,
    ..ROUNDED
};
const FIRST_TICKING: Said = Said {
    paper: "Problem 2: the first sleep begins anywhere between two ticks, the others begin right after a tick. So the delay of the first one differs: at 27.5 ms the \
            least is 6.7 ms, the mean 12.5 ms, 0.58 ticks apart.",
    what: "Largest difference between the first sleep's delay and the mean, of all periods",
    effect: 0.1,
    ..ROUNDED
};
const WHOLE_OR_NOT: Said = Said {
    paper: "Under disk load, too, a period need not be a multiple of the tick: the mean delay is 0.3 ms at 53.53 ms and at 50 ms (E), × 1.00.",
    what: "Mean delay at 53.53 ms, divided by that at 50 ms (preempt=full, precise timers)",
    scale: Scale::Factor,
    expects: Expects::Same,
    effect: 1.5,
    needs: "sound runs of preempt=full with precise timers and both periods under disk load",
};
const MEAN_DISK: Said = Said {
    paper: "Both patches together shorten the mean delay: 10.9 ms without them (C), 0.3 ms with them (E), × 36.3.",
    what: "Mean delay at 50 ms of preempt=none with timers of the tick, divided by that of preempt=full with precise timers",
    expects: Expects::More,
    needs: "sound runs of preempt=none highres=off and of preempt=full under disk load",
    ..WHOLE_OR_NOT
};
const WORST_DISK: Said = Said {
    paper: "And they shorten the worst delay: 110 ms without them (C), 2.9 ms with them (E), × 37.9.",
    what: "Worst delay at 50 ms of preempt=none with timers of the tick, divided by that of preempt=full with precise timers",
    ..MEAN_DISK
};

/// The series that sleep, with their periods in ns.
fn slept() -> impl Iterator<Item = (&'static str, f64)> {
    TICKING.iter().filter_map(|(_, series)| {
        let period: sample::Nanos = series.strip_prefix("nanosleep-")?.parse().ok()?;
        Some((*series, period.0 as f64))
    })
}

/// The mean delay of every period that sleeps, in ns, with the period, in the first run with such timers. None if a
/// period is missing.
fn means<'r>(r: &Repetition<'r, '_>, ticks: bool) -> Option<(&'r Run<'r>, Vec<(f64, f64)>)> {
    let run = r.all(ticks, "idle").next()?;
    let mean = |(series, period)| Some((period, run.value(series, Statistic::Mean)?));
    Some((run, slept().map(mean).collect::<Option<_>>()?))
}

fn ends(means: &[(f64, f64)]) -> Option<(f64, f64)> {
    let all = || means.iter().map(|(_, mean)| *mean);
    Some((all().reduce(f64::min)?, all().reduce(f64::max)?))
}

fn most_to_least(r: &Repetition, ticks: bool) -> Option<f64> {
    let (least, most) = ends(&means(r, ticks)?.1)?;
    ratio(Some(most), Some(least))
}

fn slept_to_busy(r: &Repetition) -> Option<f64> {
    let run = r.all(false, "idle").next()?;
    let mean = |series| run.value(series, Statistic::Mean);
    ratio(mean("nanosleep-3.25ms"), mean(BUSY))
}

/// The difference between the largest and the smallest mean of the periods, in ticks.
fn rounded(r: &Repetition) -> Option<f64> {
    let (run, means) = means(r, true)?;
    let (least, most) = ends(&means)?;
    Some((most - least) / run.tick()?)
}

/// The mean delay minus the rounding up to the next tick, in ticks, for the period with the smallest result: in the
/// paper all periods have it.
fn one_more(r: &Repetition) -> Option<f64> {
    let (run, means) = means(r, true)?;
    let tick = run.tick()?;
    let beyond = |(period, mean): &(f64, f64)| (mean - beyond_tick(*period, tick)) / tick;
    means.iter().map(beyond).reduce(f64::min)
}

/// From a period's end to the next multiple of the tick.
fn beyond_tick(period: f64, tick: f64) -> f64 {
    (period / tick).ceil() * tick - period
}

fn short_to_busy(r: &Repetition) -> Option<f64> {
    let run = r.all(true, "idle").next()?;
    let mean = |series| run.value(series, Statistic::Mean);
    Some((mean("nanosleep-3.25ms")? - mean(BUSY)?) / run.tick()?)
}

/// The largest difference between the first sleep and the mean, of all periods, in ticks.
fn first_of(said: &Said, runs: &Runs, ticks: bool) -> Claim {
    let most = |r: &Repetition| {
        let run = r.all(ticks, "idle").next()?;
        slept().filter_map(|(series, _)| first_apart(run, series)).reduce(f64::max)
    };
    said.told(&runs.each(most), runs.repetitions())
}

/// For each period the paper's row, then onset's rows.
fn rows(periods: &[Period], runs: &Runs) -> Vec<Row> {
    let groups = runs.groups();
    let ours = |series: &'static str| {
        let cells = STATISTICS.map(|statistic| (series, statistic));
        let rows = groups.iter().filter_map(move |g| row(g, g[0].flavour().into(), MS, &cells));
        rows.collect::<Vec<_>>()
    };
    let of = |(printed, series): &Period| std::iter::once(theirs(printed)).chain(ours(series));
    periods.iter().flat_map(of).collect()
}

/// What a table of periods lacks: whole runs, and periods of the runs that exist.
fn absent(periods: &[Period], runs: &Runs) -> Vec<String> {
    let mut absent = runs.absent();
    for manifest in runs.manifests() {
        let missing = periods.iter().filter(|(_, s)| summary(manifest, s).is_none());
        let missing = missing.map(|(_, series)| format!("{series} of {}", manifest.about.flavour));
        absent.extend(missing.filter(|m| !absent.contains(m)).collect::<Vec<_>>());
    }
    absent
}

fn table(
    runs: &Runs,
    id: &'static str,
    heading: &'static str,
    source: &'static str,
    periods: &[Period],
    claims: Vec<Claim>,
) -> Table {
    Table {
        id,
        heading,
        source,
        columns: columns(),
        rows: rows(periods, runs),
        absent: absent(periods, runs),
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
        for ((label, figures), _) in PRECISE.iter().chain(&TICKING).chain(&TWO) {
            assert_eq!(figures.len() + 1, columns().len(), "{label}");
            assert!(figures.iter().all(|text| number(text).is_some()), "{label}");
        }
    }

    #[test]
    fn the_papers_own_means_are_rounding_up_and_one_tick() {
        for ((label, figures), series) in TICKING.iter().filter(|(_, s)| *s != BUSY) {
            let (_, period) = slept().find(|(name, _)| name == series).unwrap();
            let mean = number(figures[1]).unwrap();
            let more = mean - beyond_tick(period / 1e6, 10.0);
            assert!((more - 10.0).abs() < 0.1, "{label}: {more}");
        }
    }
}
