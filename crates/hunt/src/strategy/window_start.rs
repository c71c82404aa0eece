// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires when a stretch opens that is likely to be long: as long as the longest stretch of its opener so far.

use super::aimed::{IRQS, PREEMPT, aimed};
use super::{Strategy, Turn};
use crate::name::StrategyName;
use sample::{Rule, When};

pub struct WindowStart;

impl Strategy for WindowStart {
    fn name(&self) -> StrategyName {
        StrategyName::new(2, "window_start")
    }

    fn weight(&self) -> u64 {
        3
    }

    fn when(&self, turn: &Turn) -> When {
        aimed(turn.turns, turn.dice(), Rule::Longest, &[IRQS, PREEMPT, IRQS | PREEMPT])
    }
}
