// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits, and the verdict that follows from them.
//!
//! A run without a limit does not pass. What was not measured counts against a pass, never for it:
//!
//! A trigger without an answer is later than any bound. A superseded trigger was answered no later than the maximum, so
//! it is taken to be as late as the maximum. A period that a probe overran may have been late by any time. Records that
//! were dropped or tainted may hide anything.

use crate::keyed::{key, keyed};
use crate::{Quantile, Summary};
use core::fmt;
use core::str::FromStr;
use sample::{Nanos, Quantity, SeriesName};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// A number of a summary that can be limited and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// A quantile.
    Quantile(Quantile),
    /// The exact maximum.
    Max,
}

/// No statistic of this name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStatistic;

impl fmt::Display for UnknownStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown statistic; known are max mean")?;
        Quantile::ALL.iter().try_for_each(|q| write!(f, " {q}"))
    }
}

impl core::error::Error for UnknownStatistic {}

impl Statistic {
    /// The word used in experiments, JSON and tables: `mean`, `p99.9`, `max`.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Quantile(q) => q.name(),
            Statistic::Max => "max",
        }
    }

    /// Its value in the quantity's unit, where the summary has it.
    pub fn of<Q: Quantity>(self, summary: &Summary<Q>) -> Option<f64> {
        match self {
            Statistic::Mean => summary.mean,
            Statistic::Quantile(q) => summary.quantile(q).map(float),
            Statistic::Max => summary.max.map(float),
        }
    }
}

/// Exact, as no recorded number is beyond 2⁴⁸.
fn float<Q: Quantity>(value: Q) -> f64 {
    value.raw() as f64
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Statistic {
    type Err = UnknownStatistic;
    fn from_str(name: &str) -> Result<Self, UnknownStatistic> {
        match name {
            "mean" => Ok(Statistic::Mean),
            "max" => Ok(Statistic::Max),
            _ => name.parse().map(Statistic::Quantile).map_err(|_| UnknownStatistic),
        }
    }
}

impl Serialize for Statistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Statistic {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Statistic".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let quantiles = Quantile::ALL.map(Statistic::Quantile);
        let all = [&[Statistic::Mean], &quantiles[..], &[Statistic::Max]].concat();
        schemars::json_schema!({
            "description": "A number of a summary that can be limited and compared.",
            "type": "string",
            "enum": all
        })
    }
}

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// A bound that a responder must keep: `statistic ≤ bound`; where more is better, `statistic ≥ bound`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit<Q = Nanos> {
    /// Whose.
    pub responder: SeriesName,
    /// Which number of it.
    pub statistic: Statistic,
    /// The greatest value allowed; the least, where more is better.
    pub bound: Q,
}

keyed!(Limit {
    responder: "responder";
    statistic: "statistic";
    bound: key::<Q>("bound");
});

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every limit was kept, and enough was measured to say so.
    Pass,
    /// A limit was exceeded.
    Fail,
    /// No limit was given, or too little was measured to tell.
    Inconclusive,
    /// The run itself was unsound; its numbers mean nothing.
    Invalid,
}

impl Verdict {
    /// The word used in files, JSON and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a finding is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Within the bound, whatever the superseded triggers were.
    Within,
    /// The measured value is beyond the bound.
    Exceeded,
    /// Triggers without an answer: enough to exceed the bound, or to leave it open.
    Unanswered,
    /// Triggers answered together with older ones could lift the value beyond the bound.
    Superseded,
    /// Periods that passed without a measurement could lift the value beyond the bound.
    Overrun,
    /// Records were dropped or answers spurious or tainted: what they held is unknown.
    Unreliable,
    /// No samples of this responder.
    NoSamples,
    /// Too few samples for this quantile.
    TooFewSamples,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Within => "kept",
            Reason::Exceeded => "exceeded",
            Reason::Unanswered => "triggers were not answered",
            Reason::Superseded => "superseded triggers leave it open",
            Reason::Overrun => "periods that were not measured leave it open",
            Reason::Unreliable => "dropped records, spurious or tainted answers",
            Reason::NoSamples => "no samples",
            Reason::TooFewSamples => "too few samples",
        })
    }
}

/// What became of one limit.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("oneOf" = [
        {"properties": {"verdict": {"const": "pass"}, "reason": {"const": "within"}}},
        {"properties": {"verdict": {"const": "fail"}, "reason": {"enum": ["exceeded", "unanswered"]}}},
        {"properties": {"verdict": {"const": "inconclusive"}, "reason": {"enum": [
            "unanswered", "superseded", "overrun", "unreliable", "no_samples", "too_few_samples"
        ]}}}
    ]))
)]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "Finding",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct Finding<Q = Nanos> {
    /// Whose limit.
    pub responder: SeriesName,
    /// On which number.
    pub statistic: Statistic,
    /// The greatest value allowed.
    #[cfg_attr(feature = "schema", schemars(rename = "bound_ns", extend("minimum" = 1)))]
    pub bound: Q,
    /// The value measured, in ns; none where there is none.
    #[cfg_attr(feature = "schema", schemars(rename = "measured_ns", range(min = 0)))]
    pub measured: Option<f64>,
    /// Pass, fail or inconclusive.
    pub verdict: Verdict,
    /// Why. A reason has one verdict, except `unanswered`, which is a failure or leaves it open.
    pub reason: Reason,
}

keyed!(Finding {
    responder: "responder";
    statistic: "statistic";
    bound: key::<Q>("bound");
    measured: key::<Q>("measured");
    verdict: "verdict";
    reason: "reason";
});

