// SPDX-License-Identifier: GPL-2.0-or-later
//! Records one series: turns time stamps into samples, and marks impossible values as tainted.

use crate::Output;
use rt::Usage;
use sample::{Loss, Monotonic, Nanos, Stamp};

/// Where the events of one series go.
pub(crate) struct Recorder<'a> {
    output: &'a mut Output,
    series: u16,
    /// The beginning of measuring.
    origin: Stamp<Monotonic>,
    sum_ns: u64,
    samples: u64,
    faults: u64,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(output: &'a mut Output, series: usize, origin: Stamp<Monotonic>) -> Self {
        // Fewer than 2^16 by far: no plan can name that many series of these probes.
        Recorder { output, series: series as u16, origin, sum_ns: 0, samples: 0, faults: 0 }
    }

    /// Event `number` was due at `due` and took `latency`; `None` is a latency below zero.
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

    /// `count` events gave no latency; none are not worth a word.
    pub(crate) fn loss(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.output.loss(self.series, loss, count);
        }
    }

    /// The measuring loop of the calling thread has ended, which had used `before` when it began.
    pub(crate) fn loop_ended(&mut self, before: &Usage) {
        self.faults += Usage::of_thread().since(before).page_faults();
    }

    /// Page faults in measuring loops.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// The mean of the samples so far, rounded down; `None` without any.
    pub(crate) fn mean(&self) -> Option<Nanos> {
        self.sum_ns.checked_div(self.samples).map(Nanos)
    }
}
