// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset compare`: two runs, responder by responder.

use super::{open, print, print_json};
use crate::failure::{Exit, Failure};
use stats::{Condition, ConditionOutcome, Summary};
use std::path::Path;
use view::results::Compare;
use view::terminal;

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
    let judged: Vec<(&Condition, ConditionOutcome)> = judged.collect::<Result<_, Failure>>()?;
    if json {
        print_json(&Compare::of(before, after, &judged).map_err(Failure::usage)?)?;
    } else {
        print(&terminal::comparison(before, after, &judged).map_err(Failure::usage)?)?;
    }
    let any = |wanted| judged.iter().any(|(_, outcome)| *outcome == wanted);
    let in_common = |s: &Summary| after.series.iter().any(|other| other.responder == s.responder);
    Ok(if any(ConditionOutcome::Exceeded) {
        Exit::Exceeded
    } else if any(ConditionOutcome::Undecided) || !before.series.iter().any(in_common) {
        Exit::Undecided
    } else {
        Exit::Success
    })
}
