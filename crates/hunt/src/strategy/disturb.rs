// SPDX-License-Identifier: GPL-2.0-or-later
//! Repeats the best find with another device's interrupt: shortly before the find's last trigger, or before the answer
//! to this trigger. If there is no find yet, this strategy does the same as `window_start`.

use super::neighbour::{Neighbour, last};
use super::window_start::WindowStart;
use super::{Strategy, Turn};
use crate::begin::Begin;
use crate::dice::Dice;
use crate::name::StrategyName;
use sample::{Disturbance, Nanos, Schedule, When};

/// The least time from a disturbance to the last trigger, and below the longest. A disturbance that is close is still
/// being served. The least time is that of a hard handler, 291 instructions (docs/hunting.md, what comes together). The
/// longest is chosen.
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

    /// One disturbance, since a storm of them makes any answer as late as one likes.
    fn disturbances(&self, turn: &Turn) -> Vec<Disturbance> {
        let Some(best) = turn.best.filter(|best| !best.triggers().is_empty()) else {
            return Vec::new();
        };
        let last = last(best);
        vec![disturbing(last, last + best.latency_ns, &mut turn.dice())]
    }
}

/// A disturbance, with or without timers. It comes shortly before the last trigger, and then it moves everything after
/// it. Or it comes between this trigger and its answer. Then it leaves what the trigger met as it was, and adds to it.
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
