// SPDX-License-Identifier: GPL-2.0-or-later
//! What a strategy is: a way to choose the instants of triggers from a trial's number, the hunt's seed and what was
//! found before. Each strategy is a file here and a line of the registry.

mod aimed;
pub(crate) mod coverage;
pub(crate) mod disturb;
pub(crate) mod foresight;
pub(crate) mod neighbour;
pub(crate) mod random;
pub(crate) mod stage_aware;
pub(crate) mod window_chain;
pub(crate) mod window_start;

use crate::begin::Begin;
use crate::dice::Dice;
use crate::knowledge::{Knowledge, Recipe, Share};
use crate::name::StrategyName;
use crate::result::TrialResult;
use crate::trial::Trial;
use sample::{Disturbance, Nanos, Responder, When};

/// Who fired nothing in so many trials in a guest has no more of them. Chosen: one may be a short one at a calm time.
const IDLE: u64 = 2;

/// A turn of a strategy: what it may know as it chooses.
pub struct Turn<'a> {
    /// The trial's number.
    pub number: u64,
    /// The guest that the round is about.
    pub guest: usize,
    /// The hunt's seed.
    pub seed: u64,
    /// The find to begin from, where it begins from one and there is one.
    pub best: Option<&'a Recipe>,
    /// What was known before the round.
    pub knowledge: &'a Knowledge,
}

impl Turn<'_> {
    /// The trial's random numbers, from the first on.
    pub(crate) fn dice(&self) -> Dice {
        Dice::new(self.seed, self.number)
    }

    /// At the warm-up's end, or, in every second trial, where foresight has gone.
    pub(crate) fn anywhere(&self) -> Begin {
        let grounds = self.knowledge.grounds.keys();
        let later: Vec<&Begin> =
            grounds.filter(|begin| begin.guest == self.guest && begin.is_later()).collect();
        let mut dice = Dice::new(self.seed.wrapping_add(1), self.number);
        if later.is_empty() || dice.below(2) == 0 {
            return Begin::first(self.guest);
        }
        *later[dice.below(later.len() as u64) as usize]
    }
}

/// Chooses what trials do.
pub trait Strategy: Sync {
    /// What it is called.
    fn name(&self) -> StrategyName;

    /// How much of a hunt's time is dealt to it, in 64ths where all take part. Two thirds go to looking ahead, which
    /// alone meets what is rare, and knows when things come together; a fifth to firing as stretches open, which meets
    /// what a trigger before has brought about; little to luck. What each finds alone is measured (docs/hunting.md,
    /// each strategy alone).
    fn weight(&self) -> u64;

    /// When a trial triggers.
    fn when(&self, turn: &Turn) -> When;

    /// Where a trial begins.
    fn begin(&self, turn: &Turn) -> Begin {
        turn.anywhere()
    }

    /// What disturbs a trial.
    fn disturbances(&self, _: &Turn) -> Vec<Disturbance> {
        Vec::new()
    }

    /// About how much virtual time a trial takes, by which turns are dealt before it was made.
    fn usual(&self, turn: &Turn) -> Nanos {
        aimed::usual(turn.number)
    }

    /// Whether it has nothing to fire into in a guest where it did so much: a kernel of which no preemption count is
    /// known shows no stretch in another.
    fn is_idle(&self, had: &Share) -> bool {
        had.trials >= IDLE && had.triggers == 0
    }

    /// Whether the first trial in each guest is its, after which it waits for what that sees.
    fn opens(&self) -> bool {
        false
    }

    /// Whether it begins from the best find, in whatever guest that is.
    fn begins_from_find(&self) -> bool {
        false
    }

    /// Whether another device disturbs what it finds, so that it is nobody's worst.
    fn disturbs(&self) -> bool {
        false
    }

    /// Whether it is what all are held against: who waits for bad luck.
    fn is_baseline(&self) -> bool {
        false
    }

    /// Adds to what is known what this strategy alone makes of a result of its own.
    fn learn(&self, _: &mut Knowledge, _: &TrialResult) {}

    /// Who plans its trials of a round in this guest one after the other; `None` where each is chosen by itself.
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
    /// The next one; `None`, while it has to wait for what an earlier one of the round will see.
    fn next(&mut self, turn: &Turn) -> Option<Trial>;
}
