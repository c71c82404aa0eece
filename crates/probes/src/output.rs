// SPDX-License-Identifier: GPL-2.0-or-later
//! The output of a measuring thread: a ring that another thread or process empties.

use sample::{Loss, Nanos, Stamp};
use wire::{Event, Producer, Reading};

/// The way by which one measuring thread hands out samples. No function here allocates, locks or enters the kernel.
pub struct Output {
    ring: Producer,
}

impl Output {
    /// An output through `ring`. Make the memory of the ring resident before measuring begins.
    pub fn new(ring: Producer) -> Output {
        Output { ring }
    }

    /// Writes a latency: event `number` of `series` was due `at` (counted from the beginning of measuring). The answer
    /// came `latency` later.
    pub fn sample(&mut self, series: u16, number: u64, at: Nanos, latency: Nanos) {
        let at = Stamp::from_ns(at.0);
        self.ring.push(&Event::Reading(Reading::Sample { series, number, at, latency }));
    }

    /// Writes that `count` events of `series` gave no latency.
    pub fn loss(&mut self, series: u16, loss: Loss, count: u64) {
        self.ring.push(&Event::Reading(Reading::Loss { series, loss, count }));
    }

    /// Writes that nothing more will come.
    pub fn end(mut self) {
        self.ring.push(&Event::ProbeEnd);
    }
}

/// The readings that `write` writes, for tests.
#[cfg(test)]
pub(crate) fn readings_of(write: impl FnOnce(&mut Output)) -> Vec<Reading> {
    let mut channel = wire::Channel::with_capacity(100).expect("a channel");
    // SAFETY: this descriptor lives longer than the output, and nobody else writes.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(channel.fd()) };
    // SAFETY: as above.
    let mut output = Output::new(unsafe { wire::producer_of(fd) }.expect("its ring"));
    write(&mut output);
    output.end();
    let mut readings = Vec::new();
    let drained = channel.drain(|event, _| {
        if let Event::Reading(reading) = event {
            readings.push(*reading);
        }
    });
    drained.expect("a sound channel");
    readings
}
