// SPDX-License-Identifier: GPL-2.0-or-later
//! The baseline: fires at any time, in the way of somebody who waits for bad luck.

use super::{Strategy, Turn, aimed};
use crate::begin::Begin;
use crate::name::StrategyName;
use sample::{Nanos, Schedule, When};

/// The mean distance of triggers, which is that of cyclictest (its option `-i`, 1,000 µs by default).
const PERIOD: Nanos = Nanos::from_millis(1);

pub struct Random;

impl Strategy for Random {
    fn name(&self) -> StrategyName {
        StrategyName::new(0, "random")
    }

    fn weight(&self) -> u64 {
        1
    }

    fn is_baseline(&self) -> bool {
        true
    }

    /// Luck does not choose the place.
    fn begin(&self, turn: &Turn) -> Begin {
        Begin::first(turn.guest)
    }

    fn when(&self, turn: &Turn) -> When {
        let mut dice = turn.dice();
        let until = aimed::length(turn.turns, &mut dice);
        When::Planned(Schedule::Periodic {
            phase: PERIOD,
            period: PERIOD,
            jitter: PERIOD - Nanos(1),
            seed: dice.next(),
            count: until / PERIOD,
        })
    }
}
