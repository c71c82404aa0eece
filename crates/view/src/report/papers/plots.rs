// SPDX-License-Identifier: GPL-2.0-or-later
//! The pictures of Rostedt, Hart: Internals of the RT Patch (2007), figures 3 to 8: points over time, and histograms
//! with equal columns. Each kernel and load has a panel, as in the paper, with axes of its own.

use super::runs::{Run, Runs, summary};
use bundle::{Bundle, BundleError};
use sample::Nanos;
use serde::Serialize;
use std::rc::Rc;

/// Slices of time, of which each shows its least and its greatest point, so that no maximum is lost.
const SLICES: u64 = 200;
/// Columns of a histogram.
const COLUMNS: u64 = 40;

/// Points over time.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, title = "Scatter"))]
pub struct Scatter {
    /// A panel for each flavour and load, of the first repetition.
    pub panels: Vec<ScatterPanel>,
}

/// The points of one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterPanel {
    /// Flavour and load.
    pub label: String,
    /// The least and the greatest of each slice of time, by rising time.
    pub points: Vec<ScatterPoint>,
    /// How many samples the slices have.
    pub count: u64,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterPoint {
    /// When it was, since measuring began.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Its latency.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
}

/// Histograms.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, title = "Histograms")
)]
pub struct Histograms {
    /// A panel for each flavour and load, of all repetitions.
    pub panels: Vec<HistogramPanel>,
}

/// The histogram of one flavour and load.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistogramPanel {
    /// Flavour and load.
    pub label: String,
    /// The width of a column. The first one begins at 0.
    #[serde(rename = "column_ns")]
    pub column: Nanos,
    /// How many samples each column has.
    pub counts: Vec<u64>,
}

fn label(group: &[Rc<Run>]) -> String {
    format!("{}, {}", group[0].flavour(), group[0].load())
}

/// The points of a series; none if no run has any.
pub(super) fn scatter(runs: &Runs, series: &str) -> Result<Option<Scatter>, BundleError> {
    let mut panels = Vec::new();
    for group in runs.groups() {
        let points = points(group[0].bundle, series)?;
        if !points.is_empty() {
            let count = points.len() as u64;
            panels.push(ScatterPanel { label: label(&group), points: thinned(points), count });
        }
    }
    Ok((!panels.is_empty()).then_some(Scatter { panels }))
}

fn points(bundle: &Bundle, series: &str) -> Result<Vec<ScatterPoint>, BundleError> {
    let all = &bundle.manifest().series;
    let wanted = all.iter().position(|s| s.responder.as_str() == series);
    let mut points = Vec::new();
    if wanted.is_some() {
        bundle.samples(|sample| {
            if Some(sample.series.index()) == wanted {
                points.push(ScatterPoint { at: sample.at, latency: sample.latency });
            }
        })?;
    }
    Ok(points)
}

/// The least and the greatest point of each slice of time.
fn thinned(mut points: Vec<ScatterPoint>) -> Vec<ScatterPoint> {
    points.sort_by_key(|point| point.at);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return points };
    let (from, length) = (first.at.0, (last.at.0 - first.at.0) / SLICES + 1);
    let mut kept: Vec<ScatterPoint> = Vec::new();
    for slice in points.chunk_by(|a, b| (a.at.0 - from) / length == (b.at.0 - from) / length) {
        let least = slice.iter().min_by_key(|point| point.latency);
        let greatest = slice.iter().max_by_key(|point| point.latency);
        let mut ends: Vec<ScatterPoint> = least.into_iter().chain(greatest).copied().collect();
        ends.sort_by_key(|point| point.at);
        ends.dedup();
        kept.extend(ends);
    }
    kept
}

/// The histograms of a series; none if no run has any.
pub(super) fn histograms(runs: &Runs, series: &str) -> Result<Option<Histograms>, BundleError> {
    let mut panels = Vec::new();
    for group in runs.groups() {
        let mut values: Vec<(u64, u64)> = Vec::new();
        for run in &group {
            let Some(summary) = summary(run.manifest(), series) else { continue };
            values.extend(super::toggle::recorded(&run.bundle.histogram(&summary.responder)?));
        }
        if !values.is_empty() {
            panels.push(histogram(label(&group), &values));
        }
    }
    Ok((!panels.is_empty()).then_some(Histograms { panels }))
}

/// Values with their counts, in equal columns from 0 to the greatest.
fn histogram(label: String, values: &[(u64, u64)]) -> HistogramPanel {
    let greatest = values.iter().map(|(value, _)| *value).max().unwrap_or(0);
    let column = greatest / COLUMNS + 1;
    let mut counts = vec![0; COLUMNS as usize];
    for (value, count) in values {
        counts[(value / column) as usize] += count;
    }
    HistogramPanel { label, column: Nanos(column), counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_points_keep_every_extreme_and_their_order() {
        let point = |n: u64| ScatterPoint {
            at: Nanos(n * 1_000),
            latency: Nanos(if n == 4_321 { 900 } else { 10 + n % 7 }),
        };
        let thin = thinned((0..10_000).map(point).collect());
        assert!(thin.len() as u64 <= 2 * SLICES, "{}", thin.len());
        assert!(thin.is_sorted_by_key(|point| point.at));
        assert!(thin.contains(&point(4_321)));
        assert!(thin.iter().any(|point| point.latency == Nanos(10)));
        assert_eq!(thinned(vec![point(1)]), [point(1)]);
        assert!(thinned(Vec::new()).is_empty());
    }

    #[test]
    fn a_histogram_counts_every_value_once() {
        let panel = histogram("a".into(), &[(0, 5), (99, 2), (3_999, 1)]);
        assert_eq!((panel.column, panel.counts.len()), (Nanos(100), 40));
        assert_eq!((panel.counts[0], panel.counts[39]), (7, 1));
        assert_eq!(panel.counts.iter().sum::<u64>(), 8);
    }
}
