// SPDX-License-Identifier: GPL-2.0-or-later
//! From samples to numbers and from numbers to a verdict, for times and for any other [`Quantity`](sample::Quantity).
//!
//! The crate is pure: it has no input or output, no clock and no randomness, and its memory does not grow with the
//! number of samples. Everything merges without loss, so an experiment can be cut into shards.
//!
//! It cannot see whether the run was sound. The caller knows the warnings and passes them to [`judge`] as one bit.

mod compare;
mod condition;
mod exact;
mod keyed;
mod limits;
mod series;
mod shape;
mod summary;
mod timeline;

pub use compare::{Comparison, Difference, compare};
pub use condition::{Condition, ConditionOutcome, NotACondition, Threshold};
pub use limits::{Finding, Judgement, Limit, Reason, Statistic, UnknownStatistic, Verdict, judge};
pub use series::{DIGITS, LATENCY_MAX, Mismatch, Series, WORST_KEPT, Worst};
pub use shape::{COLUMNS_PER_OCTAVE, Column, CurvePoint};
pub use summary::{Quantile, Quantiles, Summary, UnknownQuantile};
pub use timeline::{BUCKETS_MAX, Slice, Timeline};
