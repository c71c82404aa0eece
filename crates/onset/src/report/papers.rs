// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables and figures of the papers, the paper's figures beside ours. Everything is computed here from the bundles; what a
//! line says of both is decided by the numbers, never taken for granted.
//!
//! What this cannot see: whether a difference comes from the kernel or from the machine. The note under each table says in
//! which time ours were measured.

mod claim;
mod delay;
mod internals;
mod inversion;
mod rhealstone;
mod runs;
mod toggle;

use crate::bundle::{Bundle, BundleError};
use crate::experiment::Paper;
use claim::Claim;
use runs::Runs;
use serde::Serialize;
use stats::{Quantile, Summary};

/// A table or figure of a paper, with ours beside it.
#[derive(Debug, Serialize)]
pub struct Table {
    /// For links.
    pub id: &'static str,
    /// What is measured.
    pub heading: &'static str,
    /// Paper and table.
    pub source: &'static str,
    /// What the cells of a row are, in their order.
    pub columns: Vec<Column>,
    /// In the order of reading: the paper's in its order, ours beside or below.
    pub rows: Vec<Row>,
    /// Rows that the experiment would give and this report has no run for.
    pub absent: Vec<String>,
    /// What ours are to be read as.
    pub note: String,
    /// What is as it was.
    pub alike: Claim,
    /// What is not.
    pub changed: Claim,
    /// The figure.
    pub picture: Option<Picture>,
}

/// What a cell means.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Of its numbers; empty where they have none.
    pub unit: &'static str,
}

/// Whose figures a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The paper's.
    Paper,
    /// This report's.
    Ours,
}

/// One row.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Kernel, flavour or period.
    pub label: String,
    /// Whose.
    pub whose: Whose,
    /// One for each column.
    pub cells: Vec<Cell>,
    /// How many samples ours come from, and how many were lost: no maximum without them.
    pub basis: Option<Basis>,
}

/// What a row of ours stands on.
#[derive(Debug, Serialize)]
pub struct Basis {
    /// The run.
    pub run: String,
    /// A series of the run to look at.
    pub responder: String,
    /// Samples of all the row's series.
    pub count: u64,
    /// Losses of all the row's series.
    pub lost: u64,
}

/// One figure.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// As it is to be read: the paper's digit for digit, ours with three digits in the paper's unit.
    pub text: String,
    /// Ours, before rounding, where it is a time.
    pub exact_ns: Option<f64>,
}

/// What is drawn beside a table.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Picture {
    /// Waiting against work.
    Chart(inversion::Chart),
    /// An oscilloscope in infinite persistence.
    Screens(toggle::Screens),
}

/// A statistic of a series, in ns.
type Statistic = fn(&Summary) -> Option<f64>;

const MIN: Statistic = |s| s.min.map(|n| n.0 as f64);
const MEAN: Statistic = |s| s.mean_ns;
const STDDEV: Statistic = |s| s.stddev_ns;
const MAX: Statistic = |s| s.max.map(|n| n.0 as f64);
const MEDIAN: Statistic = |s| s.quantile(Quantile::P50).map(|n| n.0 as f64);
const TAIL: Statistic = |s| s.quantile(Quantile::P999).map(|n| n.0 as f64);

/// A unit of time that a paper uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Millis,
    Micros,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Unit::Millis => "ms",
            Unit::Micros => "µs",
        }
    }

    fn of_ns(self, ns: f64) -> f64 {
        match self {
            Unit::Millis => ns / 1e6,
            Unit::Micros => ns / 1e3,
        }
    }

    const fn column(self, name: &'static str) -> Column {
        Column { name, unit: self.name() }
    }
}

/// Three significant digits without exponent, as the papers print them.
fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{value:.decimals$}")
}

/// The number of a figure as a paper prints it; none where it is a word or a dash.
fn number(text: &str) -> Option<f64> {
    text.trim_start_matches("≈ ").trim_end_matches('*').parse().ok()
}

/// A row of a paper: label and figures as printed; [`ABSENT`] where it has none.
type Printed = (&'static str, &'static [&'static str]);

/// In place of a figure that was not measured. Never a zero.
const ABSENT: &str = "—";

fn printed((label, figures): &Printed) -> Row {
    let cell = |text: &&str| Cell { text: (*text).into(), exact_ns: None };
    let cells = figures.iter().map(cell).collect();
    Row { label: (*label).into(), whose: Whose::Paper, cells, basis: None }
}

fn time_cell(ns: Option<f64>, unit: Unit) -> Cell {
    let text = ns.map_or(ABSENT.into(), |ns| figure(unit.of_ns(ns)));
    Cell { text, exact_ns: ns }
}

/// The tables that `bundles` hold runs for, in the order of the papers.
///
/// # Errors
/// [`BundleError`] where a histogram cannot be read.
pub fn tables(bundles: &[Bundle]) -> Result<Vec<Table>, BundleError> {
    let mut tables = Vec::new();
    for paper in Paper::ALL {
        let Some(runs) = Runs::of(paper, bundles) else { continue };
        match paper {
            Paper::Delay2001 => tables.extend([delay::disk(&runs), delay::net(&runs)]),
            Paper::Periods2001 => tables.extend([delay::precise(&runs), delay::ticking(&runs)]),
            Paper::Disk2001 => tables.push(delay::two_periods(&runs)),
            Paper::Rhealstone2001 => {
                tables.extend([rhealstone::preemption(&runs), rhealstone::semaphore(&runs)]);
            }
            Paper::Gtod2007 => tables.push(internals::gtod(&runs)),
            Paper::Sched2007 => tables.push(internals::sched(&runs)),
            Paper::Async2007 => tables.push(internals::async_handler(&runs)),
            Paper::Inversion2007 => tables.push(inversion::table(&runs)),
            Paper::Toggle2007 => tables.push(toggle::table(&runs)?),
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
