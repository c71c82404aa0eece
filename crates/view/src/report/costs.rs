// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of costs: a row for each cost, a column for each run that measured costs.

use crate::costs::{figure, heading, of, rows, shown, spread};
use bundle::{Bundle, Manifest};
use serde::Serialize;

/// The costs of all runs of the report that measured any.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Costs {
    /// The runs: flavour, load, and how many batches each figure has.
    runs: Vec<String>,
    /// The rows, suite by suite.
    rows: Vec<CostRow>,
}

/// One cost.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostRow {
    /// The suite.
    suite: String,
    /// The name of its series.
    name: &'static str,
    /// One operation, in words.
    about: &'static str,
    /// Whether the greater of two figures is the better one.
    more_is_better: bool,
    /// A figure for each run.
    cells: Vec<CostCell>,
}

/// One figure.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostCell {
    /// The figure with its unit; a dash if it was not measured.
    text: String,
    /// The least and the greatest median of the repetitions; null where instructions were counted.
    spread: Option<String>,
    /// The batches that took far longer than the others.
    outliers: Option<u64>,
}

impl Costs {
    /// None if no run measured costs.
    pub(super) fn of(bundles: &[Bundle]) -> Option<Costs> {
        let runs: Vec<&Manifest> =
            bundles.iter().map(Bundle::manifest).filter(|run| of(run).is_some()).collect();
        if runs.is_empty() {
            return None;
        }
        let row = |row: &'static probes::Row| CostRow {
            suite: row.suite.to_string(),
            name: row.name,
            about: row.about,
            more_is_better: row.more_is_better(),
            cells: runs.iter().map(|run| cell(run, row)).collect(),
        };
        Some(Costs {
            runs: runs.iter().map(|run| heading(run)).collect(),
            rows: rows(&runs).into_iter().map(row).collect(),
        })
    }
}

fn cell(run: &Manifest, row: &'static probes::Row) -> CostCell {
    let figure = figure(run, row);
    CostCell {
        text: figure.as_ref().map_or_else(|| "—".into(), shown),
        // Where instructions were counted, the time of the batches by the guest's clock says nothing more.
        spread: figure.as_ref().filter(|figure| figure.insns.is_none()).map(spread),
        outliers: figure.map(|figure| figure.outliers),
    }
}
