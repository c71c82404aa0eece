// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `gtod`: how long reading a clock takes, and whether it goes backwards (2007 Internals, §10.1: gtod_latency).
//!
//! The latency is the difference between two consecutive readings. It contains one reading, and whatever ran in
//! between. A coarse clock shows 0 and the size of its steps.

use crate::definition::{Definition, Key, Measure, Sampled, events, times, word};
use crate::plan::Plan;
use crate::report::{Doubt, Report, RunError};
use crate::run::check_count;
use crate::threads::measuring;
use crate::x86_64::tsc;
use crate::{Output, overhead};
use rt::{Clock, SystemClock, Usage};
use rustix::time::{ClockId, clock_gettime};
use sample::{Loss, Nanos};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of pairs after which the thread sleeps. The sleep gives time to the reader of the ring, and it keeps a
/// real-time task from taking the whole CPU.
const BURST: u64 = 1_000;
const PAUSE: Nanos = Nanos::from_millis(1);

pub(crate) const DEFINITION: Definition = Definition {
    name: "gtod",
    about: "How long reading a clock takes, and whether it goes backwards",
    keys: &[
        Key::words::<ReadClock>("clocks", "monotonic", "Which: {}."),
        Key::count("Number of pairs of reads for each clock."),
    ],
    examples: [
        "onset measure gtod --clock monotonic,tsc",
        "onset measure gtod --count 1000000 --cpus 1",
    ],
};

/// The probe's part of a plan: one series for each clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gtod {
    /// The clocks that are read.
    pub clocks: Vec<ReadClock>,
    /// The number of pairs of readings for each clock.
    pub count: u64,
}

/// A clock that is read in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadClock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`.
    Raw,
    /// `CLOCK_REALTIME`.
    Realtime,
    /// `CLOCK_MONOTONIC_COARSE`.
    Coarse,
    /// `CLOCK_BOOTTIME`.
    Boottime,
    /// The time-stamp counter, converted to ns.
    Tsc,
}

impl Measure for Gtod {
    fn series(&self, _plan: &Plan) -> Vec<String> {
        self.clocks.iter().map(word).collect()
    }

    // About 500 ns a pair: two readings, and the work on their result.

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other(
            "its samples are the times between two readings of a clock by one task, which never waits; take periodic, or look at `onset windows` of this run",
        )
    }

    fn duration(&self) -> Nanos {
        times(Nanos(500), self.count, self.clocks.len())
    }

    fn events(&self) -> u64 {
        events(self.count, self.clocks.len())
    }

    fn spins(&self) -> bool {
        true
    }

    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_count(self.count)?;
        let reports = measuring(plan.policy, &[Some(plan.cpus[0])], outputs, |_, output| {
            measure(self, output, stop)
        })?;
        Ok(reports.into_iter().next().unwrap_or_default())
    }
}

fn measure(gtod: &Gtod, output: &mut Output, stop: &AtomicBool) -> Result<Report, RunError> {
    let mut report = Report::default();
    report.largest("overhead_ns", overhead::clock_read().0);
    let mut faults = 0;
    for (clock, number) in gtod.clocks.iter().zip(0..) {
        let mut job = Job { series: number, count: gtod.count, output: &mut *output, stop };
        let of = |id| move || read(id);
        faults += match clock {
            ReadClock::Monotonic => job.pairs(of(ClockId::Monotonic)),
            ReadClock::Raw => job.pairs(of(ClockId::MonotonicRaw)),
            ReadClock::Realtime => job.pairs(of(ClockId::Realtime)),
            ReadClock::Coarse => job.pairs(of(ClockId::MonotonicCoarse)),
            ReadClock::Boottime => job.pairs(of(ClockId::Boottime)),
            ReadClock::Tsc => {
                if !tsc::is_invariant() {
                    report.doubts.push(Doubt::TscNotInvariant);
                }
                let rate = tsc::Rate::measured()?;
                job.pairs(|| rate.nanos(tsc::ticks()))
            }
        };
    }
    report.add("page_faults", faults);
    Ok(report)
}

#[inline(always)]
fn read(id: ClockId) -> Nanos {
    let t = clock_gettime(id);
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

struct Job<'a> {
    series: u16,
    count: u64,
    output: &'a mut Output,
    stop: &'a AtomicBool,
}

impl Job<'_> {
    /// Measures the pairs, and returns the page faults of the loop. The function is compiled for each clock, so that
    /// only the reading lies between two readings.
    fn pairs(&mut self, read: impl Fn() -> Nanos) -> u64 {
        let before = Usage::of_thread();
        let mut track = Track::new(read());
        for number in 0..self.count {
            if number % BURST == BURST - 1 {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                SystemClock.sleep_until(rt::now() + PAUSE);
            }
            let (first, second) = (read(), read());
            match track.pair(first, second) {
                Some((at, latency)) => self.output.sample(self.series, number, at, latency),
                None => self.output.loss(self.series, Loss::Tainted, 1),
            }
        }
        Usage::of_thread().since(&before).page_faults()
    }
}

/// The last reading of a clock, which shows when the clock goes backwards.
struct Track {
    last: Nanos,
    /// The time since the beginning, without backward steps.
    at: Nanos,
}

impl Track {
    fn new(now: Nanos) -> Track {
        Track { last: now, at: Nanos(0) }
    }

    /// When a pair began and how long it took. `None` if the clock went backwards within the pair or before it.
    #[inline]
    fn pair(&mut self, first: Nanos, second: Nanos) -> Option<(Nanos, Nanos)> {
        let passed = first.checked_sub(self.last);
        let latency = second.checked_sub(first);
        let at = self.at.saturating_add(passed.unwrap_or_default());
        self.at = at.saturating_add(latency.unwrap_or_default());
        self.last = second;
        Some((at, passed.and(latency)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_backwards_within_or_between_pairs_taints_just_that_pair() {
        let mut track = Track::new(Nanos(1_000));
        assert_eq!(track.pair(Nanos(1_010), Nanos(1_030)), Some((Nanos(10), Nanos(20))));
        // A step back within a pair.
        assert_eq!(track.pair(Nanos(1_040), Nanos(1_035)), None);
        // A step back between two pairs, as when somebody sets the date.
        assert_eq!(track.pair(Nanos(500), Nanos(525)), None);
        // The next pair continues the time before the step.
        assert_eq!(track.pair(Nanos(535), Nanos(540)), Some((Nanos(75), Nanos(5))));
    }

    #[test]
    fn a_clock_that_stands_still_is_no_fault() {
        let mut track = Track::new(Nanos(7));
        assert_eq!(track.pair(Nanos(7), Nanos(7)), Some((Nanos(0), Nanos(0))));
    }
}
