// SPDX-License-Identifier: GPL-2.0-or-later
//! Rostedt, Hart: Internals of the RT Patch (2007), figures 3 to 8: the numbers that the text names. Each row leads to
//! the views that show the form of onset's distribution. The paper measured on four Opterons under a kernel build.

use super::claim::{Claim, Expects, Said, Scale};
use super::delay::ratio;
use super::plots::{histograms, scatter};
use super::runs::{Mode, Repetition, Run, Runs};
use super::{ABSENT, Picture, Printed, Statistic, Table, Unit, figure, printed};
use bundle::BundleError;

const US: Unit = Unit::Micros;
/// The paper's load.
const LOAD: &str = "compile";
/// A load that does not make the measured times longer by this factor, compared with the same kernel without load, does
/// not reach what is measured.
const REACHES: f64 = 1.5;

const GTOD: Said = Said {
    paper: "PREEMPT_RT keeps consecutive clock reads together: at worst they are 208 µs apart without it (2.6.18), 17 µs with it (2.6.18-rt7), × 12.2.",
    what: "Longest time between two clock reads without RT, divided by the longest with RT, under load",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.5,
    needs: "sound runs of PREEMPT_RT and of a kernel without it, under load, on a machine with more processors than the measured one",
};
const SCHED: Said = Said {
    paper: "Without timers of high resolution a periodic thread is late by up to about 3 ms (2.6.16), with them and with PREEMPT_RT by 25 µs \
            (2.6.20-rt8), × 120.",
    what: "Longest delay with timers of the tick (preempt=none), divided by that of PREEMPT_RT with precise timers, under load",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 3.0,
    needs: "sound runs of preempt=none highres=off and of PREEMPT_RT under load",
};
const THREE_TICKS: Said = Said {
    paper: "These 3 ms are about three ticks (of 1 ms): two ticks more than the time until the next one.",
    what: "Longest delay with timers of the tick (preempt=none), minus the tick that rounding up may take",
    scale: Scale::Ticks,
    expects: Expects::Exactly,
    effect: 1.0,
    needs: "a sound run of preempt=none highres=off under load, of a kernel that says how long its tick is",
};
const ASYNC: Said = Said {
    paper: "PREEMPT_RT makes the time until a thread handles an event vary less: its standard deviation is 3.69 µs without it (2.6.20), 1.16 µs with it \
            (2.6.20-rt8), × 3.18.",
    what: "Standard deviation without RT, divided by that with RT, under load",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.5,
    needs: "sound runs of PREEMPT_RT and of a kernel without it, under load, with the thread that sends the event on another processor (placement across)",
};

/// Figures 3 and 4.
pub(super) fn gtod(runs: &Runs) -> Result<Table, BundleError> {
    // gettimeofday reads CLOCK_REALTIME.
    const SERIES: &str = "realtime";
    let claim = if runs.is_rig() {
        GTOD.untold(
            "The rig has one processor. The paper's load ran on other processors. In the rig, the task that reads the clock never sleeps and has a higher priority than \
            any load, so that no load runs. So kernels can differ only by their interrupts without load.",
        )
    } else {
        let worst = |run: &Run| run.value(SERIES, Statistic::Max);
        GTOD.told(&runs.each(|r| without_to_with(r, &worst)), runs.repetitions())
    };
    let theirs: [Printed; 2] = [
        ("2.6.18 (figure 3)", &[ABSENT, ABSENT, "208"]),
        ("2.6.18-rt7 (figure 4)", &[ABSENT, ABSENT, "17"]),
    ];
    let labels = (
        "2007-gtod",
        "Time between two clock reads (gtod_latency)",
        "Rostedt, Hart 2007, figures 3 and 4",
    );
    let table = table(runs, labels, SERIES, &EXTREMES, &theirs, vec![claim]);
    Ok(Table { picture: scatter(runs, SERIES)?.map(Picture::Scatter), ..table })
}

/// Figures 5 and 6.
pub(super) fn sched(runs: &Runs) -> Result<Table, BundleError> {
    const SERIES: &str = "clock_nanosleep-5ms";
    let seeds = runs.repetitions();
    let worst = |run: &Run| run.value(SERIES, Statistic::Max);
    let tick = |r: &Repetition| {
        let run = r.run(Mode::None, true, LOAD)?;
        Some(worst(run)? / run.tick()? - 1.0)
    };
    let claims = vec![
        SCHED.told(
            &runs.each(|r| {
                let of = |mode, ticks| r.run(mode, ticks, LOAD).and_then(worst);
                ratio(of(Mode::None, true), of(Mode::Rt, false))
            }),
            seeds,
        ),
        THREE_TICKS.told(&runs.each(tick), seeds),
    ];
    let theirs: [Printed; 2] = [
        ("2.6.16 (figure 5; three ticks at HZ=1000)", &[ABSENT, ABSENT, "≈ 3000"]),
        ("2.6.20-rt8 (figure 6)", &[ABSENT, ABSENT, "25"]),
    ];
    let labels = (
        "2007-sched",
        "A periodic thread of 5 ms (sched_latency)",
        "Rostedt, Hart 2007, figures 5 and 6",
    );
    let table = table(runs, labels, SERIES, &EXTREMES, &theirs, claims);
    Ok(Table { picture: histograms(runs, SERIES)?.map(Picture::Histogram), ..table })
}

