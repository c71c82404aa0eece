// SPDX-License-Identifier: GPL-2.0-or-later
//! All that is kept of one responder's answers in one run, in constant memory.

use crate::exact::Exact;
use crate::timeline::Timeline;
use crate::{Quantile, Summary};
use core::cmp::Reverse;
use core::fmt;
use hdrhistogram::Histogram;
use sample::{Clock, Insns, Loss, Losses, Nanos, Sample, SeriesName};
use serde::{Deserialize, Serialize};

/// How many of the worst samples are kept with their circumstances.
pub const WORST_KEPT: usize = 32;

/// Significant decimal digits of the histogram: a bucket is narrower than 0.1 % of its values.
pub const DIGITS: u8 = 3;

/// The longest latency taken for real, 2⁴⁸−1 ns (3.26 days). A longer one is counted as tainted: no run
/// lasts that long, a JSON number would not hold much more exactly, and the exact sums stay in 128 bits.
pub const LATENCY_MAX: Nanos = Nanos((1 << 48) - 1);

/// One of the worst samples of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// Number of the trigger, from 0.
    pub trigger: u64,
    /// When it was raised, since the beginning of the measuring phase.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// How long the answer took.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
    /// Instructions completed in between; absent where nobody counts them.
    #[serde(rename = "path_insns", default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Insns>,
}

impl Worst {
    /// Sorts by latency, longest first; then by trigger, and by all else, so that the order does not
    /// depend on that of recording.
    fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.latency), self.trigger, self.at, self.path)
    }
}

impl From<&Sample> for Worst {
    fn from(s: &Sample) -> Self {
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

/// One responder's answers in one run.
#[derive(Clone, Debug)]
pub struct Series {
    responder: SeriesName,
    clock: Clock,
    pub(crate) histogram: Histogram<u64>,
    pub(crate) exact: Exact,
    losses: Losses,
    /// In the order of [`Worst::rank`]; at most [`WORST_KEPT`].
    worst: Vec<Worst>,
    timeline: Timeline,
}

impl Series {
    /// An empty series.
    pub fn new(responder: SeriesName, clock: Clock) -> Self {
        // Big enough for every latency that is recorded, so that recording never allocates. 38 sizes of
        // bucket × 1024 × 8 bytes: 312 kB.
        let histogram = Histogram::new_with_max(LATENCY_MAX.0, DIGITS).expect("constant bounds");
        let worst = Vec::with_capacity(WORST_KEPT + 1);
        let (exact, losses, timeline) = (Exact::EMPTY, Losses::default(), Timeline::default());
        Series { responder, clock, histogram, exact, losses, worst, timeline }
    }

    /// Adds an answer; one beyond [`LATENCY_MAX`] counts as tainted instead. The caller sees to it that the
    /// sample is of this series, whose index in the run it does not know.
    pub fn record(&mut self, sample: &Sample) {
        let ns = sample.latency.0;
        if sample.latency > LATENCY_MAX || self.histogram.record(ns).is_err() {
            self.lose(Loss::Tainted, 1);
            return;
        }
        self.exact.record(ns);
        self.timeline.record(sample.at, sample.latency);
        // Nearly every sample is shorter than the shortest of a full list: one comparison.
        if self.worst.len() < WORST_KEPT || self.worst[WORST_KEPT - 1].latency <= sample.latency {
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
    pub fn merge(&mut self, other: &Series) -> Result<(), Mismatch> {
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

    fn keep_if_worse(&mut self, new: Worst) {
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

    /// The worst samples, longest first, ties by trigger; at most [`WORST_KEPT`].
    pub fn worst(&self) -> &[Worst] {
        &self.worst
    }

    /// Latency over the time of the run.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The histogram in nanoseconds, for its interchange format.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The numbers that describe the series.
    pub fn summary(&self) -> Summary {
        let count = self.exact.count;
        let supported = Quantile::ALL.into_iter().filter(|q| q.supported_by(count));
        let ranks = supported.clone().map(|q| q.rank(count));
        let quantiles = supported.zip(self.values_at_ranks(ranks)).collect();
        Summary {
            responder: self.responder.clone(),
            clock: self.clock,
            count,
            losses: self.losses,
            min: self.exact.min(),
            mean_ns: self.exact.mean_ns(),
            stddev_ns: self.exact.stddev_ns(),
            max: self.exact.max(),
            quantiles,
        }
    }

    /// The order statistics of the given ranks (1 … count, not falling), in one pass. Each is the upper
    /// end of its bucket, less than 0.1 % above the truth, and never beyond an exact extreme.
    pub(crate) fn values_at_ranks(&self, ranks: impl Iterator<Item = u64>) -> Vec<Nanos> {
        let Some((min, max)) = self.exact.min().zip(self.exact.max()) else {
            return Vec::new();
        };
        let mut buckets = self.histogram.iter_recorded();
        let (mut seen, mut value) = (0, min);
        let values = ranks.map(|rank| {
            while seen < rank {
                let Some(bucket) = buckets.next() else { break };
                seen += bucket.count_at_value();
                value = Nanos(bucket.value_iterated_to()).clamp(min, max);
            }
            value
        });
        values.collect()
    }
}

/// Equal when no later question could tell them apart.
impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        (&self.responder, self.clock, self.losses) == (&other.responder, other.clock, other.losses)
            && self.exact == other.exact
            && self.worst == other.worst
            && self.timeline == other.timeline
            && self.histogram == other.histogram
    }
}
