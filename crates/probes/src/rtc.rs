// SPDX-License-Identifier: GPL-2.0-or-later
//! The periodic interrupt of the real-time clock, or a timerfd at its rate.
//!
//! Today's kernels emulate the periodic interrupt of every RTC driver by a high-resolution timer (drivers/rtc/interface.c:
//! `rtc_update_hrtimer`, `rtc_pie_update_irq`): what is measured is that timer, and the wake-up from `read` of the
//! device. Its period is a whole number of ns, ⌊10⁹ ÷ rate⌋, so there is no drift between it and CLOCK_MONOTONIC.

use crate::plan::{Plan, Rtc};
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::threads::measuring;
use crate::{Output, Report, RunError, failure, overhead};
use rt::{Policy, Usage, now};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use sample::{Loss, Monotonic, Nanos, Stamp};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

const DEVICE: &str = "/dev/rtc0";
/// `_IO('p', 0x05)`, `_IO('p', 0x06)`, `_IOW('p', 0x0c, unsigned long)`: linux/rtc.h, rtc(4).
const RTC_PIE_ON: libc::Ioctl = 0x7005;
const RTC_PIE_OFF: libc::Ioctl = 0x7006;
const RTC_IRQP_SET: libc::Ioctl = 0x4000_700c | (size_of::<libc::c_ulong>() as libc::Ioctl) << 16;
/// The lowest byte of what is read says which interrupt; the rest counts them (rtc(4)).
const COUNT_SHIFT: u32 = 8;

/// `rtc-2048hz`, or `timerfd-2048hz`.
pub(crate) fn series(probe: &Rtc) -> Vec<String> {
    let source = if probe.timerfd { "timerfd" } else { "rtc" };
    vec![format!("{source}-{}hz", probe.rate_hz)]
}

/// One thread of its own.
///
/// # Errors
/// No such rate, no such device, or no right to it; the text names the remedy.
pub(crate) fn run(
    plan: &Plan,
    probe: &Rtc,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Report, RunError> {
    if !probe.rate_hz.is_power_of_two() || !(2..=8192).contains(&probe.rate_hz) {
        return Err(failure::plan(
            "rate_hz",
            format!("{} Hz: a real-time clock ticks at a power of two, 2 … 8192", probe.rate_hz),
        ));
    }
    let period = Nanos(1_000_000_000 / u64::from(probe.rate_hz));
    check_count(probe.count)?;
    let cpu = [plan.cpus.first().copied()];
    let found = measuring(plan.policy, &cpu, std::slice::from_mut(output), |_, output| {
        if probe.timerfd {
            timerfd(probe, period, output, stop)
        } else {
            clock(probe, period, output, stop)
        }
    })?;
    let mut report = Report::default();
    report.largest("overhead_ns", overhead::clock_read().0);
    for found in found {
        report.add("page_faults", found.faults);
        if let Some(moved) = found.moved {
            report.largest("phase_moved_ns", moved.0);
        }
    }
    Ok(report)
}

/// What the loop found beside its samples.
struct Found {
    faults: u64,
    /// How far the anchor of the grid moved: the earliest samples may be too small by that much.
    moved: Option<Nanos>,
}

/// The grid of interrupts, of which only the answers are seen: interrupt `n` is due `n` periods after the anchor, and
/// the anchor is as late as it can be without any answer having come before its interrupt. A latency is therefore
/// never negative, and too small by what the quickest answer took.
struct Grid {
    period: Nanos,
    /// Where interrupt 0 would be by the earliest answer so far.
    anchor: Stamp<Monotonic>,
    /// How far the anchor moved after the first answer.
    moved: Nanos,
}

impl Grid {
    fn anchored(first: Stamp<Monotonic>, period: Nanos) -> Grid {
        Grid { period, anchor: first, moved: Nanos(0) }
    }

    /// An answer to interrupts `oldest` to `newest` came at `answered`: when the oldest was due, and how late it is
    /// answered. `None` beyond the clock's range.
    fn answer(
        &mut self,
        oldest: u64,
        newest: u64,
        answered: Stamp<Monotonic>,
    ) -> Option<(Stamp<Monotonic>, Nanos)> {
        let latest = answered.ns().checked_sub(newest.checked_mul(self.period.0)?)?;
        if let Some(earlier) = self.anchor.ns().checked_sub(latest) {
            self.moved = self.moved.checked_add(Nanos(earlier))?;
            self.anchor = Stamp::from_ns(latest);
        }
        let due = Stamp::from_ns(self.anchor.ns().checked_add(oldest * self.period.0)?);
        Some((due, answered.since(due)?))
    }
}

/// The device itself.
fn clock(
    probe: &Rtc,
    period: Nanos,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Found, RunError> {
    let device = Ticking::start(probe.rate_hz)?;
    device.ticks()?;
    let origin = now();
    let mut grid = Grid::anchored(origin, period);
    let mut record = Recorder::new(output, 0, origin);
    let before = Usage::of_thread();
    // Interrupt 0 is that which anchors the grid; those that are measured follow it.
    let mut next = 1;
    while next <= probe.count && !stop.load(Ordering::Relaxed) {
        let ticks = device.ticks()?;
        let answered = now();
        if ticks == 0 {
            record.loss(Loss::Spurious, 1);
            continue;
        }
        let newest = next + ticks - 1;
        // Numbers from 0, as everywhere.
        match grid.answer(next, newest, answered) {
            Some((due, latency)) => record.sample(next - 1, due, Some(latency)),
            None => record.loss(Loss::Tainted, 1),
        }
        record.loss(Loss::Superseded, newest.min(probe.count) - next);
        next = newest + 1;
    }
    record.loop_ended(&before);
    Ok(Found { faults: record.faults(), moved: Some(grid.moved) })
}

/// The device while its periodic interrupt is on.
struct Ticking {
    device: File,
}

impl Ticking {
    fn start(rate_hz: u32) -> Result<Ticking, RunError> {
        let device = File::open(DEVICE).map_err(|e| refused("opening it", &e))?;
        let set = |what, request, argument: libc::c_ulong| {
            // SAFETY: these requests take a number, not a pointer.
            match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
                -1 => Err(refused(what, &io::Error::last_os_error())),
                _ => Ok(()),
            }
        };
        set("setting its rate", RTC_IRQP_SET, rate_hz.into())?;
        set("switching its periodic interrupt on", RTC_PIE_ON, 0)?;
        Ok(Ticking { device })
    }

    /// Blocks; how many interrupts there were since the last call.
    fn ticks(&self) -> Result<u64, RunError> {
        let mut word = [0u8; size_of::<libc::c_ulong>()];
        retry_on_intr(|| read(&self.device, &mut word))
            .map_err(|e| refused("reading", &e.into()))?;
        Ok(libc::c_ulong::from_ne_bytes(word) >> COUNT_SHIFT)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        // The kernel spins until the timer's handler is not running (rtc_irq_set_state()). On PREEMPT_RT that handler is
        // a thread of low priority, and it has just woken this one: at a higher priority it would spin for ever. Giving
        // up a priority is never refused.
        let _ = rt::apply(Policy::Other(0));
        // SAFETY: takes no argument.
        unsafe { libc::ioctl(self.device.as_raw_fd(), RTC_PIE_OFF, 0) };
    }
}

fn refused(doing: &str, error: &io::Error) -> RunError {
    let remedy = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => "this machine has no real-time clock",
        Some(Errno::BUSY) => "another program has it open (fuser /dev/rtc0)",
        Some(Errno::ACCESS | Errno::PERM) => {
            "run with sudo, or let your group read it and write the rate to /sys/class/rtc/rtc0/max_user_freq"
        }
        Some(Errno::INVAL | Errno::NOTTY) => "its driver has no periodic interrupt",
        _ => "it cannot be measured here",
    };
    failure::unavailable(
        "periodic interrupt",
        format!(
            "{DEVICE}: {doing}: {error}: {remedy}; or measure a timerfd at that rate (timerfd = true)"
        ),
    )
}

