// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `toggle`: how exactly a pulse is held (2007 assessment, §2 and figures 9–26: 50 µs every 1 ms, seen by an oscilloscope).
//!
//! The rising edge of pulse `n` is due at `start + (n + 1) · period`, the falling one a width later, whatever became of the
//! rising one. An edge's latency is the clock after the write that makes it, less that; `width` is by how much the time from
//! one such reading to the other differs from the asked one. It is what the program knows; what the pin does is seen from
//! outside alone, and inside the rig that takes the place of these numbers.

mod line;

use crate::plan::{Line, Overrun, Plan, SleepMethod, Toggle};
use crate::report::{Report, RunError};
use crate::run::{check_count, check_time};
use crate::threads::measuring;
use crate::{Output, overhead};
use line::{Gpio, Level, Memory};
use rt::{Clock, PreciseSleep, Release, RuntimeLimit, SystemClock, Usage};
use sample::{Loss, Monotonic, Nanos, Stamp};
use std::sync::atomic::{AtomicBool, Ordering};

const RISE: u16 = 0;
const FALL: u16 = 1;
const WIDTH: u16 = 2;
/// A real-time thread that did not block for so long will never again.
const RUNAWAY: Nanos = Nanos::from_millis(1_000);

pub(crate) fn series() -> Vec<String> {
    ["rise", "fall", "width"].map(str::to_owned).into()
}

pub(crate) fn run(
    plan: &Plan,
    toggle: &Toggle,
    outputs: &mut [Output],
    stop: &AtomicBool,
) -> Result<Report, RunError> {
    check_count(toggle.count)?;
    check_time("period_ns", toggle.period)?;
    check_time("width_ns", toggle.width)?;
    let wrong = |part, wrong: String| Err(RunError::Plan { part, wrong });
    if toggle.width >= toggle.period {
        return wrong("width_ns", format!("{} is not below the period", toggle.width));
    }
    if !matches!(toggle.method, SleepMethod::ClockNanosleep | SleepMethod::Precise) {
        return wrong(
            "method",
            "edges have absolute times: take clock_nanosleep or precise".into(),
        );
    }
    // Refused where a stricter limit is in force, which does as well.
    let _guard = RuntimeLimit::hold(RUNAWAY);
    // A deadline thread cannot be bound.
    let bound = !matches!(plan.policy, rt::Policy::Deadline { .. });
    let cpus = [bound.then_some(plan.cpus[0])];
    let reports = measuring(plan.policy, &cpus, outputs, |_, output| {
        let mut pulses = Pulses { toggle, output, stop };
        match &toggle.line {
            Line::Memory => pulses.measure(Memory::new()),
            #[cfg(target_arch = "x86_64")]
            Line::ParallelPort(port) => pulses.measure(line::ParallelPort::open(*port)?),
            #[cfg(not(target_arch = "x86_64"))]
            Line::ParallelPort(_) => Err(RunError::Unavailable {
                what: "parallel port".into(),
                reason: "this processor has no I/O ports; take a GPIO line".into(),
            }),
            Line::Gpio(chip, offset) => pulses.measure(Gpio::open(chip, *offset)?),
        }
    })?;
    Ok(reports.into_iter().next().unwrap_or_default())
}

struct Pulses<'a> {
    toggle: &'a Toggle,
    output: &'a mut Output,
    stop: &'a AtomicBool,
}

impl Pulses<'_> {
    fn measure(&mut self, mut line: impl Level) -> Result<Report, RunError> {
        // A driver that looked for the port may have left it high, and the first pulse would have no rising edge.
        line.set(false)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let before = Usage::of_thread();
        let done = match self.toggle.method {
            SleepMethod::Precise => {
                // Half the time between pulses, so that the task blocks there; within a short pulse it spins.
                let most = Nanos(self.between().0 / 2);
                let mut sleep = PreciseSleep::calibrate(&SystemClock, most);
                self.hold(&mut line, |due| _ = sleep.sleep_until(&SystemClock, due))
            }
            _ => self.hold(&mut line, |due| SystemClock.sleep_until(due)),
        };
        // However it ended.
        line.set(false)?;
        report.add("origin_ns", done?.ns());
        report.add("page_faults", Usage::of_thread().since(&before).page_faults());
        Ok(report)
    }

    /// From falling to rising edge.
    fn between(&self) -> Nanos {
        Nanos(self.toggle.period.0 - self.toggle.width.0)
    }

    /// Makes the pulses; gives the time from which theirs count.
    fn hold(
        &mut self,
        line: &mut impl Level,
        mut sleep: impl FnMut(Stamp<Monotonic>),
    ) -> Result<Stamp<Monotonic>, RunError> {
        let Toggle { period, width, count, .. } = *self.toggle;
        let origin = rt::now();
        let first = Stamp::from_ns(origin.ns() + period.0);
        let mut release = Release::new(first, period, Overrun::Skip);
        loop {
            sleep(release.due());
            line.set(true)?;
            let rose = rt::now();
            let rise = release.woke(rose, release.passed(rose));
            self.put(RISE, rise.number, rise.due, origin, rise.latency);
            let due = Stamp::from_ns(rise.due.ns() + width.0);
            sleep(due);
            line.set(false)?;
            let fell = rt::now();
            self.put(FALL, rise.number, due, origin, fell.since(due));
            let differs = |length: Nanos| Nanos(length.0.abs_diff(width.0));
            self.put(WIDTH, rise.number, rise.due, origin, fell.since(rose).map(differs));
            // Pulses that were not made have no edges.
            let skipped = rise.skipped.min(count - 1 - rise.number);
            if skipped > 0 {
                for series in [RISE, FALL, WIDTH] {
                    self.output.loss(series, Loss::Superseded, skipped);
                }
            }
            if rise.number + 1 + skipped >= count || self.stop.load(Ordering::Relaxed) {
                return Ok(origin);
            }
        }
    }

    #[inline]
    fn put(
        &mut self,
        series: u16,
        number: u64,
        due: Stamp<Monotonic>,
        origin: Stamp<Monotonic>,
        latency: Option<Nanos>,
    ) {
        match (due.since(origin), latency) {
            (Some(at), Some(latency)) => self.output.sample(series, number, at, latency),
            _ => self.output.loss(series, Loss::Tainted, 1),
        }
    }
}
