// SPDX-License-Identifier: GPL-2.0-or-later
//! What foresight does next from where trials begin: look further ahead, go to where something rare comes, or fire.
//!
//! Each scout begins where the one before it ended, and what it sees soon after that is fired into from there. A longer
//! stretch that comes only after seconds is worth a snapshot of its own, shortly before it: a *ground*, from which a trial
//! takes milliseconds instead of seconds.

use super::finding::{Known, Tried};
use super::foresight::{ENTRIES, Foreseen};
use super::grounds::Begin;
use rig::FIRST_STAGE;
use sample::{Insns, Nanos, Stretch};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// After each scout so many trials of foresight until the next, which looks twice as far: the last one to 51.2 s.
const PACE: [u64; 8] = [2, 2, 2, 2, 2, 2, 24, 48];
/// What comes later than this is fired into from a ground of its own.
const NEAR: Nanos = Nanos::from_millis(800);
/// A ground begins so long before what it is for: what happens after a restore is not to the instruction what was foreseen.
const LEAD: Nanos = Nanos::from_millis(60);
/// So far is looked from there.
const SPAN: Nanos = Nanos::from_millis(250);
/// A stretch is outstanding, and worth a ground, if it is so much longer than all of its kind that are near, in thousandths of
/// these.
const WORTH: u64 = 1_050;
/// Trials in which a ground is caught up with those that are older.
const CAUGHT_UP: u64 = 16;

/// Where trials begin, and what a scout saw to come from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// What is near enough to be fired into.
    pub near: Vec<Foreseen>,
    /// What is not.
    far: Vec<Foreseen>,
    /// Trials of foresight that fired from here.
    fired: u64,
}

impl Ground {
    /// Adds what a trial of foresight saw or did.
    pub fn take(&mut self, tried: &Tried) {
        match &tried.scouted {
            Some(scouted) => {
                let is_near = |f: &Foreseen| f.at_ns <= NEAR;
                (self.near, self.far) = scouted.iter().copied().partition(is_near);
            }
            None => self.fired += 1,
        }
    }
}

/// How far foresight has looked in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How many scouts looked on from where the one before them ended.
    pub scouts: u32,
    /// Trials of foresight since the last of them.
    since: u64,
    /// Whether a scout saw the guest die: there is nothing to see behind that.
    dies: bool,
}

impl Ahead {
    /// Adds what a trial of foresight saw or did.
    pub fn take(&mut self, tried: &Tried) {
        self.since += 1;
        if tried.scouted.is_some() {
            self.dies |= tried.died.is_some();
            if tried.begin.after == self.stage() {
                self.scouts += 1;
                self.since = 0;
            }
        }
    }

    /// Where the next scout begins, after the warm-up: at a stage of the way to later times, so that the guest is saved there anyway.
    fn stage(&self) -> Nanos {
        self.scouts.checked_sub(1).map_or(Nanos(0), |n| Nanos(FIRST_STAGE.0 << n))
    }

    /// Where the next scout begins and how far it looks, if one is due after so many more trials of foresight.
    fn due(&self, more: u64) -> Option<(Nanos, Nanos)> {
        let pace = match self.scouts.checked_sub(1) {
            None => 0,
            Some(before) => *PACE.get(before as usize)?,
        };
        let is_due = !self.dies && self.since + more >= pace;
        is_due.then(|| (self.stage(), self.stage().max(FIRST_STAGE)))
    }
}

/// What a trial of foresight does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Looks so far ahead from there.
    Scout(Begin, Nanos),
    /// Fires into what is known to come from there, after so many trials that did.
    Fire(Begin, u64),
    /// There is nothing that is known to come.
    Blind,
}

/// Plans the trials of a round: from what was known before it, and what the round's earlier trials will do.
pub struct Outlook<'a> {
    known: &'a Known,
    guest: usize,
    has_scouted: bool,
    fires: BTreeMap<Begin, u64>,
}

