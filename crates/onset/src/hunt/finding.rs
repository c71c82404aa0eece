// SPDX-License-Identifier: GPL-2.0-or-later
//! What trials found, and what a hunt knows after them: a pure fold, so that it comes out the same whoever ran the trials
//! and in whatever order they ended.

use super::Strategy;
use super::ahead::Ahead;
use super::coincidences::Coincidence;
use super::foresight::Foreseen;
use super::grounds::Begin;
use super::outlook::Ground;
use sample::{Disturbance, Insns, Losses, Nanos, Responder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Answers of one responder that are kept: the latest of each place.
const KEPT: usize = 12;
/// The functions by which a place is known: the innermost of the stack that was fired into.
const PLACE: usize = 4;

/// A late answer of one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// How late.
    pub latency_ns: Nanos,
    /// The same in instructions.
    pub latency_insns: Insns,
    /// Which trigger was answered so late.
    pub trigger: u64,
    /// How many there were until the answer.
    pub triggers: u64,
    /// What had opened the stretch that the trigger was aimed at, innermost first; empty for one that was not aimed.
    pub stack: Vec<String>,
}

/// A late answer, and how to have it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Best {
    /// How late.
    pub latency_ns: Nanos,
    /// The same in instructions.
    pub latency_insns: Insns,
    /// Where measuring began.
    pub begin: Begin,
    /// Key of the snapshot there.
    pub snapshot: String,
    /// The triggers until the answer, since measuring began.
    pub instants: Vec<Nanos>,
    /// Which of them was answered so late.
    pub trigger: u64,
    /// What disturbed.
    pub disturbances: Vec<Disturbance>,
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
    /// Where it began.
    #[serde(flatten)]
    pub begin: Begin,
    /// Key of the snapshot there.
    pub snapshot: String,
    /// Virtual time from the last stage before that to there, which the guest was let run for once; 0 at the warm-up's end, and
    /// where a scout came by.
    pub way_ns: Nanos,
    /// How many there were.
    pub triggers: u64,
    /// Virtual time that measuring took.
    pub virtual_ns: Nanos,
    /// What disturbed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
    /// The triggers until the last of the answers in `late`, since it began.
    pub instants: Vec<Nanos>,
    /// By responder the latest answer of each place, the latest first.
    pub late: BTreeMap<String, Vec<Late>>,
    /// By responder what is no answer, where there was any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub losses: BTreeMap<String, Losses>,
    /// Hashes of the stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// Of those, what was fired into.
    pub fired: BTreeSet<u64>,
    /// For a scout, the longest stretches that it saw, by time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scouted: Option<Vec<Foreseen>>,
    /// For a scout, what it saw come together soon, by time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub coincidences: Vec<Coincidence>,
    /// What the first trigger came into as it opened, where a scout had seen that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entered: Option<Entered>,
    /// What the first trigger met, where a scout had seen that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encounter: Option<Encounter>,
    /// Why the guest ended before it was asked to, if it did, and the triggers until then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub died: Option<Died>,
}

/// A stretch that was fired into as it opened, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// The stretch.
    #[serde(flatten)]
    pub stretch: Foreseen,
    /// By responder how late that trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// An instant that was fired at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encounter {
    /// What was to be met there.
    #[serde(flatten)]
    pub coincidence: Coincidence,
    /// By responder how late that trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// A guest that did not survive: a find in itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// What is known of it.
    pub text: String,
    /// What its console said in the trial: the end of it, where that was much.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub console: String,
    /// Where measuring began.
    #[serde(flatten)]
    pub begin: Begin,
    /// The triggers until then.
    pub instants: Vec<Nanos>,
    /// What disturbed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
}

/// A late answer, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of the trial.
    pub trial: u64,
    /// Who chose its triggers.
    pub strategy: Strategy,
    /// The answer.
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

/// What one strategy did, or what was done in one guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Its trials.
    pub trials: u64,
    /// Their triggers.
    pub triggers: u64,
    /// Their virtual time.
    pub virtual_ns: Nanos,
    /// The worst that was found in them, by responder.
    pub worst_ns: BTreeMap<String, Nanos>,
}

