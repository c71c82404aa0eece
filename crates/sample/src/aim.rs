// SPDX-License-Identifier: GPL-2.0-or-later
//! Triggers that are not planned but aimed: what whoever asks for them tells the plugin, which decides (its `follow/aim.rs`).

use crate::{Nanos, Schedule};
use core::fmt;

/// What decides when to trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A schedule.
    Planned(Schedule),
    /// What the follower sees.
    Aimed(Aim),
}

impl When {
    /// How many triggers there will be, at the most.
    pub fn count(&self) -> u64 {
        match self {
            When::Planned(schedule) => schedule.count(),
            When::Aimed(aim) => aim.count,
        }
    }

    /// No two triggers, nor the beginning and the first, are further apart than this.
    pub fn longest_gap(&self) -> Nanos {
        match self {
            When::Planned(schedule) => schedule.longest_gap(),
            When::Aimed(aim) => aim.until,
        }
    }
}

/// Which stretches are fired into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each in turn, however long: as many different ones as there are.
    Coverage,
    /// Those that are expected to be long.
    Longest,
    /// As `Longest`, but only those that open inside another stretch.
    Nested,
}

/// Kinds of stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stretch {
    /// Interrupts are masked.
    IrqsOff = 1,
    /// The preemption count is not 0.
    PreemptOff = 2,
    /// The kernel runs, from one place where it would schedule to the next.
    Unscheduled = 4,
}

/// When to trigger, by what a follower sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A rule that is none.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownRule;

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is none of coverage, longest, nested")
    }
}

impl core::error::Error for UnknownRule {}

impl Rule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Coverage => "coverage",
            Rule::Longest => "longest",
            Rule::Nested => "nested",
        }
    }
}

impl core::str::FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Rule, UnknownRule> {
        let rules = [Rule::Coverage, Rule::Longest, Rule::Nested];
        rules.into_iter().find(|rule| rule.name() == name).ok_or(UnknownRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_known_by_its_name_and_no_other() {
        for rule in [Rule::Coverage, Rule::Longest, Rule::Nested] {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert_eq!("widest".parse::<Rule>(), Err(UnknownRule));
    }
}
