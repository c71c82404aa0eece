// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs as a table: a row for each cost, a column for each run. A single run shows its spread too.

use super::comparison::percent;
use super::count::named;
use super::table::{Align, Table};
use crate::costs::{Change, brief, figure, instructions, of, of_what, rows, shown, size, spread};
use crate::screen::{Tone, toned};
use bundle::{Bundle, Manifest};
use probes::{Counts, Figure, Row};
use stats::Summary;

/// A cost that grew by more than this share is in colour.
const WORSE: f64 = 0.05;

/// The table of all runs that measured costs. Empty if there is none.
pub(super) fn table(bundles: &[Bundle]) -> String {
    let runs: Vec<&Manifest> =
        bundles.iter().map(Bundle::manifest).filter(|m| of(m).is_some()).collect();
    match runs[..] {
        [] => String::new(),
        [run] => alone(run),
        _ => side_by_side(&runs),
    }
}

fn alone(run: &Manifest) -> String {
    let columns = [
        ("cost", Align::Left),
        ("one operation", Align::Left),
        ("figure", Align::Right),
        ("medians of the repetitions", Align::Right),
        ("n", Align::Right),
        ("outliers", Align::Right),
        ("lost", Align::Left),
    ];
    let spare = ["one operation", "outliers", "medians of the repetitions"];
    let mut table = Table::new(&columns).indented(2).sparing(&spare);
    for row in rows(&[run]) {
        let summary = run.series.iter().find(|s| s.responder.as_str() == row.name);
        let figure = figure(run, row);
        table.row([
            row.name.to_owned(),
            row.about.to_owned(),
            figure.as_ref().map_or_else(|| "–".into(), shown),
            figure.as_ref().map_or_else(|| "–".into(), spread),
            summary.map_or(0, |s| s.count).to_string(),
            figure.map_or_else(|| "–".into(), |f| f.outliers.to_string()),
            lost(summary),
        ]);
    }
    table.text()
}

/// Runs of the same flavour and load are repetitions, and share a column.
fn side_by_side(runs: &[&Manifest]) -> String {
    let mut columns: Vec<(String, Vec<&Manifest>)> = Vec::new();
    for &run in runs {
        let of = of_what(run);
        match columns.iter_mut().find(|(known, _)| *known == of) {
            Some((_, repetitions)) => repetitions.push(run),
            None => columns.push((of, vec![run])),
        }
    }
    let mut headings = vec![("cost", Align::Left), ("one operation", Align::Left)];
    headings.extend(columns.iter().map(|(of, _)| (of.as_str(), Align::Right)));
    let mut table = Table::new(&headings).indented(2).sparing(&["one operation"]);
    let rows = rows(runs);
    for row in &rows {
        let cells = columns.iter().map(|(_, repetitions)| middle(repetitions, row));
        table.row([row.name.to_owned(), row.about.to_owned()].into_iter().chain(cells));
    }
    let text = table.text();
    if runs.iter().any(|run| rows.iter().any(|row| is_counted(run, row))) {
        return format!("{text}  A number without a unit is instructions of one operation.\n");
    }
    text
}

fn is_counted(run: &Manifest, row: &Row) -> bool {
    figure(run, row).is_some_and(|figure| figure.insns.is_some())
}

/// The figure of the run in the middle, and how far the others are from it.
fn middle(repetitions: &[&Manifest], row: &Row) -> String {
    let mut figures: Vec<Figure> = repetitions.iter().filter_map(|run| figure(run, row)).collect();
    figures.sort_by(|a, b| size(a).total_cmp(&size(b)));
    // Of an even number the lower one, as a median is everywhere.
    let Some(middle) = figures.get(figures.len().saturating_sub(1) / 2) else {
        return "–".into();
    };
    let far = figures.iter().map(|figure| (size(figure) / size(middle) - 1.0).abs());
    let far = far.fold(0.0, f64::max);
    let shown = brief(middle);
    // Less than this is shown as 0.
    if far < 0.0005 { shown } else { format!("{shown} ± {:.1} %", far * 100.0) }
}

impl Change {
    /// The share by which an operation takes longer than before; less than 0 where it takes less.
    fn longer(&self) -> Option<f64> {
        let (before, after) = self.sizes();
        (before > 0.0).then(|| after / before - 1.0)
    }

    /// What changed, in the unit of the row: a throughput where operations move bytes, else what they take.
    fn told(&self) -> String {
        let Some((longer, share)) = self.longer().zip(self.share()) else { return "–".into() };
        let text = percent(share);
        if longer > WORSE { toned(Tone::Bad, &text) } else { text }
    }

    /// The same as a share of what was before.
    fn share(&self) -> Option<f64> {
        let longer = self.longer()?;
        Some(match self.row.counts {
            Counts::Time => longer,
            // Twice the time is half the throughput.
            Counts::Bytes(_) => 1.0 / (1.0 + longer) - 1.0,
        })
    }

    /// The instructions that an operation takes more than before, or less.
    fn insns(&self) -> Option<String> {
        let more = self.after.insns_per_operation()? - self.before.insns_per_operation()?;
        let sign = if more < 0.0 { "−" } else { "+" };
        Some(format!("{sign}{}", instructions(more.abs())))
    }
}

/// The costs that both runs have, the one that grew most first: a sentence, and a table.
pub(super) fn compared(before: &Manifest, after: &Manifest) -> Option<(String, Table)> {
    let mut changes = Change::all(before, after)?;
    let longer = |change: &Change| change.longer().unwrap_or(f64::NEG_INFINITY);
    changes.sort_by(|a, b| longer(b).total_cmp(&longer(a)));
    let sentence = match changes.first().filter(|change| longer(change) > 0.0) {
        None if changes.is_empty() => "The runs have no cost in common.".into(),
        None => "No cost of the later run is greater than in the earlier run.".into(),
        Some(first) => format!(
            "The cost that grew most from the earlier to the later run is {}: {} instead of {} ({}).",
            first.row.name,
            shown(&first.after),
            shown(&first.before),
            first.share().map_or_else(|| "–".into(), percent),
        ),
    };
    let columns = [
        ("cost", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("instructions", Align::Right),
        ("better is", Align::Left),
        ("", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for change in &changes {
        table.row([
            change.row.name.to_owned(),
            shown(&change.before),
            shown(&change.after),
            change.insns().unwrap_or_else(|| "–".into()),
            if change.row.more_is_better() { "more" } else { "less" }.into(),
            change.told(),
        ]);
    }
    Some((sentence, table))
}

fn lost(summary: Option<&Summary>) -> String {
    summary.and_then(|s| named(&s.losses)).unwrap_or_else(|| "0".into())
}
