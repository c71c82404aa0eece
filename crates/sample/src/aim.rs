// SPDX-License-Identifier: GPL-2.0-or-later
//! Triggers that are not planned but aimed: what whoever asks for them tells the plugin, which decides (its `follow/aim.rs`).

use crate::{Insns, Nanos, Schedule};
use alloc::vec::Vec;
use core::fmt;

/// The index of the watch that there is not, in a record of [`Kind::Enter`](crate::Kind::Enter): a trigger was asked for
/// in a stretch whose opener is the stack.
pub const AIMED: u8 = u8::MAX;
/// A scout tells of stretches from this length on. Shorter ones make no answer late enough to be aimed at, and there are
/// tens of thousands of them in a second.
pub const SCOUTED_FROM: Insns = Insns(4_000);

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
    /// None: the long ones are told ([`Kind::Stretch`](crate::Kind::Stretch)), for a list.
    Scout,
}

/// One stretch, known before it opens from a run in which it was seen. By number and not by time: what triggers do to
/// a run moves what follows, but the kernel does the same things in the same order for longer than it does them at the same instants.
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

impl Occurrence {
    /// Size of the encoding in bytes.
    pub const BYTES: usize = 16;

    /// The encoding, little endian: `key:u64 ordinal:u32 kind:u8`, and three bytes that are 0.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[..8].copy_from_slice(&self.key.to_le_bytes());
        b[8..12].copy_from_slice(&self.ordinal.to_le_bytes());
        b[12] = self.kind as u8;
        b
    }

    /// What `b` says; `None` where it is no encoding.
    pub fn decode(b: &[u8; Self::BYTES]) -> Option<Occurrence> {
        let [key @ .., _, _, _, _, _, _, _, _] = *b;
        let [_, _, _, _, _, _, _, _, ordinal @ .., kind, 0, 0, 0] = *b else { return None };
        let kind = Stretch::from_bit(kind)?;
        Some(Occurrence {
            kind,
            key: u64::from_le_bytes(key),
            ordinal: u32::from_le_bytes(ordinal),
        })
    }
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

    /// The kind of this number.
    pub fn from_bit(bit: u8) -> Option<Stretch> {
        Stretch::ALL.into_iter().find(|kind| *kind as u8 == bit)
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
    fn an_occurrence_survives_its_encoding_and_other_bytes_are_none() {
        for kind in Stretch::ALL {
            let occurrence = Occurrence { kind, key: 0xfedc_ba98_7654_3210, ordinal: 0x89ab_cdef };
            let bytes = occurrence.encode();
            assert_eq!(Occurrence::decode(&bytes), Some(occurrence));
            for (at, wrong) in [(12, 0), (12, 3), (13, 1), (15, 9)] {
                let mut bytes = bytes;
                bytes[at] = wrong;
                assert_eq!(Occurrence::decode(&bytes), None, "{wrong} at {at}");
            }
        }
    }
}
