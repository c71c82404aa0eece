// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables and figures of the papers: the figures of the paper beside onset's figures, and the outcome of each
//! claim. This module computes everything from the bundles. The numbers of several repetitions decide the outcome of a
//! claim. A number of the paper is never divided by one of onset's numbers.
//!
//! This module cannot see whether a difference comes from the kernel or from the machine. The note under each table
//! names the clock of onset's numbers.

mod claim;
mod contents;
mod costs;
mod delay;
mod entries;
mod internals;
mod inversion;
mod mechanisms;
mod periods;
mod plots;
mod rhealstone;
mod rtc;
mod runs;
mod switches;
mod tick;
mod toggle;
mod width;

use bundle::{Bundle, BundleError};
use claim::Claim;
pub(crate) use claim::Outcome;
pub(crate) use contents::{Item, Others, Status, contents, contents_of};
use experiment::Paper;
use runs::Runs;
pub(super) use runs::guest_seed;
use serde::Serialize;
use stats::{Quantile, Summary};

/// A table or figure of a paper, with onset's numbers beside it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PaperTable"))]
pub struct Table {
    /// The name for links.
    pub id: &'static str,
    /// The heading: what is measured.
    pub heading: &'static str,
    /// The paper, and its table or figure.
    pub source: &'static str,
    /// The columns, in their order.
    pub columns: Vec<Column>,
    /// The rows in the order of reading: the paper's rows in its order, onset's rows beside or below.
    pub rows: Vec<Row>,
    /// Rows of the experiment for which this report has no run.
    pub absent: Vec<String>,
    /// How to read onset's numbers.
    pub note: String,
    /// The claims of the paper, with their outcomes.
    pub claims: Vec<Claim>,
    /// The figure.
    pub picture: Option<Picture>,
}

/// A column.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PaperColumn"))]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
}

/// Whose figures a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Figures of the paper.
    Paper,
    /// Figures of this report.
    Ours,
}

/// One row.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PaperRow"))]
pub struct Row {
    /// The label: a kernel, a flavour or a period.
    pub label: String,
    /// Whose figures these are.
    pub whose: Whose,
    /// One for each column.
    pub cells: Vec<Cell>,
    /// The runs, samples and losses behind a row of onset; no maximum is complete without them.
    pub basis: Option<Basis>,
}

/// The runs, samples and losses behind a row of onset.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Basis {
    /// The first of the runs.
    pub run: String,
    /// A series of that run to look at.
    pub responder: String,
    /// How many runs there are: guests with different seeds, or runs of a machine one after the other.
    pub repetitions: u64,
    /// Samples of all series of the row in all runs.
    pub count: u64,
    /// Losses of all series of the row in all runs.
    pub lost: u64,
}

/// One figure.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PaperCell"))]
pub struct Cell {
    /// The text to show: the paper's figures digit for digit, onset's figures with three digits in the paper's unit.
    pub text: String,
    /// Onset's figure before rounding, if it is a time.
    pub exact_ns: Option<f64>,
    /// For onset's figures, the least and the greatest of the repetitions, if their texts differ.
    pub spread: Option<String>,
}

impl Cell {
    /// A word, or a figure as the paper prints it.
    fn word(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), exact_ns: None, spread: None }
    }
}

/// The picture beside a table.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Picture {
    /// The wait of a thread against the work of another.
    Chart(inversion::Chart),
    /// The screen of an oscilloscope in infinite persistence.
    Screens(toggle::Screens),
    /// Points over time.
    Scatter(plots::Scatter),
    /// Histograms.
    Histogram(plots::Histograms),
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
    /// The latency of the first event.
    First,
}

impl Statistic {
    /// This statistic of a series; the first event is not in it.
    fn of(self, summary: &Summary) -> Option<f64> {
        let ns = |nanos: sample::Nanos| nanos.0 as f64;
        match self {
            Statistic::Min => summary.min.map(ns),
            Statistic::Mean => summary.mean,
            Statistic::Stddev => summary.stddev,
            Statistic::Max => summary.max.map(ns),
            Statistic::Median => summary.quantile(Quantile::P50).map(ns),
            Statistic::Tail => summary.quantile(Quantile::P999).map(ns),
            Statistic::First => None,
        }
    }

    /// The value of several repetitions: their extreme if the statistic is an extreme, else the middle one.
    fn pooled(self, values: &[f64]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        match self {
            Statistic::Min | Statistic::First => sorted.first().copied(),
            Statistic::Max => sorted.last().copied(),
            _ => sorted.get(sorted.len().saturating_sub(1) / 2).copied(),
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
    // The number is too small for so many decimals.
    if text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { text } else { "0".into() }
}

/// The number in a figure as a paper prints it; none if the figure is a word or a dash.
#[cfg(test)]
fn number(text: &str) -> Option<f64> {
    text.trim_start_matches("≈ ").trim_end_matches('*').parse().ok()
}

/// A row of a paper: label and figures as printed; [`ABSENT`] for a figure that it does not have.
type Printed = (&'static str, &'static [&'static str]);

/// The text for a figure that was not measured. It is never a zero.
const ABSENT: &str = "—";

fn printed((label, figures): &Printed) -> Row {
    let cells = figures.iter().map(|text| Cell::word(*text)).collect();
    Row { label: (*label).into(), whose: Whose::Paper, cells, basis: None }
}

/// Onset's figures: the values of a statistic in the repetitions.
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

/// The tables for which `bundles` has runs, in the order of the papers.
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
            Paper::Tick2001 => tables.push(tick::table(&runs)),
            Paper::Costs2002 => tables.extend([costs::calls(&runs), costs::switches(&runs)]),
            Paper::Jitter2002 => tables.push(rtc::jitter(&runs)),
            Paper::Scheduler2002 => tables.push(switches::table(&runs)),
            Paper::Realfeel2006 => tables.push(rtc::realfeel(&runs)),
            Paper::Mechanisms2006 => tables.extend(mechanisms::tables(&runs)),
            Paper::Gtod2007 => tables.push(internals::gtod(&runs)?),
            Paper::Sched2007 => tables.push(internals::sched(&runs)?),
            Paper::Async2007 => tables.push(internals::async_handler(&runs)?),
            Paper::Inversion2007 => tables.push(inversion::table(&runs)),
            Paper::Toggle2007 => tables.push(toggle::table(&runs)?),
            Paper::Width2007 => tables.push(width::table(&runs)),
            Paper::Costs2007 => tables.push(costs::figures(&runs)),
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
