// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires when a stretch opens inside another stretch.

use super::aimed::{IRQS, PREEMPT, aimed};
use super::{Strategy, Turn};
use crate::name::StrategyName;
use sample::{Rule, When};

pub struct WindowChain;

impl Strategy for WindowChain {
    fn name(&self) -> StrategyName {
        StrategyName::new(3, "window_chain")
    }

    fn weight(&self) -> u64 {
        4
    }

    fn when(&self, turn: &Turn) -> When {
        aimed(turn.turns, turn.dice(), Rule::Nested, &[IRQS, PREEMPT, IRQS | PREEMPT])
    }
}
