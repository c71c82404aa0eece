// SPDX-License-Identifier: GPL-2.0-or-later
//! The figure of a row: the median of its batches, how it differs between the repetitions, and its outliers.
//!
//! A sample is a whole number of nanoseconds, which is coarse for a call of 20 ns. So the figures are kept in
//! picoseconds, among the probe's counters.

use super::Cost;
use super::row::{Row, row};
use std::collections::BTreeMap;

/// A row is not stable where the medians of its repetitions lie further apart than this share, in percent.
const STABLE_PERCENT: u64 = 5;
/// A batch is an outlier where it takes longer than the third quartile by more than so many times the distance of the
/// quartiles (Tukey: Exploratory Data Analysis, 1977, "far out").
const FAR_OUT: u64 = 3;

/// The batches of one row, in picoseconds of one operation.
pub(super) struct Tally {
    repetitions: Vec<Vec<u64>>,
}

impl Tally {
    pub(super) fn of(cost: &Cost) -> Tally {
        Tally { repetitions: (0..cost.repetitions).map(|_| Vec::new()).collect() }
    }

    /// Takes the batches of a repetition.
    pub(super) fn add(&mut self, repetition: u32, batches: Vec<u64>) {
        self.repetitions[repetition as usize] = batches;
    }

    fn medians(&self) -> impl Iterator<Item = u64> {
        self.repetitions.iter().filter_map(|batches| quantile(batches, 1, 2))
    }

    /// By how many percent the greatest median of a repetition is above the least, if that is too much.
    pub(super) fn unstable(&self) -> Option<u64> {
        let (least, most) = (self.medians().min()?, self.medians().max()?);
        // An operation that takes no time has no percent either: as if it took a picosecond.
        let percent = (most - least).saturating_mul(100).div_ceil(least.max(1));
        (percent > STABLE_PERCENT).then_some(percent)
    }

    /// Enters the figures of `row` among the counters.
    pub(super) fn enter(&self, row: &Row, counters: &mut BTreeMap<String, u64>) {
        let all: Vec<u64> = self.repetitions.iter().flatten().copied().collect();
        let (Some(median), Some(least), Some(most)) =
            (quantile(&all, 1, 2), self.medians().min(), self.medians().max())
        else {
            return;
        };
        let mut enter = |what: &str, value| counters.insert(format!("{what}_{}", row.name), value);
        enter("ops", row.ops.into());
        enter("median_ps", median);
        enter("least_median_ps", least);
        enter("most_median_ps", most);
        enter("outliers", outliers(&all));
    }
}

/// The value at a share of the sorted values: the one of rank ⌈share·n⌉.
fn quantile(values: &[u64], numerator: usize, denominator: usize) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * numerator).div_ceil(denominator);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The batches that took far longer than the others.
fn outliers(values: &[u64]) -> u64 {
    let (Some(q1), Some(q3)) = (quantile(values, 1, 4), quantile(values, 3, 4)) else { return 0 };
    let fence = q3 + FAR_OUT * (q3 - q1);
    values.iter().filter(|value| **value > fence).count() as u64
}

/// The figure of a row, as a bundle has it.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The row.
    pub row: &'static Row,
    /// Operations in a batch.
    pub ops: u64,
    /// The median of all batches: picoseconds of one operation.
    pub median_ps: u64,
    /// The least of the medians of the repetitions.
    pub least_median_ps: u64,
    /// The greatest of them.
    pub most_median_ps: u64,
    /// The batches that took far longer than the others. They are among the samples.
    pub outliers: u64,
    /// The instructions of the batch in the middle, where the rig counted them.
    pub insns: Option<u64>,
    /// The virtual time of that batch, in ns.
    pub virtual_ns: Option<u64>,
}

impl Figure {
    /// The instructions of one operation.
    pub fn insns_per_operation(&self) -> Option<f64> {
        Some(self.insns? as f64 / self.ops as f64)
    }

    /// The nanoseconds of one operation: by virtual time where the rig saw it, else the median of the batches.
    pub fn ns_per_operation(&self) -> f64 {
        self.virtual_ns.map_or(self.median_ps as f64 / 1_000.0, |ns| ns as f64 / self.ops as f64)
    }
}

/// The figures among a probe's counters.
pub struct Figures<'a>(pub &'a BTreeMap<String, u64>);

impl Figures<'_> {
    /// The figure of the series `name`. `None` if it was not measured.
    pub fn of(&self, name: &str) -> Option<Figure> {
        let value = |what: &str| self.0.get(&format!("{what}_{name}")).copied();
        Some(Figure {
            row: row(name)?,
            ops: value("ops").filter(|ops| *ops > 0)?,
            median_ps: value("median_ps")?,
            least_median_ps: value("least_median_ps")?,
            most_median_ps: value("most_median_ps")?,
            outliers: value("outliers")?,
            insns: value("insns"),
            virtual_ns: value("virtual_ns"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(repetitions: &[&[u64]]) -> Tally {
        Tally { repetitions: repetitions.iter().map(|batches| batches.to_vec()).collect() }
    }

    #[test]
    fn a_row_whose_medians_lie_five_percent_apart_is_stable_and_one_of_six_is_not() {
        assert_eq!(tally(&[&[100, 900, 90], &[105, 1, 400]]).unstable(), None);
        assert_eq!(tally(&[&[100, 900, 90], &[106, 1, 400]]).unstable(), Some(6));
        assert_eq!(tally(&[&[], &[]]).unstable(), None);
    }

    #[test]
    fn an_outlier_is_counted_and_stays_in_the_median() {
        let batches = [10, 11, 12, 13, 14, 15, 16, 1_000];
        // The quartiles are 11 and 15, so the fence is at 27.
        assert_eq!(outliers(&batches), 1);
        assert_eq!(quantile(&batches, 1, 2), Some(13));
        assert_eq!(outliers(&[7; 9]), 0);
    }

    #[test]
    fn figures_are_read_as_they_were_entered() {
        let row = row("null_call").expect("a row");
        let mut counters = BTreeMap::new();
        tally(&[&[100_000, 110_000, 120_000], &[90_000]]).enter(row, &mut counters);
        let figure = Figures(&counters).of("null_call").expect("entered");
        assert_eq!((figure.median_ps, figure.least_median_ps), (100_000, 90_000));
        assert_eq!((figure.most_median_ps, figure.ops), (110_000, row.ops.into()));
        assert!((figure.ns_per_operation() - 100.0).abs() < 1e-9);
        counters.insert("insns_null_call".into(), 3 * u64::from(row.ops));
        counters.insert("virtual_ns_null_call".into(), 6 * u64::from(row.ops));
        let figure = Figures(&counters).of("null_call").expect("entered");
        assert_eq!(figure.insns_per_operation(), Some(3.0));
        assert!((figure.ns_per_operation() - 6.0).abs() < 1e-9);
        assert!(Figures(&counters).of("stat").is_none());
    }
}