impl Share {
    fn take(&mut self, tried: &Tried, spent: Nanos) {
        self.trials += 1;
        self.triggers += tried.triggers;
        self.virtual_ns.0 += spent.0;
        for (responder, late) in &tried.late {
            let Some(latest) = late.first() else { continue };
            self.late(responder, latest.latency_ns);
        }
    }

    fn add(&mut self, other: &Share) {
        self.trials += other.trials;
        self.triggers += other.triggers;
        self.virtual_ns.0 += other.virtual_ns.0;
        other.worst_ns.iter().for_each(|(responder, worst)| self.late(responder, *worst));
    }

    fn late(&mut self, responder: &str, latency: Nanos) {
        let own = self.worst_ns.entry(responder.into()).or_default();
        *own = (*own).max(latency);
    }
}

/// All that is known after some trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Trials folded in, in the order of their numbers.
    pub trials: u64,
    /// Their triggers.
    pub triggers: u64,
    /// Their virtual time, and that in which the guest was let run to where some of them began.
    pub virtual_ns: Nanos,
    /// By responder the latest answers that nothing disturbed, one of each place, the latest first.
    pub finds: BTreeMap<String, Vec<Found>>,
    /// The same of those that were disturbed: what the guest and another device do together.
    pub disturbed: BTreeMap<String, Vec<Found>>,
    /// How it came to that.
    pub growth: Vec<Step>,
    /// What was done, by guest and strategy; where there was no trial yet, there is nothing.
    pub dealt: BTreeMap<(usize, Strategy), Share>,
    /// Stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// Stacks that were fired into.
    pub fired: BTreeSet<u64>,
    /// Where trials begin, and what is known to come from there.
    pub grounds: BTreeMap<Begin, Ground>,
    /// By responder what was no answer.
    pub losses: BTreeMap<String, Losses>,
    /// By guest how far foresight has looked.
    pub ahead: BTreeMap<usize, Ahead>,
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
        let begin = tried.begin;
        let is_new = !self.grounds.contains_key(&begin);
        let way = if begin.is_later() && is_new { tried.way_ns.0 } else { 0 };
        let spent = Nanos(tried.virtual_ns.0 + way);
        self.virtual_ns.0 += spent.0;
        self.dealt.entry((begin.guest, tried.strategy)).or_default().take(tried, spent);
        let latency = |found: &Found| found.best.latency_ns;
        for (responder, late) in &tried.late {
            let before = self.finds.get(responder).and_then(|f| f.first()).map(latency);
            for found in late.iter().map(|late| found(tried, late)) {
                let is_calm = found.best.disturbances.is_empty();
                let finds = if is_calm { &mut self.finds } else { &mut self.disturbed };
                keep(finds.entry(responder.clone()).or_default(), found);
            }
            let after = self.finds.get(responder).and_then(|f| f.first()).map(latency);
            if let Some(latency_ns) = after.filter(|_| after > before) {
                self.growth.push(Step {
                    responder: responder.clone(),
                    trial: tried.number,
                    triggers: self.triggers,
                    virtual_ns: self.virtual_ns,
                    latency_ns,
                });
                self.newest = tried.number;
            }
        }
        let ground = self.grounds.entry(begin).or_default();
        if tried.strategy == Strategy::Foresight {
            ground.take(tried);
            self.ahead.entry(begin.guest).or_default().take(tried);
        }
        for (responder, lost) in &tried.losses {
            self.losses.entry(responder.clone()).or_default().merge(lost);
        }
        let fired = self.fired.len();
        self.seen.extend(&tried.seen);
        self.fired.extend(&tried.fired);
        if self.fired.len() > fired {
            self.newest = tried.number;
        }
        self.died.extend(tried.died.iter().map(|died| (tried.number, died.clone())));
    }

    /// What each strategy did.
    pub fn by_strategy(&self) -> BTreeMap<Strategy, Share> {
        added_up(self.dealt.iter().map(|((_, strategy), share)| (*strategy, share.clone())))
    }

    /// What was done in each guest. What was disturbed is nobody's worst.
    pub fn by_guest(&self) -> BTreeMap<usize, Share> {
        let calm = |strategy, share: &Share| match strategy {
            Strategy::Disturb => Share { worst_ns: BTreeMap::new(), ..share.clone() },
            _ => share.clone(),
        };
        added_up(self.dealt.iter().map(|((guest, by), share)| (*guest, calm(*by, share))))
    }

    /// The latest answer of this responder that nothing disturbed.
    pub fn worst(&self, responder: &str) -> Option<&Found> {
        self.finds.get(responder)?.first()
    }

    /// The find to begin from when looking for the worst of these responders, which take turns: the latest that nothing
    /// disturbed.
    pub fn best(&self, responders: &[Responder], turn: u64) -> Option<&Best> {
        let turn = turn as usize % responders.len().max(1);
        Some(&self.worst(responders.get(turn)?.name())?.best)
    }
}

