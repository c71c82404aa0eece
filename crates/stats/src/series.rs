// SPDX-License-Identifier: GPL-2.0-or-later
//! All that is kept of one series in one run: the answers of one responder, or the numbers of one probe. It needs
//! constant memory.

use crate::exact::Exact;
use crate::keyed::{key, keyed};
use crate::timeline::Timeline;
use crate::{Quantile, Summary};
use core::fmt;
use hdrhistogram::Histogram;
use sample::{Clock, Insns, Loss, Losses, Nanos, Quantity, Sample, SeriesName};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// How many of the worst samples are kept with their circumstances.
pub const WORST_KEPT: usize = 32;

/// Significant decimal digits of the histogram: a bucket is narrower than 0.1 % of its values.
pub const DIGITS: u8 = 3;

/// The longest latency taken for real, 2⁴⁸−1 ns (3.26 days). A longer one is counted as tainted: no run
/// lasts that long, a JSON number would not hold much more exactly, and the exact sums stay in 128 bits.
pub const LATENCY_MAX: Nanos = Nanos(Nanos::LARGEST);

/// One of the worst samples of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "WorstSample",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct Worst<Q = Nanos> {
    /// Number of the trigger, from 0.
    pub trigger: u64,
    /// When it was raised, since the beginning of the measuring phase.
    #[cfg_attr(feature = "schema", schemars(rename = "at_ns"))]
    pub at: Nanos,
    /// How long the answer took.
    #[cfg_attr(feature = "schema", schemars(rename = "latency_ns"))]
    pub latency: Q,
    /// Instructions completed in between; absent where nobody counts them.
    #[cfg_attr(
        feature = "schema",
        schemars(rename = "path_insns", default, skip_serializing_if = "Option::is_none")
    )]
    pub path: Option<Insns>,
}

keyed!(Worst {
    trigger: "trigger";
    at: "at_ns";
    latency: key::<Q>(Q::MEASURED);
    path: "path_insns", unless Option::is_none;
});

/// Ascends from bad to good.
fn goodness<Q: Quantity>(value: Q) -> u64 {
    if Q::MORE_IS_BETTER { value.raw() } else { !value.raw() }
}

impl<Q: Quantity> Worst<Q> {
    /// Sorts by the measured number, the worst first, which is the longest latency; then by trigger, and by all else,
    /// so that the order does not depend on that of recording.
    pub(crate) fn rank(&self) -> impl Ord + use<Q> {
        (goodness(self.latency), self.trigger, self.at, self.path)
    }
}

impl<Q: Quantity> From<&Sample<Q>> for Worst<Q> {
    fn from(s: &Sample<Q>) -> Self {
        Worst { trigger: s.trigger, at: s.at, latency: s.latency, path: s.path }
    }
}

/// Why two series cannot become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Numbers of different clocks never share an axis.
    Clock(Clock, Clock),
    /// They belong to different mechanisms.
    Responder(SeriesName, SeriesName),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Clock(a, b) => write!(
                f,
                "measured with different clocks, {} and {}, whose numbers do not share an axis",
                a.name(),
                b.name()
            ),
            Mismatch::Responder(a, b) => write!(f, "of different responders, {a} and {b}"),
        }
    }
}

impl core::error::Error for Mismatch {}

/// One responder's answers in one run; of another quantity than time, the numbers that were measured under one name.
#[derive(Clone, Debug)]
pub struct Series<Q = Nanos> {
    responder: SeriesName,
    clock: Clock,
    pub(crate) histogram: Histogram<u64>,
    pub(crate) exact: Exact,
    losses: Losses,
    /// In the order of [`Worst::rank`]; at most [`WORST_KEPT`].
    worst: Vec<Worst<Q>>,
    timeline: Timeline<Q>,
}

impl Series {
    /// An empty series of times.
    pub fn new(responder: SeriesName, clock: Clock) -> Self {
        Series::of(responder, clock)
    }
}

impl<Q: Quantity> Series<Q> {
    /// An empty series of any quantity.
    pub fn of(responder: SeriesName, clock: Clock) -> Self {
        // Big enough for every latency that is recorded, so that recording never allocates. 38 sizes of
        // bucket × 1024 × 8 bytes: 312 kB.
        let histogram = Histogram::new_with_max(Q::LARGEST, DIGITS).expect("constant bounds");
        let worst = Vec::with_capacity(WORST_KEPT + 1);
        let (exact, losses, timeline) = (Exact::EMPTY, Losses::default(), Timeline::default());
        Series { responder, clock, histogram, exact, losses, worst, timeline }
    }

    /// Adds an answer; one beyond [`Quantity::LARGEST`] counts as tainted instead. The caller sees to it that the
    /// sample is of this series, whose index in the run it does not know.
    pub fn record(&mut self, sample: &Sample<Q>) {
        let number = sample.latency.raw();
        if number > Q::LARGEST || self.histogram.record(number).is_err() {
            self.lose(Loss::Tainted, 1);
            return;
        }
        self.exact.record(number);
        self.timeline.record(sample.at, sample.latency);
        // Nearly every sample is better than the best of a full list: one comparison.
        if self.worst.len() < WORST_KEPT
            || goodness(self.worst[WORST_KEPT - 1].latency) >= goodness(sample.latency)
        {
            self.keep_if_worse(Worst::from(sample));
        }
    }

