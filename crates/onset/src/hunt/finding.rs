// SPDX-License-Identifier: GPL-2.0-or-later
//! What trials found, and what a hunt knows after them: a pure fold, so that it comes out the same whoever ran the trials
//! and in whatever order they ended.

use super::Strategy;
use super::foresight::Foreseen;
use sample::{Insns, Nanos, Responder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The latest answer of a responder in one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// How late.
    pub latency_ns: Nanos,
    /// The same in instructions.
    pub latency_insns: Insns,
    /// The triggers until the answer, since measuring began.
    pub instants: Vec<Nanos>,
    /// Which of them was answered so late.
    pub trigger: u64,
    /// What had opened the stretch that the trigger was aimed at, innermost first; empty for one that was not aimed.
    pub stack: Vec<String>,
}

/// What came of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Its number in the hunt, from 0 on.
    pub number: u64,
    /// Who chose its triggers.
    pub strategy: Strategy,
    /// How many there were.
    pub triggers: u64,
    /// Virtual time that measuring took.
    pub virtual_ns: Nanos,
    /// The latest answer of each responder, by name.
    pub worst: BTreeMap<String, Best>,
    /// Hashes of the stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// Of those, what was fired into.
    pub fired: BTreeSet<u64>,
    /// For a scout, the longest stretches that it saw, by time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scouted: Option<Vec<Foreseen>>,
    /// Why the guest ended before it was asked to, if it did, and the triggers until then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub died: Option<Died>,
}

/// A guest that did not survive: a find in itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// What is known of it.
    pub text: String,
    /// The triggers until then.
    pub instants: Vec<Nanos>,
}

/// The worst of a responder, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Number of the trial.
    pub trial: u64,
    /// Who chose its triggers.
    pub strategy: Strategy,
    /// The find.
    #[serde(flatten)]
    pub best: Best,
}

/// A step of the growth curve: a responder's worst became this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The responder.
    pub responder: String,
    /// Number of the trial that found it.
    pub trial: u64,
    /// Triggers of all trials until that one's end.
    pub triggers: u64,
    /// Virtual time of all trials until that one's end.
    pub virtual_ns: Nanos,
    /// The worst since then.
    pub latency_ns: Nanos,
}

/// What one strategy did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Its trials.
    pub trials: u64,
    /// Their triggers.
    pub triggers: u64,
    /// Their virtual time.
    pub virtual_ns: Nanos,
    /// The worst that it found by itself, by responder.
    pub worst_ns: BTreeMap<String, Nanos>,
}

/// All that is known after some trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Trials folded in, in the order of their numbers.
    pub trials: u64,
    /// Their triggers.
    pub triggers: u64,
    /// Their virtual time.
    pub virtual_ns: Nanos,
    /// The worst of each responder.
    pub worst: BTreeMap<String, Found>,
    /// How it came to that.
    pub growth: Vec<Step>,
    /// By strategy.
    pub shares: BTreeMap<Strategy, Share>,
    /// Stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// Stacks that were fired into.
    pub fired: BTreeSet<u64>,
    /// What the last scout saw beyond where the one before it had looked.
    pub foreseen: Vec<Foreseen>,
    /// How far it looked.
    pub looked: Nanos,
    /// How many scouts there were.
    pub scouts: u64,
    /// Trials of [`Strategy::Foresight`] since then.
    pub since_scout: u64,
    /// Guests that died: the trial, and how.
    pub died: Vec<(u64, Died)>,
    /// The last trial that brought anything new.
    pub newest: u64,
}