impl<'a> Outlook<'a> {
    /// At the beginning of a round in this guest.
    pub fn new(known: &'a Known, guest: usize) -> Outlook<'a> {
        Outlook { known, guest, has_scouted: false, fires: BTreeMap::new() }
    }

    /// Where trials in this guest begin.
    fn grounds(&self) -> impl Iterator<Item = (&Begin, &Ground)> {
        self.known.grounds.iter().filter(|(begin, _)| begin.guest == self.guest)
    }

    /// What the round's next trial does: one of a round scouts, at the most. The last one looks on, if that is due, or the first
    /// where nothing is known yet: those before it are still about what the scout before it saw. What was opened for a rare
    /// stretch comes before that: looking on takes seconds, entering it milliseconds.
    pub fn plan(&mut self, is_last: bool) -> Next {
        if !self.has_scouted {
            if let Some(begin) = self.worthwhile() {
                self.has_scouted = true;
                return Next::Scout(begin, SPAN);
            }
            let is_new = !self.known.ahead.contains_key(&self.guest);
            let looks_on = (is_last || is_new) && !self.is_to_enter();
            if let Some((after, until)) = self.due().filter(|_| looks_on) {
                self.has_scouted = true;
                return Next::Scout(Begin { guest: self.guest, after }, until);
            }
        }
        // What is outstanding goes first: it promises the most.
        let next = self.fired().min_by_key(|&(n, begin)| {
            (!self.enters(n, begin), n.min(CAUGHT_UP), n, Reverse(begin))
        });
        let Some((turn, begin)) = next else { return Next::Blind };
        *self.fires.entry(begin).or_default() += 1;
        Next::Fire(begin, turn)
    }

    /// Where there is something to fire into, and how many trials did or will.
    fn fired(&self) -> impl Iterator<Item = (u64, Begin)> {
        let grounds = self.grounds().filter(|(_, ground)| !ground.near.is_empty());
        grounds.map(|(begin, ground)| {
            (ground.fired + self.fires.get(begin).copied().unwrap_or_default(), *begin)
        })
    }

    /// Whether a trial from there enters what is outstanding, after `fired` that did.
    fn enters(&self, fired: u64, begin: Begin) -> bool {
        fired < ENTRIES as u64 && outstanding(self.known, begin).is_some()
    }

    /// Whether what a ground was opened for was not entered yet.
    fn is_to_enter(&self) -> bool {
        self.fired().any(|(n, begin)| n == 0 && !is_stage(begin.after) && self.enters(n, begin))
    }

    /// Where a scout would look on now and how far, if one is needed.
    fn due(&self) -> Option<(Nanos, Nanos)> {
        let fires = self.fires.values().sum();
        self.known.ahead.get(&self.guest).map_or_else(|| Ahead::default().due(0), |a| a.due(fires))
    }

    /// Where to begin for the longest stretch to come: if it is far, longer than all of its kind that are near a stage, and could make an
    /// answer later than those that were found.
    fn worthwhile(&self) -> Option<Begin> {
        let usual = Usual::of(stages(self.known, self.guest).map(|(_, ground)| ground));
        let seen = |at: Nanos| {
            let within = |Nanos(begin)| (begin..begin + SPAN.0).contains(&at.0);
            self.grounds().any(|(begin, _)| within(begin.after))
        };
        // By when they come after the warm-up.
        let far = self.grounds().flat_map(|(begin, ground)| {
            ground.far.iter().map(|f| (Nanos(begin.after.0 + f.at_ns.0), f))
        });
        let later = |f: &Foreseen| f.length_insns > self.known.latest_insns(f.occurrence.kind);
        let worth = far.filter(|(at, f)| usual.times(f) > WORTH && later(f) && !seen(*at));
        let (at, _) = worth.max_by_key(|(at, f)| (usual.times(f), Reverse((*at, f.occurrence))))?;
        Some(Begin { guest: self.guest, after: Nanos(at.0 - LEAD.0) })
    }
}

/// Whether a guest that is let run on is saved there anyway, and a scout looks on from there.
pub fn is_stage(after: Nanos) -> bool {
    rig::stage_before(Nanos(after.0 + 1)) == Some(after)
}

/// The stages of a guest from which it was looked ahead, or triggered.
fn stages(known: &Known, guest: usize) -> impl Iterator<Item = (&Begin, &Ground)> {
    known.grounds.iter().filter(move |(b, _)| b.guest == guest && is_stage(b.after))
}

/// The longest of each kind that are near, somewhere.
struct Usual([(Stretch, Insns); Stretch::ALL.len()]);

impl Usual {
    fn of<'a>(grounds: impl Iterator<Item = &'a Ground>) -> Usual {
        let mut longest = Stretch::ALL.map(|kind| (kind, Insns(0)));
        for near in grounds.flat_map(|ground| &ground.near) {
            let own = longest.iter_mut().find(|(kind, _)| *kind == near.occurrence.kind);
            own.into_iter().for_each(|(_, length)| *length = near.length_insns.max(*length));
        }
        Usual(longest)
    }

    /// How many thousandths of these it is long; of one instruction, where there is none of its kind.
    fn times(&self, f: &Foreseen) -> u64 {
        let own = self.0.iter().find(|(kind, _)| *kind == f.occurrence.kind);
        f.length_insns.0 * 1000 / own.map_or(1, |(_, n)| n.0.max(1))
    }
}

