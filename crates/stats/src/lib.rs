// SPDX-License-Identifier: GPL-2.0-or-later
//! From samples to numbers and from numbers to a verdict.
//!
//! Pure: no input or output, no clock, no randomness, and memory that does not grow with the number of
//! samples. Everything merges without loss, so that an experiment can be cut into shards.
//!
//! What it cannot see: whether the run was sound. The caller knows the warnings and passes them to
//! [`judge`] as one bit.

mod compare;
mod condition;
mod exact;
mod limits;
mod series;
mod shape;
mod summary;
mod timeline;

pub use compare::{Comparison, Difference, compare};
pub use condition::{Bound, Condition, NotACondition, Outcome};
pub use limits::{Finding, Judgement, Limit, Reason, Statistic, UnknownStatistic, Verdict, judge};
pub use series::{DIGITS, LATENCY_MAX, Mismatch, Series, WORST_KEPT, Worst};
pub use shape::{Column, CurvePoint};
pub use summary::{Quantile, Summary, UnknownQuantile};
pub use timeline::{BUCKETS_MAX, Bucket, Timeline};