impl Known {
    /// Folds the next trial in.
    pub fn take(&mut self, tried: &Tried) {
        self.trials += 1;
        self.triggers += tried.triggers;
        self.virtual_ns.0 += tried.virtual_ns.0;
        let share = self.shares.entry(tried.strategy).or_default();
        share.trials += 1;
        share.triggers += tried.triggers;
        share.virtual_ns.0 += tried.virtual_ns.0;
        for (responder, best) in &tried.worst {
            let own = share.worst_ns.entry(responder.clone()).or_default();
            *own = (*own).max(best.latency_ns);
            let known = self.worst.get(responder);
            if known.is_some_and(|known| known.best.latency_ns >= best.latency_ns) {
                continue;
            }
            let (trial, strategy) = (tried.number, tried.strategy);
            self.worst.insert(responder.clone(), Found { trial, strategy, best: best.clone() });
            self.growth.push(Step {
                responder: responder.clone(),
                trial,
                triggers: self.triggers,
                virtual_ns: self.virtual_ns,
                latency_ns: best.latency_ns,
            });
            self.newest = tried.number;
        }
        self.since_scout += u64::from(tried.strategy == Strategy::Foresight);
        if let Some(scouted) = &tried.scouted {
            let beyond = scouted.iter().filter(|f| self.scouts == 0 || f.at_ns > self.looked);
            self.foreseen = beyond.copied().collect();
            self.looked = tried.virtual_ns;
            self.scouts += 1;
            self.since_scout = 0;
        }
        let fired = self.fired.len();
        self.seen.extend(&tried.seen);
        self.fired.extend(&tried.fired);
        if self.fired.len() > fired {
            self.newest = tried.number;
        }
        self.died.extend(tried.died.iter().map(|died| (tried.number, died.clone())));
    }

    /// The find to begin from when looking for the worst of these responders: they take turns.
    pub fn best(&self, responders: &[Responder], number: u64) -> Option<&Best> {
        let turn = number as usize % responders.len().max(1);
        Some(&self.worst.get(responders.get(turn)?.name())?.best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Occurrence, Stretch};

    fn tried(number: u64, latency: u64, fired: &[u64]) -> Tried {
        let best = Best { latency_ns: Nanos(latency), ..Best::default() };
        Tried {
            number,
            strategy: Strategy::WindowStart,
            triggers: 10,
            virtual_ns: Nanos(100),
            worst: BTreeMap::from([("task".into(), best)]),
            seen: fired.iter().copied().chain([99]).collect(),
            fired: fired.iter().copied().collect(),
            scouted: None,
            died: None,
        }
    }

    #[test]
    fn the_worst_grows_and_each_step_says_after_how_much() {
        let mut known = Known::default();
        for t in [tried(0, 5, &[1]), tried(1, 4, &[1]), tried(2, 9, &[1, 2])] {
            known.take(&t);
        }
        assert_eq!((known.trials, known.triggers, known.virtual_ns), (3, 30, Nanos(300)));
        let steps = known.growth.iter().map(|s| (s.trial, s.virtual_ns.0, s.latency_ns.0));
        let steps = steps.collect::<Vec<_>>();
        assert_eq!(steps, [(0, 100, 5), (2, 300, 9)]);
        assert_eq!(known.worst["task"].trial, 2);
        assert_eq!((known.seen.len(), known.fired.len(), known.newest), (3, 2, 2));
        assert_eq!(known.shares[&Strategy::WindowStart].worst_ns["task"], Nanos(9));
    }

    #[test]
    fn a_scout_that_looks_further_adds_what_lies_beyond() {
        let at = |ms| Foreseen {
            occurrence: Occurrence { kind: Stretch::IrqsOff, key: 1, ordinal: ms },
            length_insns: Insns(9_000),
            at_ns: Nanos::from_millis(ms.into()),
        };
        let scout = |number, end: u32| Tried {
            strategy: Strategy::Foresight,
            virtual_ns: Nanos::from_millis(end.into()),
            scouted: Some([5, 15].map(at).into()),
            ..tried(number, 0, &[])
        };
        let mut known = Known::default();
        known.take(&scout(0, 10));
        assert_eq!((known.foreseen.len(), known.since_scout), (2, 0));
        known.take(&Tried { strategy: Strategy::Foresight, ..tried(1, 5, &[]) });
        assert_eq!((known.scouts, known.since_scout), (1, 1));
        known.take(&scout(2, 20));
        assert_eq!((&known.foreseen[..], known.scouts, known.since_scout), (&[at(15)][..], 2, 0));
    }

    #[test]
    fn of_two_that_are_alike_the_first_stays() {
        let mut known = Known::default();
        known.take(&tried(0, 5, &[]));
        known.take(&tried(1, 5, &[]));
        assert_eq!(known.worst["task"].trial, 0);
        assert_eq!(known.newest, 0);
    }

    #[test]
    fn finds_to_begin_from_take_turns_between_responders() {
        let mut known = Known::default();
        known.take(&tried(0, 5, &[]));
        let both = [Responder::Hardirq, Responder::Task];
        assert!(known.best(&both, 0).is_none(), "no hardirq was answered");
        assert_eq!(known.best(&both, 1).unwrap().latency_ns, Nanos(5));
    }
}
