// SPDX-License-Identifier: GPL-2.0-or-later
//! What the strategies have in common that fire when a stretch opens, and the length of a trial that is not about a
//! find.

use crate::dice::Dice;
use sample::{Aim, Nanos, Rule, Stretch, When};

/// Aimed triggers are no closer than this: most answers have come by then. The latest that a hunt fired for were 112 µs
/// late for hard handlers, and on PREEMPT_RT 13 µs for tasks (docs/hunting.md, the table of random minutes).
pub const GAP: Nanos = Nanos::from_micros(300);
/// Trials are this long, or a power of two times that: short ones are many, and long ones come to what the load does
/// later. So they become longer as a hunt goes on: twice as long after so many trials, up to 0.8 … 6.4 s. What comes
/// more rarely is for foresight. Trials of 0.4 s at most never came to what a load does once in ten seconds; the
/// numbers are chosen, the shortest so that it takes as long as restoring its guest.
const LENGTH: Nanos = Nanos::from_millis(50);
const LENGTHS: u64 = 4;
const TRIALS_PER_DOUBLING: u64 = 16;
const DOUBLINGS_MAX: u64 = 4;

pub const IRQS: u8 = Stretch::IrqsOff as u8;
pub const PREEMPT: u8 = Stretch::PreemptOff as u8;
pub const KERNEL: u8 = Stretch::Unscheduled as u8;
pub const BH_HELD: u8 = Stretch::BhHeld as u8;

/// How often the lengths of trials were doubled until this one.
fn doublings(number: u64) -> u64 {
    (number / TRIALS_PER_DOUBLING).min(DOUBLINGS_MAX)
}

/// How long a trial is: the first of its random numbers says so.
pub fn length(number: u64, dice: &mut Dice) -> Nanos {
    LENGTH << (dice.below(LENGTHS) + doublings(number))
}

/// About how long such a trial is.
pub fn usual(number: u64) -> Nanos {
    (LENGTH << doublings(number)) * ((1 << LENGTHS) - 1) / LENGTHS
}

/// Fires by this rule as stretches of some kinds open, which are one of these sets.
pub fn aimed(number: u64, mut dice: Dice, rule: Rule, kinds: &[u8]) -> When {
    let until = length(number, &mut dice);
    let kinds = kinds[dice.below(kinds.len() as u64) as usize];
    let (gap, count) = (GAP, until / GAP);
    When::Aimed(Aim { rule, kinds, gap, count, until, seed: dice.next() })
}
