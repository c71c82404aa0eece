// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), §7: what a faster tick would cost, and what timers of high resolution
//! cost instead. A task that never sleeps sees what the tick takes of its time.

use super::claim::{Claim, Expects, Said, Scale, untold};
use super::delay::ratio;
use super::runs::{Repetition, Run, Runs, basis, summary};
use super::{ABSENT, Cell, Column, Row, Statistic, Table, Unit, Whose, figure, time_cell};
use probes::Probe;
use std::rc::Rc;

const US: Unit = Unit::Micros;
const SERIES: &str = "noise";

const WITHOUT: Said = Said {
    paper: "Timers of microseconds cost not much when nothing time-critical is due (§7, §8.1), since the kernel then only has its usual tick: × 1.",
    what: "Share of the time that interrupts take with precise timers, divided by the share with timers of the tick: the quotient farthest from 1, of all kernels",
    scale: Scale::Factor,
    expects: Expects::Same,
    effect: 1.5,
    needs: "sound runs of one kernel with highres=off and without it",
};

/// The table.
pub(super) fn table(runs: &Runs) -> Table {
    let groups = runs.groups();
    Table {
        id: "2001-tick",
        heading: "What the tick takes of a task that never sleeps",
        source: "Heursch, Rzehak 2001, §7",
        columns: vec![
            Column { name: "interruptions", unit: "1/s" },
            US.column("mean length"),
            Column { name: "share", unit: "%" },
            Column { name: "as at HZ=100 (computed)", unit: "%" },
            Column { name: "as at HZ=1000 (computed)", unit: "%" },
        ],
        rows: groups.iter().filter_map(|group| row(group)).collect(),
        absent: runs.absent(),
        note: format!(
            "{} The paper prints no figures. Debian builds its kernels with HZ=250, so kernels with another tick are not measured: the last two columns multiply the measured \
            share by HZ ÷ 250, as if a tick took as long at any rate.",
            runs.note()
        ),
        claims: claims(runs),
        picture: None,
    }
}

/// How many interruptions a second there are, and which share of the time they take.
fn seen(run: &Run) -> Option<(f64, f64)> {
    let manifest = run.manifest();
    let Probe::Noise(noise) = &manifest.about.experiment.probe.as_ref()?.probe else { return None };
    let summary = summary(manifest, SERIES)?;
    let (count, took) = (summary.count as f64, noise.duration.0 as f64);
    Some((count * 1e9 / took, count * summary.mean? / took))
}

fn row(group: &[Rc<Run>]) -> Option<Row> {
    let basis = basis(group, [SERIES])?;
    let seen: Vec<(f64, f64)> = group.iter().filter_map(|run| seen(run)).collect();
    let lengths: Vec<f64> =
        group.iter().filter_map(|run| run.value(SERIES, Statistic::Mean)).collect();
    let hz = group.iter().find_map(|run| run.tick()).map(|tick| 1e9 / tick);
    let middle = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = seen.iter().map(of).collect();
        Statistic::Mean.pooled(&values)
    };
    let word = |value: Option<f64>| Cell::word(value.map_or(ABSENT.into(), figure));
    let share = middle(&|(_, share)| share * 100.0);
    let at = |other: f64| Some(share? * other / hz?);
    let cells = vec![
        word(middle(&|(rate, _)| *rate)),
        time_cell(&lengths, Statistic::Mean, US),
        word(share),
        word(at(100.0)),
        word(at(1000.0)),
    ];
    Some(Row { label: group[0].flavour().into(), whose: Whose::Ours, cells, basis: Some(basis) })
}

fn claims(runs: &Runs) -> Vec<Claim> {
    let timers = |r: &Repetition| {
        let pairs =
            r.all(false, "idle").filter_map(|run| Some((run, r.run(run.mode, true, "idle")?)));
        let share = |run: &Run| seen(run).map(|(_, share)| share);
        let quotients =
            pairs.filter_map(|(precise, ticking)| ratio(share(precise), share(ticking)));
        quotients.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
    };
    vec![
        WITHOUT.told(&runs.each(timers), runs.repetitions()),
        untold(
            "A tick of 1 ms in place of 10 ms has a very high overhead.",
            "Debian builds its kernels with HZ=250 only. The table says what a tick takes, and computes the shares at other rates from that.",
        ),
    ]
}
