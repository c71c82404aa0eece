// SPDX-License-Identifier: GPL-2.0-or-later
//! The search: round after round of trials. The knowledge before a round decides its trials, and the caller carries
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

/// The most trials of a round. With this many, two or four workers can share a round, and none waits long for another.
/// The number is chosen: a multiple of both, and small, since none of a round's trials knows what the round finds.
pub(crate) const ROUND: u64 = 8;
/// The trials of a guest's first round, in which a scout looks ahead. What the scout sees is worth the wait. These are
/// the scout, and one trial for a second worker.
pub(crate) const FIRST_ROUND: u64 = 2;
/// A hunt ends after this many trials for each guest that brought neither a later answer nor a stack that was not yet
/// fired into. The number is chosen: a minute or two of trials that fire once.
pub(crate) const STALE: u64 = 2_000;

/// The results of a round.
#[derive(Debug)]
pub struct RoundResults<E> {
    /// The result of each of its trials, in their order. `None` for a trial that was not run, or not to its end by the
    /// deadline.
    pub results: Vec<Option<TrialResult>>,
    /// If something failed: why no more trials were run.
    pub failure: Option<E>,
}

/// Runs the trials of a round, except those that were made before. At the deadline, it gives up the trials that are
/// running.
pub type CarryOut<'a, E> = dyn FnMut(&[Trial], Option<Instant>) -> RoundResults<E> + 'a;

impl Hunt {
    /// The guest of the round that begins with trial `first`, and how many trials the round has at the most. The finds
    /// come first from which the hunt starts, wherever they are. Then each guest has a short round. Then the guests
    /// take turns, with equally many trials each. Each second turn goes to the guest with the latest answer of one of
    /// the responders.
    fn whose(&self, first: u64, known: &Knowledge) -> (usize, u64) {
        let corpus = self.corpus.len() as u64;
        let Some(first) = first.checked_sub(corpus) else {
            return (0, ROUND.min(corpus - first));
        };
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

    /// The trials of the round that begins with `first`. The round ends before a turn of a strategy that has to wait
    /// for what an earlier trial of this round will see.
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

    /// Searches until the hunt is over. `show` sees the knowledge after each round.
    ///
    /// # Errors
    /// The errors of `carry_out`, with the finds until then.
    pub fn search<E>(
        &self,
        carry_out: &mut CarryOut<E>,
        show: &mut dyn FnMut(&Knowledge),
    ) -> Result<(Knowledge, HuntEnd), HuntFailure<E>> {
        let begun = Instant::now();
        let mut known = Knowledge::default();
        loop {
            let mut round = self.round(known.trials, &known);
            // The rest of the round is made if the hunt goes on with a larger budget. The round was dealt as a whole,
            // so it is the same then.
            if let Budget::Trials(trials) = self.budget {
                round.truncate(usize::try_from(trials - known.trials).unwrap_or(usize::MAX));
            }
            let deadline = match self.budget {
                Budget::Time(time) if known.trials > 0 => begun.checked_add(time),
                _ => None,
            };
            let RoundResults { results, failure } = carry_out(&round, deadline);
            let whole = results.iter().all(Option::is_some);
            // A round that was cut short is folded in up to there, so that the knowledge that is shown is that of the
            // journal.
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
