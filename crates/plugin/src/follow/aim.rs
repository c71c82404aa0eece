// SPDX-License-Identifier: GPL-2.0-or-later
//! Decides where to trigger: as a stretch opens that is likely to be long, or that is listed because it was long in an
//! earlier run of the same snapshot.
//!
//! A stretch is known by its opener: the instruction and its innermost callers. It is expected to be as long as the
//! longest stretch of its opener that was seen. When the shortest distance to the last trigger has just passed, only
//! the longest expectation of all is good enough. As time passes without a trigger, shorter ones are good enough, too.
//! An opener that was fired into often counts for less than others, so that these get their turn. An opener that was
//! never seen counts as much as the best.
//!
//! Only the guest's behaviour and a seed decide: the same snapshot and aim give the same triggers.

use sample::{Aim, Nanos, Occurrence, Rule, SCOUTED_FROM, Stretch};
use std::collections::{HashMap, HashSet};

/// A stretch that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The stretch and its number among those of the same opener.
    pub occurrence: Occurrence,
    /// Whether another stretch is open.
    pub nested: bool,
}

/// The knowledge about the stretches of one opener.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    longest: u64,
    opened: u32,
    closed: u64,
    fired: u64,
}

/// The aim of an aimer that only counts and learns.
fn at_nothing() -> Aim {
    let (gap, count, until) = (Nanos(0), 0, Nanos(0));
    Aim { rule: Rule::Listed(Vec::new()), kinds: 0, gap, count, until, seed: 0 }
}

/// Decides at each opening of a stretch whether to trigger.
#[derive(Debug)]
pub struct Aimer {
    aim: Aim,
    /// The stretches that the aim lists.
    listed: HashSet<Occurrence>,
    known: HashMap<(u8, u64), Known>,
    /// The length of the longest stretch of all, in instructions.
    longest: u64,
    /// The state of the random numbers.
    random: u64,
}

impl Aimer {
    /// An aimer that knows nothing yet.
    pub fn new(aim: Aim) -> Aimer {
        let listed = match &aim.rule {
            Rule::Listed(list) => list.iter().copied().collect(),
            _ => HashSet::new(),
        };
        // A seed of 0 would stay 0.
        let random = aim.seed ^ 0x9e37_79b9_7f4a_7c15;
        Aimer { aim, listed, known: HashMap::new(), longest: 0, random }
    }

    /// An aimer that only counts and learns, so that it can be [aimed](Aimer::aim_at) later.
    pub fn counting() -> Aimer {
        Aimer::new(at_nothing())
    }

    /// Gives it another aim, or none. It is then as if it had had this aim from the beginning on, and had taken
    /// nothing.
    pub fn aim_at(&mut self, aim: Option<Aim>) {
        let aim = aim.unwrap_or_else(at_nothing);
        let known = std::mem::take(&mut self.known);
        let of_kinds = known.iter().filter(|((kind, _), _)| aim.kinds & kind != 0);
        let longest = of_kinds.map(|(_, known)| known.longest).max().unwrap_or_default();
        *self = Aimer { known, longest, ..Aimer::new(aim) };
    }

    /// Counts a stretch that opens. The result tells this stretch from all others.
    pub fn opened(&mut self, kind: Stretch, key: u64) -> Occurrence {
        let known = self.known.entry((kind as u8, key)).or_default();
        let ordinal = known.opened;
        known.opened += 1;
        Occurrence { kind, key, ordinal }
    }

    /// Learns that a stretch has closed after `length` instructions. Returns whether the stretch is to be reported.
    pub fn closed(&mut self, Occurrence { kind, key, .. }: Occurrence, length: u64) -> bool {
        let known = self.known.entry((kind as u8, key)).or_default();
        known.closed += 1;
        known.longest = known.longest.max(length);
        if self.aim.kinds & kind as u8 != 0 {
            self.longest = self.longest.max(length);
        }
        self.aim.rule == Rule::Scout && length >= SCOUTED_FROM.0
    }

    /// Whether to trigger in a stretch that opens now, `waited` after a trigger became possible. A trigger counts for
    /// the stretch's opener.
    pub fn takes(&mut self, opening: Opening, waited: Nanos) -> bool {
        let Occurrence { kind, key, .. } = opening.occurrence;
        let key = (kind as u8, key);
        if self.aim.kinds & kind as u8 == 0 {
            return false;
        }
        // The expectation that is asked for is halved with each quarter of the gap.
        let halvings = (waited * 4 / self.aim.gap.max(Nanos(1))).min(63);
        let known = self.known.get(&key).copied().unwrap_or_default();
        let is_long = || {
            let expected = if known.closed == 0 { self.longest } else { known.longest };
            expected / (1 + known.fired / 4) >= self.longest >> halvings
        };
        let is_good = match &self.aim.rule {
            Rule::Scout => false,
            Rule::Listed(_) => return self.listed.contains(&opening.occurrence),
            Rule::Coverage => known.fired <= halvings / 4,
            Rule::Longest => is_long(),
            Rule::Nested => opening.nested && is_long(),
        };
        let takes = is_good && self.draw();
        if takes {
            self.known.entry(key).or_default().fired += 1;
        }
        takes
    }