/// Figures 7 and 8.
pub(super) fn async_handler(runs: &Runs) -> Result<Table, BundleError> {
    const ACROSS: &str = "condvar-across";
    const SAME: &str = "condvar-same";
    let across = runs.runs.iter().any(|run| run.value(ACROSS, Statistic::Stddev).is_some());
    let (series, claim) = if across {
        (ACROSS, spread_across(runs, ACROSS))
    } else {
        (SAME, ASYNC.untold(same_processor(runs, SAME)))
    };
    let theirs: [Printed; 2] = [
        ("2.6.20 (figure 7)", &["3.69", ABSENT, ABSENT, ABSENT]),
        ("2.6.20-rt8 (figure 8)", &["1.16", ABSENT, ABSENT, ABSENT]),
    ];
    let columns = [
        ("std. dev.", Statistic::Stddev),
        ("median", Statistic::Median),
        ("p99.9", Statistic::Tail),
        ("max", Statistic::Max),
    ];
    let labels = (
        "2007-async",
        "An event for a waiting thread (async_handler, condition variable)",
        "Rostedt, Hart 2007, figures 7 and 8",
    );
    let table = table(runs, labels, series, &columns, &theirs, vec![claim]);
    Ok(Table { picture: scatter(runs, series)?.map(Picture::Scatter), ..table })
}

/// The claim for runs in which the sending thread has a processor of its own, so that its event may come while the
/// other processor is busy.
fn spread_across(runs: &Runs, series: &str) -> Claim {
    let deviation = |run: &Run| run.value(series, Statistic::Stddev);
    let reached = reach(runs, &deviation);
    match reached.iter().copied().reduce(f64::max) {
        None => ASYNC.untold(
            "onset needs runs without load and under load to know whether the load reaches the waiting thread's processor.",
        ),
        Some(most) if most < REACHES => ASYNC.untold(format!(
            "The load does not reach the waiting thread: under load the standard deviation is at most × {} of that without load.",
            figure(most)
        )),
        Some(_) => {
            ASYNC.told(&runs.each(|r| without_to_with(r, &deviation)), runs.repetitions())
        }
    }
}

/// Why runs with both threads on one processor cannot decide the claim, and what onset measured.
fn same_processor(runs: &Runs, series: &str) -> String {
    let why = "Both threads are on one processor. The thread that sends the event has to run to do so, and the waiting thread preempts it at once. So no other work \
 is under way for which the waiting thread would have to wait, with RT or without it.";
    let reached = reach(runs, &|run| run.value(series, Statistic::Stddev));
    let ends = (reached.iter().copied().reduce(f64::min), reached.iter().copied().reduce(f64::max));
    match ends {
        (Some(least), Some(most)) => format!(
            "{why} Under load the standard deviation is × {} to × {} of that without load. Measure on a machine with two processors: --set target=local.",
            figure(least),
            figure(most)
        ),
        _ => format!("{why} Measure on a machine with two processors: --set target=local."),
    }
}

/// By which factors the load changes the result of `of`, for each kernel and repetition with runs without load and
/// under it.
fn reach(runs: &Runs, of: &dyn Fn(&Run) -> Option<f64>) -> Vec<f64> {
    let loaded = runs.runs.iter().filter(|run| run.is_sound() && run.load() == LOAD);
    let at_rest = |loaded: &Run| {
        let alike = |run: &&std::rc::Rc<Run>| {
            run.is_sound()
                && run.load() == "idle"
                && (run.flavour(), run.repetition) == (loaded.flavour(), loaded.repetition)
        };
        runs.runs.iter().find(alike).and_then(|run| of(run))
    };
    loaded.filter_map(|run| ratio(of(run), at_rest(run))).collect()
}

/// The greatest value of kernels without RT, divided by the greatest value of RT, under load.
fn without_to_with(r: &Repetition, of: &dyn Fn(&Run) -> Option<f64>) -> Option<f64> {
    let most = |is_rt: bool| {
        let runs = r.all(false, LOAD).filter(|run| (run.mode == Mode::Rt) == is_rt);
        runs.filter_map(of).reduce(f64::max)
    };
    ratio(most(false), most(true))
}

const EXTREMES: [(&str, Statistic); 3] =
    [("median", Statistic::Median), ("p99.9", Statistic::Tail), ("max", Statistic::Max)];

fn table(
    runs: &Runs,
    (id, heading, source): (&'static str, &'static str, &'static str),
    series: &str,
    columns: &[(&'static str, Statistic)],
    theirs: &[Printed],
    claims: Vec<Claim>,
) -> Table {
    let cells: Vec<(&str, Statistic)> = columns.iter().map(|(_, s)| (series, *s)).collect();
    let rows = runs.labelled(series, runs.rows(US, &cells));
    Table {
        id,
        heading,
        source,
        columns: columns.iter().map(|(name, _)| US.column(name)).collect(),
        rows: theirs.iter().map(printed).chain(rows).collect(),
        absent: runs.absent(),
        note: format!("{} The paper ran on four processors under a kernel build.", runs.note()),
        claims,
        picture: None,
    }
}
