// SPDX-License-Identifier: GPL-2.0-or-later
//! The knowledge of a hunt after some trials. It is a pure fold of the trials' results: it is the same whoever ran the
//! trials and in whatever order they ended. A strategy may learn more from its own trials ([`crate::Strategy::learn`]).

use crate::ahead::Lookahead;
use crate::begin::Begin;
use crate::ground::Ground;
use crate::name::StrategyName;
use crate::registry::CORPUS;
use crate::result::{GuestDeath, LateAnswer, TrialResult, place};
use sample::{Disturbance, Insns, Losses, Nanos, Responder};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many answers of one responder are kept: the latest of each place. The number is chosen: no more lines than a
/// screen has for a responder.
const KEPT: usize = 12;

/// A late answer, and all that is needed to have it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// How late the answer was.
    pub latency_ns: Nanos,
    /// The same latency in instructions.
    pub latency_insns: Insns,
    /// The place where measuring began.
    pub begin: Begin,
    /// The key of the snapshot at that place.
    pub snapshot: String,
    /// The triggers until the answer, since measuring began.
    pub instants: Vec<Nanos>,
    /// The number of the trigger that was answered this late.
    pub trigger: u64,
    /// The disturbances.
    pub disturbances: Vec<Disturbance>,
    /// The stack that opened the stretch at which the trigger was aimed, innermost first. Empty for a trigger that was
    /// not aimed.
    pub stack: Vec<String>,
}

impl Recipe {
    /// The triggers up to the one that is answered late.
    pub(crate) fn triggers(&self) -> Vec<Nanos> {
        let count = self.instants.len().min(self.trigger as usize + 1);
        self.instants[..count].to_vec()
    }
}

/// A late answer, and the trial that found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The number of the trial.
    pub trial: u64,
    /// The strategy that chose the triggers.
    pub strategy: StrategyName,
    /// The answer.
    pub answer: Recipe,
}

/// A step of the growth curve: a responder's worst became this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrowthStep {
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

/// What one strategy did, or what was done in one guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// Its trials.
    pub trials: u64,
    /// Their triggers.
    pub triggers: u64,
    /// Their virtual time. A way that several trials have in common counts once.
    pub virtual_ns: Nanos,
    /// The instructions that their guests executed after the ways that they had in common.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub worked: Insns,
    /// How many of them began on the way from a place, where the guest's code is translated already.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub on_the_way: u64,
    /// The worst that was found in them, by responder.
    pub worst_ns: BTreeMap<String, Nanos>,
}

impl Share {
    fn take(&mut self, result: &TrialResult, spent: Nanos) {
        self.trials += 1;
        self.on_the_way += u64::from(result.undisturbed_ns > Nanos(0));
        self.worked = self.worked.saturating_add(result.worked_insns);
        self.triggers = self.triggers.saturating_add(result.triggers);
        self.virtual_ns = self.virtual_ns.saturating_add(spent);
        // A disturbed answer is that of a strategy that disturbs, or of one that makes a find again: nobody's worst.
        let is_calm = result.disturbances.is_empty() || result.strategy.strategy().disturbs();
        for (responder, late) in result.late.iter().filter(|_| is_calm) {
            let Some(latest) = late.first() else { continue };
            self.late(responder, latest.latency_ns);
        }
    }

    fn add(&mut self, other: &Share) {
        self.trials += other.trials;
        self.on_the_way += other.on_the_way;
        self.worked = self.worked.saturating_add(other.worked);
        self.triggers = self.triggers.saturating_add(other.triggers);
        self.virtual_ns = self.virtual_ns.saturating_add(other.virtual_ns);
        other.worst_ns.iter().for_each(|(responder, worst)| self.late(responder, *worst));
    }

    fn late(&mut self, responder: &str, latency: Nanos) {
        let own = self.worst_ns.entry(responder.into()).or_default();
        *own = (*own).max(latency);
    }
}

