// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables and figures of the papers, the paper's figures beside ours, and what became of each of its claims. Everything is
//! computed here from the bundles; the outcome of a claim is decided by the numbers of several repetitions, never taken for
//! granted, and never by a number of the paper divided by one of ours.
//!
//! What this cannot see: whether a difference comes from the kernel or from the machine. The note under each table says in
//! which time ours were measured.

mod claim;
mod delay;
mod internals;
mod inversion;
mod periods;
mod rhealstone;
mod runs;
mod toggle;

use crate::bundle::{Bundle, BundleError};
use crate::experiment::Paper;
use claim::Claim;
use runs::Runs;
pub(super) use runs::guest_seed;
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
    /// What the paper says, and what became of it.
    pub claims: Vec<Claim>,
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
    /// The first of its runs.
    pub run: String,
    /// A series of the run to look at.
    pub responder: String,
    /// How many runs: guests of different seeds, or of a machine one after the other.
    pub repetitions: u64,
    /// Samples of all the row's series in all runs.
    pub count: u64,
    /// Losses of all the row's series in all runs.
    pub lost: u64,
}

/// One figure.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// As it is to be read: the paper's digit for digit, ours with three digits in the paper's unit.
    pub text: String,
    /// Ours, before rounding, where it is a time.
    pub exact_ns: Option<f64>,
    /// Of ours the least and the greatest of the repetitions, where they differ in what is shown.
    pub spread: Option<String>,
}

impl Cell {
    /// A word, or a figure as the paper prints it.
    fn word(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), exact_ns: None, spread: None }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    Min,
    Mean,
    Stddev,
    Max,
    Median,
    /// The 99.9th percentile.
    Tail,
    /// The first event's latency.
    First,
}

impl Statistic {
    /// Of a series' numbers; the first event is not among them.
    fn of(self, summary: &Summary) -> Option<f64> {
        let ns = |nanos: sample::Nanos| nanos.0 as f64;
        match self {
            Statistic::Min => summary.min.map(ns),
            Statistic::Mean => summary.mean_ns,
            Statistic::Stddev => summary.stddev_ns,
            Statistic::Max => summary.max.map(ns),
            Statistic::Median => summary.quantile(Quantile::P50).map(ns),
            Statistic::Tail => summary.quantile(Quantile::P999).map(ns),
            Statistic::First => None,
        }
    }

    /// Of several repetitions: their extreme where it is one, else the middle one.
    fn pooled(self, values: &[f64]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        match self {
            Statistic::Min | Statistic::First => sorted.first().copied(),
            Statistic::Max => sorted.last().copied(),
            _ => sorted.get(sorted.len() / 2).copied(),
        }
    }
}

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
    let text = format!("{value:.decimals$}");
    // Too small for that many decimals.
    if text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { text } else { "0".into() }
}

/// The number of a figure as a paper prints it; none where it is a word or a dash.
#[cfg(test)]
fn number(text: &str) -> Option<f64> {
    text.trim_start_matches("≈ ").trim_end_matches('*').parse().ok()
}

/// A row of a paper: label and figures as printed; [`ABSENT`] where it has none.
type Printed = (&'static str, &'static [&'static str]);

/// In place of a figure that was not measured. Never a zero.
const ABSENT: &str = "—";

fn printed((label, figures): &Printed) -> Row {
    let cells = figures.iter().map(|text| Cell::word(*text)).collect();
    Row { label: (*label).into(), whose: Whose::Paper, cells, basis: None }
}

/// Ours: the values of a statistic in the repetitions.
fn time_cell(values: &[f64], statistic: Statistic, unit: Unit) -> Cell {
    let pooled = statistic.pooled(values);
    let text = |ns: f64| figure(unit.of_ns(ns));
    let least = values.iter().copied().reduce(f64::min).map(text);
    let greatest = values.iter().copied().reduce(f64::max).map(text);
    let spread = match (least, greatest) {
        (Some(least), Some(greatest)) if least != greatest => Some(format!("{least} … {greatest}")),
        _ => None,
    };
    Cell { text: pooled.map_or(ABSENT.into(), text), exact_ns: pooled, spread }
}

/// The tables that `bundles` hold runs for, in the order of the papers.
///
/// # Errors
/// [`BundleError`] where a histogram cannot be read.
pub fn tables(bundles: &[Bundle]) -> Result<Vec<Table>, BundleError> {
    let mut tables = Vec::new();
    for paper in Paper::ALL {
        let Some(runs) = Runs::of(paper, bundles)? else { continue };
        match paper {
            Paper::Delay2001 => tables.extend([delay::disk(&runs), delay::net(&runs)]),
            Paper::Periods2001 => tables.extend([periods::precise(&runs), periods::ticking(&runs)]),
            Paper::Disk2001 => tables.push(periods::under_disk(&runs)),
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
