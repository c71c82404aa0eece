// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads from the kernel's own list of timers when the timer behind the real-time clock expires, and so when each
//! interrupt is due.
//!
//! The list (`/proc/timer_list`, only for root) shows the absolute time at which each armed timer expires. For this
//! timer the time is on `CLOCK_MONOTONIC` (rtc_device_register: `hrtimer_init(&rtc->pie_timer, CLOCK_MONOTONIC, …)`).
//! The kernel moves the timer on by whole periods, so one line tells all expirations.

use sample::{Monotonic, Nanos, Stamp};

/// The file with the kernel's list of timers.
pub(super) const TIMERS: &str = "/proc/timer_list";
/// The handler of the periodic interrupt (drivers/rtc/interface.c).
const HANDLER: &str = "rtc_pie_update_irq";

/// When the real-time clock's timer expires next. `None` if the list does not show the timer.
pub(super) fn next_expiry(list: &str) -> Option<Stamp<Monotonic>> {
    let mut lines = list.lines();
    lines.find(|line| line.contains(HANDLER))?;
    let times = lines.next()?.trim().strip_prefix("# expires at ")?;
    let digits = times.find(|c: char| !c.is_ascii_digit())?;
    times[..digits].parse().ok().map(Stamp::from_ns)
}

/// The grid of interrupts as the kernel keeps it.
pub(super) struct Due {
    /// The instant at which one of the interrupts is due.
    expiry: i128,
    period: i128,
    /// The place of interrupt 0: how many periods after `expiry` it is due. It is as late as the answers so far allow.
    zero: i128,
}

impl Due {
    /// A grid whose interrupts are due whole periods before and after `expiry`. Their numbers are not known yet.
    pub(super) fn at(expiry: Stamp<Monotonic>, period: Nanos) -> Due {
        Due { expiry: expiry.ns().into(), period: period.0.into(), zero: i128::MAX }
    }

    /// Learns that interrupt `newest`, and no later one, was answered at `answered`. This interrupt was due before. The
    /// quickest of several answers tells the number of the interrupt if it took less than a period.
    pub(super) fn learn(&mut self, newest: u64, answered: Stamp<Monotonic>) {
        let periods = (i128::from(answered.ns()) - self.expiry).div_euclid(self.period);
        self.zero = self.zero.min(periods - i128::from(newest));
    }

    /// When interrupt `number` is due. `None` beyond the clock's range, or if no answer is known yet.
    pub(super) fn of(&self, number: u64) -> Option<Stamp<Monotonic>> {
        let periods = self.zero.checked_add(number.into())?;
        let due = self.expiry.checked_add(periods.checked_mul(self.period)?)?;
        u64::try_from(due).ok().map(Stamp::from_ns)
    }

    /// Compares the list with the clock: whether a timer expires on this grid, if it was armed for `first` at some
    /// instant of `armed`.
    pub(super) fn fits(&self, armed: (Stamp<Monotonic>, Stamp<Monotonic>), first: Nanos) -> bool {
        let begun = i128::from(armed.0.ns()) + i128::from(first.0);
        let since = (self.expiry - begun).rem_euclid(self.period);
        since <= i128::from(armed.1.ns()) - i128::from(armed.0.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "active timers:\n #0: <0000000000000000>, tick_nohz_handler, S:01\n \
        # expires at 5000000000-5000000000 nsecs [in 1 to 1 nsecs]\n \
        #1: <0000000000000000>, rtc_pie_update_irq, S:01\n \
        # expires at 5000300123-5000300123 nsecs [in 300123 to 300123 nsecs]\n";

    fn at(ns: u64) -> Stamp<Monotonic> {
        Stamp::from_ns(ns)
    }

    #[test]
    fn the_clocks_own_timer_is_found_in_the_kernels_list_and_no_other() {
        assert_eq!(next_expiry(LIST), Some(at(5_000_300_123)));
        assert_eq!(next_expiry(&LIST.replace("rtc_pie_update_irq", "hrtimer_wakeup")), None);
        assert_eq!(next_expiry(""), None);
    }

    #[test]
    fn interrupts_are_due_on_the_kernels_grid_whichever_of_them_the_list_showed() {
        for shown in [1_000, 1_300, 700] {
            let mut due = Due::at(at(shown), Nanos(100));
            // The first answer came more than a period late, the next one in time.
            due.learn(0, at(1_230));
            due.learn(2, at(1_304));
            assert_eq!(due.of(2), Some(at(1_300)), "{shown}");
            assert_eq!(due.of(3), Some(at(1_400)));
        }
    }

    #[test]
    fn a_grid_of_which_no_answer_is_known_tells_no_time() {
        assert_eq!(Due::at(at(1_000), Nanos(100)).of(0), None);
    }

    #[test]
    fn a_timer_that_nobody_armed_then_is_not_ours() {
        let due = Due::at(at(1_042), Nanos(100));
        assert!(due.fits((at(740), at(745)), Nanos(100)));
        assert!(!due.fits((at(743), at(745)), Nanos(100)));
        assert!(!due.fits((at(736), at(741)), Nanos(100)));
        // On a machine with timers of a tick, the first period is as asked for and later periods are longer.
        assert!(due.fits((at(702), at(705)), Nanos(40)));
    }
}
