// SPDX-License-Identifier: GPL-2.0-or-later
//! Rostedt, Hart: Internals of the RT Patch (2007), figures 3 to 8: the figures that the text names; the form of ours is in the
//! views that each row leads to. The paper measured on four Opterons.

use super::claim::Claim;
use super::runs::{Runs, ends, is_rt, ticks};
use super::{ABSENT, MAX, MEDIAN, Printed, STDDEV, Statistic, TAIL, Table, Unit, figure, printed};

const US: Unit = Unit::Micros;

/// Figures 3 and 4.
pub(super) fn gtod(runs: &Runs) -> Table {
    // gettimeofday reads CLOCK_REALTIME.
    let (plain, rt) = (worst(runs, "realtime", |f| !is_rt(f)), worst(runs, "realtime", is_rt));
    let alike = match (&plain, &rt) {
        (Some(plain), Some(rt)) => {
            let text = format!(
                "Two clock reads apart at the worst, PREEMPT_RT against kernels without it: 17 against 208 µs then, {} against {} µs now.",
                figure(US.of_ns(rt.ns)),
                figure(US.of_ns(plain.ns)),
            );
            Claim::alike(rt.ns < plain.ns, text)
        }
        _ => both_needed(),
    };
    let changed = match &plain {
        Some(now) => {
            Claim::changed("Worst of two clock reads apart, without RT", 208.0, "2.6.18", now, US)
        }
        None => Claim::unknown("No sound run without RT."),
    };
    let theirs: [Printed; 2] = [
        ("2.6.18 (figure 3)", &[ABSENT, ABSENT, "208"]),
        ("2.6.18-rt7 (figure 4)", &[ABSENT, ABSENT, "17"]),
    ];
    let columns = [("median", MEDIAN), ("p99.9", TAIL), ("max", MAX)];
    let labels = (
        "2007-gtod",
        "Two clock reads apart (gtod_latency)",
        "Rostedt, Hart 2007, figures 3 and 4",
    );
    table(runs, labels, "realtime", &columns, &theirs, alike, changed)
}

/// Figures 5 and 6.
pub(super) fn sched(runs: &Runs) -> Table {
    const SERIES: &str = "clock_nanosleep-5ms";
    let (tick, rt) = (
        worst(runs, SERIES, |f| ticks(f) && !is_rt(f)),
        worst(runs, SERIES, |f| is_rt(f) && !ticks(f)),
    );
    let alike = match (&tick, &rt) {
        (Some(tick), Some(rt)) => {
            let text = format!(
                "A 5 ms thread late at the worst, without high-resolution timers against with them and RT: about 3000 against 25 µs then, {} against {} µs now.",
                figure(US.of_ns(tick.ns)),
                figure(US.of_ns(rt.ns)),
            );
            // By an order of magnitude, as then by two.
            Claim::alike(tick.ns >= 10.0 * rt.ns, text)
        }
        _ => Claim::unknown("It takes a sound run with highres=off and one of PREEMPT_RT."),
    };
    let changed = match &rt {
        Some(now) => Claim::changed("Worst lateness with RT", 25.0, "2.6.20-rt8", now, US),
        None => Claim::unknown("No sound run of PREEMPT_RT."),
    };
    let theirs: [Printed; 2] = [
        ("2.6.16 (figure 5; three ticks at HZ=1000)", &[ABSENT, ABSENT, "≈ 3000"]),
        ("2.6.20-rt8 (figure 6)", &[ABSENT, ABSENT, "25"]),
    ];
    let columns = [("median", MEDIAN), ("p99.9", TAIL), ("max", MAX)];
    let labels = (
        "2007-sched",
        "A periodic thread of 5 ms (sched_latency)",
        "Rostedt, Hart 2007, figures 5 and 6",
    );
    table(runs, labels, SERIES, &columns, &theirs, alike, changed)
}

/// Figures 7 and 8.
pub(super) fn async_handler(runs: &Runs) -> Table {
    const SERIES: &str = "condvar-same";
    let largest = |keep: fn(&str) -> bool| {
        ends(&runs.of_flavours(keep).values(SERIES, STDDEV)).map(|(_, most)| most.clone())
    };
    let (plain, rt) = (largest(|f| !is_rt(f)), largest(is_rt));
    let alike = match (&plain, &rt) {
        (Some(plain), Some(rt)) => {
            let text = format!(
                "Standard deviation of a wake-up, PREEMPT_RT against kernels without it: 1.16 against 3.69 µs then, {} against {} µs now.",
                figure(US.of_ns(rt.ns)),
                figure(US.of_ns(plain.ns)),
            );
            Claim::alike(rt.ns < plain.ns, text)
        }
        _ => both_needed(),
    };
    let changed = match &plain {
        Some(now) => Claim::changed("Standard deviation without RT", 3.69, "2.6.20", now, US),
        None => Claim::unknown("No sound run without RT."),
    };
    let theirs: [Printed; 2] = [
        ("2.6.20 (figure 7)", &["3.69", ABSENT, ABSENT, ABSENT]),
        ("2.6.20-rt8 (figure 8)", &["1.16", ABSENT, ABSENT, ABSENT]),
    ];
    let columns = [("std. dev.", STDDEV), ("median", MEDIAN), ("p99.9", TAIL), ("max", MAX)];
    let labels = (
        "2007-async",
        "An event for a waiting thread (async_handler, condition variable)",
        "Rostedt, Hart 2007, figures 7 and 8",
    );
    table(runs, labels, SERIES, &columns, &theirs, alike, changed)
}

fn worst(runs: &Runs, series: &str, keep: impl Fn(&str) -> bool) -> Option<super::claim::Now> {
    ends(&runs.of_flavours(keep).values(series, MAX)).map(|(_, most)| most.clone())
}

fn both_needed() -> Claim {
    Claim::unknown("It takes a sound run of PREEMPT_RT and one without.")
}

fn table(
    runs: &Runs,
    (id, heading, source): (&'static str, &'static str, &'static str),
    series: &str,
    columns: &[(&'static str, Statistic)],
    theirs: &[Printed],
    alike: Claim,
    changed: Claim,
) -> Table {
    let cells: Vec<(&str, Statistic)> = columns.iter().map(|(_, s)| (series, *s)).collect();
    Table {
        id,
        heading,
        source,
        columns: columns.iter().map(|(name, _)| US.column(name)).collect(),
        rows: theirs.iter().map(printed).chain(runs.rows(US, &cells)).collect(),
        absent: runs.absent(),
        note: format!("{} The paper ran on four processors under a kernel build.", runs.note()),
        alike,
        changed,
        picture: None,
    }
}
