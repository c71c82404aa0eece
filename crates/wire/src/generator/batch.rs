// SPDX-License-Identifier: GPL-2.0-or-later
//! Measurements on their way to the host, with what says which are missing.

use super::fields::{Put, Take};
use super::{BATCH_MAX, Item, LATENCY_END, List, Run, Ticks};
use sample::{ALL_RESPONDERS, Losses, Responder, ResponderSet};

/// One latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Number of the trigger that was answered, from 0.
    pub trigger: u64,
    /// When the line rose.
    pub at: Ticks,
    /// Who answered.
    pub responder: Responder,
    /// From then to the answer; below [`LATENCY_END`].
    pub latency: Ticks,
}

/// The responder lies so many bits above the latency.
const RESPONDER: u32 = 56;

impl Item for Measurement {
    const BYTES: usize = 24;
    const MOST: usize = BATCH_MAX;

    fn fits(&self) -> bool {
        self.latency < LATENCY_END
    }

    fn put(&self, to: &mut impl Put) {
        to.u64(self.trigger);
        to.u64(self.at.0);
        to.u64(u64::from(self.responder.pin()) << RESPONDER | self.latency.0);
    }

    fn take(from: &mut Take<'_>) -> Option<Measurement> {
        let (trigger, at, word) = (from.u64()?, from.ticks()?, from.u64()?);
        let responder = *ALL_RESPONDERS.get((word >> RESPONDER) as usize)?;
        let latency = Ticks(word & (LATENCY_END.0 - 1));
        Some(Measurement { trigger, at, responder, latency })
    }
}

impl Item for Ticks {
    const BYTES: usize = 8;
    const MOST: usize = super::TRAIN_MAX;

    fn fits(&self) -> bool {
        true
    }

    fn put(&self, to: &mut impl Put) {
        to.u64(self.0);
    }

    fn take(from: &mut Take<'_>) -> Option<Ticks> {
        from.ticks()
    }
}

/// What one responder has done since the start of a run. Each instant of the schedule that has come is counted once:
/// measured, unanswered, superseded, tainted or overrun; or it still waits for its answer. Spurious edges belong to
/// none. Those that were dropped had been measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Latencies measured, also of batches that were thrown away.
    pub measured: u64,
    /// What was lost. `dropped` counts the measurements of batches that the generator threw away, `overrun` the
    /// instants at which it raised nothing.
    pub losses: Losses,
}

impl Tally {
    pub(super) fn put(&self, to: &mut impl Put) {
        let Losses { unanswered, superseded, spurious, tainted, dropped, overrun } = self.losses;
        let counts = [unanswered, superseded, spurious, tainted, dropped, overrun];
        to.u64(self.measured);
        counts.into_iter().for_each(|count| to.u64(count));
    }

    pub(super) fn take(from: &mut Take<'_>) -> Option<Tally> {
        let measured = from.u64()?;
        let losses = Losses {
            unanswered: from.u64()?,
            superseded: from.u64()?,
            spurious: from.u64()?,
            tainted: from.u64()?,
            dropped: from.u64()?,
            overrun: from.u64()?,
        };
        Some(Tally { measured, losses })
    }

    /// Instants of the schedule that are accounted for; `None` beyond 2⁶⁴−1.
    pub fn accounted(&self) -> Option<u64> {
        let Losses { unanswered, superseded, tainted, overrun, .. } = self.losses;
        let counts = [unanswered, superseded, tainted, overrun];
        counts.into_iter().try_fold(self.measured, u64::checked_add)
    }

    /// Whether no count is lower than it was `before`.
    pub(super) fn follows(&self, before: &Tally) -> bool {
        let pairs = self.losses.named().into_iter().zip(before.losses.named());
        self.measured >= before.measured && pairs.into_iter().all(|((_, n), (_, b))| n >= b)
    }
}

/// The tallies of all responders that a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tallies {
    responders: ResponderSet,
    each: [Tally; ALL_RESPONDERS.len()],
}

impl Tallies {
    /// Of these responders, of which nothing has been counted.
    pub fn new(responders: ResponderSet) -> Tallies {
        Tallies { responders, each: [Tally::default(); ALL_RESPONDERS.len()] }
    }

    /// Whose they are.
    pub fn responders(&self) -> ResponderSet {
        self.responders
    }

    /// That of one responder; `None` where the run does not measure it.
    pub fn get(&self, responder: Responder) -> Option<&Tally> {
        let each = &self.each[usize::from(responder.pin())];
        self.responders.contains(responder).then_some(each)
    }

    /// The same, to count in.
    pub fn get_mut(&mut self, responder: Responder) -> Option<&mut Tally> {
        let each = &mut self.each[usize::from(responder.pin())];
        self.responders.contains(responder).then_some(each)
    }

    /// Each, in the order of pins.
    pub fn iter(&self) -> impl Iterator<Item = (Responder, &Tally)> {
        self.responders.iter().filter_map(|responder| Some((responder, self.get(responder)?)))
    }

    /// Measurements of all responders together; `None` beyond 2⁶⁴−1.
    pub fn measured(&self) -> Option<u64> {
        self.iter().try_fold(0, |sum: u64, (_, tally)| sum.checked_add(tally.measured))
    }

    pub(super) fn put(&self, to: &mut impl Put) {
        self.iter().for_each(|(_, tally)| tally.put(to));
    }

    pub(super) fn take(responders: ResponderSet, from: &mut Take<'_>) -> Option<Tallies> {
        let mut tallies = Tallies::new(responders);
        for responder in responders.iter() {
            tallies.each[usize::from(responder.pin())] = Tally::take(from)?;
        }
        Some(tallies)
    }
}

/// Measurements in the order in which they were made, and how things stood when the batch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Of which run.
    pub run: Run,
    /// Number of the first measurement: so many were made before, of all responders together.
    pub first: u64,
    /// Instants of the schedule that had come.
    pub triggers: u64,
    /// When the batch was closed, since the start.
    pub at: Ticks,
    /// What each responder had done, these measurements included.
    pub tallies: Tallies,
    /// Perhaps none: what is told then is that the run goes on, and what was lost.
    pub measurements: List<'a, Measurement>,
}

/// Bytes before the tallies, of a batch.
const HEAD: usize = 32;
const MOST: usize = HEAD + ALL_RESPONDERS.len() * 56 + BATCH_MAX * Measurement::BYTES;
const _: () = assert!(MOST <= super::PAYLOAD_MAX, "the longest batch is a frame");

#[cfg(test)]
#[path = "tests/batch.rs"]
mod tests;
