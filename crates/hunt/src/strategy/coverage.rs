// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires when a stretch opens in which interrupts or preemption are off. The openers of stretches take turns.

use super::aimed::{IRQS, PREEMPT, aimed};
use super::{Strategy, Turn};
use crate::name::StrategyName;
use sample::{Rule, When};

pub struct Coverage;

impl Strategy for Coverage {
    fn name(&self) -> StrategyName {
        StrategyName::new(1, "coverage")
    }

    fn weight(&self) -> u64 {
        1
    }

    fn when(&self, turn: &Turn) -> When {
        aimed(turn.turns, turn.dice(), Rule::Coverage, &[IRQS | PREEMPT])
    }
}
