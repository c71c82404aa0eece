// SPDX-License-Identifier: GPL-2.0-or-later
//! The clock that times releases: `CLOCK_MONOTONIC`, or a fake of it in tests.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use sample::{Monotonic, Nanos, Stamp};

/// The present time of `CLOCK_MONOTONIC`. If the clock source allows it, the vDSO reads it in user space (vdso(7)).
#[inline]
pub fn now() -> Stamp<Monotonic> {
    let t = clock_gettime(ClockId::Monotonic);
    Stamp::from_ns(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// A clock that releases a task. It separates the arithmetic of a periodic task from the way the task sleeps.
pub trait Clock {
    /// Returns the present time.
    fn now(&self) -> Stamp<Monotonic>;

    /// Blocks until `due`. Returns at once if `due` is over.
    fn sleep_until(&self, due: Stamp<Monotonic>);
}

/// The kernel's `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Stamp<Monotonic> {
        now()
    }

    /// Sleeps by `clock_nanosleep` with `TIMER_ABSTIME`. If a signal handler ran, the thread goes on sleeping.
    #[inline]
    fn sleep_until(&self, due: Stamp<Monotonic>) {
        let due = timespec(Nanos(due.ns()));
        while clock_nanosleep_absolute(ClockId::Monotonic, &due) == Err(Errno::INTR) {}
    }
}

fn timespec(time: Nanos) -> Timespec {
    // 2^64 ns are 1.8·10^10 s.
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos() as _ }
}

#[cfg(test)]
pub(crate) mod fake {
    use super::*;
    use std::cell::Cell;
    use std::collections::VecDeque;

    /// A clock under a test's control. A sleep ends at its due time plus the next of `delays`, or plus 0 if no delay is
    /// left. Each reading takes `read`.
    #[derive(Default)]
    pub(crate) struct Fake {
        pub(crate) now: Cell<u64>,
        pub(crate) read: Cell<u64>,
        pub(crate) delays: std::cell::RefCell<VecDeque<u64>>,
    }

    impl Clock for Fake {
        fn now(&self) -> Stamp<Monotonic> {
            self.now.set(self.now.get() + self.read.get());
            Stamp::from_ns(self.now.get())
        }

        fn sleep_until(&self, due: Stamp<Monotonic>) {
            let delay = self.delays.borrow_mut().pop_front().unwrap_or(0);
            self.now.set(self.now.get().max(due.ns()) + delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_when_it_is_due_or_later_and_the_past_is_no_sleep() {
        let due = now() + Nanos(100_000);
        SystemClock.sleep_until(due);
        assert!(now().since(due).is_some());
        SystemClock.sleep_until(Stamp::from_ns(0));
    }

    #[test]
    fn the_largest_stamp_is_a_valid_time_for_the_kernel() {
        let t = timespec(Nanos(u64::MAX));
        assert_eq!((t.tv_sec, t.tv_nsec), (18_446_744_073, 709_551_615));
    }
}
