// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits, and the verdict that follows from them.
//!
//! The rules. No limit, no pass. What was not measured counts against a pass, never for it: a trigger
//! without an answer is later than any bound; a superseded one was answered no later than the maximum,
//! so it is taken to be as late as that; a period that a probe overran may have been late by any time, and
//! records that were dropped or tainted may hide anything.

use crate::{Quantile, Summary};
use core::fmt;
use core::str::FromStr;
use sample::{Nanos, SeriesName};
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

    /// Its value in ns, where the summary has it.
    pub fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Statistic::Mean => summary.mean_ns,
            Statistic::Quantile(q) => summary.quantile(q).map(ns),
            Statistic::Max => summary.max.map(ns),
        }
    }
}

/// Exact, as no recorded latency is beyond 2⁴⁸ ns.
fn ns(value: Nanos) -> f64 {
    value.0 as f64
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

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// A bound that a responder must keep: `statistic ≤ bound`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Whose.
    pub responder: SeriesName,
    /// Which number of it.
    pub statistic: Statistic,
    /// The greatest value allowed.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Whose limit.
    pub responder: SeriesName,
    /// On which number.
    pub statistic: Statistic,
    /// The greatest value allowed.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
    /// The value measured, in ns; absent where there is none.
    pub measured_ns: Option<f64>,
    /// Pass, fail or inconclusive.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// The verdict of a run with what led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The outcome: the worst of the findings.
    pub verdict: Verdict,
    /// One for each limit, in their order.
    pub findings: Vec<Finding>,
}

/// Judges a run by its limits. `sound` is false when a warning invalidates the run.
pub fn judge(limits: &[Limit], summaries: &[Summary], sound: bool) -> Judgement {
    let find = |limit: &Limit| summaries.iter().find(|s| s.responder == limit.responder);
    let findings: Vec<Finding> = limits.iter().map(|limit| examine(limit, find(limit))).collect();
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

fn examine(limit: &Limit, summary: Option<&Summary>) -> Finding {
    let measured_ns = summary.and_then(|s| limit.statistic.of(s));
    let (verdict, reason) = match summary {
        None => (Verdict::Inconclusive, Reason::NoSamples),
        Some(summary) => weigh(limit, summary, measured_ns),
    };
    let Limit { responder, statistic, bound } = limit.clone();
    Finding { responder, statistic, bound, measured_ns, verdict, reason }
}

fn weigh(limit: &Limit, summary: &Summary, measured_ns: Option<f64>) -> (Verdict, Reason) {
    let bound = ns(limit.bound);
    // Where records are missing, answers may have been matched to the wrong triggers.
    if summary.losses.dropped > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    if measured_ns.is_some_and(|value| value > bound) {
        return (Verdict::Fail, Reason::Exceeded);
    }
    if unanswered_exceed(limit.statistic, summary) {
        return (Verdict::Fail, Reason::Unanswered);
    }
    if summary.count == 0 {
        return (Verdict::Inconclusive, Reason::NoSamples);
    }
    if measured_ns.is_none() {
        return (Verdict::Inconclusive, Reason::TooFewSamples);
    }
    // An answer without a trigger may be the late one to a trigger that was taken for answered.
    if summary.losses.spurious > 0 || summary.losses.tainted > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    match at_worst(limit.statistic, summary) {
        Some(value) if value <= bound => (Verdict::Pass, Reason::Within),
        _ if summary.losses.unanswered > 0 => (Verdict::Inconclusive, Reason::Unanswered),
        _ if summary.losses.overrun > 0 => (Verdict::Inconclusive, Reason::Overrun),
        _ => (Verdict::Inconclusive, Reason::Superseded),
    }
}

/// Triggers raised while the series was recorded, as far as it is known whose they were.
fn triggers(summary: &Summary) -> u64 {
    let losses = &summary.losses;
    summary.count + losses.superseded + losses.unanswered + losses.overrun
}

/// Whether the statistic over all triggers is itself one without an answer.
fn unanswered_exceed(statistic: Statistic, summary: &Summary) -> bool {
    let unanswered = summary.losses.unanswered;
    match statistic {
        Statistic::Max => unanswered > 0,
        Statistic::Quantile(q) => q.rank(triggers(summary)) > triggers(summary) - unanswered,
        Statistic::Mean => false,
    }
}

/// The greatest value that the statistic over all triggers can have, if every superseded one was
/// answered as late as the latest; `None` when there is no such value, as those that were never answered
/// or overrun have none.
fn at_worst(statistic: Statistic, summary: &Summary) -> Option<f64> {
    let superseded = summary.losses.superseded;
    let unbounded = summary.losses.unanswered + summary.losses.overrun;
    let max = ns(summary.max?);
    match statistic {
        Statistic::Max => (unbounded == 0).then_some(max),
        Statistic::Mean if unbounded > 0 => None,
        Statistic::Mean if superseded == 0 => summary.mean_ns,
        Statistic::Mean => {
            let (n, more) = (summary.count as f64, superseded as f64);
            Some((summary.mean_ns? * n + max * more) / (n + more))
        }
        Statistic::Quantile(q) => {
            // The wanted rank among all triggers, looked up among those measured: the next quantile of
            // the summary that reaches so far is an upper bound for it.
            let rank = q.rank(triggers(summary));
            if rank > triggers(summary) - unbounded {
                return None;
            }
            let reaching = summary.quantiles.iter().find(|(q, _)| q.rank(summary.count) >= rank);
            Some(reaching.map_or(max, |(_, value)| ns(*value)))
        }
    }
}
