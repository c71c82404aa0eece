// SPDX-License-Identifier: GPL-2.0-or-later
//! Searching for the worst case of a flavour: trial after trial from a few snapshots of one guest or several, each with other
//! instants, chosen by strategies that share the virtual time and learn from what was found.
//!
//! Trials are made in rounds. What a round's trials do depends only on the hunt's seed and on the rounds before it, so a
//! hunt finds the same with any number of workers; a budget of time only decides after which trial it ends.

mod ahead;
mod coincidences;
mod dealing;
mod finding;
mod finds;
mod foresight;
mod grounds;
mod journal;
mod kept;
mod outlook;
mod strategy;
mod trial;
mod workers;

pub use coincidences::{Coincidence, Coming};
pub use finding::{Best, Died, Encounter, Entered, Found, Known, Late, Share, Step, Tried};
pub use finds::{Death, Find, explain_finds};
pub use foresight::Foreseen;
pub use grounds::{Begin, Grounds};
pub use journal::{About, AboutGuest, Journal};
pub use kept::{CONCLUSION, Concluded, JOURNAL, Kept, find_file};
pub use strategy::{ALL, Strategy};
pub use trial::{Field, Trial, View};

use crate::failure::Failure;
use ::rig::tool;
use dealing::Deal;
use outlook::{Next, Outlook};
use sample::{Nanos, ParseDurationError, Responder, Schedule, When};
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use workers::at_once;

/// Trials of a round at the most: as many as two workers, or four, do without one waiting long for the other.
const ROUND: u64 = 8;
/// Of the first, in which a scout looks ahead: what it sees is worth waiting for.
const FIRST_ROUND: u64 = 2;
/// A hunt ends when so many trials for each guest brought neither a later answer nor a stack that was not fired into.
const STALE: u64 = 240;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Wall time. What is under way then is given up, except in the first round: some trial there is always.
    Time(Duration),
    /// So many trials at the most: the last round ends with the last of them.
    Trials(u64),
}

/// A budget that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotABudget {
    /// It would end before it begins.
    Zero,
    /// Neither a duration nor a number of trials.
    Malformed(ParseDurationError),
}

impl std::fmt::Display for NotABudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotABudget::Zero => {
                f.write_str("a hunt needs some budget; write 5min, 30s or 200trials")
            }
            NotABudget::Malformed(e) => write!(f, "{e}; write 5min, 30s or 200trials"),
        }
    }
}

impl std::error::Error for NotABudget {}

impl FromStr for Budget {
    type Err = NotABudget;

    fn from_str(text: &str) -> Result<Budget, NotABudget> {
        if let Some(Ok(trials)) = text.strip_suffix("trials").map(|n| n.trim().parse()) {
            return if trials == 0 { Err(NotABudget::Zero) } else { Ok(Budget::Trials(trials)) };
        }
        let time: Nanos = text.parse().map_err(NotABudget::Malformed)?;
        match time.0 {
            0 => Err(NotABudget::Zero),
            ns => Ok(Budget::Time(Duration::from_nanos(ns))),
        }
    }
}

/// Carries out a trial.
type Run<'a> = dyn Fn(&Trial) -> Result<Result<Tried, trial::Stopped>, Failure> + Sync + 'a;

/// What a hunt is told.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// In how many guests; at least one.
    pub guests: usize,
    /// Whose worst answer is looked for.
    pub responders: Vec<Responder>,
    /// Who shares the virtual time; at least one.
    pub strategies: Vec<Strategy>,
    /// Of everything random.
    pub seed: u64,
    /// See [`Budget`].
    pub budget: Budget,
    /// Machines at once.
    pub jobs: usize,
    /// The hunt ends with the round in which one of the responders was as late as this.
    pub enough: Option<Nanos>,
}

/// Why a hunt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The budget was used up.
    Budget,
    /// Nothing new came any more.
    Stale,
    /// An answer was as late as asked for.
    Enough,
    /// The user asked to stop.
    Interrupted,
    /// The rig failed, or the journal could not be written.
    Failed,
}

/// A hunt that a failure has ended.
#[derive(Debug)]
pub struct Broken {
    /// What it knew by then.
    pub known: Box<Known>,
    /// The failure.
    pub failure: Failure,
}

