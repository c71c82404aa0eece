// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time clock at 2 kHz: Morgan: Real-Time in Linux (2002), preemption latency, from the interrupt to the task
//! that waits for it in read(); Çayır (2006), figures 4.7 to 4.10, realfeel: how far from a period two answers are.

use super::claim::{Claim, Expects, Said, Scale, unreached};
use super::delay::ratio;
use super::runs::{Mode, Repetition, Run, Runs};
use super::{Printed, Statistic, Table, Unit, printed};

const LATENCY: &str = "interrupt-2048hz";
const REALFEEL: &str = "interval-2048hz";
const SOONER: Said = Said {
    paper: "A preemptible kernel answers sooner: the slides name stretches without preemption among the primary issues, and the patch against them. The charts' numbers \
            are not in the text.",
    what: "Longest latency of preempt=none, divided by that of preempt=full, under load",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.5,
    needs: "sound runs of preempt=none and preempt=full under load, and of preempt=none without load",
};
const PREEMPTION: Said = Said {
    paper: "The preemption patch shortens the worst: 232.6 ms without it (figure 4.7), 45.2 ms with it (figure 4.8), × 5.15.",
    what: "Worst of preempt=none, divided by that of preempt=full, under load",
    ..SOONER
};
const POINTS: Said = Said {
    paper: "Points of preemption (low latency) shorten it more: 232.6 ms without them (figure 4.7), 1.3 ms with them (figure 4.9), × 179.",
    what: "Worst of preempt=none, divided by that of preempt=voluntary, under load",
    needs: "sound runs of preempt=none and preempt=voluntary under load, and of preempt=none without load",
    ..SOONER
};
const BEST: Said = Said {
    paper: "Low latency has a smaller worst case than preemption (figure 4.10): 1.3 ms against 45.2 ms, × 34.8.",
    what: "Worst of preempt=full, divided by that of preempt=voluntary, under load",
    needs: "sound runs of preempt=full and preempt=voluntary under load, and of preempt=none without load",
    ..SOONER
};
const AVERAGE: Said = Said {
    paper: "Low latency has a larger average than preemption (figure 4.10): 0.0542 ms against 0.0528 ms, × 1.03.",
    what: "Average of preempt=voluntary, divided by that of preempt=full, under load",
    effect: 1.02,
    ..BEST
};

/// The slides of preemption latency.
pub(super) fn jitter(runs: &Runs) -> Table {
    const US: Unit = Unit::Micros;
    let columns = [
        ("minimum", Statistic::Min),
        ("average", Statistic::Mean),
        ("p99.9", Statistic::Tail),
        ("maximum", Statistic::Max),
    ];
    let cells = columns.map(|(_, statistic)| (LATENCY, statistic));
    Table {
        id: "2002-jitter",
        heading: "From an interrupt of the RTC at 2 kHz to the task",
        source: "Morgan 2002, Preemption Latency",
        columns: columns.map(|(name, _)| US.column(name)).into(),
        rows: runs.labelled(LATENCY, runs.rows(US, &cells)),
        absent: runs.absent(),
        note: format!(
            "{} The time from the instant when the interrupt is due until the task has read. The paper draws charts, and its text has no numbers. Its load was LMbench and \
            netperf; here are streams over a network of two namespaces. Today's kernels make this interrupt by a timer.",
            runs.note()
        ),
        claims: vec![told(runs, &SOONER, LATENCY, (Statistic::Max, Mode::None, Mode::Full))],
        picture: None,
    }
}

const THESIS: [Printed; 3] = [
    ("2.4.17 vanilla (figure 4.7)", &["232.6", "0.088"]),
    ("2.4.17 preempt (figure 4.8)", &["45.2", "0.0528"]),
    ("2.4.17 low latency (figure 4.9)", &["1.3", "0.0542"]),
];

/// Figures 4.7 to 4.10 of the thesis.
pub(super) fn realfeel(runs: &Runs) -> Table {
    const MS: Unit = Unit::Millis;
    let columns = [("maximum", Statistic::Max), ("average", Statistic::Mean)];
    let cells = columns.map(|(_, statistic)| (REALFEEL, statistic));
    let ours = runs.labelled(REALFEEL, runs.rows(MS, &cells));
    let claims = vec![
        told(runs, &PREEMPTION, REALFEEL, (Statistic::Max, Mode::None, Mode::Full)),
        told(runs, &POINTS, REALFEEL, (Statistic::Max, Mode::None, Mode::Voluntary)),
        told(runs, &BEST, REALFEEL, (Statistic::Max, Mode::Full, Mode::Voluntary)),
        told(runs, &AVERAGE, REALFEEL, (Statistic::Mean, Mode::Voluntary, Mode::Full)),
    ];
    Table {
        id: "2006-realfeel",
        heading: "realfeel: an RTC at 2 kHz",
        source: "Çayır 2006, figures 4.7 to 4.10",
        columns: columns.map(|(name, _)| MS.column(name)).into(),
        rows: THESIS.iter().map(printed).chain(ours).collect(),
        absent: runs.absent(),
        note: format!(
            "{} By how much the time from one answer to the next differs from a period. The thesis had five million answers on an AMD Duron of 700 MHz, and does not name \
            the load. Low latency became preempt=voluntary.",
            runs.note()
        ),
        claims,
        picture: None,
    }
}

/// The greatest value of one kernel under any load, divided by that of the other.
fn told(
    runs: &Runs,
    said: &Said,
    series: &str,
    (statistic, one, other): (Statistic, Mode, Mode),
) -> Claim {
    let under_load = |r: &Repetition, mode, statistic| {
        let of = r.iter().filter(|run| run.mode == mode && run.load() != "idle");
        of.filter_map(|run: &Run| run.value(series, statistic)).reduce(f64::max)
    };
    let reached = runs.each(|r| {
        let at_rest = r.run(Mode::None, false, "idle")?.value(series, Statistic::Max);
        ratio(under_load(r, Mode::None, Statistic::Max), at_rest)
    });
    match reached.iter().copied().reduce(f64::max) {
        Some(most) => match unreached(most, "the task", "the worst") {
            Some(why) => said.untold(why),
            None => {
                let values = runs.each(|r| {
                    ratio(under_load(r, one, statistic), under_load(r, other, statistic))
                });
                said.told(&values, runs.repetitions())
            }
        },
        None => said.untold(format!("This claim needs {}.", said.needs)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;

    #[test]
    fn every_figure_of_the_thesis_is_a_number() {
        assert!(THESIS.iter().flat_map(|(_, figures)| *figures).all(|f| number(f).is_some()));
    }
}
