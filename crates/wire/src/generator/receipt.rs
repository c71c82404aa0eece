// SPDX-License-Identifier: GPL-2.0-or-later
//! The host's side of batches: what has come, what has not, and whether the generator contradicts itself.

use super::{Batch, Run, Stopped, Tallies, Ticks};
use sample::{ALL_RESPONDERS, Losses, Responder, ResponderSet};

/// Counts what has come of a run.
#[derive(Clone, Debug)]
pub struct Receipt {
    run: Run,
    told: Tallies,
    triggers: u64,
    at: Ticks,
    /// Number of the next measurement, where none is lost.
    next: u64,
    received: [u64; ALL_RESPONDERS.len()],
    stopped: bool,
}

/// How a generator contradicts itself. The numbers of its run then mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inconsistent {
    /// A batch of another run, or after the run has stopped.
    Run,
    /// Other responders than those that the run measures.
    Responders,
    /// A batch that has come before, or one of before.
    Order,
    /// A count, or the time, is lower than it was.
    Backwards,
    /// The answer to a trigger that has not come.
    Future,
    /// The tallies are not those of as many measurements as there are.
    Sum,
    /// More has come of a responder than was measured and not dropped.
    TooMany,
    /// More instants are accounted for than have come; or, at the end, not as many.
    Accounts,
}

impl core::fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Run => "a batch of another run",
            Self::Responders => "a batch of other responders than the run measures",
            Self::Order => "a batch comes out of its order",
            Self::Backwards => "a count or the time of a batch is lower than before",
            Self::Future => "a measurement of a trigger that has not come",
            Self::Sum => "the tallies of a batch are not those of its measurements",
            Self::TooMany => "more measurements have come than were made",
            Self::Accounts => "the triggers of a responder do not add up",
        })
    }
}

impl core::error::Error for Inconsistent {}

impl Receipt {
    /// Of a run that has just started.
    pub fn new(run: Run, responders: ResponderSet) -> Receipt {
        let received = [0; ALL_RESPONDERS.len()];
        let told = Tallies::new(responders);
        Receipt { run, told, triggers: 0, at: Ticks(0), next: 0, received, stopped: false }
    }

    /// Takes a batch. How many measurements are missing before it.
    ///
    /// # Errors
    /// How the generator contradicts itself; the batch then counts for nothing.
    pub fn take(&mut self, batch: &Batch<'_>) -> Result<u64, Inconsistent> {
        let mut after = self.clone();
        let missing = batch.first.checked_sub(self.next).ok_or(Inconsistent::Order)?;
        let count = batch.measurements.len() as u64;
        after.next = batch.first.checked_add(count).ok_or(Inconsistent::Sum)?;
        for measurement in batch.measurements.iter() {
            if measurement.trigger >= batch.triggers {
                return Err(Inconsistent::Future);
            }
            after.received[usize::from(measurement.responder.pin())] += 1;
        }
        after.hear(batch.run, batch.triggers, batch.at, &batch.tallies)?;
        *self = after;
        Ok(missing)
    }

    /// Takes the end of the run. How many measurements are missing before it. A generator tells the end again to a host
    /// that identifies it again; then nothing changes.
    ///
    /// # Errors
    /// How the generator contradicts itself; the end then counts for nothing.
    pub fn stop(&mut self, stopped: &Stopped) -> Result<u64, Inconsistent> {
        let heard = (self.run, self.triggers, self.at, self.told);
        if self.stopped && heard == (stopped.run, stopped.triggers, stopped.at, stopped.tallies) {
            return Ok(0);
        }
        let mut after = self.clone();
        after.next = stopped.tallies.measured().ok_or(Inconsistent::Sum)?;
        let missing = after.next.checked_sub(self.next).ok_or(Inconsistent::Backwards)?;
        after.hear(stopped.run, stopped.triggers, stopped.at, &stopped.tallies)?;
        let whole = |(_, tally): (_, &super::Tally)| tally.accounted() == Some(stopped.triggers);
        if !stopped.tallies.iter().all(whole) {
            return Err(Inconsistent::Accounts);
        }
        after.stopped = true;
        *self = after;
        Ok(missing)
    }

    fn hear(
        &mut self,
        run: Run,
        triggers: u64,
        at: Ticks,
        tallies: &Tallies,
    ) -> Result<(), Inconsistent> {
        if run != self.run || self.stopped {
            return Err(Inconsistent::Run);
        }
        if tallies.responders() != self.told.responders() {
            return Err(Inconsistent::Responders);
        }
        let pairs = tallies.iter().zip(self.told.iter());
        let follows = pairs.into_iter().all(|((_, now), (_, before))| now.follows(before));
        if !follows || triggers < self.triggers || at < self.at {
            return Err(Inconsistent::Backwards);
        }
        if tallies.measured() != Some(self.next) {
            return Err(Inconsistent::Sum);
        }
        for (responder, tally) in tallies.iter() {
            let come = self.received[usize::from(responder.pin())];
            if come.checked_add(tally.losses.dropped).is_none_or(|sum| sum > tally.measured) {
                return Err(Inconsistent::TooMany);
            }
            if tally.accounted().is_none_or(|sum| sum > triggers) {
                return Err(Inconsistent::Accounts);
            }
        }
        (self.told, self.triggers, self.at) = (*tallies, triggers, at);
        Ok(())
    }

    /// What was lost of a responder, as far as is known. `dropped` is everything that was measured and has not come,
    /// whether the generator threw it away or the line lost it. `None` where the run does not measure the responder.
    pub fn losses(&self, responder: Responder) -> Option<Losses> {
        let tally = self.told.get(responder)?;
        let dropped = tally.measured - self.received(responder);
        Some(Losses { dropped, ..tally.losses })
    }

    /// Measurements of a responder that have come.
    pub fn received(&self, responder: Responder) -> u64 {
        self.received[usize::from(responder.pin())]
    }

    /// Instants of the schedule that have come.
    pub fn triggers(&self) -> u64 {
        self.triggers
    }

    /// Whether the run has ended, and everything is accounted for.
    pub fn is_whole(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
#[path = "tests/receipt.rs"]
mod tests;
