// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt for tests, and a made-up guest. A trial's result follows from what the trial is told.

use crate::{
    Budget, EnteredStretch, ForeseenStretch, Hunt, LateAnswer, STRATEGIES, Trial, TrialResult,
};
use sample::{Aim, Insns, Nanos, Occurrence, Responder, Rule, Stretch, When};
use std::collections::{BTreeMap, BTreeSet};

/// A hunt for the worst answer of the task, in one guest and with all strategies.
pub fn hunt(jobs: usize, trials: u64) -> Hunt {
    Hunt {
        guests: 1,
        responders: vec![Responder::Task],
        strategies: STRATEGIES.iter().map(|s| s.name()).collect(),
        seed: 5,
        budget: Budget::Trials(trials),
        jobs,
        corpus: Vec::new(),
        enough: None,
    }
}

/// The result of a trial in a field in which only the trial decides the latency.
pub fn result(trial: &Trial) -> TrialResult {
    let text = format!("{:?}", trial.when);
    let sum = text.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let (latency, instants) = (sum % 100_000, vec![Nanos(50_000 + sum % 1000)]);
    let late = LateAnswer { latency_ns: Nanos(latency), triggers: 1, ..LateAnswer::default() };
    let scouted = match &trial.when {
        When::Aimed(Aim { rule: Rule::Scout, until, .. }) => {
            let foreseen = |ordinal: u32| ForeseenStretch {
                occurrence: Occurrence { kind: Stretch::Unscheduled, key: sum, ordinal },
                length_insns: Insns(200_000),
                at_ns: *until / 20 * u64::from(ordinal),
            };
            Some((1..=20).map(foreseen).collect())
        }
        _ => None,
    };
    TrialResult {
        number: trial.number,
        strategy: trial.strategy,
        begin: trial.begin,
        snapshot: "key".into(),
        way_ns: Nanos(0),
        undisturbed_ns: trial.fires_from().unwrap_or_default(),
        worked_insns: Insns((taken(&trial.when) - trial.fires_from().unwrap_or_default()).0),
        triggers: 1,
        virtual_ns: taken(&trial.when),
        disturbances: trial.disturbances.clone(),
        instants,
        late: BTreeMap::from([("task".into(), vec![late])]),
        losses: BTreeMap::new(),
        seen: BTreeSet::from([sum]),
        fired: BTreeSet::from([sum]),
        scouted,
        coincidences: Vec::new(),
        encounter: None,
        entered: trial
            .enters
            .map(|stretch| EnteredStretch { stretch, answered_insns: BTreeMap::new() }),
        died: None,
        forked_otherwise: false,
    }
}

/// How long a trial takes that fires whenever it may.
fn taken(when: &When) -> Nanos {
    match when {
        When::Planned(schedule) => schedule.due(schedule.count().saturating_sub(1)),
        When::Aimed(aim) => Some(aim.until),
        When::Commanded => None,
    }
    .unwrap_or_default()
}

/// A stretch that a scout saw.
#[cfg(test)]
pub(crate) fn stretch(kind: Stretch, ordinal: u32, length: u64, at: Nanos) -> ForeseenStretch {
    let occurrence = Occurrence { kind, key: 7, ordinal };
    ForeseenStretch { occurrence, length_insns: Insns(length), at_ns: at }
}

/// A stretch of each kind in every millisecond of a second. Their lengths are in no order.
#[cfg(test)]
pub(crate) fn second() -> Vec<ForeseenStretch> {
    let each = |n: u32| {
        let at = Nanos::from_millis(u64::from(n) + 1);
        Stretch::ALL.map(|kind| stretch(kind, n, 4_000 + u64::from(n) * 7919 % 1000, at))
    };
    (0..1000).flat_map(each).collect()
}
