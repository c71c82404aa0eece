// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires around a find: repeats its triggers with the last instant moved, or with one more trigger shortly before the
//! last one. If there is no find yet, this strategy does the same as `window_start`.

use super::window_start::WindowStart;
use super::{Strategy, Turn, aimed};
use crate::begin::Begin;
use crate::dice::Dice;
use crate::knowledge::Recipe;
use crate::name::StrategyName;
use sample::{Nanos, Schedule, When};

/// How far from a find other instants are tried: 131 µs. This is a power of two that is longer than the longest
/// stretches with interrupts off, 112 µs (docs/hunting.md, the table of random minutes).
const NEIGHBOURHOOD: Nanos = Nanos(1 << 17);
/// How long before the last trigger a further one comes, and below how much longer at the most. By then the line is low
/// again, and the answers of most responders still go on.
const BEFORE: Nanos = Nanos::from_micros(2);
const LONGER: u64 = 50_000;

pub struct Neighbour;

impl Strategy for Neighbour {
    fn name(&self) -> StrategyName {
        StrategyName::new(6, "refine")
    }

    fn weight(&self) -> u64 {
        2
    }

    fn begins_from_find(&self) -> bool {
        true
    }

    fn usual(&self, turn: &Turn) -> Nanos {
        turn.best.map_or_else(|| aimed::usual(turn.turns), last)
    }

    fn begin(&self, turn: &Turn) -> Begin {
        turn.best.map_or_else(|| turn.anywhere(), |best| best.begin)
    }

    fn when(&self, turn: &Turn) -> When {
        let Some(best) = turn.best else { return WindowStart.when(turn) };
        let mut dice = turn.dice();
        // As in all strategies the first number is for a length. A find already has its length.
        aimed::length(turn.turns, &mut dice);
        When::Planned(moved(best, &mut dice))
    }
}

/// When the trigger comes that is answered late. This is about how long another try takes.
pub fn last(best: &Recipe) -> Nanos {
    best.triggers().last().copied().unwrap_or_default()
}

/// The instants up to the find's, with the last one moved by an offset of random size. Small offsets are as likely as
/// large ones. In one of three cases another trigger comes before it, and the answer to that one still goes on.
fn moved(best: &Recipe, dice: &mut Dice) -> Schedule {
    let instants = best.triggers();
    let [before @ .., last] = instants.as_slice() else {
        return Schedule::Explicit(Vec::new());
    };
    let doublings = u64::from(NEIGHBOURHOOD.0.ilog2());
    let offset = Nanos((1 << dice.below(doublings + 1)) + dice.below(100));
    let earliest = before.last().copied().unwrap_or_default() + BEFORE;
    let moved = match dice.below(2) {
        0 => *last + offset,
        _ => last.saturating_sub(offset).max(earliest),
    };
    let mut times = before.to_vec();
    let extra = moved.saturating_sub(BEFORE + Nanos(dice.below(LONGER)));
    if dice.below(3) == 0 && extra > earliest {
        times.push(extra);
    }
    times.push(moved);
    Schedule::Explicit(times)
}