impl From<Failure> for Broken {
    /// Before anything was known.
    fn from(failure: Failure) -> Broken {
        Broken { known: Box::default(), failure }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Failure {
        broken.failure
    }
}

impl Hunt {
    /// The guest that the round which begins with trial `first` is about, and how many trials it has at the most. Each guest has a
    /// short round first; then they take turns, with as many trials each, and each second turn goes to where the latest answer of one
    /// of the responders was.
    fn whose(&self, first: u64, known: &Known) -> (usize, u64) {
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

    /// The trials of the round that begins with `first`. It ends before a turn of foresight's that has to wait for what a scout of this
    /// round will see.
    fn round(&self, first: u64, known: &Known) -> Vec<Trial> {
        let (guest, count) = self.whose(first, known);
        let mut outlook = Outlook::new(known, guest, &self.responders);
        let mut deal = Deal::new(self, guest, known);
        let mut trials = Vec::new();
        for number in first..first + count {
            let Some(strategy) = deal.due(number) else { break };
            let next = match strategy {
                Strategy::Foresight => outlook.plan(),
                _ => Some(Next::Blind),
            };
            let Some(next) = next else { break };
            let turn = deal.take(number, strategy, &next);
            let best = known.best(&self.responders, turn);
            trials.push(self.trial((number, guest), strategy, next, best, known));
        }
        trials
    }

    /// What this strategy does in trial `number` in this guest, or what foresight will do next.
    fn trial(
        &self,
        (number, guest): (u64, usize),
        strategy: Strategy,
        next: Next,
        best: Option<&Best>,
        known: &Known,
    ) -> Trial {
        let (mut enters, mut meets) = (None, None);
        let (begin, when) = match next {
            Next::Scout(begin, until) => (begin, foresight::scouting(until)),
            Next::Enter(begin, stretch, way) => {
                enters = Some(stretch).filter(|_| way == 0);
                (begin, foresight::entering(&stretch, strategy::GAP)[way].clone())
            }
            Next::Fire(begin, first) => {
                enters = Some(first);
                let mut random = strategy::Random::new(self.seed, number);
                let near = &known.grounds[&begin].near;
                (begin, foresight::firing(near, first, strategy::GAP, &mut random))
            }
            Next::Meet(begin, coincidence) => {
                let at = coincidence.at_ns;
                meets = Some(coincidence);
                (begin, When::Planned(Schedule::Explicit(vec![at])))
            }
            Next::Blind => {
                let grounds = known.grounds.keys();
                let begin = strategy.begin((number, guest), self.seed, best, grounds);
                (begin, strategy.when(number, self.seed, best))
            }
        };
        let disturbances = strategy.disturbances(number, self.seed, best);
        Trial { number, strategy, begin, when, disturbances, enters, meets }
    }

    fn is_over(&self, known: &Known, begun: Instant) -> Option<Ended> {
        let spent = match self.budget {
            Budget::Time(time) => begun.elapsed() >= time,
            Budget::Trials(trials) => known.trials >= trials,
        };
        let stale = known.trials.saturating_sub(known.newest) > STALE * self.guests as u64;
        let mut worst = self.responders.iter().filter_map(|r| known.worst(r.name()));
        let is_enough =
            self.enough.is_some_and(|enough| worst.any(|f| f.best.latency_ns >= enough));
        if is_enough {
            return Some(Ended::Enough);
        }
        spent.then_some(Ended::Budget).or(stale.then_some(Ended::Stale))
    }

    /// Goes on from what `journal` holds until it is over; `show` sees what is known after each round.
    ///
    /// # Errors
    /// Those of the rig and of writing the journal, with what was found until then, which is in the journal.
    pub fn search(
        &self,
        run: &Run,
        journal: &mut Journal,
        show: &mut dyn FnMut(&Known),
    ) -> Result<(Known, Ended), Broken> {
        let begun = Instant::now();
        let mut known = Known::default();
        loop {
            let mut round = self.round(known.trials, &known);
            // What is left of it is made where the hunt goes on with more: it was dealt as a whole, so it is the same then.
            if let Budget::Trials(trials) = self.budget {
                round.truncate(usize::try_from(trials - known.trials).unwrap_or(usize::MAX));
            }
            let deadline = match self.budget {
                Budget::Time(time) if known.trials > 0 => begun.checked_add(time),
                _ => None,
            };
            let (tried, failure) = self.carry_out(&round, run, deadline, journal);
            let whole = tried.iter().all(Option::is_some);
            // A round that was cut short is folded in up to there, so that what is shown is what is in the journal.
            let before = known.trials;
            tried.iter().map_while(Option::as_ref).for_each(|tried| known.take(tried));
            if known.trials > before {
                show(&known);
            }
            if let Some(failure) = failure {
                return Err(Broken { known: Box::new(known), failure });
            }
            if !whole {
                let spent = deadline.is_some_and(|at| Instant::now() >= at);
                return Ok((known, if spent { Ended::Budget } else { Ended::Interrupted }));
            }
            if let Some(ended) = self.is_over(&known, begun) {
                return Ok((known, ended));
            }
        }
    }

    /// Runs the trials that the journal does not hold, several at once, until one fails; `None` for those that were not run, or not to
    /// their end by the deadline.
    fn carry_out(
        &self,
        round: &[Trial],
        run: &Run,
        deadline: Option<Instant>,
        journal: &mut Journal,
    ) -> (Vec<Option<Tried>>, Option<Failure>) {
        let done: Vec<Option<Tried>> = round.iter().map(|t| journal.tried(t.number)).collect();
        let results = Mutex::new((done.clone(), None, journal));
        at_once(self.jobs, round.len(), |index| {
            if done[index].is_some() {
                return ControlFlow::Continue(());
            }
            let outcome = tool::until(deadline, || run(&round[index]));
            let mut results = results.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let (tried, failure, journal) = &mut *results;
            match outcome {
                // What is not in the journal was not made.
                Ok(Ok(new)) => match journal.append(&new) {
                    Ok(()) => tried[index] = Some(new),
                    Err(e) => drop(failure.get_or_insert(e)),
                },
                Ok(Err(trial::Stopped)) => return ControlFlow::Break(()),
                Err(e) => drop(failure.get_or_insert(e)),
            }
            if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let (tried, failure, _) = results.into_inner().unwrap_or_else(|p| p.into_inner());
        (tried, failure)
    }
}

#[cfg(test)]
mod tests;
