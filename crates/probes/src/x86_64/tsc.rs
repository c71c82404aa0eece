// SPDX-License-Identifier: GPL-2.0-or-later
//! The time-stamp counter of the processor, converted to nanoseconds.

use crate::report::RunError;
use rustix::time::{ClockId, clock_gettime};
use sample::Nanos;

/// How long the rate is measured. With an error of 100 ns at each end, the rate is known to 4 ppm.
const CALIBRATION: Nanos = Nanos::from_millis(50);

/// Ticks since the counter was reset, read after all earlier loads. The kernel's own `rdtsc_ordered` keeps this order.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn ticks() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions, and Linux lets user space use them.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Other processors have no such counter. [`Rate::measured`] refuses a counter that stands still.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks() -> u64 {
    0
}

/// Converts ticks to nanoseconds and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// The nanoseconds in a tick, × 2³².
    scale: u64,
}

impl Rate {
    /// Measures the rate against `CLOCK_MONOTONIC_RAW`, for 50 ms.
    ///
    /// # Errors
    /// [`RunError::Unavailable`] on a machine without the counter, or if the counter stands still.
    pub(crate) fn measured() -> Result<Rate, RunError> {
        let (ticks_before, raw_before) = both();
        rt::Clock::sleep_until(&rt::SystemClock, rt::now() + CALIBRATION);
        let (ticks_after, raw_after) = both();
        Rate::of(raw_after.saturating_sub(raw_before), ticks_after.saturating_sub(ticks_before))
            .ok_or_else(|| RunError::Unavailable {
                what: "time-stamp counter".into(),
                reason: "the counter stands still, or this processor has none; take another clock"
                    .into(),
            })
    }

    fn of(ns: u64, ticks: u64) -> Option<Rate> {
        let scale = (u128::from(ns) << 32).checked_div(u128::from(ticks))?;
        Some(Rate { scale: u64::try_from(scale).ok().filter(|scale| *scale > 0)? })
    }

    /// The time that `ticks` take, rounded down.
    #[inline]
    pub(crate) fn nanos(self, ticks: u64) -> Nanos {
        Nanos(((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64)
    }

    /// The ticks in `time`, rounded down.
    pub(crate) fn ticks(self, time: Nanos) -> u64 {
        u64::try_from((u128::from(time.0) << 32) / u128::from(self.scale)).unwrap_or(u64::MAX)
    }
}

/// The counter and the clock at one moment. Of several tries the function takes one that nothing interrupted.
fn both() -> (u64, u64) {
    let once = || {
        let before = ticks();
        let t = clock_gettime(ClockId::MonotonicRaw);
        let width = ticks() - before;
        (width, before + width / 2, t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    };
    let (_, ticks, raw) = (0..16).map(|_| once()).min().expect("sixteen tries");
    (ticks, raw)
}

/// Whether the counter runs at one rate in all power states (AMD64 manual vol. 3, Fn8000_0007 EDX bit 8; Intel SDM
/// vol. 3B, 17.17.1).
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1
}

/// The answer on other processors, which have no such counter.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_and_back_without_drift() {
        // 2.6 GHz: an hour is 9.36e12 ticks.
        let rate = Rate::of(1_000_000_000, 2_600_000_000).unwrap();
        let hour = rate.nanos(9_360_000_000_000);
        assert!(hour.0.abs_diff(3_600_000_000_000) < 2_000, "{hour:?}");
        assert!(rate.ticks(Nanos(1_000)).abs_diff(2_600) <= 1);
        assert!(Rate::of(5, 0).is_none());
        assert!(Rate::of(0, 5).is_none());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_counter_agrees_with_the_clock_it_was_calibrated_by() {
        let rate = Rate::measured().unwrap();
        let (t0, r0) = both();
        std::hint::black_box((0..1_000_000u64).fold(0, |a, b| std::hint::black_box(a ^ b)));
        let (t1, r1) = both();
        let (counter, clock) = (rate.nanos(t1 - t0).0, r1 - r0);
        assert!(counter.abs_diff(clock) < clock / 100 + 10_000, "{counter} {clock}");
    }
}
