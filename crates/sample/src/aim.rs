// SPDX-License-Identifier: GPL-2.0-or-later
//! Aimed triggers, which have no planned instants. Whoever asks for them tells the plugin a rule, and the plugin
//! decides when to fire (its `follow/aim.rs`).

use crate::{Insns, Nanos, Schedule};
use alloc::vec::Vec;
use core::fmt;

/// A scout tells of stretches from this length on. Shorter ones make no answer late enough to be aimed at, and there
/// are tens of thousands of them in a second.
pub const SCOUTED_FROM: Insns = Insns(4_000);

/// What decides when to trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A schedule.
    Planned(Schedule),
    /// What the follower sees.
    Aimed(Aim),
    /// Whoever measures, while the guest runs.
    Commanded,
}

impl When {
    /// How many triggers there will be, at the most; 2⁶⁴−1 where nobody knows.
    pub fn count(&self) -> u64 {
        match self {
            When::Planned(schedule) => schedule.count(),
            When::Aimed(aim) => aim.count,
            When::Commanded => u64::MAX,
        }
    }

    /// No two triggers, nor the beginning and the first, are further apart than this.
    pub fn longest_gap(&self) -> Nanos {
        match self {
            When::Planned(schedule) => schedule.longest_gap(),
            When::Aimed(aim) => aim.until,
            When::Commanded => Nanos(u64::MAX),
        }
    }
}

/// Which stretches are fired into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each in turn, however long: as many different ones as there are.
    Coverage,
    /// Those that are expected to be long.
    Longest,
    /// As `Longest`, but only those that open inside another stretch.
    Nested,
    /// These.
    Listed(Vec<Occurrence>),
    /// None: the long ones are told, for a list.
    Scout,
}

/// One stretch, known before it opens from a run in which it was seen. By number and not by time: what triggers do to
/// a run moves what follows, but the kernel does the same things in the same order for longer than it does them at the
/// same instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Occurrence {
    /// Its kind.
    pub kind: Stretch,
    /// What stands for its opener; means something in runs of one snapshot only.
    pub key: u64,
    /// How many of this kind and opener had opened before since measuring began.
    pub ordinal: u32,
}

/// Kinds of stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[repr(u8)]
pub enum Stretch {
    /// Interrupts are masked.
    IrqsOff = 1,
    /// The preemption count is not 0.
    PreemptOff = 2,
    /// The kernel runs, from one place where it would schedule to the next.
    Unscheduled = 4,
    /// PREEMPT_RT: bottom halves are disabled, which is a lock there; who holds it can be preempted.
    BhHeld = 8,
}

impl Stretch {
    /// All of them.
    pub const ALL: [Stretch; 4] =
        [Stretch::IrqsOff, Stretch::PreemptOff, Stretch::Unscheduled, Stretch::BhHeld];

    /// All of them as a sum ([`Aim::kinds`]).
    pub fn every() -> u8 {
        Stretch::ALL.into_iter().map(|kind| kind as u8).sum()
    }

    /// The kind of this number.
    pub fn from_bit(bit: u8) -> Option<Stretch> {
        Stretch::ALL.into_iter().find(|kind| *kind as u8 == bit)
    }
}

/// A set of kinds of stretches, as the sum of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretches(u8);

impl Stretches {
    /// The kinds whose numbers are the bits of `mask`.
    pub const fn from_mask(mask: u8) -> Stretches {
        Stretches(mask)
    }

    /// The sum of their numbers.
    pub const fn mask(self) -> u8 {
        self.0
    }

    /// Whether `kind` is among them.
    pub const fn contains(self, kind: Stretch) -> bool {
        self.0 & kind as u8 != 0
    }
}

impl FromIterator<Stretch> for Stretches {
    fn from_iter<I: IntoIterator<Item = Stretch>>(kinds: I) -> Self {
        Stretches(kinds.into_iter().fold(0, |mask, kind| mask | kind as u8))
    }
}

/// When to trigger, by what a follower sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// See [`Rule`].
    pub rule: Rule,
    /// Kinds of stretches, as a sum of [`Stretch`].
    pub kinds: u8,
    /// The shortest distance of two triggers.
    pub gap: Nanos,
    /// How many triggers at the most.
    pub count: u64,
    /// No trigger later than this after measuring began.
    pub until: Nanos,
    /// Decides which of the good openings are passed over.
    pub seed: u64,
}

impl Aim {
    /// The aim of a scout that looks at stretches of every kind until this time after measuring began.
    pub fn scout(until: Nanos) -> Aim {
        let kinds = Stretch::every();
        Aim { rule: Rule::Scout, kinds, gap: Nanos(0), count: 1, until, seed: 0 }
    }
}

/// A rule that is none, or that needs more than its name.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownRule;

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is none of coverage, longest, nested, listed, scout")
    }
}

impl core::error::Error for UnknownRule {}

impl Rule {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Coverage => "coverage",
            Rule::Longest => "longest",
            Rule::Nested => "nested",
            Rule::Listed(_) => "listed",
            Rule::Scout => "scout",
        }
    }
}

impl core::str::FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Rule, UnknownRule> {
        let rules = [Rule::Coverage, Rule::Longest, Rule::Nested, Rule::Scout];
        rules.into_iter().find(|rule| rule.name() == name).ok_or(UnknownRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_known_by_its_name_and_no_other() {
        for rule in [Rule::Coverage, Rule::Longest, Rule::Nested, Rule::Scout] {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        for none in ["widest", "listed"] {
            assert_eq!(none.parse::<Rule>(), Err(UnknownRule), "{none}");
        }
    }

    #[test]
    fn a_set_of_kinds_has_those_that_were_put_into_it() {
        let kinds: Stretches = [Stretch::IrqsOff, Stretch::Unscheduled].into_iter().collect();
        assert_eq!(kinds.mask(), 5);
        assert!(kinds.contains(Stretch::Unscheduled) && !kinds.contains(Stretch::PreemptOff));
        assert_eq!(Stretches::from_mask(5), kinds);
    }
}
