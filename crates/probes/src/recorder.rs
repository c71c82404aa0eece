// SPDX-License-Identifier: GPL-2.0-or-later
//! Records one series: turns time stamps into samples, and marks impossible values as tainted.

use crate::Output;
use rt::Usage;
use sample::{Loss, Monotonic, Nanos, Stamp};

/// Writes the events of one series.
pub(crate) struct Recorder<'a> {
    output: &'a mut Output,
    series: u16,
    /// The instant at which measuring began.
    origin: Stamp<Monotonic>,
    sum_ns: u64,
    samples: u64,
    faults: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(output: &'a mut Output, series: usize, origin: Stamp<Monotonic>) -> Self {
        // The number fits: no plan can name even nearly 2^16 series of these probes.
        Recorder { output, series: series as u16, origin, sum_ns: 0, samples: 0, faults: 0 }
    }

    /// Records that event `number` was due at `due` and took `latency`. `None` stands for a latency below zero.
    pub(crate) fn sample(&mut self, number: u64, due: Stamp<Monotonic>, latency: Option<Nanos>) {
        match (due.since(self.origin), latency) {
            (Some(at), Some(latency)) => {
                self.output.sample(self.series, number, at, latency);
                self.sum_ns = self.sum_ns.saturating_add(latency.0);
                self.samples += 1;
            }
            _ => self.output.loss(self.series, Loss::Tainted, 1),
        }
    }

    /// Records that `count` events gave no latency. Zero events are not recorded.
    pub(crate) fn loss(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.output.loss(self.series, loss, count);
        }
    }

    /// Counts the page faults of a measuring loop that ended in this thread. `before` is the usage at its beginning.
    pub(crate) fn loop_ended(&mut self, before: &Usage) {
        self.faults += Usage::of_thread().since(before).page_faults();
    }

    /// The number of page faults in measuring loops.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// The mean of the samples so far, rounded down. `None` if there are no samples.
    pub(crate) fn mean(&self) -> Option<Nanos> {
        self.sum_ns.checked_div(self.samples).map(Nanos)
    }
}
