// SPDX-License-Identifier: GPL-2.0-or-later
//! Çayır: Unintrusively Linux Kernel Real-Time Performance Measurement (2006), figures 5.9 to 5.12: interrupt handler,
//! tasklet, work queue and task answer a generator outside of the target, without load and with it, at several
//! frequencies. The thesis shows least, greatest, average and count, as pictures; its text has no numbers.
//!
//! A file has one frequency, and several files belong together.

use super::claim::{Claim, Expects, Said, Scale, untold};
use super::delay::ratio;
use super::runs::{Repetition, Run, Runs, basis, summary};
use super::{Cell, Column, Row, Statistic, Table, Unit, Whose, time_cell};
use bundle::Schedule;
use sample::Nanos;
use std::collections::BTreeSet;
use std::rc::Rc;

const US: Unit = Unit::Micros;

/// The mechanisms of the thesis: its figure, the responder, and the table.
const FIGURES: [(&str, &str, &str, &str); 4] = [
    ("hardirq", "2006-irq", "The interrupt handler answers", "Çayır 2006, figure 5.9"),
    ("tasklet", "2006-tasklet", "A tasklet answers", "Çayır 2006, figure 5.10"),
    ("work", "2006-workqueue", "A work queue answers", "Çayır 2006, figure 5.11"),
    ("task", "2006-task", "A task answers", "Çayır 2006, figure 5.12"),
];

const LOAD: Said = Said {
    paper: "The target must have a heavy load, since the result is directly related to it (§5.6.2).",
    what: "Latest answer under load, divided by the latest without load, for the kernel and frequency with the least quotient",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.5,
    needs: "sound runs without load and under load at one frequency",
};
const LATER: &str =
    "A bottom half is executed later than the interrupt handler, which only schedules it (§3.1.6).";
const FIRST: &str =
    "The interrupt handler is the first to answer; everything else is scheduled by it (§3.1.6).";
/// Why no run decides who is first.
const HANDLER_FIRST: &str = "The driver's handler answers first and then starts the others, so this cannot come out otherwise.";

/// Figures 5.9 to 5.12.
pub(super) fn tables(runs: &Runs) -> Vec<Table> {
    FIGURES.map(|figure| table(runs, figure)).into()
}

/// The mean distance of two triggers.
fn period(run: &Run) -> Option<Nanos> {
    match run.manifest().about.experiment.trigger.as_ref()?.schedule {
        Schedule::Periodic { period, .. } => Some(period),
        Schedule::Times { .. } => None,
    }
}

fn table(
    runs: &Runs,
    (series, id, heading, source): (&'static str, &'static str, &'static str, &'static str),
) -> Table {
    let periods: BTreeSet<Nanos> = runs.runs.iter().filter_map(|run| period(run)).collect();
    let mut rows = Vec::new();
    let mut absent = Vec::new();
    // The slowest first, as one turns the generator up.
    for at in periods.iter().rev() {
        let runs = runs.kept(|run| period(run) == Some(*at));
        let hertz = frequency(*at);
        rows.extend(runs.groups().iter().filter_map(|group| row(group, series, &hertz)));
        absent.extend(runs.absent().into_iter().map(|cell| format!("{hertz}, {cell}")));
    }
    let mut columns: Vec<Column> =
        ["minimum", "maximum", "average"].map(|name| US.column(name)).into();
    columns.push(Column { name: "count", unit: "" });
    Table {
        id,
        heading,
        source,
        columns,
        rows,
        absent,
        note: format!(
            "{} A row names the frequency of the generator, the flavour and the load. Minimum and maximum of all seeds, average of the seed in the middle; small print: \
            from seed to seed. The thesis prints pictures. Its load was a kernel build, a file copied over the network and a media player; here is \
            a compiler, a stream over a network of two namespaces and a player that keeps a pace.",
            runs.note()
        ),
        claims: claims(runs, series),
        picture: None,
    }
}

fn frequency(period: Nanos) -> String {
    let hertz = 1e9 / period.0 as f64;
    match hertz >= 1000.0 {
        true => format!("{} kHz", hertz / 1000.0),
        false => format!("{hertz} Hz"),
    }
}

fn row(group: &[Rc<Run>], series: &'static str, hertz: &str) -> Option<Row> {
    let basis = basis(group, [series])?;
    let value = |statistic: Statistic| -> Cell {
        let values: Vec<f64> = group.iter().filter_map(|r| r.value(series, statistic)).collect();
        time_cell(&values, statistic, US)
    };
    let mut cells: Vec<Cell> = [Statistic::Min, Statistic::Max, Statistic::Mean].map(value).into();
    cells.push(Cell::word(basis.count.to_string()));
    let label = format!("{hertz}, {}, {}", group[0].flavour(), group[0].load());
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

fn claims(runs: &Runs, series: &'static str) -> Vec<Claim> {
    let seeds = runs.repetitions();
    let load = runs.each(|r| under_load(r, series));
    let order = if series == "hardirq" { FIRST } else { LATER };
    vec![LOAD.told(&load, seeds), untold(order, HANDLER_FIRST)]
}

/// For each kernel and frequency the latest answer under any load, divided by that without; the least of them.
fn under_load(r: &Repetition, series: &str) -> Option<f64> {
    let worst = |run: &Run| run.value(series, Statistic::Max);
    let of = |idle: &Run| {
        let alike = |run: &&Run| {
            run.load() != "idle" && (run.flavour(), period(run)) == (idle.flavour(), period(idle))
        };
        ratio(r.iter().filter(alike).filter_map(worst).reduce(f64::max), worst(idle))
    };
    r.iter()
        .filter(|run| run.load() == "idle" && summary(run.manifest(), series).is_some())
        .filter_map(of)
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_named_by_its_frequency() {
        assert_eq!(frequency(Nanos(10_000_000)), "100 Hz");
        assert_eq!(frequency(Nanos(250_000)), "4 kHz");
    }
}
