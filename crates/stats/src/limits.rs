// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits, and the verdict that follows from them.
//!
//! A run without a limit does not pass. What was not measured counts against a pass, never for it:
//!
//! A trigger without an answer is later than any bound. A superseded trigger was answered no later than the maximum, so
//! it is taken to be as late as the maximum. A period that a probe overran may have been late by any time. Records that
//! were dropped or tainted may hide anything. What this means for deadlines is in `missed.rs`.

use crate::keyed::{key, keyed};
use crate::missed::DeadlineFinding;
use crate::series::bucket;
use crate::statistic::float;
use crate::{Deadline, MissTally, Statistic, Subject, Summary};
use core::fmt;
use sample::{Nanos, Quantity, SeriesName};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// What a responder must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit<Q = Nanos> {
    /// Whose.
    pub responder: SeriesName,
    /// What of it.
    pub demand: Demand<Q>,
}

/// What is demanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand<Q = Nanos> {
    /// `statistic ≤ bound`; where more is better, `statistic ≥ bound`.
    Statistic {
        /// Which number.
        statistic: Statistic,
        /// The greatest value allowed; the least, where more is better.
        bound: Q,
    },
    /// The deadline is missed no more often than that.
    Deadline(Deadline<Q>),
}

impl<Q: Quantity> Limit<Q> {
    /// A bound of a statistic.
    pub fn at_most(responder: SeriesName, statistic: Statistic, bound: Q) -> Self {
        Limit { responder, demand: Demand::Statistic { statistic, bound } }
    }

    /// The deadline, if it is a limit on one.
    pub fn deadline(&self) -> Option<Deadline<Q>> {
        match self.demand {
            Demand::Statistic { .. } => None,
            Demand::Deadline(deadline) => Some(deadline),
        }
    }
}

impl<Q: Quantity> Demand<Q> {
    /// What it is on. Of two demands on the same, one is too many.
    pub fn subject(&self) -> Subject<Q> {
        match *self {
            Demand::Statistic { statistic, .. } => Subject::Statistic(statistic),
            Demand::Deadline(deadline) => {
                Subject::Deadline(deadline.tolerance.constraint(), deadline.time)
            }
        }
    }
}

/// A limit on a statistic, as it is written.
struct StatisticLimit<Q> {
    responder: SeriesName,
    statistic: Statistic,
    bound: Q,
}

keyed!(StatisticLimit {
    responder: "responder";
    statistic: "statistic";
    bound: key::<Q>("bound");
});

/// A limit on a deadline, as it is written.
struct DeadlineLimit<Q> {
    responder: SeriesName,
    time: Q,
    tolerance: crate::Tolerance,
}

keyed!(DeadlineLimit {
    responder: "responder";
    time: key::<Q>("deadline");
    tolerance: "tolerance";
});

impl<Q: Quantity + Serialize> Serialize for Limit<Q> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let responder = self.responder.clone();
        match self.demand {
            Demand::Statistic { statistic, bound } => {
                StatisticLimit { responder, statistic, bound }.serialize(serializer)
            }
            Demand::Deadline(Deadline { time, tolerance }) => {
                DeadlineLimit { responder, time, tolerance }.serialize(serializer)
            }
        }
    }
}

impl<'de, Q: Quantity + Deserialize<'de>> Deserialize<'de> for Limit<Q> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, bound = "Q: Quantity + Deserialize<'de>")]
        enum Written<Q> {
            Statistic(StatisticLimit<Q>),
            Deadline(DeadlineLimit<Q>),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Statistic(StatisticLimit { responder, statistic, bound }) => {
                Limit::at_most(responder, statistic, bound)
            }
            Written::Deadline(DeadlineLimit { responder, time, tolerance }) => {
                Limit { responder, demand: Demand::Deadline(Deadline { time, tolerance }) }
            }
        })
    }
}

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
    /// The bound lies within the histogram's resolution of the value: the exact one may be on either side.
    Resolution,
    /// No samples of this responder.
    NoSamples,
    /// Too few samples for this quantile, this share, or this row of events.
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
            Reason::Resolution => "quantiles are known to 0.1 %, and the bound is as near",
            Reason::NoSamples => "no samples",
            Reason::TooFewSamples => "too few samples",
        })
    }
}

/// What became of one limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    bound(serialize = "Q: Quantity + Serialize", deserialize = "Q: Quantity + Deserialize<'de>")
)]
#[cfg_attr(feature = "schema", schemars(bound = "Q: Quantity + schemars::JsonSchema"))]
pub enum Finding<Q = Nanos> {
    /// Of a limit on a statistic.
    Statistic(StatisticFinding<Q>),
    /// Of a limit on a deadline.
    Deadline(DeadlineFinding<Q>),
}

impl<Q> Finding<Q> {
    /// Whose limit.
    pub fn responder(&self) -> &SeriesName {
        match self {
            Finding::Statistic(finding) => &finding.responder,
            Finding::Deadline(finding) => &finding.responder,
        }
    }

    /// Pass, fail or inconclusive.
    pub fn verdict(&self) -> Verdict {
        match self {
            Finding::Statistic(finding) => finding.verdict,
            Finding::Deadline(finding) => finding.verdict,
        }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        match self {
            Finding::Statistic(finding) => finding.reason,
            Finding::Deadline(finding) => finding.reason,
        }
    }
}

