// SPDX-License-Identifier: GPL-2.0-or-later
//! Where to trigger: as a stretch opens that is likely to be long.
//!
//! A stretch is known by what opened it (the instruction and its innermost callers), and expected to be as long as the
//! longest of its kind that was seen. After a trigger and the shortest distance to the next, only the longest expectation
//! of all is good enough; the longer nothing comes, the less is asked for. What was fired into often counts for less,
//! so that others get their turn, and what was never seen counts as much as the best. All of it is decided by what the
//! guest does and a seed: the same snapshot and aim give the same triggers.

use sample::{Aim, Nanos, Rule, Stretch};
use std::collections::HashMap;

/// A stretch that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Its kind.
    pub kind: Stretch,
    /// What stands for its opener.
    pub key: u64,
    /// Whether another stretch is open.
    pub nested: bool,
}

/// What is known of the stretches of one opener.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    longest: u64,
    closed: u64,
    fired: u64,
}

/// Decides at each opening.
#[derive(Debug)]
pub struct Aimer {
    aim: Aim,
    known: HashMap<(u8, u64), Known>,
    /// The longest stretch of all, in instructions.
    longest: u64,
    /// State of the random numbers.
    random: u64,
}

impl Aimer {
    /// Knows nothing yet.
    pub fn new(aim: Aim) -> Aimer {
        // A seed of 0 would stay 0.
        Aimer { aim, known: HashMap::new(), longest: 0, random: aim.seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// A stretch has closed after so many instructions.
    pub fn closed(&mut self, kind: Stretch, key: u64, length: u64) {
        let known = self.known.entry((kind as u8, key)).or_default();
        known.closed += 1;
        known.longest = known.longest.max(length);
        if self.aim.kinds & kind as u8 != 0 {
            self.longest = self.longest.max(length);
        }
    }

    /// Whether to trigger in a stretch that opens now, `waited` after a trigger became possible. If so it counts as
    /// fired into.
    pub fn takes(&mut self, opening: Opening, waited: Nanos) -> bool {
        let Aim { rule, kinds, gap, .. } = self.aim;
        if kinds & opening.kind as u8 == 0 || rule == Rule::Nested && !opening.nested {
            return false;
        }
        // What is asked for is halved with each quarter of the gap.
        let halvings = (4 * waited.0 / gap.0.max(1)).min(63);
        let known = *self.known.entry((opening.kind as u8, opening.key)).or_default();
        let is_good = match rule {
            Rule::Coverage => known.fired <= halvings / 4,
            Rule::Longest | Rule::Nested => {
                let expected = if known.closed == 0 { self.longest } else { known.longest };
                expected / (1 + known.fired / 4) >= self.longest >> halvings
            }
        };
        let takes = is_good && self.draw();
        if takes {
            self.known.entry((opening.kind as u8, opening.key)).or_default().fired += 1;
        }
        takes
    }

    /// Of four, three are true (xorshift64, Marsaglia 2003).
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

    fn opening(key: u64) -> Opening {
        Opening { kind: Stretch::IrqsOff, key, nested: false }
    }

    /// Whether any of a few tries is taken, so that no draw decides.
    fn ever(aimer: &mut Aimer, opening: Opening, waited: u64) -> bool {
        (0..20).any(|_| aimer.takes(opening, Nanos(waited)))
    }

    #[test]
    fn at_first_only_the_longest_is_good_enough_and_later_less_is() {
        let mut a = aimer(Rule::Longest);
        a.closed(Stretch::IrqsOff, 1, 100);
        a.closed(Stretch::IrqsOff, 2, 1600);
        assert!(!ever(&mut a, opening(1), 0));
        assert!(ever(&mut a, opening(2), 0));
        assert!(ever(&mut a, opening(1), 1000));
    }

    #[test]
    fn what_was_never_seen_is_as_good_as_the_best_and_what_was_fired_into_gets_less() {
        let mut a = aimer(Rule::Longest);
        a.closed(Stretch::IrqsOff, 2, 1600);
        assert!(ever(&mut a, opening(3), 0));
        let taken = (0..100).filter(|_| a.takes(opening(2), Nanos(0))).count();
        assert_eq!(taken, 4, "then it waits for its turn");
    }

    #[test]
    fn other_kinds_are_left_alone_and_nested_asks_for_another_stretch() {
        let mut a = aimer(Rule::Nested);
        assert!(!ever(&mut a, opening(1), 5000));
        assert!(ever(&mut a, Opening { nested: true, ..opening(1) }, 0));
        let kernel = Opening { kind: Stretch::Unscheduled, key: 1, nested: true };
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
            let mut a = Aimer::new(Aim { seed, ..aimer(Rule::Coverage).aim });
            (0..200).map(|key| a.takes(opening(key), Nanos(0))).collect::<Vec<_>>()
        };
        assert_eq!(decisions(1), decisions(1));
        assert_ne!(decisions(1), decisions(2));
    }
}
