// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator's side of batches: it collects measurements and never waits for the reader.

use super::{BATCH_MAX, Batch, Item, List, Measurement, Run, Tallies, Tally, Ticks};
use sample::{Loss, Responder, ResponderSet};

/// Collects what a run measures, of a fixed size. Whoever has it sends [`Batcher::batch`] when [`Batcher::is_due`] says
/// so, and then tells whether there was room for the batch: [`Batcher::sent`] or [`Batcher::dropped`].
#[derive(Clone, Debug)]
pub struct Batcher {
    run: Run,
    /// Measurements that make a batch.
    size: usize,
    triggers: u64,
    tallies: Tallies,
    /// Number of the first measurement that is held.
    first: u64,
    held: [Measurement; BATCH_MAX],
    count: usize,
    /// When the last batch was closed, or the first measurement of this one was made.
    since: Ticks,
}

const NONE: Measurement =
    Measurement { trigger: 0, at: Ticks(0), responder: Responder::Hardirq, latency: Ticks(0) };

impl Batcher {
    /// Of a run that measures these responders. A batch has `size` measurements, 1 … [`BATCH_MAX`].
    pub fn new(run: Run, responders: ResponderSet, size: usize) -> Batcher {
        Batcher {
            run,
            size: size.clamp(1, BATCH_MAX),
            triggers: 0,
            tallies: Tallies::new(responders),
            first: 0,
            held: [NONE; BATCH_MAX],
            count: 0,
            since: Ticks(0),
        }
    }

    /// A batch has `size` measurements from now on.
    pub fn resize(&mut self, size: usize) {
        self.size = size.clamp(1, BATCH_MAX);
    }

    /// An instant of the schedule has come.
    pub fn triggered(&mut self) {
        self.triggers = self.triggers.saturating_add(1);
    }

    /// An answer was measured at `now`. Where a whole batch is still waiting to be sent, that batch is dropped. A
    /// latency that no message can say is tainted. An answer of a responder that the run does not measure is none.
    pub fn measured(&mut self, measurement: Measurement, now: Ticks) {
        if !measurement.fits() {
            return self.lost(measurement.responder, Loss::Tainted, 1);
        }
        if !self.tallies.responders().contains(measurement.responder) {
            return;
        }
        if self.count >= self.size {
            self.dropped(now);
        }
        if let Some(tally) = self.tallies.get_mut(measurement.responder) {
            tally.measured = tally.measured.saturating_add(1);
        }
        self.held[self.count] = measurement;
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
    }

    /// Something was not measured.
    pub fn lost(&mut self, responder: Responder, loss: Loss, count: u64) {
        if let Some(Tally { losses, .. }) = self.tallies.get_mut(responder) {
            losses.count(loss, count);
        }
    }

    /// Whether a batch is to be sent: it is full, or its first measurement is `age` old. One without measurements is
    /// sent that long after the last batch.
    pub fn is_due(&self, now: Ticks, age: Ticks) -> bool {
        self.count >= self.size || now.0.saturating_sub(self.since.0) >= age.0
    }

    /// What is held, closed at `now`. At the end of a run too, where it is not empty.
    pub fn batch(&self, now: Ticks) -> Batch<'_> {
        let measurements = List::new(&self.held[..self.count]).unwrap_or(List::EMPTY);
        Batch {
            run: self.run,
            first: self.first,
            triggers: self.triggers,
            at: now,
            tallies: self.tallies,
            measurements,
        }
    }

    /// Measurements that are held.
    pub fn held(&self) -> usize {
        self.count
    }

    /// The batch is on its way.
    pub fn sent(&mut self, now: Ticks) {
        self.first += self.count as u64;
        (self.count, self.since) = (0, now);
    }

    /// There was no room for the batch: what it held is lost, and counted.
    pub fn dropped(&mut self, now: Ticks) {
        for n in 0..self.count {
            self.lost(self.held[n].responder, Loss::Dropped, 1);
        }
        self.sent(now);
    }

    /// Instants of the schedule that have come.
    pub fn triggers(&self) -> u64 {
        self.triggers
    }

    /// What has been counted.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }
}