/// Everything that is known after some trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// The number of trials that were folded in, in the order of their numbers.
    pub trials: u64,
    /// The number of their triggers.
    pub triggers: u64,
    /// Their virtual time, and the time for which guests were let run to the places where some of them began. A way
    /// without triggers that several trials from a place have in common counts once.
    pub virtual_ns: Nanos,
    /// For each responder its latest undisturbed answers, one of each place, the latest first.
    pub finds: BTreeMap<String, Vec<Discovery>>,
    /// The same for disturbed answers: they are late because of the guest and another device together.
    pub disturbed: BTreeMap<String, Vec<Discovery>>,
    /// The steps by which the worst answers grew.
    pub growth: Vec<GrowthStep>,
    /// The shares of each guest and strategy. A guest and a strategy without a trial have none.
    pub dealt: BTreeMap<(usize, StrategyName), Share>,
    /// The stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// The stacks that were fired into.
    pub fired: BTreeSet<u64>,
    /// The places where trials begin, and what is known to come from there.
    pub grounds: BTreeMap<Begin, Ground>,
    /// The losses of each responder.
    pub losses: BTreeMap<String, Losses>,
    /// For each guest, how far foresight has looked ahead.
    pub ahead: BTreeMap<usize, Lookahead>,
    /// The guests that died: the trial, and how.
    pub died: Vec<(u64, GuestDeath)>,
    /// The trials that came out otherwise in a fork than in a restored guest.
    pub forked_otherwise: Vec<u64>,
    /// The last trial that brought anything new.
    pub newest: u64,
}

impl Knowledge {
    /// Folds the next trial in. The strategy of the trial may learn more from it.
    pub(crate) fn add(&mut self, result: &TrialResult) {
        self.trials += 1;
        self.triggers = self.triggers.saturating_add(result.triggers);
        let begin = result.begin;
        let is_new = !self.grounds.contains_key(&begin);
        let way = if begin.is_later() && is_new { result.way_ns } else { Nanos(0) };
        let spent =
            result.virtual_ns.saturating_sub(self.walked_before(result)).saturating_add(way);
        self.virtual_ns = self.virtual_ns.saturating_add(spent);
        self.dealt.entry((begin.guest, result.strategy)).or_default().take(result, spent);
        let latency = |found: &Discovery| found.answer.latency_ns;
        for (responder, late) in &result.late {
            let before = self.finds.get(responder).and_then(|f| f.first()).map(latency);
            for found in late.iter().map(|late| discovery(result, late)) {
                let is_calm = found.answer.disturbances.is_empty();
                let finds = if is_calm { &mut self.finds } else { &mut self.disturbed };
                keep(finds.entry(responder.clone()).or_default(), found);
            }
            let after = self.finds.get(responder).and_then(|f| f.first()).map(latency);
            if let Some(latency_ns) = after.filter(|_| after > before) {
                self.growth.push(GrowthStep {
                    responder: responder.clone(),
                    trial: result.number,
                    triggers: self.triggers,
                    virtual_ns: self.virtual_ns,
                    latency_ns,
                });
                self.newest = result.number;
            }
        }
        let ground = self.grounds.entry(begin).or_default();
        // A scout triggers nothing, so its whole way is one that trials need not go again.
        let walked = result.scouted.as_ref().map_or(result.undisturbed_ns, |_| result.virtual_ns);
        ground.walked = ground.walked.max(walked);
        for (responder, lost) in &result.losses {
            self.losses.entry(responder.clone()).or_default().merge(lost);
        }
        let fired = self.fired.len();
        self.seen.extend(&result.seen);
        self.fired.extend(&result.fired);
        if self.fired.len() > fired {
            self.newest = result.number;
        }
        self.died.extend(result.died.iter().map(|died| (result.number, died.clone())));
        self.forked_otherwise.extend(result.forked_otherwise.then_some(result.number));
    }

    /// The part of a trial's virtual time for which its guest had been let run before, for another trial.
    fn walked_before(&self, result: &TrialResult) -> Nanos {
        let walked = self.grounds.get(&result.begin).map(|ground| ground.walked);
        walked.unwrap_or_default().min(result.undisturbed_ns)
    }

    /// The share of each strategy.
    pub fn by_strategy(&self) -> BTreeMap<StrategyName, Share> {
        added_up(self.dealt.iter().map(|((_, strategy), share)| (*strategy, share.clone())))
    }

    /// The latest undisturbed answer of this responder.
    pub fn worst(&self, responder: &str) -> Option<&Discovery> {
        self.finds.get(responder)?.first()
    }

    /// The find from which to begin when searching the worst answer of these responders. They take turns. The find is
    /// the latest undisturbed one.
    pub fn best(&self, responders: &[Responder], turn: u64) -> Option<&Recipe> {
        let turn = turn as usize % responders.len().max(1);
        Some(&self.worst(responders.get(turn)?.name())?.answer)
    }
}

/// Adds up the shares of each key.
pub(crate) fn added_up<K: Ord>(shares: impl Iterator<Item = (K, Share)>) -> BTreeMap<K, Share> {
    let mut all: BTreeMap<K, Share> = BTreeMap::new();
    shares.for_each(|(of, share)| all.entry(of).or_default().add(&share));
    all
}

