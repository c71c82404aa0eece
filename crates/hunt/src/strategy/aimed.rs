// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts that the strategies share that fire when a stretch opens. Also the length of a trial that is not about a
//! find.

use crate::dice::Dice;
use sample::{Aim, Nanos, Rule, Stretch, When};

/// The least distance of aimed triggers. Most answers have come by then. The latest answers that a hunt fired for were
/// 112 µs late for hard handlers, and on PREEMPT_RT 13 µs for tasks (docs/hunting.md, the table of random minutes).
pub const GAP: Nanos = Nanos::from_micros(300);
/// The length of the shortest trials. Others are longer by a power of two. Short trials are many, and long ones come to
/// what the load does later. So trials become longer: twice as long after this many of the strategy's trials, up to 0.8
/// … 6.4 s. Foresight is for what comes more rarely. Trials of at most 0.4 s never came to what a load does once in ten
/// seconds. The numbers are chosen. The shortest trial takes about as long as the first execution of its code, which is
/// translated then.
const LENGTH: Nanos = Nanos::from_millis(50);
const LENGTHS: u64 = 4;
const TRIALS_PER_DOUBLING: u64 = 16;
const DOUBLINGS_MAX: u64 = 4;

pub const IRQS: u8 = Stretch::IrqsOff as u8;
pub const PREEMPT: u8 = Stretch::PreemptOff as u8;
pub const KERNEL: u8 = Stretch::Unscheduled as u8;
pub const BH_HELD: u8 = Stretch::BhHeld as u8;

/// How often the length of a strategy's trials has been doubled after so many of them.
fn doublings(turns: u64) -> u64 {
    (turns / TRIALS_PER_DOUBLING).min(DOUBLINGS_MAX)
}

/// The length of a trial after so many of the strategy's, by the first of its random numbers. The first trial is none
/// of the longest: it comes while a scout looks ahead, and what the scout sees is worth more.
pub fn length(turns: u64, dice: &mut Dice) -> Nanos {
    let lengths = if turns == 0 { LENGTHS - 1 } else { LENGTHS };
    LENGTH << (dice.below(lengths) + doublings(turns))
}

/// About how long a trial after so many of the strategy's is.
pub fn usual(turns: u64) -> Nanos {
    (LENGTH << doublings(turns)) * ((1 << LENGTHS) - 1) / LENGTHS
}

/// Fires by this rule as stretches open. The kinds of the stretches are one of the sets in `kinds`.
pub fn aimed(turns: u64, mut dice: Dice, rule: Rule, kinds: &[u8]) -> When {
    let until = length(turns, &mut dice);
    let kinds = kinds[dice.below(kinds.len() as u64) as usize];
    let (gap, count) = (GAP, until / GAP);
    When::Aimed(Aim { rule, kinds, gap, count, until, seed: dice.next() })
}
