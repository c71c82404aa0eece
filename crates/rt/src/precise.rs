// SPDX-License-Identifier: GPL-2.0-or-later
//! A sleep that ends at its instant: the thread wakes early, and then spins on the clock.
//!
//! This is the busy wait of 2001 (tables 3 and 4) with a bound. Each sleep costs CPU time: the margin by which the
//! thread wakes early. If a wake-up is late by more than this margin, the sleep ends late.

use crate::Clock;
use sample::{Monotonic, Nanos, Stamp};

/// The number of sleeps that calibrate the margin.
const SLEEPS: usize = 50;
/// The length of each of these sleeps. It is long enough for the CPU to really go idle.
const SLEEP: Nanos = Nanos::from_micros(200);
/// The shortest margin. A sleep and a wake-up are two task switches, which take about this long.
const MARGIN_MIN: Nanos = Nanos::from_micros(5);
/// The longest margin. It keeps a bad moment of calibration from costing half the CPU.
const MARGIN_MAX: Nanos = Nanos::from_micros(500);

/// A sleep that ends within a few clock readings of its due time.
#[derive(Clone, Debug)]
pub struct PreciseSleep {
    margin: Nanos,
    most: Nanos,
}

impl PreciseSleep {
    /// Measures how late the calling thread wakes up now, in 50 sleeps of 200 µs. The second largest delay (the 98th
    /// percentile) becomes the margin. The margin is 5 … 500 µs and never more than `most`. `most` keeps a task of
    /// short period from spinning all the time (half the period is a good choice). Calibrating takes about 15 ms.
    pub fn calibrate(clock: &impl Clock, most: Nanos) -> PreciseSleep {
        let mut delays = [Nanos(0); SLEEPS];
        for delay in &mut delays {
            let due = clock.now().saturating_add(SLEEP);
            clock.sleep_until(due);
            // An early wake-up, which cannot happen, would need no margin.
            *delay = clock.now().since(due).unwrap_or(Nanos(0));
        }
        delays.sort_unstable();
        let most = most.min(MARGIN_MAX);
        PreciseSleep { margin: delays[SLEEPS - 2].max(MARGIN_MIN).min(most), most }
    }

    /// How long before the due time the thread wakes up now. One sleep spins for at most this time.
    pub fn margin(&self) -> Nanos {
        self.margin
    }

    /// Sleeps until `due`. Returns the clock's last reading, which is at or after `due`.
    ///
    /// If the clock stands still or goes backwards, the reading may be before `due`. In this case spinning ends after
    /// as many readings as the margin has nanoseconds. Nobody reads a clock in less than one nanosecond.
    #[inline]
    pub fn sleep_until(&mut self, clock: &impl Clock, due: Stamp<Monotonic>) -> Stamp<Monotonic> {
        clock.sleep_until(due.saturating_sub(self.margin));
        let mut now = clock.now();
        self.adapt(now < due);
        for _ in 0..self.margin.0 {
            if now >= due {
                break;
            }
            std::hint::spin_loop();
            now = clock.now();
        }
        now
    }

    /// Follows the 99th percentile of the delays. The margin grows by an eighth if it was too short, and otherwise
    /// shrinks by a thousandth. So it rests where about one sleep in 122 is late (ln 9/8 : ln 1024/1023).
    #[inline]
    fn adapt(&mut self, early: bool) {
        let margin = self.margin.0;
        let next = if early { margin - margin / 1024 } else { margin + margin / 8 };
        self.margin = Nanos(next).max(MARGIN_MIN).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::fake::Fake;

    const MOST: Nanos = Nanos::from_millis(1);

    /// A clock whose n-th sleep ends late by `delay(n)`.
    fn clock(sleeps: u64, delay: impl Fn(u64) -> u64) -> Fake {
        let clock = Fake::default();
        clock.read.set(20);
        clock.delays.borrow_mut().extend((0..sleeps).map(delay));
        clock
    }

    #[test]
    fn the_margin_is_the_second_largest_delay_and_one_reading() {
        let clock = clock(50, |n| if n == 7 { 90_000 } else { 10_000 + n });
        assert_eq!(PreciseSleep::calibrate(&clock, MOST).margin(), Nanos(10_049 + 20));
    }

    #[test]
    fn the_margin_stays_within_its_bounds() {
        for (delay, most, margin) in [
            (0, MOST, 5_000),
            (9_000_000, MOST, 500_000),
            (9_000_000, Nanos(25_000), 25_000),
            (0, Nanos(100), 100),
        ] {
            assert_eq!(
                PreciseSleep::calibrate(&clock(50, |_| delay), most).margin(),
                Nanos(margin)
            );
        }
    }

    #[test]
    fn nearly_every_sleep_ends_within_one_reading_though_wake_ups_are_late() {
        let clock = clock(1050, |n| 10_000 + n * 37 % 5_000);
        let mut sleep = PreciseSleep::calibrate(&clock, MOST);
        let start = clock.now.get();
        let late = (1..=1000)
            .map(|n| Stamp::from_ns(start + n * 1_000_000))
            .filter(|due| sleep.sleep_until(&clock, *due).since(*due).unwrap() >= Nanos(20))
            .count();
        // One sleep in 129 is late at the balance. Without spinning all of them would be late.
        assert!(late <= 16, "{late}");
    }

    #[test]
    fn a_margin_that_became_too_short_grows_until_wake_ups_are_early_again() {
        let clock = clock(150, |n| if n < 50 { 10_000 } else { 40_000 });
        let mut sleep = PreciseSleep::calibrate(&clock, MOST);
        let start = clock.now.get();
        let late = (1..=100)
            .map(|n| Stamp::from_ns(start + n * 1_000_000))
            .filter(|due| sleep.sleep_until(&clock, *due).since(*due).unwrap() > Nanos(20))
            .count();
        // (9/8)^12 = 4.1, and then one sleep in 129 is late.
        assert!((1..=14).contains(&late), "{late}");
        assert!(sleep.margin() > Nanos(40_000 - 40_000 / 8));
    }

    #[test]
    fn a_clock_that_stands_still_cannot_keep_it_spinning() {
        let clock = clock(51, |_| 0);
        let mut sleep = PreciseSleep::calibrate(&clock, MOST);
        clock.read.set(0);
        let due = Stamp::from_ns(clock.now.get() + 1_000_000);
        assert!(sleep.sleep_until(&clock, due) < due);
    }
}
