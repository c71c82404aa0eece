// SPDX-License-Identifier: GPL-2.0-or-later
//! Rests that leave time for other tasks. The kernel would throttle a probe that never rests under SCHED_FIFO
//! (`kernel.sched_rt_runtime_us`: 95 %), and on a single CPU nobody could empty its ring.

use rt::now;
use sample::{Monotonic, Stamp};
use std::time::Duration;

/// The shortest rest. A rest lasts a fifth of the batch before it, so that a probe takes at most 83 % of the CPU.
const REST_MIN: Duration = Duration::from_micros(500);

/// Counts repetitions up to the next rest.
pub(crate) struct Pace {
    batch: u64,
    done: u64,
    since: Stamp<Monotonic>,
}

impl Pace {
    /// A pace with a rest after every `batch` repetitions. `batch` is at least 1.
    pub(crate) fn every(batch: u64) -> Pace {
        Pace { batch, done: 0, since: now() }
    }

    /// Whether a rest is due after this repetition.
    pub(crate) fn is_due(&mut self) -> bool {
        self.done += 1;
        self.done.is_multiple_of(self.batch)
    }

    /// Sleeps. The caller makes sure that the probe's threads on this CPU are blocked.
    pub(crate) fn rest(&mut self) {
        let batch = now().since(self.since).map_or(Duration::ZERO, |b| Duration::from_nanos(b.0));
        std::thread::sleep((batch / 5).max(REST_MIN));
        self.since = now();
    }
}
