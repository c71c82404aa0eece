// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of measuring itself: reading the clock, which every probe does.

use sample::Nanos;

const PAIRS: usize = 1001;

/// The median difference of two successive readings of `CLOCK_MONOTONIC`. No latency is known more exactly than this.
pub(crate) fn clock_read() -> Nanos {
    let mut costs = [Nanos(0); PAIRS];
    for cost in &mut costs {
        let before = rt::now();
        // The probe `gtod` is there for a clock that goes backwards.
        *cost = rt::now().since(before).unwrap_or_default();
    }
    *costs.select_nth_unstable(PAIRS / 2).1
}