    /// Counts `n` losses.
    pub fn lose(&mut self, loss: Loss, n: u64) {
        self.losses.count(loss, n);
    }

    /// Counts `n` records that the channel dropped. Nobody knows whose they were, so the run's number is
    /// added to each of its series.
    pub fn add_dropped(&mut self, n: u64) {
        self.losses.dropped += n;
    }

    /// Adds all of `other`, a shard of the same measurement, as if it had been recorded here.
    ///
    /// # Errors
    /// A series of another clock or responder is refused, and nothing is added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.clock != other.clock {
            return Err(Mismatch::Clock(self.clock, other.clock));
        }
        if self.responder != other.responder {
            let names = (self.responder.clone(), other.responder.clone());
            return Err(Mismatch::Responder(names.0, names.1));
        }
        self.histogram.add(&other.histogram).expect("every series has the same bounds");
        self.exact.merge(&other.exact);
        self.timeline.merge(&other.timeline);
        other.worst.iter().for_each(|w| self.keep_if_worse(*w));
        self.losses.merge(&other.losses);
        Ok(())
    }

    fn keep_if_worse(&mut self, new: Worst<Q>) {
        let place = self.worst.partition_point(|w| w.rank() <= new.rank());
        if place < WORST_KEPT {
            self.worst.truncate(WORST_KEPT - 1);
            self.worst.insert(place, new);
        }
    }

    /// Whose answers these are.
    pub fn responder(&self) -> &SeriesName {
        &self.responder
    }

    /// The clock they were measured with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The worst samples, the worst first, which is the longest latency, ties by trigger; at most [`WORST_KEPT`].
    pub fn worst(&self) -> &[Worst<Q>] {
        &self.worst
    }

    /// Latency over the time of the run.
    pub fn timeline(&self) -> &Timeline<Q> {
        &self.timeline
    }

    /// The histogram in the quantity's unit, which is nanoseconds for times; for its interchange format.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The numbers that describe the series.
    pub fn summary(&self) -> Summary<Q> {
        let count = self.exact.count;
        let supported = Quantile::ALL.into_iter().filter(|q| q.supported_by(count));
        let ranks = supported.clone().map(|q| q.rank(count));
        let quantiles = supported.zip(self.values_at_ranks(ranks)).collect();
        Summary {
            responder: self.responder.clone(),
            clock: self.clock,
            count,
            losses: self.losses,
            min: self.exact.min().map(Q::from_raw),
            mean: self.exact.mean(),
            stddev: self.exact.stddev(),
            max: self.exact.max().map(Q::from_raw),
            quantiles,
        }
    }

    /// The exact minimum and maximum; none without samples.
    pub(crate) fn extremes(&self) -> Option<(Q, Q)> {
        Some((Q::from_raw(self.exact.min()?), Q::from_raw(self.exact.max()?)))
    }

    /// The order statistics of the given ranks (1 … count, not falling), in one pass. Each is the upper
    /// end of its bucket, less than 0.1 % above the truth, and never beyond an exact extreme.
    pub(crate) fn values_at_ranks(&self, ranks: impl Iterator<Item = u64>) -> Vec<Q> {
        let Some((min, max)) = self.extremes() else {
            return Vec::new();
        };
        let mut buckets = self.histogram.iter_recorded();
        let (mut seen, mut value) = (0, min);
        let values = ranks.map(|rank| {
            while seen < rank {
                let Some(bucket) = buckets.next() else { break };
                seen += bucket.count_at_value();
                value = Q::from_raw(bucket.value_iterated_to()).clamp(min, max);
            }
            value
        });
        values.collect()
    }
}

/// The ends of the bucket of which `value` is one. Of values that share a bucket the histogram keeps their number
/// alone. The buckets are those of HdrHistogram with [`DIGITS`] digits: 2048 of width 1, then 1024 of each width.
pub fn bucket(value: u64) -> (u64, u64) {
    let width = value.checked_ilog2().unwrap_or_default().saturating_sub(10);
    let lower = value >> width << width;
    (lower, lower + ((1 << width) - 1))
}

/// Equal when no later question could tell them apart.
impl<Q: Quantity> PartialEq for Series<Q> {
    fn eq(&self, other: &Self) -> bool {
        (&self.responder, self.clock, self.losses) == (&other.responder, other.clock, other.losses)
            && self.exact == other.exact
            && self.worst == other.worst
            && self.timeline == other.timeline
            && self.histogram == other.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_bucket_are_those_of_the_histogram() {
        let histogram = Histogram::<u64>::new_with_max(LATENCY_MAX.0, DIGITS).expect("bounds");
        let near = |power: u32| (0..3).map(move |more| (1u64 << power) + more * 7);
        for value in (0..5_000).chain((11..48).flat_map(near)).chain([99_999, 100_000, 1 << 40]) {
            let ends = (histogram.lowest_equivalent(value), histogram.highest_equivalent(value));
            assert_eq!(bucket(value), ends, "{value}");
        }
    }
}
