// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs as people read them: which rows runs have, and a figure with its unit. Terminal and report lay them out.

use crate::price::{COSTS, IDLE, is_sound};
use bundle::Manifest;
use probes::plan::Cost;
use probes::{Counts, Figure, Figures, Probe, Row, row};
use sample::{Count, Insns};

/// The costs that a run measured. `None` where it measured something else.
pub(crate) fn of(manifest: &Manifest) -> Option<&Cost> {
    match &manifest.about.experiment.probe.as_ref()?.probe {
        Probe::Cost(cost) => Some(cost),
        _ => None,
    }
}

/// The rows of all runs, in the order of the suites.
pub(crate) fn rows(runs: &[&Manifest]) -> Vec<&'static Row> {
    let mut rows: Vec<&'static Row> = Vec::new();
    for cost in runs.iter().filter_map(|run| of(run)) {
        rows.extend(cost.rows());
    }
    let mut known = Vec::new();
    rows.retain(|row| {
        let is_new = !known.contains(&row.name);
        known.push(row.name);
        is_new
    });
    rows.sort_by_key(|row| row.suite);
    rows
}

pub(crate) fn figure(run: &Manifest, row: &Row) -> Option<Figure> {
    Figures(&run.about.probe_counters).of(row.name)
}

/// What a few costs are on the kernel with the least and on that with the most. None if no run measured them.
pub(crate) fn sentence(runs: &[&Manifest]) -> Option<String> {
    let told = |name: &&str| {
        let row = row(name)?;
        let sound = runs.iter().filter(|run| run.about.load == IDLE && is_sound(run));
        let figures = sound.filter_map(|run| Some((figure(run, row)?, run)));
        let mut all: Vec<(Figure, &&Manifest)> = figures.collect();
        all.sort_by(|a, b| size(&a.0).total_cmp(&size(&b.0)));
        let ((least, of_least), (most, of_most)) = (all.first()?, all.last()?);
        if least.insns.is_some() != most.insns.is_some() {
            return None;
        }
        let unit = if least.insns.is_some() { " instructions" } else { "" };
        let (least, most) = (brief(least), brief(most));
        Some(match least == most {
            true => format!("{name} costs {least}{unit}"),
            false => format!(
                "{name} costs {least}{unit} on {} and {most} on {}",
                of_least.about.flavour, of_most.about.flavour
            ),
        })
    };
    let told: Vec<String> = COSTS.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| format!("{}.", told.join("; ")))
}

/// How much one operation is: its instructions where the rig counted them, else its nanoseconds.
pub(crate) fn size(figure: &Figure) -> f64 {
    figure.insns_per_operation().unwrap_or(figure.ns_per_operation())
}

/// A cost that two runs have.
pub(crate) struct Change {
    pub(crate) row: &'static Row,
    pub(crate) before: Figure,
    pub(crate) after: Figure,
}

impl Change {
    /// The costs that both runs have, suite by suite. None if a run measured something else.
    pub(crate) fn all(before: &Manifest, after: &Manifest) -> Option<Vec<Change>> {
        of(before).and(of(after))?;
        let change =
            |row| Some(Change { row, before: figure(before, row)?, after: figure(after, row)? });
        Some(rows(&[before, after]).into_iter().filter_map(change).collect())
    }

    /// How much one operation was and is: instructions where the rig counted both, else nanoseconds.
    pub(crate) fn sizes(&self) -> (f64, f64) {
        match (self.before.insns, self.after.insns) {
            (Some(_), Some(_)) => (size(&self.before), size(&self.after)),
            _ => (self.before.ns_per_operation(), self.after.ns_per_operation()),
        }
    }
}

/// What was measured: the flavour, and the load if there is one.
pub(crate) fn of_what(run: &Manifest) -> String {
    match run.about.load.as_str() {
        "idle" => run.about.flavour.to_string(),
        load => format!("{} · {load}", run.about.flavour),
    }
}

/// The same, and how many batches each figure has.
pub(crate) fn heading(run: &Manifest) -> String {
    let counts = || run.series.iter().map(|s| s.count).filter(|count| *count > 0);
    let n = match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (Some(least), _) => least.to_string(),
        _ => "0".into(),
    };
    format!("{} (n = {n})", of_what(run))
}