fn added_up<K: Ord>(shares: impl Iterator<Item = (K, Share)>) -> BTreeMap<K, Share> {
    let mut all: BTreeMap<K, Share> = BTreeMap::new();
    shares.for_each(|(of, share)| all.entry(of).or_default().add(&share));
    all
}

fn found(tried: &Tried, late: &Late) -> Found {
    let until = tried.instants.len().min(late.triggers as usize);
    let triggered = tried.instants.get(late.trigger as usize).copied().unwrap_or_default();
    let answered = Nanos(triggered.0 + late.latency_ns.0);
    let disturbances = tried.disturbances.iter().filter(|d| d.at <= answered).copied();
    let best = Best {
        latency_ns: late.latency_ns,
        latency_insns: late.latency_insns,
        begin: tried.begin,
        snapshot: tried.snapshot.clone(),
        instants: tried.instants[..until].to_vec(),
        trigger: late.trigger,
        disturbances: disturbances.collect(),
        stack: late.stack.clone(),
    };
    Found { trial: tried.number, strategy: tried.strategy, best }
}

/// Takes `new` among the latest, where it is later than what is known of its place; of two that are alike the first stays.
fn keep(finds: &mut Vec<Found>, new: Found) {
    let place = place(&new.best.stack);
    if let Some(same) = finds.iter().position(|f| self::place(&f.best.stack) == place) {
        if finds[same].best.latency_ns >= new.best.latency_ns {
            return;
        }
        finds.remove(same);
    }
    let before = finds.partition_point(|f| f.best.latency_ns >= new.best.latency_ns);
    finds.insert(before, new);
    finds.truncate(KEPT);
}

/// What stands for the place that a trigger was aimed at: its functions and their modules, whatever calls them.
pub(super) fn place(stack: &[String]) -> Vec<String> {
    functions(stack, PLACE)
}

