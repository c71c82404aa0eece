// SPDX-License-Identifier: GPL-2.0-or-later
//! Defines a strategy: a way to choose the instants of triggers from a trial's number, the hunt's seed and the finds
//! before. Each strategy is a file here and a line of the registry.

mod aimed;
pub(crate) mod corpus;
pub(crate) mod coverage;
pub(crate) mod disturb;
pub(crate) mod foresight;
pub(crate) mod neighbour;
pub(crate) mod random;
pub(crate) mod stage_aware;
pub(crate) mod window_chain;
pub(crate) mod window_start;

use crate::begin::{Begin, is_stage};
use crate::dice::Dice;
use crate::knowledge::{Knowledge, Recipe, Share};
use crate::name::StrategyName;
use crate::result::TrialResult;
use crate::trial::Trial;
use sample::{Disturbance, Nanos, Responder, When};

/// A strategy that fired nothing in this many trials in a guest has no more trials there. The number is chosen: one
/// trial may be short and at a calm time.
const IDLE: u64 = 2;

/// A turn of a strategy: what the strategy may know as it chooses.
pub struct Turn<'a> {
    /// The trial's number.
    pub number: u64,
    /// How many trials the strategy has had before.
    pub turns: u64,
    /// The guest that the round is about.
    pub guest: usize,
    /// The hunt's seed.
    pub seed: u64,
    /// The find from which the strategy begins, if it begins from one and there is one.
    pub best: Option<&'a Recipe>,
    /// The knowledge before the round.
    pub knowledge: &'a Knowledge,
    /// The finds from which the hunt starts.
    pub corpus: &'a [Recipe],
}

impl Turn<'_> {
    /// The trial's random numbers, from the first on.
    pub(crate) fn dice(&self) -> Dice {
        Dice::new(self.seed, self.number)
    }

    /// The end of the warm-up or, in every second trial, a place to which foresight has gone.
    pub(crate) fn anywhere(&self) -> Begin {
        let grounds = self.knowledge.grounds.keys();
        // A find from which the hunt starts may have a beginning between two stages, for itself alone.
        let is_one =
            |begin: &&Begin| begin.guest == self.guest && begin.is_later() && is_stage(begin.after);
        let later: Vec<&Begin> = grounds.filter(is_one).collect();
        let mut dice = Dice::new(self.seed.wrapping_add(1), self.number);
        if later.is_empty() || dice.below(2) == 0 {
            return Begin::first(self.guest);
        }
        *later[dice.below(later.len() as u64) as usize]
    }
}

/// Chooses what trials do.
pub trait Strategy: Sync {
    /// The strategy's name.
    fn name(&self) -> StrategyName;

    /// The strategy's part of a hunt's time, if all take part, in 64ths. Four fifths go to looking ahead. Only
    /// this meets rare things, and only this knows when things come together. A tenth goes to firing as stretches open,
    /// which meets what an earlier trigger has brought about. Little goes to luck. What each strategy finds alone is
    /// measured (docs/hunting/figures.md, each strategy by itself).
    fn weight(&self) -> u64;

    /// The instants at which a trial triggers.
    fn when(&self, turn: &Turn) -> When;

    /// The place where a trial begins.
    fn begin(&self, turn: &Turn) -> Begin {
        turn.anywhere()
    }

    /// The disturbances of a trial.
    fn disturbances(&self, _: &Turn) -> Vec<Disturbance> {
        Vec::new()
    }

    /// About how much virtual time a trial takes. Turns are dealt by this time, before the trial is made.
    fn usual(&self, turn: &Turn) -> Nanos {
        aimed::usual(turn.turns)
    }

    /// Whether the strategy has nothing to fire into in a guest, where it has done `had`. A kernel whose preemption
    /// count is not known shows no stretch inside another.
    fn is_idle(&self, had: &Share) -> bool {
        had.trials >= IDLE && had.triggers == 0
    }

    /// Whether the strategy has the first trial in each guest, and then waits for what this trial sees.
    fn opens(&self) -> bool {
        false
    }

    /// Whether the strategy begins from the best find, in whichever guest that is.
    fn begins_from_find(&self) -> bool {
        false
    }

    /// Whether another device disturbs the strategy's finds, so that they count as nobody's worst.
    fn disturbs(&self) -> bool {
        false
    }

    /// Whether the strategy is the baseline with which all are compared: waiting for bad luck.
    fn is_baseline(&self) -> bool {
        false
    }

    /// Adds to the knowledge what only this strategy makes of a result of its own.
    fn learn(&self, _: &mut Knowledge, _: &TrialResult) {}

    /// The planner of the strategy's trials of a round in this guest. `None` if the strategy chooses each trial by
    /// itself.
    fn planner<'a>(
        &'a self,
        _knowledge: &'a Knowledge,
        _guest: usize,
        _responders: &'a [Responder],
    ) -> Option<Box<dyn Planner + 'a>> {
        None
    }

    /// A trial that is chosen by itself.
    fn trial(&self, turn: &Turn) -> Trial {
        Trial {
            number: turn.number,
            strategy: self.name(),
            begin: self.begin(turn),
            when: self.when(turn),
            disturbances: self.disturbances(turn),
            enters: None,
            meets: None,
        }
    }
}

/// Plans a strategy's trials of one round.
pub trait Planner {
    /// The next trial. `None` while it has to wait for what an earlier trial of the round will see.
    fn next(&mut self, turn: &Turn) -> Option<Trial>;
}
