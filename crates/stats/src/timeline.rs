// SPDX-License-Identifier: GPL-2.0-or-later
//! Latency over the time of the run, in constant memory: the least and the greatest latency of each stretch.
//!
//! The length of a stretch in nanoseconds is a power of two. When the run outgrows the stretches, neighbours are joined
//! and the length doubles. So a maximum never disappears, and the result does not depend on the order of recording.

use crate::keyed::{key, keyed};
use core::marker::PhantomData;
use sample::{Nanos, Quantity};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// The most buckets a timeline ever has.
pub const BUCKETS_MAX: usize = 2048;

/// Length of the first buckets, as a power of two: 2¹⁰ ns, so that 2048 of them are about 2 ms.
const SHIFT_INITIAL: u32 = 10;

/// One stretch of the run in which at least one sample was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "Slice",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct Slice<Q = Nanos> {
    /// Beginning of the stretch, since the beginning of the measuring phase.
    #[cfg_attr(feature = "schema", schemars(rename = "at_ns"))]
    pub at: Nanos,
    /// Its length, the same for all buckets of a timeline; a power of two.
    #[cfg_attr(feature = "schema", schemars(rename = "width_ns"))]
    pub width: Nanos,
    /// Least latency of a trigger raised in it.
    #[cfg_attr(feature = "schema", schemars(rename = "min_ns"))]
    pub min: Q,
    /// Greatest latency of a trigger raised in it.
    #[cfg_attr(feature = "schema", schemars(rename = "max_ns"))]
    pub max: Q,
    /// How many samples; at least 1.
    pub count: u64,
}

keyed!(Slice {
    at: "at_ns";
    width: "width_ns";
    min: key::<Q>("min");
    max: key::<Q>("max");
    count: "count";
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    min: u64,
    max: u64,
    count: u64,
}

impl Span {
    const EMPTY: Span = Span { min: u64::MAX, max: 0, count: 0 };

    fn join(self, other: Span) -> Span {
        Span {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            count: self.count + other.count,
        }
    }
}

/// Collects latency over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline<Q = Nanos> {
    /// A bucket is 2^shift ns long.
    shift: u32,
    /// Buckets from time zero up to the latest with a sample.
    spans: Vec<Span>,
    quantity: PhantomData<Q>,
}

impl<Q> Default for Timeline<Q> {
    fn default() -> Self {
        Timeline { shift: SHIFT_INITIAL, spans: Vec::new(), quantity: PhantomData }
    }
}

impl<Q: Quantity> Timeline<Q> {
    /// Adds the latency of a trigger raised at `at`.
    pub fn record(&mut self, at: Nanos, latency: Q) {
        self.make_room(at.0);
        let index = (at.0 >> self.shift) as usize;
        if index >= self.spans.len() {
            self.spans.resize(index + 1, Span::EMPTY);
        }
        let one = Span { min: latency.raw(), max: latency.raw(), count: 1 };
        self.spans[index] = self.spans[index].join(one);
    }

    /// Adds all of `other`, as if its samples had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        while self.shift < other.shift {
            self.double();
        }
        let finer = self.shift - other.shift;
        let len = other.spans.len().div_ceil(1 << finer);
        if len > self.spans.len() {
            self.spans.resize(len, Span::EMPTY);
        }
        for (i, span) in other.spans.iter().enumerate() {
            let mine = &mut self.spans[i >> finer];
            *mine = mine.join(*span);
        }
    }

    /// The stretches with samples, in the order of time; at most [`BUCKETS_MAX`].
    pub fn buckets(&self) -> Vec<Slice<Q>> {
        let width = 1u64 << self.shift;
        let filled = self.spans.iter().enumerate().filter(|(_, span)| span.count > 0);
        filled
            .map(|(i, span)| Slice {
                at: Nanos(i as u64 * width),
                width: Nanos(width),
                min: Q::from_raw(span.min),
                max: Q::from_raw(span.max),
                count: span.count,
            })
            .collect()
    }

    /// Doubles the width until `at_ns` falls into one of the buckets; ends, as 2⁶⁴ >> 53 is 2048.
    fn make_room(&mut self, at_ns: u64) {
        while at_ns >> self.shift >= BUCKETS_MAX as u64 {
            self.double();
        }
    }

    fn double(&mut self) {
        self.shift += 1;
        let joined =
            self.spans.chunks(2).map(|pair| pair.iter().copied().fold(Span::EMPTY, Span::join));
        self.spans = joined.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timeline(samples: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::default();
        samples.iter().for_each(|(at, latency)| timeline.record(Nanos(*at), Nanos(*latency)));
        timeline
    }

    /// Times of every order of magnitude, so that the width doubles anything from 0 to 43 times.
    fn samples() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let time = (any::<u64>(), 0u32..64).prop_map(|(at, shift)| at >> shift);
        prop::collection::vec((time, 0u64..1 << 48), 0..200)
    }

    proptest! {
        #[test]
        fn every_sample_lies_in_exactly_one_bucket_that_spans_its_latency(samples in samples()) {
            let buckets = timeline(&samples).buckets();
            prop_assert!(buckets.len() <= BUCKETS_MAX);
            prop_assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), samples.len() as u64);
            for (at, latency) in &samples {
                let holds = |b: &&Slice| b.at.0 <= *at && at - b.at.0 < b.width.0;
                let mut holding = buckets.iter().filter(holds);
                let bucket = holding.next().expect("a bucket for each sample");
                prop_assert!(bucket.min.0 <= *latency && *latency <= bucket.max.0);
                prop_assert!(holding.next().is_none());
            }
        }

        #[test]
        fn extremes_of_a_bucket_are_those_of_its_samples(samples in samples()) {
            for b in timeline(&samples).buckets() {
                let inside = samples.iter().filter(|(at, _)| at >> b.width.0.trailing_zeros() == b.at.0 / b.width.0);
                let latencies: Vec<u64> = inside.map(|(_, latency)| *latency).collect();
                prop_assert_eq!(latencies.iter().min(), Some(&b.min.0));
                prop_assert_eq!(latencies.iter().max(), Some(&b.max.0));
            }
        }

        #[test]
        fn merging_equals_recording_all_in_one(a in samples(), b in samples()) {
            let mut merged = timeline(&a);
            merged.merge(&timeline(&b));
            prop_assert_eq!(merged, timeline(&[a, b].concat()));
        }
    }
}
