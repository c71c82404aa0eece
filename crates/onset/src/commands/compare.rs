// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset compare`: two runs, responder by responder.

use super::{open, print, print_json};
use crate::bundle::Manifest;
use crate::company::{Unequal, unequal};
use crate::failure::{Exit, Failure};
use crate::terminal;
use sample::{Clock, Losses, SeriesName};
use serde::Serialize;
use stats::{Condition, Outcome, Summary};
use std::path::Path;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    before: &'a str,
    after: &'a str,
    clock: Clock,
    identical_samples: bool,
    /// Absent where both answered in the same company.
    #[serde(skip_serializing_if = "Option::is_none")]
    unequal: Option<Unequal>,
    /// Those of `--fail-if`, in their order.
    conditions: Vec<PrintedCondition>,
    responders: Vec<PrintedResponder<'a>>,
}

#[derive(Serialize)]
struct PrintedCondition {
    condition: String,
    /// `kept`, `exceeded`, or `undecided` where a run has no such number.
    outcome: &'static str,
}

#[derive(Serialize)]
struct PrintedResponder<'a> {
    responder: &'a SeriesName,
    count: [u64; 2],
    losses: [Losses; 2],
    statistics: Vec<PrintedStatistic>,
}

#[derive(Serialize)]
struct PrintedStatistic {
    statistic: String,
    before_ns: Option<f64>,
    after_ns: Option<f64>,
    difference_ns: Option<f64>,
    difference_relative: Option<f64>,
}

pub fn run(
    (before, after): (&str, &str),
    fail_if: &[Condition],
    store: &Path,
    json: bool,
) -> Result<Exit, Failure> {
    let (before, after) = (open(before, store)?, open(after, store)?);
    let (before, after) = (before.manifest(), after.manifest());
    let judged = fail_if.iter().map(|condition| {
        let outcome = condition.judge(&before.series, &after.series);
        outcome.map(|outcome| (condition, outcome)).map_err(Failure::usage)
    });
    let judged: Vec<(&Condition, Outcome)> = judged.collect::<Result<_, Failure>>()?;
    if json {
        print_json(&printed(before, after, &judged)?)?;
    } else {
        print(&terminal::comparison(before, after, &judged).map_err(Failure::usage)?)?;
    }
    let any = |wanted| judged.iter().any(|(_, outcome)| *outcome == wanted);
    let in_common = |s: &Summary| after.series.iter().any(|other| other.responder == s.responder);
    Ok(if any(Outcome::Exceeded) {
        Exit::Exceeded
    } else if any(Outcome::Undecided) || !before.series.iter().any(in_common) {
        Exit::Undecided
    } else {
        Exit::Success
    })
}

fn printed<'a>(
    before: &'a Manifest,
    after: &'a Manifest,
    judged: &[(&Condition, Outcome)],
) -> Result<Printed<'a>, Failure> {
    let mut responders = Vec::new();
    for one in &before.series {
        let Some(other) = after.series.iter().find(|s| s.responder == one.responder) else {
            continue;
        };
        let comparison = stats::compare(one, other).map_err(Failure::usage)?;
        let statistics = comparison.differences.iter().map(|d| PrintedStatistic {
            statistic: d.statistic.to_string(),
            before_ns: d.before_ns,
            after_ns: d.after_ns,
            difference_ns: d.absolute_ns(),
            difference_relative: d.relative(),
        });
        responders.push(PrintedResponder {
            responder: &one.responder,
            count: [comparison.count.0, comparison.count.1],
            losses: [comparison.losses.0, comparison.losses.1],
            statistics: statistics.collect(),
        });
    }
    Ok(Printed {
        schema: SCHEMA,
        before: before.run.as_str(),
        after: after.run.as_str(),
        clock: before.clock,
        identical_samples: before.samples.blake3 == after.samples.blake3,
        unequal: unequal([before, after]),
        conditions: judged
            .iter()
            .map(|(condition, outcome)| PrintedCondition {
                condition: condition.to_string(),
                outcome: match outcome {
                    Outcome::Kept => "kept",
                    Outcome::Exceeded => "exceeded",
                    Outcome::Undecided => "undecided",
                },
            })
            .collect(),
        responders,
    })
}
