// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires so that the wake-up comes where the kernel does not schedule: preemption is off, or a call or a thread that is
//! not preempted has just begun, or a task holds a lock that bottom halves wait for.

use super::aimed::{BH_HELD, KERNEL, PREEMPT, aimed};
use super::{Strategy, Turn};
use crate::name::StrategyName;
use sample::{Rule, When};

pub struct StageAware;

impl Strategy for StageAware {
    fn name(&self) -> StrategyName {
        StrategyName::new(4, "stage_aware")
    }

    fn weight(&self) -> u64 {
        1
    }

    fn when(&self, turn: &Turn) -> When {
        aimed(turn.turns, turn.dice(), Rule::Longest, &[KERNEL, PREEMPT | KERNEL, KERNEL | BH_HELD])
    }
}
