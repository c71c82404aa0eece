// SPDX-License-Identifier: GPL-2.0-or-later
//! What foresight does next from where trials begin: look further ahead, go to where something rare comes, or fire.
//!
//! What comes soon after the warm-up is fired into from there. A longer stretch that comes only after seconds is worth a
//! snapshot of its own, shortly before it: a *ground*, from which a trial takes milliseconds instead of seconds.

use super::finding::Known;
use super::foresight::Foreseen;
use super::grounds::Begin;
use sample::{Insns, Nanos, Stretch};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How far the first scout looks.
const FIRST: Nanos = Nanos::from_millis(800);
/// After each scout so many trials of foresight until the next, which looks twice as far: the last one 51.2 s.
const PACE: [u64; 6] = [3, 1, 1, 1, 24, 48];
/// What comes later than this is fired into from a ground of its own.
const NEAR: Nanos = Nanos::from_millis(1_600);
/// A ground begins so long before what it is for: what happens after a restore is not to the instruction what was foreseen.
const LEAD: Nanos = Nanos::from_millis(60);
/// So far is looked from there.
const SPAN: Nanos = Nanos::from_millis(250);
/// A stretch is worth a ground if it is so much longer than all that are near, in thousandths of these.
const WORTH: u64 = 1_050;
/// Trials in which a ground is caught up with those that are older.
const CAUGHT_UP: u64 = 16;

/// Where trials begin, and what scouts saw to come from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// What is near enough to be fired into.
    pub near: Vec<Foreseen>,
    /// Of these, the first that the last scout added.
    fresh: usize,
    /// What is not.
    far: Vec<Foreseen>,
    looked: Nanos,
    /// How often it was looked ahead from here.
    pub scouts: u32,
    /// Trials that fired since a scout added something.
    pub fired: u64,
    /// Trials of foresight in its guest since it was last looked ahead from here, where this is the warm-up's end.
    pub since_scout: u64,
    /// Whether a scout saw the guest die: there is nothing to see behind that.
    pub dies: bool,
}

impl Ground {
    /// Adds what a scout saw that looked until `until`: what lies beyond what the one before it had seen.
    pub fn take(&mut self, scouted: &[Foreseen], until: Nanos) {
        let beyond = scouted.iter().filter(|f| self.scouts == 0 || f.at_ns > self.looked);
        let (near, far): (Vec<_>, Vec<_>) = beyond.copied().partition(|f| f.at_ns <= NEAR);
        if !near.is_empty() {
            self.fresh = self.near.len();
            self.near.extend(near);
            self.fired = 0;
        }
        self.far.extend(far);
        self.looked = until;
        self.scouts += 1;
    }