/// What is near this ground and longest against all of its kind that are near other stages of its guest, if it is longer than
/// those.
pub fn outstanding(known: &Known, begin: Begin) -> Option<Foreseen> {
    let others = stages(known, begin.guest).filter(|(other, _)| **other != begin);
    let others = others.map(|(_, ground)| ground).filter(|ground| !ground.near.is_empty());
    let mut others = others.peekable();
    others.peek()?;
    let usual = Usual::of(others);
    let near = known.grounds.get(&begin)?.near.iter().filter(|f| usual.times(f) > WORTH);
    near.max_by_key(|f| (usual.times(f), Reverse((f.at_ns, f.occurrence)))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::Strategy;
    use sample::Occurrence;
    use std::collections::BTreeSet;

    fn stretch(kind: Stretch, length: u64, at_ms: u64) -> Foreseen {
        let occurrence = Occurrence { kind, key: 1, ordinal: at_ms as u32 };
        Foreseen { occurrence, length_insns: Insns(length), at_ns: Nanos::from_millis(at_ms) }
    }

    /// A guest in which something comes every 100 ms, longer than that after 5 s, and longest after 11 s.
    fn ahead(begin: Nanos, until: Nanos) -> Vec<Foreseen> {
        let rare = [(5_000, 20_000), (11_000, 90_000)];
        let usual = (1..600).map(|n| (100 * n, 9_000 + n * 37 % 100));
        let all = usual.chain(rare).map(|(ms, length)| stretch(Stretch::IrqsOff, length, ms));
        let visible = all.filter(|f| (begin.0..begin.0 + until.0).contains(&f.at_ns.0));
        visible.map(|f| Foreseen { at_ns: Nanos(f.at_ns.0 - begin.0), ..f }).collect()
    }

    /// A guest that is not the first.
    const GUEST: usize = 3;

    fn at(ms: u64) -> Begin {
        Begin { guest: GUEST, after: Nanos::from_millis(ms) }
    }

    fn tried(begin: Begin, looked: Option<Nanos>) -> Tried {
        Tried {
            snapshot: String::new(),
            way_ns: Nanos(0),
            losses: BTreeMap::new(),
            number: 0,
            strategy: Strategy::Foresight,
            begin,
            triggers: 0,
            virtual_ns: looked.unwrap_or(Nanos(1)),
            disturbances: Vec::new(),
            instants: Vec::new(),
            late: BTreeMap::new(),
            seen: BTreeSet::new(),
            fired: BTreeSet::new(),
            scouted: looked.map(|until| ahead(begin.after, until)),
            died: None,
        }
    }

    /// What foresight's trials do, `each` to a round.
    fn steps(each: usize, count: usize) -> Vec<Next> {
        let (mut known, mut steps) = (Known::default(), Vec::new());
        while steps.len() < count {
            let mut outlook = Outlook::new(&known, GUEST);
            let each = if steps.is_empty() { 1 } else { each };
            let round: Vec<Next> = (1..=each).map(|n| outlook.plan(n == each)).collect();
            for step in &round {
                known.take(&match step {
                    Next::Scout(begin, until) => tried(*begin, Some(*until)),
                    Next::Fire(begin, _) => tried(*begin, None),
                    Next::Blind => tried(at(0), None),
                });
            }
            steps.extend(round);
        }
        steps
    }

    #[test]
    fn each_scout_looks_on_from_where_the_last_ended_with_trials_that_fire_in_between() {
        let scouted = |each| {
            let steps = steps(each, 120);
            let scouts = steps.iter().enumerate().filter_map(|(n, step)| match step {
                Next::Scout(begin, until) if *until != SPAN => {
                    Some((n, begin.after.0 / FIRST_STAGE.0, until.0 / FIRST_STAGE.0))
                }
                _ => None,
            });
            scouts.collect::<Vec<_>>()
        };
        let one = scouted(1);
        assert_eq!(one[..5], [(0, 0, 1), (3, 1, 1), (6, 2, 2), (9, 4, 4), (12, 8, 8)]);
        assert_eq!(one.len(), 9, "{one:?}");
        assert_eq!(one[8].1 + one[8].2, 256, "51.2 s after the warm-up");
        let four = scouted(4);
        let numbers = four.iter().map(|(n, ..)| *n).collect::<Vec<_>>();
        assert_eq!(numbers[..5], [0, 4, 8, 12, 16], "one a round, but when a ground is opened");
        assert_eq!(four.len(), 9);
    }

    #[test]
    fn what_is_rare_and_long_gets_a_ground_shortly_before_it_and_trials_from_there() {
        let steps = steps(4, 60);
        let opened = steps.iter().filter_map(|step| match step {
            Next::Scout(begin, SPAN) if begin.is_later() => Some(*begin),
            _ => None,
        });
        let opened: Vec<Begin> = opened.collect();
        let before = |ms| Begin { after: Nanos(Nanos::from_millis(ms).0 - LEAD.0), ..at(0) };
        assert_eq!(opened, [before(5_000), before(11_000)]);
        for begin in opened {
            let fired = steps.iter().filter(|s| matches!(s, Next::Fire(from, _) if *from == begin));
            assert!(fired.count() >= 4, "from {begin:?}: {steps:?}");
        }
    }

    #[test]
    fn what_could_make_no_answer_later_than_was_found_gets_no_ground() {
        let late = |latency| crate::hunt::Late {
            latency_ns: Nanos(latency),
            latency_insns: Insns(latency),
            ..Default::default()
        };
        let mut known = Known::default();
        for (n, latency) in [5_000, 19_000, 21_000].into_iter().enumerate() {
            let late = BTreeMap::from([("task".into(), vec![late(latency)])]);
            known.take(&Tried { late, ..tried(at(n as u64), None) });
        }
        let far = [(9_500, 100), (9_500, 3_000), (20_000, 5_000)];
        let far = far.map(|(length, ms)| stretch(Stretch::PreemptOff, length, ms)).to_vec();
        let scouted = Tried { scouted: Some(far), ..tried(at(0), None) };
        known.take(&scouted);
        assert_eq!(Outlook::new(&known, GUEST).worthwhile(), None);
        known.finds.get_mut("task").expect("finds").clear();
        assert_eq!(Outlook::new(&known, GUEST).worthwhile(), Some(at(4_940)));
    }

    #[test]
    fn outstanding_is_what_is_longer_than_all_of_its_kind_near_the_others() {
        let mut known = Known::default();
        let near = |lengths: [u64; 2]| {
            let kinds = [Stretch::IrqsOff, Stretch::PreemptOff];
            let each = |n: usize| stretch(kinds[n], lengths[n], 60 + n as u64);
            Some(vec![each(0), each(1)])
        };
        known.take(&Tried { scouted: near([9_000, 9_000]), ..tried(at(0), None) });
        assert_eq!(outstanding(&known, at(0)), None, "there is no other");
        known.take(&Tried { scouted: near([9_100, 30_000]), ..tried(at(800), None) });
        known.take(&Tried { scouted: near([9_100, 20_000]), ..tried(at(940), None) });
        let longest = outstanding(&known, at(800)).expect("one is");
        assert_eq!(longest.occurrence.kind, Stretch::PreemptOff);
        assert_eq!(outstanding(&known, at(0)), None, "another stage has longer ones");
        assert_eq!(outstanding(&known, at(940)), None, "a stage has a longer one");
        // What other grounds were made for is no measure.
        known.take(&Tried { scouted: near([9_100, 90_000]), ..tried(at(1_000), None) });
        assert_eq!(outstanding(&known, at(800)), Some(longest));
    }

    #[test]
    fn nobody_looks_twice_alike_and_only_what_was_seen_is_fired_into() {
        let mut scouted = BTreeSet::new();
        let mut begins = BTreeSet::new();
        for step in steps(4, 200) {
            match step {
                Next::Scout(begin, until) => {
                    assert!(scouted.insert((begin, until)), "{begin:?}");
                    begins.insert(begin);
                }
                Next::Fire(begin, _) => assert!(begins.contains(&begin), "{begin:?}"),
                Next::Blind => panic!("something is known after the first round"),
            }
        }
    }

    #[test]
    fn what_a_scout_saw_near_where_it_began_is_fired_into_from_there_next() {
        let steps = steps(4, 24);
        let second = at(FIRST_STAGE.0 / 1_000_000);
        let scouted = steps.iter().position(|s| *s == Next::Scout(second, FIRST_STAGE));
        let scouted = scouted.expect("the second scout");
        assert_eq!(steps[scouted + 1], Next::Fire(second, 0));
    }

    #[test]
    fn nobody_looks_further_where_the_guest_dies_by_itself() {
        let mut known = Known::default();
        let died = crate::hunt::Died { text: "oops".into(), ..Default::default() };
        known.take(&Tried { died: Some(died), ..tried(at(0), Some(FIRST_STAGE)) });
        for _ in 0..20 {
            known.take(&tried(at(0), None));
            assert!(matches!(Outlook::new(&known, GUEST).plan(true), Next::Fire(..)));
        }
    }

    #[test]
    fn what_is_near_is_told_from_what_is_far_by_when_it_comes_after_where_the_scout_began() {
        let seen = [300, 800, 900, 1_500].map(|ms| stretch(Stretch::IrqsOff, 9_000, ms));
        let mut ground = Ground::default();
        ground.take(&Tried { scouted: Some(seen.to_vec()), ..tried(at(1_600), None) });
        assert_eq!((&ground.near[..], &ground.far[..]), (&seen[..2], &seen[2..]));
    }
}
