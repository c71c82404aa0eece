// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset compare --json` prints.

use crate::costs::Change;
use crate::price::Prices;
use bundle::Manifest;
use bundle::company::{Unequal, unequal};
use bundle::settings::{OtherSetting, differing};
use probes::{Counts, Figure};
use sample::{Clock, Losses, SeriesName};
use serde::Serialize;
use stats::{Condition, ConditionOutcome, Mismatch, Verdict};

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compare<'a> {
    /// Number of this format.
    schema: u32,
    /// The earlier run, with which the later one is compared.
    before: &'a str,
    /// The later run.
    after: &'a str,
    /// The verdicts of both runs. The numbers of a run that is invalid prove nothing.
    verdicts: [Verdict; 2],
    /// Whether the runs came to their ends.
    complete: [bool; 2],
    /// The settings besides kernel, load and seed in which the runs differ, by their names.
    other_settings: Vec<OtherSetting>,
    /// The clock of both runs.
    clock: Clock,
    /// Whether both runs have exactly the same samples.
    identical_samples: bool,
    /// Responders that one of the runs lacks; absent if the same responders answered in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    unequal: Option<Unequal>,
    /// The conditions of `--fail-if`, in their order.
    conditions: Vec<Judged>,
    /// The responders that both runs have, in the order of the earlier run. Of runs of the probe `cost`, the batches.
    responders: Vec<Compared<'a>>,
    /// The costs that both runs have; empty if a run measured something else.
    costs: Vec<ComparedCost>,
    /// What the kernels of both runs get and pay; null if the store does not know both of both.
    prices: Option<Prices>,
}

/// A cost of both runs. In each pair, the first number is of the earlier run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ComparedCost {
    /// The name of its series.
    cost: &'static str,
    /// One operation, in words.
    operation: &'static str,
    /// The time of one operation: of the batch in the middle.
    ns: [f64; 2],
    /// The instructions of one operation; null if nobody counted them.
    insns: [Option<f64>; 2],
    /// The bytes that one operation moves; null if it does not count in bytes. Then a greater throughput is better.
    bytes: Option<u64>,
    /// Whether the later run is better in this cost; null if it is the same in both.
    is_better: Option<bool>,
}

impl ComparedCost {
    fn of(change: &Change) -> ComparedCost {
        let Change { row, before, after } = change;
        // A throughput is greater where an operation takes less, too.
        let (then, now) = change.sizes();
        ComparedCost {
            cost: row.name,
            operation: row.about,
            ns: [before, after].map(Figure::ns_per_operation),
            insns: [before, after].map(Figure::insns_per_operation),
            bytes: match row.counts {
                Counts::Bytes(bytes) => Some(bytes.0),
                Counts::Time => None,
            },
            is_better: (then != now).then_some(now < then),
        }
    }
}

/// A condition and its outcome.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Judged {
    /// The condition, with the numbers that the user gave.
    condition: String,
    /// `undecided` if a run has no such number, is invalid or did not come to its end, if what it lost could be beyond
    /// the bound, and if a quantile is too near to the bound for its bucket (0.1 %).
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["kept", "exceeded", "undecided"])))]
    outcome: &'static str,
}

/// A responder of both runs. In each pair, the first number is of the earlier run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Compared<'a> {
    /// The responder that answered.
    responder: &'a SeriesName,
    /// The numbers of samples.
    count: [u64; 2],
    /// The numbers of losses, by kind.
    losses: [Losses; 2],
    /// Its statistics.
    statistics: Vec<Difference>,
}

/// A statistic in both runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Difference {
    /// Its name: `min`, `mean`, `p99.9`, `max`.
    statistic: String,
    /// The value in the earlier run; null if the run does not have this statistic.
    before_ns: Option<f64>,
    /// The value in the later run; null if the run does not have this statistic.
    after_ns: Option<f64>,
    /// The later value minus the earlier value.
    difference_ns: Option<f64>,
    /// That difference, divided by the earlier value.
    difference_relative: Option<f64>,
}

impl<'a> Compare<'a> {
    /// Version of the format (docs/compare.schema.json).
    pub const SCHEMA: u32 = 3;

    /// Two runs, the conditions that were judged, and all runs that say what the kernels of both get and pay.
    ///
    /// # Errors
    /// When the runs were measured with different clocks.
    pub fn of(
        before: &'a Manifest,
        after: &'a Manifest,
        judged: &[(&Condition, ConditionOutcome)],
        known: &[&Manifest],
    ) -> Result<Self, Mismatch> {
        let mut responders = Vec::new();
        for one in &before.series {
            let Some(other) = after.series.iter().find(|s| s.responder == one.responder) else {
                continue;
            };
            let comparison = stats::compare(one, other)?;
            let statistics = comparison.differences.iter().map(|d| Difference {
                statistic: d.statistic.to_string(),
                before_ns: d.before,
                after_ns: d.after,
                difference_ns: d.absolute(),
                difference_relative: d.relative(),
            });
            responders.push(Compared {
                responder: &one.responder,
                count: [comparison.count.0, comparison.count.1],
                losses: [comparison.losses.0, comparison.losses.1],
                statistics: statistics.collect(),
            });
        }
        Ok(Compare {
            schema: Self::SCHEMA,
            before: before.run.as_str(),
            after: after.run.as_str(),
            verdicts: [before, after].map(|run| run.conclusion.verdict),
            complete: [before.complete, after.complete],
            other_settings: differing(before, after),
            clock: before.clock,
            identical_samples: before.samples.blake3 == after.samples.blake3,
            unequal: unequal([before, after]),
            conditions: judged.iter().map(|judged| Judged::of(*judged)).collect(),
            responders,
            costs: Change::all(before, after).iter().flatten().map(ComparedCost::of).collect(),
            prices: Prices::of(known),
        })
    }
}

impl Judged {
    fn of((condition, outcome): (&Condition, ConditionOutcome)) -> Self {
        let outcome = match outcome {
            ConditionOutcome::Kept => "kept",
            ConditionOutcome::Exceeded => "exceeded",
            ConditionOutcome::Undecided => "undecided",
        };
        Judged { condition: condition.to_string(), outcome }
    }
}