/// The innermost functions of a stack with their modules, without the places in them.
pub(super) fn functions(stack: &[String], many: usize) -> Vec<String> {
    stack.iter().take(many).map(|frame| trace::without_place(frame)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(number: u64, latency: u64, fired: &[u64]) -> Tried {
        let late = Late { latency_ns: Nanos(latency), ..Late::default() };
        Tried {
            number,
            strategy: Strategy::WindowStart,
            begin: Begin::default(),
            snapshot: "key".into(),
            way_ns: Nanos(0),
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
        assert_eq!(known.worst("task").unwrap().trial, 2);
        assert_eq!((known.seen.len(), known.fired.len(), known.newest), (3, 2, 2));
        assert_eq!(known.by_strategy()[&Strategy::WindowStart].worst_ns["task"], Nanos(9));
    }

    #[test]
    fn the_way_to_where_a_trial_begins_costs_virtual_time_once() {
        let mut known = Known::default();
        let begin = Begin { guest: 0, after: Nanos(5_000) };
        let later = |number| Tried { begin, way_ns: Nanos(5_000), ..tried(number, 1, &[]) };
        for t in [tried(0, 5, &[]), later(1), later(2), tried(3, 5, &[])] {
            known.take(&t);
        }
        assert_eq!(known.virtual_ns, Nanos(4 * 100 + 5_000));
        assert_eq!(known.by_strategy()[&Strategy::WindowStart].virtual_ns, known.virtual_ns);
    }

    #[test]
    fn of_two_that_are_alike_the_first_stays() {
        let mut known = Known::default();
        known.take(&tried(0, 5, &[]));
        known.take(&tried(1, 5, &[]));
        assert_eq!(known.worst("task").unwrap().trial, 0);
        assert_eq!(known.newest, 0);
    }

    #[test]
    fn of_each_place_the_latest_is_kept_with_the_triggers_until_then() {
        let late = |latency, triggers, opener: &str| Late {
            latency_ns: Nanos(latency),
            triggers,
            stack: vec![format!("{opener}+0x7 [m]"), "caller+0x1".into()],
            ..Late::default()
        };
        let trial = |number, lates: &[Late]| Tried {
            instants: [10, 20, 30].map(Nanos).into(),
            late: BTreeMap::from([("task".into(), lates.to_vec())]),
            ..tried(number, 0, &[])
        };
        let mut known = Known::default();
        known.take(&trial(0, &[late(9, 2, "a"), late(5, 1, "b")]));
        known.take(&trial(1, &[late(9, 1, "a"), late(7, 3, "b")]));
        let finds = known.finds["task"].iter().map(|f| (f.trial, f.best.instants.len()));
        assert_eq!(finds.collect::<Vec<_>>(), [(0, 2), (1, 3)]);
        let others: Vec<Late> = (0..20).map(|n| late(100 - n, 1, &format!("f{n}"))).collect();
        known.take(&trial(2, &others));
        let latencies: Vec<u64> = known.finds["task"].iter().map(|f| f.best.latency_ns.0).collect();
        assert_eq!(latencies, (89..=100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn an_answer_from_before_the_disturbance_was_not_disturbed() {
        let disturbances = vec![Disturbance { at: Nanos(25), timers: 0 }];
        let late = |trigger, latency| Late {
            latency_ns: Nanos(latency),
            trigger,
            triggers: 3,
            ..Late::default()
        };
        let of = |late: Late| Tried {
            instants: [10, 20, 30].map(Nanos).into(),
            disturbances: disturbances.clone(),
            late: BTreeMap::from([("task".into(), vec![late])]),
            ..tried(0, 0, &[])
        };
        let mut known = Known::default();
        known.take(&of(late(0, 9)));
        assert!(known.disturbed.is_empty());
        assert_eq!(known.worst("task").unwrap().best.disturbances, []);
        known.take(&of(late(1, 8)));
        assert_eq!(known.disturbed["task"][0].best.disturbances, disturbances);
        assert_eq!(known.growth.len(), 1);
    }

    #[test]
    fn what_a_disturbance_made_later_is_a_find_of_its_own_and_no_beginning() {
        let disturbances = vec![Disturbance { at: Nanos(0), timers: 0 }];
        let mut known = Known::default();
        known.take(&tried(0, 5, &[]));
        known.take(&Tried { disturbances, ..tried(1, 9, &[]) });
        assert_eq!(known.disturbed["task"][0].best.latency_ns, Nanos(9));
        assert_eq!((known.finds["task"].len(), known.growth.len()), (1, 1));
        assert_eq!(known.best(&[Responder::Task], 0).unwrap().latency_ns, Nanos(5));
    }

    #[test]
    fn a_guests_worst_is_one_that_nothing_disturbed_and_its_trials_are_all() {
        let disturbances = vec![Disturbance { at: Nanos(0), timers: 0 }];
        let strategy = Strategy::Disturb;
        let mut known = Known::default();
        known.take(&tried(0, 5, &[]));
        known.take(&Tried { disturbances, strategy, ..tried(1, 9, &[]) });
        let guest = &known.by_guest()[&0];
        assert_eq!((guest.trials, guest.triggers, guest.virtual_ns), (2, 20, Nanos(200)));
        assert_eq!(guest.worst_ns["task"], Nanos(5));
        assert_eq!(known.by_strategy()[&strategy].worst_ns["task"], Nanos(9));
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