/// A periodic timerfd: due times are known exactly, so this is the periodic probe at the RTC's rate.
fn timerfd(
    probe: &Rtc,
    period: Nanos,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Found, RunError> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .map_err(|e| failure::system("timerfd_create")(e.into()))?;
    let origin = now();
    let first = Stamp::<Monotonic>::from_ns(origin.ns() + period.0);
    let timespec = |ns: u64| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    let when = Itimerspec { it_interval: timespec(period.0), it_value: timespec(first.ns()) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &when)
        .map_err(|e| failure::system("timerfd_settime")(e.into()))?;
    let mut record = Recorder::new(output, 0, origin);
    let before = Usage::of_thread();
    let mut next = 0;
    while next < probe.count && !stop.load(Ordering::Relaxed) {
        let mut expired = [0u8; 8];
        retry_on_intr(|| read(&timer, &mut expired))
            .map_err(|e| failure::system("reading the timerfd")(e.into()))?;
        let answered = now();
        let newest = (next + u64::from_ne_bytes(expired)).min(probe.count);
        let due = Stamp::from_ns(first.ns() + next * period.0);
        record.sample(next, due, answered.since(due));
        record.loss(Loss::Superseded, newest - next - 1);
        next = newest;
    }
    record.loop_ended(&before);
    Ok(Found { faults: record.faults(), moved: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Stamp<Monotonic> {
        Stamp::from_ns(ns)
    }

    #[test]
    fn an_answer_is_late_by_what_it_is_behind_the_quickest_one() {
        let mut grid = Grid::anchored(at(1_000), Nanos(100));
        assert_eq!(grid.answer(1, 1, at(1_107)), Some((at(1_100), Nanos(7))));
        assert_eq!(grid.answer(2, 2, at(1_200)), Some((at(1_200), Nanos(0))));
        assert_eq!(grid.moved, Nanos(0));
    }

    #[test]
    fn a_quicker_answer_moves_the_grid_and_says_how_far() {
        let mut grid = Grid::anchored(at(1_050), Nanos(100));
        assert_eq!(grid.answer(1, 1, at(1_110)), Some((at(1_110), Nanos(0))));
        assert_eq!(grid.moved, Nanos(40));
        assert_eq!(grid.answer(2, 2, at(1_250)), Some((at(1_210), Nanos(40))));
    }

    #[test]
    fn missed_interrupts_are_answered_at_the_full_length_of_the_oldest() {
        let mut grid = Grid::anchored(at(1_000), Nanos(100));
        assert_eq!(grid.answer(1, 3, at(1_330)), Some((at(1_100), Nanos(230))));
    }

    #[test]
    fn a_missing_clock_is_an_error_that_offers_the_timerfd() {
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        assert!(refused("opening it", &missing).to_string().contains("timerfd = true"));
    }
}
