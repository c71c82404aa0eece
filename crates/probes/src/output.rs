// SPDX-License-Identifier: GPL-2.0-or-later
//! The output of a measuring thread: a ring that another thread or process empties.

use sample::{Loss, Nanos, Stamp};
use wire::{Event, Producer, Reading};

/// The way out of one measuring thread. Nothing here allocates, locks or enters the kernel.
pub struct Output {
    ring: Producer,
}

impl Output {
    /// Through `ring`, whose memory should be resident before measuring begins.
    pub fn new(ring: Producer) -> Output {
        Output { ring }
    }

    /// A latency: event `number` of `series` was due `at` (since the beginning of measuring) and answered
    /// `latency` later.
    pub fn sample(&mut self, series: u16, number: u64, at: Nanos, latency: Nanos) {
        let at = Stamp::from_ns(at.0);
        self.ring.push(&Event::Reading(Reading::Sample { series, number, at, latency }));
    }

    /// `count` events of `series` gave no latency.
    pub fn loss(&mut self, series: u16, loss: Loss, count: u64) {
        self.ring.push(&Event::Reading(Reading::Loss { series, loss, count }));
    }

    /// Nothing more will come.
    pub fn end(mut self) {
        self.ring.push(&Event::ProbeEnd);
    }
}