    /// What is fired into now.
    pub fn fresh(&self) -> &[Foreseen] {
        &self.near[self.fresh..]
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
    opens: Option<Begin>,
    fires: BTreeMap<Begin, u64>,
}

impl<'a> Outlook<'a> {
    /// At the beginning of a round in this guest.
    pub fn new(known: &'a Known, guest: usize) -> Outlook<'a> {
        Outlook { known, guest, opens: None, fires: BTreeMap::new() }
    }

    /// Where trials in this guest begin.
    fn grounds(&self) -> impl Iterator<Item = (&Begin, &Ground)> {
        self.known.grounds.iter().filter(|(begin, _)| begin.guest == self.guest)
    }

    /// What the round's next trial does. The last one scouts, if that is due: those before it are still about what the scout
    /// before it saw.
    pub fn plan(&mut self, is_last: bool) -> Next {
        if let Some(until) = self.scout().filter(|_| is_last) {
            return Next::Scout(Begin::first(self.guest), until);
        }
        if let Some(begin) = self.worthwhile().filter(|_| self.opens.is_none()) {
            self.opens = Some(begin);
            return Next::Scout(begin, SPAN);
        }
        let fired = |begin: &Begin, ground: &Ground| {
            ground.fired + self.fires.get(begin).copied().unwrap_or_default()
        };
        let grounds = self.grounds().filter(|(_, ground)| !ground.near.is_empty());
        let fired = grounds.map(|(begin, ground)| (fired(begin, ground), *begin));
        let next = fired.min_by_key(|&(n, begin)| (n.min(CAUGHT_UP), n, Reverse(begin)));
        let Some((turn, begin)) = next else { return Next::Blind };
        *self.fires.entry(begin).or_default() += 1;
        Next::Fire(begin, turn)
    }

    /// How far a scout would look now, if one is needed.
    fn scout(&self) -> Option<Nanos> {
        let first = self.known.grounds.get(&Begin::first(self.guest));
        let Some(ground) = first else { return Some(FIRST) };
        if ground.dies {
            return None;
        }
        let until = Nanos(FIRST.0 << ground.scouts);
        let Some(before) = (ground.scouts as usize).checked_sub(1) else { return Some(until) };
        let since = ground.since_scout + self.fires.values().sum::<u64>();
        (since >= *PACE.get(before)?).then_some(until)
    }

    /// Where to begin for the longest stretch to come, if it is far and longer than all of its kind that were near.
    fn worthwhile(&self) -> Option<Begin> {
        let longest = |kind: Stretch| {
            let near = self.grounds().flat_map(|(_, ground)| &ground.near);
            let own = near.filter(|f| f.occurrence.kind == kind);
            own.map(|f| f.length_insns).max().unwrap_or(Insns(1))
        };
        let longest: Vec<(Stretch, Insns)> = Stretch::ALL.map(|kind| (kind, longest(kind))).into();
        let near = |f: &Foreseen| longest.iter().find(|(kind, _)| *kind == f.occurrence.kind);
        let times = |f: &Foreseen| near(f).map_or(0, |(_, n)| f.length_insns.0 * 1000 / n.0.max(1));
        let seen = |f: &&Foreseen| {
            let within = |Nanos(begin)| (begin..begin + SPAN.0).contains(&f.at_ns.0);
            self.grounds().any(|(begin, _)| within(begin.after))
        };
        let far = &self.known.grounds.get(&Begin::first(self.guest))?.far;
        let worth = far.iter().filter(|f| times(f) > WORTH && !seen(f));
        let best = worth.max_by_key(|f| (times(f), Reverse((f.at_ns, f.occurrence))))?;
        Some(Begin { guest: self.guest, after: Nanos(best.at_ns.0 - LEAD.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::Strategy;
    use crate::hunt::finding::Tried;
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
    fn scouts_look_twice_as_far_each_time_with_trials_that_fire_in_between() {
        let scouted = |each| {
            let steps = steps(each, 120);
            let scouts = steps.iter().enumerate().filter_map(|(n, step)| match step {
                Next::Scout(begin, until) if !begin.is_later() => Some((n, until.0 / FIRST.0)),
                _ => None,
            });
            scouts.collect::<Vec<_>>()
        };
        let one = scouted(1);
        assert_eq!(one[..5], [(0, 1), (4, 2), (6, 4), (8, 8), (10, 16)]);
        assert_eq!(one.len(), 7, "the last one looks 51.2 s ahead: {one:?}");
        let four = scouted(4);
        assert_eq!(four[..5], [(3, 1), (7, 2), (11, 4), (15, 8), (19, 16)], "one a round");
        assert_eq!(four.len(), 7);
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
                Next::Blind => {
                    assert!(scouted.is_empty(), "only in the first round is nothing known")
                }
            }
        }
    }

    #[test]
    fn what_a_scout_adds_is_fired_into_from_the_first_on() {
        let steps = steps(4, 24);
        let scouts = |begin: Begin| {
            let is = move |s: &Next| matches!(s, Next::Scout(from, _) if *from == begin);
            steps.iter().position(is).expect("it was scouted")
        };
        let base = |(n, step): (usize, &Next)| match step {
            Next::Fire(begin, turn) if !begin.is_later() => Some((n, *turn)),
            _ => None,
        };
        let fired: Vec<(usize, u64)> = steps.iter().enumerate().filter_map(base).collect();
        let after = fired.iter().find(|(n, _)| *n > scouts(at(0))).expect("it fired");
        assert_eq!(after.1, 0);
        // The second scout sees more that is near.
        let second = steps.iter().rposition(|s| *s == Next::Scout(at(0), Nanos(FIRST.0 * 2)));
        let after = fired.iter().find(|(n, _)| Some(*n) > second).expect("it fired");
        assert_eq!(after.1, 0);
    }

    #[test]
    fn nobody_looks_further_where_the_guest_dies_by_itself() {
        let mut known = Known::default();
        let died = crate::hunt::Died { text: "oops".into(), ..Default::default() };
        known.take(&Tried { died: Some(died), ..tried(at(0), Some(FIRST)) });
        for _ in 0..20 {
            known.take(&tried(at(0), None));
            assert!(matches!(Outlook::new(&known, GUEST).plan(true), Next::Fire(..)));
        }
    }

    #[test]
    fn a_scout_that_looks_further_adds_what_lies_beyond() {
        let mut ground = Ground::default();
        let [a, b, c] = [300, 900, 3_000].map(|ms| stretch(Stretch::IrqsOff, 9_000, ms));
        ground.take(&[a], Nanos::from_millis(800));
        ground.fired = 3;
        ground.take(&[a, b], Nanos::from_millis(1_600));
        assert_eq!((ground.fresh(), ground.fired), (&[b][..], 0));
        ground.take(&[a, b, c], Nanos::from_millis(3_200));
        ground.fired = 2;
        assert_eq!((ground.fresh(), &ground.far[..]), (&[b][..], &[c][..]));
    }
}