/// The schema of a finding: which reasons a verdict may have.
#[cfg(feature = "schema")]
pub(crate) fn verdicts(schema: &mut schemars::Schema) {
    let pairs = serde_json::json!([
        {"properties": {"verdict": {"const": "pass"}, "reason": {"const": "within"}}},
        {"properties": {"verdict": {"const": "fail"}, "reason": {"enum": ["exceeded", "unanswered"]}}},
        {"properties": {"verdict": {"const": "inconclusive"}, "reason": {"enum": [
            "unanswered", "superseded", "overrun", "unreliable", "resolution", "no_samples", "too_few_samples"
        ]}}}
    ]);
    schema.insert("oneOf".into(), pairs);
}

/// What became of a limit on a statistic.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "StatisticFinding",
        deny_unknown_fields,
        transform = crate::limits::verdicts,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct StatisticFinding<Q = Nanos> {
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

keyed!(StatisticFinding {
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

/// Judges a run by its limits. `tallies` are the misses of each deadline that is limited. `sound` is false when a
/// warning invalidates the run.
pub fn judge<Q: Quantity>(
    limits: &[Limit<Q>],
    summaries: &[Summary<Q>],
    tallies: &[MissTally<Q>],
    sound: bool,
) -> Judgement<Q> {
    let examine = |limit: &Limit<Q>| {
        let summary = summaries.iter().find(|s| s.responder == limit.responder);
        match limit.demand {
            Demand::Statistic { statistic, bound } => {
                Finding::Statistic(examine(&limit.responder, statistic, bound, summary))
            }
            Demand::Deadline(deadline) => {
                let of =
                    |t: &&MissTally<Q>| t.responder == limit.responder && t.deadline == deadline;
                let tally = tallies.iter().find(of);
                Finding::Deadline(DeadlineFinding::of(
                    &limit.responder,
                    deadline,
                    summary.zip(tally),
                ))
            }
        }
    };
    let findings: Vec<Finding<Q>> = limits.iter().map(examine).collect();
    let any = |verdict| findings.iter().any(|f| f.verdict() == verdict);
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

fn examine<Q: Quantity>(
    responder: &SeriesName,
    statistic: Statistic,
    bound: Q,
    summary: Option<&Summary<Q>>,
) -> StatisticFinding<Q> {
    let measured = summary.and_then(|s| statistic.of(s));
    let (verdict, reason) = match summary {
        None => (Verdict::Inconclusive, Reason::NoSamples),
        Some(summary) => weigh(statistic, bound, summary, measured),
    };
    StatisticFinding { responder: responder.clone(), statistic, bound, measured, verdict, reason }
}

/// Whether a number is beyond its bound.
pub(crate) fn exceeds<Q: Quantity>(value: f64, bound: f64) -> bool {
    if Q::MORE_IS_BETTER { value < bound } else { value > bound }
}

/// The verdict on a statistic with this bound, and why it is so.
pub(crate) fn weigh<Q: Quantity>(
    statistic: Statistic,
    bound: Q,
    summary: &Summary<Q>,
    measured: Option<f64>,
) -> (Verdict, Reason) {
    let bound = float(bound);
    // Where records are missing, answers may have been matched to the wrong triggers.
    if summary.losses.dropped > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    let (lower, upper) = ends(statistic, summary).unzip();
    let beyond = |end: Option<f64>| end.is_some_and(|value| exceeds::<Q>(value, bound));
    if beyond(lower) && beyond(upper) {
        return (Verdict::Fail, Reason::Exceeded);
    }
    if unanswered_exceed(statistic, summary) {
        return (Verdict::Fail, Reason::Unanswered);
    }
    if beyond(lower) || beyond(upper) {
        return (Verdict::Inconclusive, Reason::Resolution);
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
    match at_worst(statistic, summary) {
        Some(value) if !exceeds::<Q>(value, bound) => (Verdict::Pass, Reason::Within),
        _ if summary.losses.unanswered > 0 => (Verdict::Inconclusive, Reason::Unanswered),
        _ if summary.losses.overrun > 0 => (Verdict::Inconclusive, Reason::Overrun),
        _ => (Verdict::Inconclusive, Reason::Superseded),
    }
}

/// Between which numbers the exact value of the statistic lies. A quantile is known by its bucket, and the others are
/// exact.
pub(crate) fn ends<Q: Quantity>(statistic: Statistic, summary: &Summary<Q>) -> Option<(f64, f64)> {
    let value = statistic.of(summary)?;
    let Statistic::Quantile(quantile) = statistic else { return Some((value, value)) };
    let (_, upper) = summary.quantiles.iter().find(|(q, _)| *q == quantile)?;
    let lower = bucket(upper.raw()).0.max(summary.min.map_or(0, Q::raw));
    Some((lower as f64, value))
}

/// Triggers raised while the series was recorded, as far as it is known whose they were.
fn triggers<Q>(summary: &Summary<Q>) -> u64 {
    let losses = &summary.losses;
    summary.count + losses.superseded + losses.unanswered + losses.overrun
}

/// Whether the statistic over all triggers is itself one without an answer.
pub(crate) fn unanswered_exceed<Q: Quantity>(statistic: Statistic, summary: &Summary<Q>) -> bool {
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
pub(crate) fn at_worst<Q: Quantity>(statistic: Statistic, summary: &Summary<Q>) -> Option<f64> {
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