fn discovery(result: &TrialResult, late: &LateAnswer) -> Discovery {
    let until = result.instants.len().min(late.triggers as usize);
    let triggered = result.instants.get(late.trigger as usize).copied().unwrap_or_default();
    let answered = triggered.saturating_add(late.latency_ns);
    let disturbances = result.disturbances.iter().filter(|d| d.at <= answered).copied();
    let answer = Recipe {
        latency_ns: late.latency_ns,
        latency_insns: late.latency_insns,
        begin: result.begin,
        snapshot: result.snapshot.clone(),
        instants: result.instants[..until].to_vec(),
        trigger: late.trigger,
        disturbances: disturbances.collect(),
        stack: late.stack.clone(),
    };
    Discovery { trial: result.number, strategy: result.strategy, answer }
}

/// Puts `new` among the latest answers if it is later than the known answer of its place. Of two answers that are
/// equally late the first one stays.
fn keep(finds: &mut Vec<Discovery>, new: Discovery) {
    let place = place(&new.answer.stack);
    // The places of the finds from which a hunt starts are not known. Each of these has one of its own.
    let is_from_corpus = |find: &Discovery| find.strategy == CORPUS.name();
    let is_same = |find: &Discovery| {
        let are_both = is_from_corpus(find) && is_from_corpus(&new);
        self::place(&find.answer.stack) == place
            && (!are_both || find.answer.instants == new.answer.instants)
    };
    if let Some(same) = finds.iter().position(is_same) {
        if finds[same].answer.latency_ns >= new.answer.latency_ns {
            return;
        }
        finds.remove(same);
    }
    let before = finds.partition_point(|f| f.answer.latency_ns >= new.answer.latency_ns);
    finds.insert(before, new);
    finds.truncate(KEPT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> StrategyName {
        name.parse().expect("a strategy's name")
    }

    fn tried(number: u64, latency: u64, fired: &[u64]) -> TrialResult {
        let late = LateAnswer { latency_ns: Nanos(latency), ..LateAnswer::default() };
        TrialResult {
            number,
            strategy: named("window_start"),
            begin: Begin::default(),
            snapshot: "key".into(),
            way_ns: Nanos(0),
            undisturbed_ns: Nanos(0),
            worked_insns: Insns(100),
            triggers: 10,
            virtual_ns: Nanos(100),
            disturbances: Vec::new(),
            instants: Vec::new(),
            late: BTreeMap::from([("task".into(), vec![late])]),
            losses: BTreeMap::new(),
            seen: fired.iter().copied().chain([99]).collect(),
            fired: fired.iter().copied().collect(),
            scouted: None,
            coincidences: Vec::new(),
            entered: None,
            encounter: None,
            died: None,
            forked_otherwise: false,
        }
    }

    #[test]
    fn the_worst_grows_and_each_step_says_after_how_much() {
        let mut known = Knowledge::default();
        for t in [tried(0, 5, &[1]), tried(1, 4, &[1]), tried(2, 9, &[1, 2])] {
            known.take(&t);
        }
        assert_eq!((known.trials, known.triggers, known.virtual_ns), (3, 30, Nanos(300)));
        let steps = known.growth.iter().map(|s| (s.trial, s.virtual_ns.0, s.latency_ns.0));
        let steps = steps.collect::<Vec<_>>();
        assert_eq!(steps, [(0, 100, 5), (2, 300, 9)]);
        assert_eq!(known.worst("task").unwrap().trial, 2);
        assert_eq!((known.seen.len(), known.fired.len(), known.newest), (3, 2, 2));
        assert_eq!(known.by_strategy()[&named("window_start")].worst_ns["task"], Nanos(9));
    }

    #[test]
    fn the_way_to_where_a_trial_begins_costs_virtual_time_once() {
        let mut known = Knowledge::default();
        let begin = Begin { guest: 0, after: Nanos(5_000) };
        let later = |number| TrialResult { begin, way_ns: Nanos(5_000), ..tried(number, 1, &[]) };
        for t in [tried(0, 5, &[]), later(1), later(2), tried(3, 5, &[])] {
            known.take(&t);
        }
        assert_eq!(known.virtual_ns, Nanos(4 * 100 + 5_000));
        assert_eq!(known.by_strategy()[&named("window_start")].virtual_ns, known.virtual_ns);
    }

    #[test]
    fn the_way_to_the_first_trigger_counts_once_for_all_trials_from_a_place() {
        let mut known = Knowledge::default();
        let from = |number, ns, guest| TrialResult {
            begin: Begin::first(guest),
            undisturbed_ns: Nanos(ns),
            ..tried(number, 1, &[])
        };
        for t in [from(0, 60, 0), from(1, 90, 0), from(2, 70, 0), from(3, 0, 0), from(4, 90, 1)] {
            known.take(&t);
        }
        assert_eq!(known.virtual_ns, Nanos(100 + (100 - 60) + (100 - 70) + 100 + 100));
        assert_eq!(known.dealt[&(0, named("window_start"))].on_the_way, 3);
    }

    #[test]
    fn of_two_that_are_alike_the_first_stays() {
        let mut known = Knowledge::default();
        known.take(&tried(0, 5, &[]));
        known.take(&tried(1, 5, &[]));
        assert_eq!(known.worst("task").unwrap().trial, 0);
        assert_eq!(known.newest, 0);
    }

    #[test]
    fn of_each_place_the_latest_is_kept_with_the_triggers_until_then() {
        let late = |latency, triggers, opener: &str| LateAnswer {
            latency_ns: Nanos(latency),
            triggers,
            stack: vec![format!("{opener}+0x7 [m]"), "caller+0x1".into()],
            ..LateAnswer::default()
        };
        let trial = |number, lates: &[LateAnswer]| TrialResult {
            instants: [10, 20, 30].map(Nanos).into(),
            late: BTreeMap::from([("task".into(), lates.to_vec())]),
            ..tried(number, 0, &[])
        };
        let mut known = Knowledge::default();
        known.take(&trial(0, &[late(9, 2, "a"), late(5, 1, "b")]));
        known.take(&trial(1, &[late(9, 1, "a"), late(7, 3, "b")]));
        let finds = known.finds["task"].iter().map(|f| (f.trial, f.answer.instants.len()));
        assert_eq!(finds.collect::<Vec<_>>(), [(0, 2), (1, 3)]);
        let others: Vec<LateAnswer> = (0..20).map(|n| late(100 - n, 1, &format!("f{n}"))).collect();
        known.take(&trial(2, &others));
        let latencies: Vec<u64> =
            known.finds["task"].iter().map(|f| f.answer.latency_ns.0).collect();
        assert_eq!(latencies, (89..=100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn an_answer_from_before_the_disturbance_was_not_disturbed() {
        let disturbances = vec![Disturbance { at: Nanos(25), timers: 0 }];
        let late = |trigger, latency| LateAnswer {
            latency_ns: Nanos(latency),
            trigger,
            triggers: 3,
            ..LateAnswer::default()
        };
        let of = |late: LateAnswer| TrialResult {
            instants: [10, 20, 30].map(Nanos).into(),
            disturbances: disturbances.clone(),
            late: BTreeMap::from([("task".into(), vec![late])]),
            ..tried(0, 0, &[])
        };
        let mut known = Knowledge::default();
        known.take(&of(late(0, 9)));
        assert!(known.disturbed.is_empty());
        assert_eq!(known.worst("task").unwrap().answer.disturbances, []);
        known.take(&of(late(1, 8)));
        assert_eq!(known.disturbed["task"][0].answer.disturbances, disturbances);
        assert_eq!(known.growth.len(), 1);
    }

    #[test]
    fn what_a_disturbance_made_later_is_a_find_of_its_own_and_no_beginning() {
        let disturbances = vec![Disturbance { at: Nanos(0), timers: 0 }];
        let mut known = Knowledge::default();
        known.take(&tried(0, 5, &[]));
        known.take(&TrialResult { disturbances, ..tried(1, 9, &[]) });
        assert_eq!(known.disturbed["task"][0].answer.latency_ns, Nanos(9));
        assert_eq!((known.finds["task"].len(), known.growth.len()), (1, 1));
        assert_eq!(known.best(&[Responder::Task], 0).unwrap().latency_ns, Nanos(5));
    }

    #[test]
    fn a_guests_worst_is_one_that_nothing_disturbed_and_its_trials_are_all() {
        let disturbances = vec![Disturbance { at: Nanos(0), timers: 0 }];
        let strategy = named("disturb");
        let mut known = Knowledge::default();
        known.take(&tried(0, 5, &[]));
        known.take(&TrialResult { disturbances, strategy, ..tried(1, 9, &[]) });
        let guest = &known.by_guest()[&0];
        assert_eq!((guest.trials, guest.triggers, guest.virtual_ns), (2, 20, Nanos(200)));
        assert_eq!(guest.worst_ns["task"], Nanos(5));
        assert_eq!(known.by_strategy()[&strategy].worst_ns["task"], Nanos(9));
    }

    #[test]
    fn finds_to_begin_from_take_turns_between_responders() {
        let mut known = Knowledge::default();
        known.take(&tried(0, 5, &[]));
        let both = [Responder::Hardirq, Responder::Task];
        assert!(known.best(&both, 0).is_none(), "no hardirq was answered");
        assert_eq!(known.best(&both, 1).unwrap().latency_ns, Nanos(5));
    }
}