/// The figure with its unit: instructions where the rig counted them, then time or throughput.
pub(crate) fn shown(figure: &Figure) -> String {
    let time = time(figure);
    match figure.insns_per_operation() {
        Some(insns) => format!("{} · {time}", instructions(insns)),
        None => time,
    }
}

/// The figure in a table of many: a throughput where operations move bytes, else instructions without their unit, or a
/// time where nobody counted them.
pub(crate) fn brief(figure: &Figure) -> String {
    match (figure.row.counts, figure.insns_per_operation()) {
        (Counts::Bytes(_), _) | (_, None) => time(figure),
        (Counts::Time, Some(insns)) => Count(insns.round() as u64).to_string(),
    }
}

/// What one operation takes, or the throughput.
fn time(figure: &Figure) -> String {
    amount(figure.row, figure.ns_per_operation())
}

/// The time of one operation, in ns; a throughput where operations move bytes.
fn amount(row: &Row, ns: f64) -> String {
    match row.counts {
        Counts::Time => nanos(ns),
        Counts::Bytes(_) => {
            let rate = row.bandwidth((ns * 1_000.0).round() as u64);
            rate.map_or_else(|| "–".into(), |rate| rate.to_string())
        }
    }
}

/// The least and the greatest of the medians of the repetitions.
pub(crate) fn spread(figure: &Figure) -> String {
    let one = |ps: u64| amount(figure.row, ps as f64 / 1_000.0);
    match (one(figure.least_median_ps), one(figure.most_median_ps)) {
        (least, most) if least == most => least,
        (least, most) => format!("{least} … {most}"),
    }
}

/// A time with three digits or more: `21.4 ns`, `1.23 µs`.
fn nanos(ns: f64) -> String {
    match ns {
        ..1_000.0 => format!("{ns:.1} ns"),
        1_000.0..1_000_000.0 => format!("{:.2} µs", ns / 1e3),
        _ => format!("{:.2} ms", ns / 1e6),
    }
}

/// A number of instructions from here on has no fraction.
const FRACTIONS_BELOW: f64 = 10_000.0;

/// `132 instructions`; with a fraction where an operation has not always as many, and where it is not lost among many.
pub(crate) fn instructions(insns: f64) -> String {
    let whole = insns.round();
    if (insns - whole).abs() < 0.05 || insns >= FRACTIONS_BELOW {
        return Insns(whole as u64).to_string();
    }
    format!("{insns:.1} instructions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn counters(name: &str, ops: u64, median_ps: u64) -> BTreeMap<String, u64> {
        [
            ("ops", ops),
            ("median_ps", median_ps),
            ("least_median_ps", median_ps - 1_000),
            ("most_median_ps", median_ps + 1_000),
            ("outliers", 2),
        ]
        .map(|(what, value)| (format!("{what}_{name}"), value))
        .into()
    }

    #[test]
    fn a_time_and_a_throughput_have_their_units_and_instructions_stand_before_them() {
        let mut counters = counters("null_call", 1_000, 71_300);
        let figure = Figures(&counters).of("null_call").unwrap();
        assert_eq!(
            (shown(&figure), spread(&figure)),
            ("71.3 ns".into(), "70.3 ns … 72.3 ns".into())
        );
        counters.insert("insns_null_call".into(), 132_000);
        counters.insert("virtual_ns_null_call".into(), 264_000);
        let figure = Figures(&counters).of("null_call").unwrap();
        assert_eq!(shown(&figure), "132 instructions · 264.0 ns");
        counters.insert("insns_null_call".into(), 132_400);
        let figure = Figures(&counters).of("null_call").unwrap();
        assert_eq!(shown(&figure), "132.4 instructions · 264.0 ns");
        assert_eq!(brief(&figure), "132");
        assert_eq!(instructions(9_999.5), "9999.5 instructions");
        assert_eq!(instructions(1_400_236.8), "1,400,237 instructions");
    }

    #[test]
    fn a_bandwidth_is_bytes_a_second() {
        let counters = counters("pipe_bandwidth", 2, 1_000_000_000);
        let figure = Figures(&counters).of("pipe_bandwidth").unwrap();
        assert_eq!(shown(&figure), "1.05 GB/s");
    }
}
