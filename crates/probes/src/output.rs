// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a measuring thread puts what it measured: a ring that somebody else empties.

use sample::{Kind, Loss, Nanos, Producer, Reading, Record, Stamp};

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
        self.ring.push(&Reading::Sample { series, number, at, latency }.record());
    }

    /// `count` events of `series` gave no latency.
    pub fn loss(&mut self, series: u16, loss: Loss, count: u64) {
        self.ring.push(&Reading::Loss { series, loss, count }.record());
    }

    /// Nothing more will come.
    pub fn end(mut self) {
        let at = Stamp::from_ns(0);
        let insns = sample::Insns(0);
        self.ring.push(&Record { kind: Kind::End, pins: 0, value: 0, number: 0, at, insns });
    }
}
