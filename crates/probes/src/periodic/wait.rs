// SPDX-License-Identifier: GPL-2.0-or-later
//! Ways to wait for the next event that need no timer of their own.

use crate::report::RunError;
use rt::{Clock, PreciseSleep, Release, SystemClock};
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec};
use sample::{Monotonic, Nanos, Stamp};

/// A way to wait for the events of a grid.
pub(super) trait Wait {
    /// Blocks until the next event of `release`, unless the task is behind. Returns when the task went on, and how many
    /// events after this one were due as well.
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError>;
}

/// Waits by `clock_nanosleep(TIMER_ABSTIME)`.
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

/// Waits by [`PreciseSleep`].
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

/// Spins on the clock for a period from now. Returns the end of the period, and the first reading at or after it.
///
/// If the clock stands still or goes backwards, the reading may be before the end. In this case spinning ends after as
/// many readings as the period has nanoseconds. Nobody reads a clock in less than one nanosecond.
#[inline]
pub(super) fn spin(clock: &impl Clock, period: Nanos) -> (Stamp<Monotonic>, Stamp<Monotonic>) {
    let begun = clock.now();
    let due = begun.saturating_add(period);
    let mut now = begun;
    for _ in 0..period.0 {
        if now >= due {
            break;
        }
        std::hint::spin_loop();
        now = clock.now();
    }
    (due, now)
}

/// Waits by `clock_nanosleep` for a relative time.
pub(super) struct Relative {
    period: Nanos,
    whole: Timespec,
}

impl Relative {
    pub(super) fn new(period: Nanos) -> Relative {
        let whole =
            Timespec { tv_sec: period.as_secs() as i64, tv_nsec: period.subsec_nanos() as _ };
        Relative { period, whole }
    }

    /// Sleeps for the period. Returns when the sleep should have ended, counted from the call, and when it ended.
    ///
    /// The function reads the clock right before it sleeps. It does not use the last return, because the loop's own
    /// work in between is no part of the sleep.
    #[inline]
    pub(super) fn wait(&self) -> (Stamp<Monotonic>, Stamp<Monotonic>) {
        let mut left = self.whole;
        let begun = rt::now();
        // The handler of a signal ran, so the rest is slept as well.
        while let NanosleepRelativeResult::Interrupted(rest) =
            clock_nanosleep_relative(ClockId::Monotonic, &left)
        {
            left = rest;
        }
        let woke = rt::now();
        (begun.saturating_add(self.period), woke)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock whose every reading is the same time later than the one before. Nobody sleeps by this clock.
    struct Spun {
        now: Cell<u64>,
        reading: u64,
    }

    impl Clock for Spun {
        fn now(&self) -> Stamp<Monotonic> {
            self.now.set(self.now.get() + self.reading);
            Stamp::from_ns(self.now.get())
        }

        fn sleep_until(&self, due: Stamp<Monotonic>) {
            panic!("a busy wait slept until {due:?}");
        }
    }

    #[test]
    fn a_busy_wait_ends_with_the_first_reading_after_its_period_and_never_sleeps() {
        let clock = Spun { now: Cell::new(1_000), reading: 30 };
        let (due, now) = spin(&clock, Nanos(100));
        // The period begins at 1,030. The readings after it are at 1,060, 1,090, 1,120 and 1,150.
        assert_eq!((due.ns(), now.ns()), (1_130, 1_150));
    }

    #[test]
    fn a_clock_that_stands_still_cannot_keep_it_spinning() {
        let clock = Spun { now: Cell::new(1_000), reading: 0 };
        let (due, now) = spin(&clock, Nanos(100));
        assert!(now < due);
    }
}