/// The verdict of a run with what led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<Q = Nanos> {
    /// The outcome: the worst of the findings.
    pub verdict: Verdict,
    /// One for each limit, in their order.
    pub findings: Vec<Finding<Q>>,
}

/// Judges a run by its limits. `sound` is false when a warning invalidates the run.
pub fn judge<Q: Quantity>(
    limits: &[Limit<Q>],
    summaries: &[Summary<Q>],
    sound: bool,
) -> Judgement<Q> {
    let find = |limit: &Limit<Q>| summaries.iter().find(|s| s.responder == limit.responder);
    let findings: Vec<Finding<Q>> =
        limits.iter().map(|limit| examine(limit, find(limit))).collect();
    let any = |verdict| findings.iter().any(|f| f.verdict == verdict);
    let verdict = if !sound {
        Verdict::Invalid
    } else if any(Verdict::Fail) {
        Verdict::Fail
    } else if findings.is_empty() || any(Verdict::Inconclusive) {
        Verdict::Inconclusive
    } else {
        Verdict::Pass
    };
    Judgement { verdict, findings }
}

fn examine<Q: Quantity>(limit: &Limit<Q>, summary: Option<&Summary<Q>>) -> Finding<Q> {
    let measured = summary.and_then(|s| limit.statistic.of(s));
    let (verdict, reason) = match summary {
        None => (Verdict::Inconclusive, Reason::NoSamples),
        Some(summary) => weigh(limit, summary, measured),
    };
    let Limit { responder, statistic, bound } = limit.clone();
    Finding { responder, statistic, bound, measured, verdict, reason }
}

/// Whether a number is beyond its bound.
pub(crate) fn exceeds<Q: Quantity>(value: f64, bound: f64) -> bool {
    if Q::MORE_IS_BETTER { value < bound } else { value > bound }
}

fn weigh<Q: Quantity>(
    limit: &Limit<Q>,
    summary: &Summary<Q>,
    measured: Option<f64>,
) -> (Verdict, Reason) {
    let bound = float(limit.bound);
    // Where records are missing, answers may have been matched to the wrong triggers.
    if summary.losses.dropped > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    if measured.is_some_and(|value| exceeds::<Q>(value, bound)) {
        return (Verdict::Fail, Reason::Exceeded);
    }
    if unanswered_exceed(limit.statistic, summary) {
        return (Verdict::Fail, Reason::Unanswered);
    }
    if summary.count == 0 {
        return (Verdict::Inconclusive, Reason::NoSamples);
    }
    if measured.is_none() {
        return (Verdict::Inconclusive, Reason::TooFewSamples);
    }
    // An answer without a trigger may be the late one to a trigger that was taken for answered.
    if summary.losses.spurious > 0 || summary.losses.tainted > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    match at_worst(limit.statistic, summary) {
        Some(value) if !exceeds::<Q>(value, bound) => (Verdict::Pass, Reason::Within),
        _ if summary.losses.unanswered > 0 => (Verdict::Inconclusive, Reason::Unanswered),
        _ if summary.losses.overrun > 0 => (Verdict::Inconclusive, Reason::Overrun),
        _ => (Verdict::Inconclusive, Reason::Superseded),
    }
}

/// Triggers raised while the series was recorded, as far as it is known whose they were.
fn triggers<Q>(summary: &Summary<Q>) -> u64 {
    let losses = &summary.losses;
    summary.count + losses.superseded + losses.unanswered + losses.overrun
}

/// Whether the statistic over all triggers is itself one without an answer.
fn unanswered_exceed<Q: Quantity>(statistic: Statistic, summary: &Summary<Q>) -> bool {
    let unanswered = summary.losses.unanswered;
    match statistic {
        // What is missing of a throughput leaves it open (`at_worst`).
        _ if Q::MORE_IS_BETTER => false,
        Statistic::Max => unanswered > 0,
        Statistic::Quantile(q) => q.rank(triggers(summary)) > triggers(summary) - unanswered,
        Statistic::Mean => false,
    }
}

/// The greatest value that the statistic over all triggers can have, if every superseded one was
/// answered as late as the latest; `None` when there is no such value, as those that were never answered
/// or overrun have none.
fn at_worst<Q: Quantity>(statistic: Statistic, summary: &Summary<Q>) -> Option<f64> {
    let superseded = summary.losses.superseded;
    let unbounded = summary.losses.unanswered + summary.losses.overrun;
    let max = float(summary.max?);
    match statistic {
        // Where more is better, whatever is missing may have been less than all that was measured.
        _ if Q::MORE_IS_BETTER => statistic.of(summary).filter(|_| superseded + unbounded == 0),
        Statistic::Max => (unbounded == 0).then_some(max),
        Statistic::Mean if unbounded > 0 => None,
        Statistic::Mean if superseded == 0 => summary.mean,
        Statistic::Mean => {
            let (n, more) = (summary.count as f64, superseded as f64);
            Some((summary.mean? * n + max * more) / (n + more))
        }
        Statistic::Quantile(q) => {
            // The wanted rank among all triggers, looked up among those measured: the next quantile of
            // the summary that reaches so far is an upper bound for it.
            let rank = q.rank(triggers(summary));
            if rank > triggers(summary) - unbounded {
                return None;
            }
            let reaching = summary.quantiles.iter().find(|(q, _)| q.rank(summary.count) >= rank);
            Some(reaching.map_or(max, |(_, value)| float(*value)))
        }
    }
}
