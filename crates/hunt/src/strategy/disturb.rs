// SPDX-License-Identifier: GPL-2.0-or-later
//! Repeats the best find with another device's interrupt: shortly before the find's last trigger, or before the answer
//! to it. Where there is no find yet, this strategy does the same as `window_start`.

use super::neighbour::{Neighbour, last};
use super::window_start::WindowStart;
use super::{Strategy, Turn};
use crate::begin::Begin;
use crate::dice::Dice;
use crate::name::StrategyName;
use sample::{Disturbance, Nanos, Schedule, When};

/// A disturbance comes up to this long before the last trigger, and at least so long: one that is close is still being
/// served. The least is what a hard handler takes, 291 instructions (docs/hunting.md, what comes together); the most is
/// chosen.
const FROM: Nanos = Nanos(300);
const TO: Nanos = Nanos::from_micros(60);

pub struct Disturb;

impl Strategy for Disturb {
    fn name(&self) -> StrategyName {
        StrategyName::new(7, "disturb")
    }

    fn weight(&self) -> u64 {
        1
    }

    fn begins_from_find(&self) -> bool {
        true
    }

    fn disturbs(&self) -> bool {
        true
    }

    fn usual(&self, turn: &Turn) -> Nanos {
        Neighbour.usual(turn)
    }

    fn begin(&self, turn: &Turn) -> Begin {
        Neighbour.begin(turn)
    }

    fn when(&self, turn: &Turn) -> When {
        let explicit = |instants| When::Planned(Schedule::Explicit(instants));
        turn.best.map_or_else(|| WindowStart.when(turn), |best| explicit(best.triggers()))
    }

    /// Once, since a storm makes any answer as late as one likes.
    fn disturbances(&self, turn: &Turn) -> Vec<Disturbance> {
        let Some(best) = turn.best.filter(|best| !best.triggers().is_empty()) else {
            return Vec::new();
        };
        let last = last(best);
        vec![disturbing(last, last + best.latency_ns, &mut turn.dice())]
    }
}

/// A disturbance, without timers or with some, shortly before the last trigger, which moves all that comes after it; or
/// between that trigger and its answer, which leaves what the trigger met as it was and adds to it.
fn disturbing(last: Nanos, answered: Nanos, dice: &mut Dice) -> Disturbance {
    let timers = match dice.below(2) {
        0 => 0,
        _ => 1 + dice.below(Disturbance::TIMERS_MAX.into()) as u8,
    };
    let before = FROM + Nanos(dice.below((TO - FROM).0 + 1));
    let at = match dice.below(2) {
        0 => last.saturating_sub(before),
        _ => last + Nanos(dice.below((answered - last).0.max(1))),
    };
    Disturbance { at, timers }
}
