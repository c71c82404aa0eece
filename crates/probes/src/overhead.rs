// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of measuring itself: reading the clock, which every probe does.

use sample::Nanos;

const PAIRS: usize = 1001;

/// Median difference of two readings of `CLOCK_MONOTONIC` that follow each other: no latency is known better.
pub(crate) fn clock_read() -> Nanos {
    let mut costs = [Nanos(0); PAIRS];
    for cost in &mut costs {
        let before = rt::now();
        // A clock that goes backwards is the business of the probe `gtod`.
        *cost = rt::now().since(before).unwrap_or_default();
    }
    *costs.select_nth_unstable(PAIRS / 2).1
}
