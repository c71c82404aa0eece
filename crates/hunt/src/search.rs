// SPDX-License-Identifier: GPL-2.0-or-later
//! The search: round after round of trials. What was known before a round decides its trials, and the caller carries
//! them out. The search reads the clock only for a budget of time.

use crate::budget::Budget;
use crate::dealing::Deal;
use crate::hunt::{Hunt, HuntEnd, HuntFailure};
use crate::knowledge::Knowledge;
use crate::name::StrategyName;
use crate::result::TrialResult;
use crate::strategy::Planner;
use crate::trial::Trial;
use std::collections::BTreeMap;
use std::time::Instant;

/// Trials of a round at the most: as many as two workers, or four, do without one waiting long for the other. Chosen: a
/// multiple of both, and few, since what a round finds is known to none of its trials.
pub(crate) const ROUND: u64 = 8;
/// Of the first, in which a scout looks ahead: what it sees is worth waiting for. The scout, and one for a second
/// worker.
pub(crate) const FIRST_ROUND: u64 = 2;
/// A hunt ends when so many trials for each guest brought neither a later answer nor a stack that was not fired into.
/// Chosen: thirty rounds.
pub(crate) const STALE: u64 = 240;

/// What came of a round.
#[derive(Debug)]
pub struct RoundResults<E> {
    /// Of each of its trials, in their order; `None` for those that were not run, or not to their end by the deadline.
    pub results: Vec<Option<TrialResult>>,
    /// Why no more of them were, where something failed.
    pub failure: Option<E>,
}

/// Runs the trials of a round, those that were made before excepted, and gives up what is under way at the deadline.
pub type CarryOut<'a, E> = dyn FnMut(&[Trial], Option<Instant>) -> RoundResults<E> + 'a;

impl Hunt {
    /// The guest that the round which begins with trial `first` is about, and how many trials it has at the most. Each
    /// guest has a short round first; then they take turns, with as many trials each, and each second turn goes to
    /// where the latest answer of one of the responders was.
    fn whose(&self, first: u64, known: &Knowledge) -> (usize, u64) {
        let short = FIRST_ROUND.min(self.strategies.len() as u64);
        let guests = self.guests.max(1) as u64;
        let Some(beyond) = first.checked_sub(short * guests) else {
            return ((first / short) as usize, short - first % short);
        };
        let turn = beyond / ROUND;
        let best = known.best(&self.responders, turn / 2).filter(|_| turn % 2 == 1);
        let guest = best.map_or((turn / 2 % guests) as usize, |best| best.begin.guest);
        (guest, ROUND - beyond % ROUND)
    }

    /// The trials of the round that begins with `first`. It ends before a turn of a strategy's that has to wait for
    /// what an earlier trial of this round will see.
    pub fn round(&self, first: u64, known: &Knowledge) -> Vec<Trial> {
        let (guest, count) = self.whose(first, known);
        let mut deal = Deal::new(self, guest, known);
        let mut planners: BTreeMap<StrategyName, Option<Box<dyn Planner>>> = BTreeMap::new();
        let mut trials = Vec::new();
        for number in first..first + count {
            let Some(strategy) = deal.due(number) else { break };
            let turn = deal.turn(number, strategy);
            let planner = || strategy.planner(known, guest, &self.responders);
            let trial = match planners.entry(strategy.name()).or_insert_with(planner) {
                Some(planner) => planner.next(&turn),
                None => Some(strategy.trial(&turn)),
            };
            let Some(trial) = trial else { break };
            deal.take(strategy, &trial);
            trials.push(trial);
        }
        trials
    }

    fn is_over(&self, known: &Knowledge, begun: Instant) -> Option<HuntEnd> {
        let spent = match self.budget {
            Budget::Time(time) => begun.elapsed() >= time,
            Budget::Trials(trials) => known.trials >= trials,
        };
        let stale = known.trials.saturating_sub(known.newest) > STALE * self.guests as u64;
        let mut worst = self.responders.iter().filter_map(|r| known.worst(r.name()));
        let is_enough =
            self.enough.is_some_and(|enough| worst.any(|f| f.answer.latency_ns >= enough));
        if is_enough {
            return Some(HuntEnd::Enough);
        }
        spent.then_some(HuntEnd::Budget).or(stale.then_some(HuntEnd::Stale))
    }

    /// Searches until it is over; `show` sees what is known after each round.
    ///
    /// # Errors
    /// Those of `carry_out`, with what was found until then.
    pub fn search<E>(
        &self,
        carry_out: &mut CarryOut<E>,
        show: &mut dyn FnMut(&Knowledge),
    ) -> Result<(Knowledge, HuntEnd), HuntFailure<E>> {
        let begun = Instant::now();
        let mut known = Knowledge::default();
        loop {
            let mut round = self.round(known.trials, &known);
            // What is left of it is made where the hunt goes on with more: it was dealt as a whole, so it is the same
            // then.
            if let Budget::Trials(trials) = self.budget {
                round.truncate(usize::try_from(trials - known.trials).unwrap_or(usize::MAX));
            }
            let deadline = match self.budget {
                Budget::Time(time) if known.trials > 0 => begun.checked_add(time),
                _ => None,
            };
            let RoundResults { results, failure } = carry_out(&round, deadline);
            let whole = results.iter().all(Option::is_some);
            // A round that was cut short is folded in up to there, so that what is shown is what is in the journal.
            let before = known.trials;
            results.iter().map_while(Option::as_ref).for_each(|result| known.take(result));
            if known.trials > before {
                show(&known);
            }
            if let Some(failure) = failure {
                return Err(HuntFailure { known: Box::new(known), failure });
            }
            if !whole {
                let spent = deadline.is_some_and(|at| Instant::now() >= at);
                return Ok((known, if spent { HuntEnd::Budget } else { HuntEnd::Interrupted }));
            }
            if let Some(ended) = self.is_over(&known, begun) {
                return Ok((known, ended));
            }
        }
    }
}
