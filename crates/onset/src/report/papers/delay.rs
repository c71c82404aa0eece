// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), tables 1 to 5: how much longer a task slept than it asked for, in ms.

use super::claim::{Claim, Now};
use super::runs::{Runs, ends, is_rt, row, ticks};
use super::{
    Column, MAX, MEAN, MIN, Printed, Row, Statistic, Table, Unit, figure, number, printed,
};

const MS: Unit = Unit::Millis;
/// The paper's task sleeps 50 ms in tables 1 and 2.
const FIFTY: &str = "nanosleep-50ms";
const STATISTICS: [Statistic; 3] = [MIN, MEAN, MAX];

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
const C: usize = 2;
const E: usize = 4;

/// A period: the paper's row, and our series.
type Period = (Printed, &'static str);

const PRECISE: [Period; 8] = [
    (("2.000, busy wait", &["-0.001", "0.00086", "0.080"]), "precise-2ms"),
    (("3.250", &["0.018", "0.020", "0.110"]), "nanosleep-3.25ms"),
    (("4.000", &["0.017", "0.020", "0.126"]), "nanosleep-4ms"),
    (("13.350", &["0.017", "0.031", "0.208"]), "nanosleep-13.35ms"),
    (("27.500", &["0.009", "0.021", "0.112"]), "nanosleep-27.5ms"),
    (("38.750", &["0.010", "0.021", "0.156"]), "nanosleep-38.75ms"),
    (("50.000", &["0.013", "0.021", "0.078"]), "nanosleep-50ms"),
    (("53.350", &["0.010", "0.025", "0.393"]), "nanosleep-53.35ms"),
];
const TICKING: [Period; 8] = [
    (("2.000, busy wait", &["-0.005", "-0.0046", "0.003"]), "precise-2ms"),
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

fn columns() -> Vec<Column> {
    ["min delay", "mean delay", "max delay"].map(|name| MS.column(name)).into()
}

/// A figure of the paper that is a number; that it is one is tested.
fn then(row: &Printed, column: usize) -> f64 {
    row.1.get(column).and_then(|text| number(text)).unwrap_or(f64::NAN)
}

fn fifty_rows(theirs: &[Printed], runs: &Runs) -> Vec<Row> {
    let ours = runs.rows(MS, &STATISTICS.map(|statistic| (FIFTY, statistic)));
    theirs.iter().map(printed).chain(ours).collect()
}

/// Table 1.
pub(super) fn disk(runs: &Runs) -> Table {
    let runs = runs.under("disk");
    let standard = runs.of_flavours(|f| !is_rt(f));
    let changed = match ends(&standard.values(FIFTY, MAX)) {
        Some((_, now)) => Claim::changed(
            "Worst delay under disk load, kernels without RT",
            then(&DISK[C], 2),
            "C",
            now,
            MS,
        ),
        None => Claim::unknown("No sound run of a kernel without RT under disk load."),
    };
    Table {
        id: "2001-1",
        heading: "Delay of a task that sleeps 50 ms, disk load",
        source: "Heursch, Rzehak 2001, table 1",
        columns: columns(),
        rows: fifty_rows(&DISK, &runs),
        absent: runs.absent(),
        note: runs.note(),
        alike: tick_or_not(&runs, &DISK),
        changed,
        picture: None,
    }
}

/// Table 2.
pub(super) fn net(runs: &Runs) -> Table {
    let runs = runs.under("net");
    let released = runs.of_flavours(|f| !is_rt(f) && !ticks(f));
    let changed = match ends(&released.values(FIFTY, MEAN)) {
        Some((_, now)) => Claim::changed(
            "Mean delay of kernels as they are released, with the timers they have by default",
            then(&NET[C], 1),
            "C",
            now,
            MS,
        ),
        None => Claim::unknown(
            "No sound run of a kernel without RT with its default timers under network load.",
        ),
    };
    Table {
        id: "2001-2",
        heading: "Delay of a task that sleeps 50 ms, network load",
        source: "Heursch, Rzehak 2001, table 2",
        columns: columns(),
        rows: fifty_rows(&NET, &runs),
        absent: runs.absent(),
        note: runs.note(),
        alike: tick_or_not(&runs, &NET),
        changed,
        picture: None,
    }
}

/// That timers driven by the tick lengthen a sleep much more than precise ones: at least twice as much.
fn tick_or_not(runs: &Runs, theirs: &[Printed]) -> Claim {
    let ticking = runs.of_flavours(ticks).values(FIFTY, MEAN);
    let precise = runs.of_flavours(|f| !ticks(f)).values(FIFTY, MEAN);
    let (Some((least, _)), Some((_, most))) = (ends(&ticking), ends(&precise)) else {
        return Claim::unknown("It takes sound runs with highres=off and without.");
    };
    let text = format!(
        "Mean delay with timers that only the tick drives against precise ones: {} against {} ms then (C, E; a tick of 10 ms), \
         at least {} against at most {} ms now.",
        figure(then(&theirs[C], 1)),
        figure(then(&theirs[E], 1)),
        figure(MS.of_ns(least.ns)),
        figure(MS.of_ns(most.ns)),
    );
    Claim::alike(least.ns >= 2.0 * most.ns, text)
}

/// Each period: the paper's row, then ours.
fn period_rows(periods: &[Period], runs: &Runs) -> Vec<Row> {
    let ours = |series: &'static str| {
        runs.manifests().filter_map(move |m| {
            row(m, m.about.flavour.clone(), MS, &STATISTICS.map(|statistic| (series, statistic)))
        })
    };
    periods
        .iter()
        .flat_map(|(theirs, series)| std::iter::once(printed(theirs)).chain(ours(series)))
        .collect()
}

/// What a table of periods lacks: whole runs, and periods of those that there are.
fn absent_periods(periods: &[Period], runs: &Runs) -> Vec<String> {
    let mut absent = runs.absent();
    for manifest in runs.manifests() {
        let missing = periods.iter().filter(|(_, s)| super::runs::summary(manifest, s).is_none());
        absent.extend(missing.map(|(_, series)| format!("{series} of {}", manifest.about.flavour)));
    }
    absent.dedup();
    absent
}

/// A statistic of every series that sleeps rather than spins.
fn slept(periods: &[Period], runs: &Runs, statistic: Statistic) -> Vec<Now> {
    let sleeping = periods.iter().filter(|(_, series)| series.starts_with("nanosleep"));
    sleeping.flat_map(|(_, series)| runs.values(series, statistic)).collect()
}

/// Table 3.
pub(super) fn precise(runs: &Runs) -> Table {
    let runs = runs.under("idle").of_flavours(|f| !ticks(f));
    let (means, maxima) = (slept(&PRECISE, &runs, MEAN), slept(&PRECISE, &runs, MAX));
    let alike = match ends(&means) {
        Some((least, most)) => {
            let text = format!(
                "Mean delay over all periods slept, multiples of the tick or not: 0.020 to 0.031 ms then, {} to {} ms now.",
                figure(MS.of_ns(least.ns)),
                figure(MS.of_ns(most.ns)),
            );
            // A tenth of the shortest period that is slept.
            Claim::alike(MS.of_ns(most.ns) < 0.325, text)
        }
        None => Claim::unknown("No sound run with precise timers."),
    };
    let changed = match ends(&maxima) {
        Some((_, now)) => Claim::changed(
            "Worst delay of all periods slept",
            then(&PRECISE[7].0, 2),
            "53.35 ms",
            now,
            MS,
        ),
        None => Claim::unknown("No sound run with precise timers."),
    };
    periods_table(
        "2001-3",
        "Other periods, precise timers, no load",
        "Heursch, Rzehak 2001, table 3",
        &PRECISE,
        &runs,
        alike,
        changed,
    )
}

/// Table 4.
pub(super) fn ticking(runs: &Runs) -> Table {
    let runs = runs.under("idle").of_flavours(ticks);
    let means = slept(&TICKING, &runs, MEAN);
    let (alike, changed) = match ends(&means) {
        Some((least, most)) => {
            let text = format!(
                "Mean delay from the period that suits the tick best to that which suits it least: 10.0 to 16.7 ms then, {} to {} ms now.",
                figure(MS.of_ns(least.ns)),
                figure(MS.of_ns(most.ns)),
            );
            let alike = Claim::alike(most.ns >= 1.2 * least.ns, text);
            (
                alike,
                Claim::changed(
                    "Largest mean delay of all periods slept",
                    then(&TICKING[1].0, 1),
                    "3.25 ms",
                    most,
                    MS,
                ),
            )
        }
        None => {
            let why = "No sound run with timers that only the tick drives (highres=off).";
            (Claim::unknown(why), Claim::unknown(why))
        }
    };
    periods_table(
        "2001-4",
        "Other periods, timers that the tick drives, no load",
        "Heursch, Rzehak 2001, table 4",
        &TICKING,
        &runs,
        alike,
        changed,
    )
}

/// Table 5.
pub(super) fn two_periods(runs: &Runs) -> Table {
    let runs = runs.under("disk");
    let precise = runs.of_flavours(|f| !ticks(f));
    let (a, b) = (precise.values(TWO[1].1, MEAN), precise.values(TWO[2].1, MEAN));
    let alike = match (ends(&a), ends(&b)) {
        (Some((_, a)), Some((_, b))) => {
            let text = format!(
                "Mean delay with precise timers at 53.53 and at 50 ms: 0.3 and 0.3 ms then (E), at most {} and {} ms now.",
                figure(MS.of_ns(b.ns)),
                figure(MS.of_ns(a.ns)),
            );
            Claim::alike(b.ns <= 2.0 * a.ns, text)
        }
        _ => Claim::unknown(
            "It takes sound runs with precise timers and both periods under disk load.",
        ),
    };
    let changed = match ends(&precise.values(TWO[1].1, MAX)) {
        Some((_, now)) => {
            Claim::changed("Worst delay with precise timers", then(&TWO[1].0, 2), "E", now, MS)
        }
        None => Claim::unknown("No sound run with precise timers under disk load."),
    };
    let label = |(theirs, _): &Period, name: &str| {
        let mut row = printed(theirs);
        row.label = format!("{name}, {} ms", row.label);
        row
    };
    let mut rows: Vec<Row> = TWO
        .iter()
        .zip(["C Linux 2.4.0-test6", "E Rapid Reaction", "E Rapid Reaction"])
        .map(|(p, n)| label(p, n))
        .collect();
    for manifest in runs.manifests() {
        let ours = TWO[1..].iter().filter_map(|(theirs, series)| {
            let label = format!("{}, {} ms", manifest.about.flavour, theirs.0);
            row(manifest, label, MS, &STATISTICS.map(|statistic| (*series, statistic)))
        });
        rows.extend(ours);
    }
    Table {
        rows,
        ..periods_table(
            "2001-5",
            "Two periods under disk load",
            "Heursch, Rzehak 2001, table 5",
            &TWO[1..],
            &runs,
            alike,
            changed,
        )
    }
}

fn periods_table(
    id: &'static str,
    heading: &'static str,
    source: &'static str,
    periods: &[Period],
    runs: &Runs,
    alike: Claim,
    changed: Claim,
) -> Table {
    Table {
        id,
        heading,
        source,
        columns: columns(),
        rows: period_rows(periods, runs),
        absent: absent_periods(periods, runs),
        note: runs.note(),
        alike,
        changed,
        picture: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_paper_is_a_number() {
        let periods = PRECISE.iter().chain(&TICKING).chain(&TWO).map(|(theirs, _)| theirs);
        for (label, figures) in DISK.iter().chain(&NET).chain(periods) {
            assert_eq!(figures.len(), columns().len(), "{label}");
            assert!(figures.iter().all(|text| number(text).is_some()), "{label}");
        }
    }
}
