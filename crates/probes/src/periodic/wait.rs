// SPDX-License-Identifier: GPL-2.0-or-later
//! Ways to wait for the next event that need no timer of their own.

use crate::report::RunError;
use rt::{Clock, PreciseSleep, Release, SystemClock};
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec};
use sample::{Monotonic, Nanos, Stamp};

/// A way to wait for the events of a grid.
pub(super) trait Wait {
    /// Blocks until the next event of `release`, unless the task is behind. Returns when it went on, and how many events
    /// after that one were due as well.
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError>;
}

/// `clock_nanosleep(TIMER_ABSTIME)`.
pub(super) struct Absolute;

impl Wait for Absolute {
    #[inline]
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError> {
        if release.behind() == 0 {
            SystemClock.sleep_until(release.due());
        }
        let now = rt::now();
        Ok((now, release.passed(now)))
    }
}

/// [`PreciseSleep`].
pub(super) struct Precise(PreciseSleep);

impl Precise {
    pub(super) fn calibrate(most: Nanos) -> Precise {
        Precise(PreciseSleep::calibrate(&SystemClock, most))
    }

    pub(super) fn margin(&self) -> Nanos {
        self.0.margin()
    }
}

impl Wait for Precise {
    #[inline]
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError> {
        let now = match release.behind() {
            0 => self.0.sleep_until(&SystemClock, release.due()),
            _ => rt::now(),
        };
        Ok((now, release.passed(now)))
    }
}

/// `clock_nanosleep` for a relative time.
pub(super) struct Relative {
    period: Nanos,
    whole: Timespec,
}

impl Relative {
    pub(super) fn new(period: Nanos) -> Relative {
        let whole = Timespec {
            tv_sec: (period.0 / 1_000_000_000) as i64,
            tv_nsec: (period.0 % 1_000_000_000) as _,
        };
        Relative { period, whole }
    }

    /// Sleeps for the period. Returns when that should have ended, counted from the call, and when it did.
    ///
    /// The clock is read right before the call, not taken over from the last return: the loop's own work in between is no
    /// part of the sleep.
    #[inline]
    pub(super) fn wait(&self) -> (Stamp<Monotonic>, Stamp<Monotonic>) {
        let mut left = self.whole;
        let begun = rt::now();
        // A signal's handler ran: the rest is slept as well.
        while let NanosleepRelativeResult::Interrupted(rest) =
            clock_nanosleep_relative(ClockId::Monotonic, &left)
        {
            left = rest;
        }
        let woke = rt::now();
        (Stamp::from_ns(begun.ns().saturating_add(self.period.0)), woke)
    }
}
