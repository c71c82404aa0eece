// SPDX-License-Identifier: GPL-2.0-or-later
//! The form of a distribution, for drawing. A viewer draws it and computes no statistics.

use crate::Series;
use crate::keyed::{key, keyed};
use core::num::NonZeroU8;
use sample::{Nanos, Quantity};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// The columns for each doubling of a latency in what people look at: bundles, reports, live. Ten columns are a factor
/// of 2.4, which is fine enough to show two peaks.
pub const COLUMNS_PER_OCTAVE: NonZeroU8 = NonZeroU8::new(8).unwrap();

/// One column of a histogram with logarithmic axis: samples of `low ≤ latency < high`. A bucket of the
/// underlying histogram counts where its lower end lies, so an edge is exact to 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "HistogramColumn",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct Column<Q = Nanos> {
    /// Lower edge, inclusive.
    #[cfg_attr(feature = "schema", schemars(rename = "low_ns"))]
    pub low: Q,
    /// Upper edge, exclusive.
    #[cfg_attr(feature = "schema", schemars(rename = "high_ns"))]
    pub high: Q,
    /// Samples in it; may be 0 between others.
    pub count: u64,
}

keyed!(Column {
    low: key::<Q>("low");
    high: key::<Q>("high");
    count: "count";
});

/// One point of the percentile plot.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "CurvePoint",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct CurvePoint<Q = Nanos> {
    /// Share of the samples that are not above the latency, 0 … 1.
    pub quantile: f64,
    /// The latency.
    #[cfg_attr(feature = "schema", schemars(rename = "latency_ns"))]
    pub latency: Q,
}

keyed!(CurvePoint {
    quantile: "quantile";
    latency: key::<Q>(Q::MEASURED);
});

/// Points of the percentile curve for each halving of what is left of the tail.
const POINTS_PER_HALVING: i32 = 8;

impl<Q: Quantity> Series<Q> {
    /// The distribution in columns of equal width on a logarithmic axis, `per_octave` for each doubling,
    /// from that of the least sample to that of the greatest. Their counts add up to the series' count.
    pub fn columns(&self, per_octave: NonZeroU8) -> Vec<Column<Q>> {
        let edges = edges(per_octave);
        let mut columns: Vec<Column<Q>> = Vec::new();
        let mut next = 0;
        for bucket in self.histogram.iter_recorded() {
            let low = self.histogram.lowest_equivalent(bucket.value_iterated_to());
            if columns.is_empty() {
                // The edges begin with 0, so there is one at or below every value.
                next = edges.partition_point(|edge| *edge <= low) - 1;
            }
            while columns.last().is_none_or(|column| column.high.raw() <= low) {
                let (low, high) = (Q::from_raw(edges[next]), Q::from_raw(edges[next + 1]));
                columns.push(Column { low, high, count: 0 });
                next += 1;
            }
            if let Some(column) = columns.last_mut() {
                column.count += bucket.count_at_value();
            }
        }
        columns
    }

    /// Points for a plot of latency over quantile: from the minimum, ever denser towards the maximum,
    /// which is the last point. Empty without samples; a few hundred points at most.
    pub fn percentile_curve(&self) -> Vec<CurvePoint<Q>> {
        let count = self.exact.count;
        let Some((min, max)) = self.extremes() else {
            return Vec::new();
        };
        // Up to the rank below the maximum: the tail of `count` samples halves log2(count) times.
        let tails = (1..).map(|i| 0.5f64.powf(f64::from(i) / f64::from(POINTS_PER_HALVING)));
        let mut ranks: Vec<u64> = tails
            .map(|tail| tail * count as f64)
            .take_while(|above| *above >= 1.0)
            .map(|above| count - above as u64)
            .filter(|rank| (1..count).contains(rank))
            .collect();
        ranks.dedup();
        let values = self.values_at_ranks(ranks.iter().copied());
        let share = |rank: u64| rank as f64 / count as f64;
        let first = CurvePoint { quantile: 0.0, latency: min };
        let last = CurvePoint { quantile: 1.0, latency: max };
        let between = ranks.iter().zip(values);
        let between = between.map(|(rank, latency)| CurvePoint { quantile: share(*rank), latency });
        [first].into_iter().chain(between).chain([last]).collect()
    }
}

/// 0, then every ⌈2^(i/per_octave)⌉ that differs from the one before, up to 2⁴⁹: whole nanoseconds, so
/// the narrowest columns are wider than their share of the octave.
fn edges(per_octave: NonZeroU8) -> Vec<u64> {
    let per_octave = u32::from(per_octave.get());
    let exact = (0..=49 * per_octave).map(|i| f64::from(i) / f64::from(per_octave));
    let mut edges: Vec<u64> =
        [0].into_iter().chain(exact.map(|octave| octave.exp2().ceil() as u64)).collect();
    edges.dedup();
    edges
}