    /// Three draws of four are true (xorshift64, Marsaglia 2003).
    fn draw(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 62 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aimer(rule: Rule) -> Aimer {
        let gap = Nanos(1000);
        Aimer::new(Aim { rule, kinds: 3, gap, count: 9, until: Nanos(1 << 40), seed: 7 })
    }

    fn occurrence(key: u64) -> Occurrence {
        Occurrence { kind: Stretch::IrqsOff, key, ordinal: 0 }
    }

    fn opening(key: u64) -> Opening {
        Opening { occurrence: occurrence(key), nested: false }
    }

    /// Whether the aimer takes any of a few tries. So no single draw decides.
    fn ever(aimer: &mut Aimer, opening: Opening, waited: u64) -> bool {
        (0..20).any(|_| aimer.takes(opening, Nanos(waited)))
    }

    #[test]
    fn at_first_only_the_longest_is_good_enough_and_later_less_is() {
        let mut a = aimer(Rule::Longest);
        a.closed(occurrence(1), 100);
        a.closed(occurrence(2), 1600);
        assert!(!ever(&mut a, opening(1), 0));
        assert!(ever(&mut a, opening(2), 0));
        assert!(ever(&mut a, opening(1), 1000));
    }

    #[test]
    fn what_was_never_seen_is_as_good_as_the_best_and_what_was_fired_into_gets_less() {
        let mut a = aimer(Rule::Longest);
        a.closed(occurrence(2), 1600);
        assert!(ever(&mut a, opening(3), 0));
        let taken = (0..100).filter(|_| a.takes(opening(2), Nanos(0))).count();
        assert_eq!(taken, 4, "then it waits for its turn");
    }

    #[test]
    fn other_kinds_are_left_alone_and_nested_asks_for_another_stretch() {
        let mut a = aimer(Rule::Nested);
        assert!(!ever(&mut a, opening(1), 5000));
        assert!(ever(&mut a, Opening { nested: true, ..opening(1) }, 0));
        let kernel = Occurrence { kind: Stretch::Unscheduled, ..occurrence(1) };
        let kernel = Opening { occurrence: kernel, nested: true };
        assert!(!ever(&mut a, kernel, 5000));
    }

    #[test]
    fn coverage_takes_each_once_before_any_again() {
        let mut a = aimer(Rule::Coverage);
        for key in 0..50 {
            assert!(ever(&mut a, opening(key), 0));
            assert!(!ever(&mut a, opening(key), 0));
        }
        assert!(ever(&mut a, opening(3), 1000));
    }

    #[test]
    fn the_same_seed_decides_alike() {
        let decisions = |seed| {
            let mut a = Aimer::new(Aim { seed, ..aimer(Rule::Coverage).aim.clone() });
            (0..200).map(|key| a.takes(opening(key), Nanos(0))).collect::<Vec<_>>()
        };
        assert_eq!(decisions(1), decisions(1));
        assert_ne!(decisions(1), decisions(2));
    }

    #[test]
    fn what_is_listed_is_taken_and_nothing_else_however_long_one_waits() {
        let listed = Occurrence { ordinal: 2, ..occurrence(7) };
        let mut a = aimer(Rule::Listed(vec![listed]));
        let mut taken = |kind, key| {
            let occurrence = a.opened(kind, key);
            a.takes(Opening { occurrence, nested: false }, Nanos(1 << 30))
        };
        assert!((0..3).all(|_| !taken(Stretch::IrqsOff, 8)), "another opener");
        assert!((0..3).all(|_| !taken(Stretch::PreemptOff, 7)), "another kind");
        let of_seven: Vec<bool> = (0..5).map(|_| taken(Stretch::IrqsOff, 7)).collect();
        assert_eq!(of_seven, [false, false, true, false, false]);
    }

    #[test]
    fn what_is_aimed_later_is_as_if_it_had_been_aimed_from_the_beginning() {
        let lived = |mut a: Aimer| {
            for n in 0..200u64 {
                let kind = if n % 3 == 0 { Stretch::IrqsOff } else { Stretch::Unscheduled };
                let occurrence = a.opened(kind, n % 7);
                a.closed(occurrence, n * 37 % 1000);
            }
            a
        };
        let aim = aimer(Rule::Longest).aim.clone();
        let mut first = lived(Aimer::new(aim.clone()));
        let mut later = lived(Aimer::counting());
        later.aim_at(Some(aim));
        let mut taken = 0;
        for n in 0..500u64 {
            let (kind, key) = (Stretch::IrqsOff, n % 9);
            let occurrence = first.opened(kind, key);
            assert_eq!(occurrence, later.opened(kind, key));
            let opening = Opening { occurrence, nested: false };
            let takes = first.takes(opening, Nanos(n % 1000));
            assert_eq!(takes, later.takes(opening, Nanos(n % 1000)), "{n}");
            taken += u64::from(takes);
        }
        assert!((1..500).contains(&taken), "{taken}");
    }

    #[test]
    fn one_that_counts_takes_nothing_and_tells_nothing() {
        let mut scout = aimer(Rule::Scout);
        scout.aim_at(None);
        for mut counting in [Aimer::counting(), scout] {
            assert!(!counting.closed(occurrence(1), 1 << 30));
            assert!(!ever(&mut counting, opening(1), 1 << 30));
        }
    }

    #[test]
    fn a_scout_tells_what_is_long_and_takes_nothing() {
        let mut a = aimer(Rule::Scout);
        assert!(!a.closed(occurrence(1), SCOUTED_FROM.0 - 1));
        assert!(a.closed(occurrence(1), SCOUTED_FROM.0));
        assert!(!ever(&mut a, opening(1), 1 << 30));
        assert!(!aimer(Rule::Longest).closed(occurrence(1), 1 << 30), "nobody asked");
    }
}
