// SPDX-License-Identifier: GPL-2.0-or-later
//! From samples to numbers and from numbers to a verdict, for times and for any other [`Quantity`](sample::Quantity).
//!
//! The crate is pure: it has no input or output, no clock and no randomness, and its memory does not grow with the
//! number of samples. Everything merges without loss, so an experiment can be cut into shards.
//!
//! It cannot see whether the run was sound. The caller knows the warnings and passes them to [`judge`] as one bit.

mod compare;
mod condition;
mod deadline;
mod exact;
mod keyed;
mod limits;
mod missed;
mod order;
mod paired;
mod pareto;
mod series;
mod shape;
mod statistic;
mod summary;
mod timeline;
mod watch;

pub use compare::{Comparison, Difference, compare};
pub use condition::{Condition, ConditionOutcome, NotACondition, Threshold, cost};
pub use deadline::{Constraint, Deadline, FIRM_MAX, NotABound, NotASubject, Subject, Tolerance};
pub use limits::{Demand, Finding, Judgement, Limit, Reason, StatisticFinding, Verdict, judge};
pub use missed::DeadlineFinding;
pub use order::{half, is_changed_first};
pub use paired::{Effect, Paired};
pub use pareto::Pareto;
pub use series::{DIGITS, LATENCY_MAX, Mismatch, Series, WORST_KEPT, Worst, bucket};
pub use shape::{COLUMNS_PER_OCTAVE, Column, CurvePoint};
pub use statistic::{Statistic, UnknownStatistic};
pub use summary::{Quantile, Quantiles, Summary, UnknownQuantile};
pub use timeline::{BUCKETS_MAX, Slice, Timeline};
pub use watch::{EARLY_MAX, MissCounter, MissCounts, MissTally, Passage};
