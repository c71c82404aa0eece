// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `rtc`: how late a task answers the periodic interrupt of the real-time clock, or a timerfd at its rate.
//!
//! Today's kernels emulate the periodic interrupt of every RTC driver by a high-resolution timer
//! (drivers/rtc/interface.c: `rtc_update_hrtimer`, `rtc_pie_update_irq`). So the probe measures that timer, and the
//! wake-up from `read` of the device. The period of the timer is a whole number of ns, ⌊10⁹ ÷ rate⌋, so there is no
//! drift between it and CLOCK_MONOTONIC.
//!
//! The probe makes three series from the same answers. The first is the time from the instant when the interrupt was
//! due, by the kernel's list of timers ([`expiry`]; 2002, "Preemption Latency": from the interrupt until the thread
//! runs). The second is by how much an answer came later than the quickest one, which needs no privilege. The third is
//! by how much the distance of two answers differs from a period, which is what realfeel shows.

mod expiry;

use crate::definition::{Definition, Key, Kind, Measure, Sampled, Unsound, events, times};
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::threads::measuring;
use crate::{Doubt, Output, Report, RunError, failure, overhead};
use expiry::{Due, TIMERS, next_expiry};
use rt::{Policy, Usage, now};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_getres,
    timerfd_create, timerfd_settime,
};
use sample::{Loss, Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

const DEVICE: &str = "/dev/rtc0";
/// `_IO('p', 0x05)`, `_IO('p', 0x06)`, `_IOW('p', 0x0c, unsigned long)`: linux/rtc.h, rtc(4).
const RTC_PIE_ON: libc::Ioctl = 0x7005;
const RTC_PIE_OFF: libc::Ioctl = 0x7006;
const RTC_IRQP_SET: libc::Ioctl = 0x4000_700c | (size_of::<libc::c_ulong>() as libc::Ioctl) << 16;
/// The lowest byte of the value that is read names the interrupt. The other bits count interrupts (rtc(4)).
const COUNT_SHIFT: u32 = 8;

/// The number of answers in time from which the probe learns the numbers of interrupts, before it measures.
const LEARNED: u64 = 16;
/// Room for the list of timers. The list grows with the number of processors.
const TIMERS_BYTES: usize = 1 << 20;

/// The places of the series in [`series`]: of this one and the two below.
const QUICKEST: usize = 0;
const INTERVAL: usize = 1;
const INTERRUPT: usize = 2;

pub(crate) const DEFINITION: Definition = Definition {
    name: "rtc",
    about: "How late a task answers the periodic interrupt of the real-time clock",
    keys: &[
        Key {
            name: "rate_hz",
            kind: Kind::Number(2, 8192),
            default: "2048",
            help: "Number of interrupts in each second, a power of two.",
        },
        Key::count("Interrupts."),
        Key::flag(
            "timerfd",
            "Measure a timerfd at that rate instead of the real-time clock, for machines without one",
        ),
    ],
    examples: ["onset measure rtc --rate 1024 --timerfd", "onset measure rtc --flavour 6.12-rt"],
};

/// The probe's part of a plan. It has three series of the same answers, or two where a timerfd is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rtc {
    /// Interrupts in each second: a power of two, 2 … 8192.
    pub rate_hz: u32,
    /// The number of interrupts to measure.
    pub count: u64,
    /// Whether to measure a timerfd at that rate where there is no such clock.
    pub timerfd: bool,
}

impl Rtc {
    /// The time from interrupt to interrupt.
    fn period(&self) -> Nanos {
        Nanos(1_000_000_000 / u64::from(self.rate_hz.max(1)))
    }
}

impl Measure for Rtc {
    /// `rtc-2048hz`, `interval-2048hz` and `interrupt-2048hz`, or `timerfd-2048hz` and `interval-2048hz`.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        let named: &[&str] =
            if self.timerfd { &["timerfd", "interval"] } else { &["rtc", "interval", "interrupt"] };
        named.iter().map(|name| format!("{name}-{}hz", self.rate_hz)).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other(
            "its samples are compared with each other, and nobody knows when the first was due; take periodic with the method timerfd",
        )
    }

    fn duration(&self) -> Nanos {
        times(self.period(), self.count, 1)
    }

    fn events(&self) -> u64 {
        events(self.count, 3)
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        Some(self.period())
    }

    fn unsound(&self) -> Option<Unsound> {
        (!self.rate_hz.is_power_of_two()).then(|| Unsound {
            key: "rate_hz",
            wrong: format!("rate_hz cannot be {}", self.rate_hz),
            remedy: "the clock's chip divides by two: write 2, 4, 8 … 8192".into(),
        })
    }

    /// Starts one thread.
    ///
    /// # Errors
    /// A missing rate, a missing device, or a missing right to the device. The text names the remedy.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        if !self.rate_hz.is_power_of_two() || !(2..=8192).contains(&self.rate_hz) {
            return Err(failure::plan(
                "rate_hz",
                format!(
                    "{} Hz: the rate of a real-time clock is a power of two, 2 … 8192",
                    self.rate_hz
                ),
            ));
        }
        let period = self.period();
        check_count(self.count)?;
        let cpu = [plan.cpus.first().copied()];
        let found = measuring(plan.policy, &cpu, std::slice::from_mut(output), |_, output| {
            if self.timerfd {
                timerfd(self, period, output, stop)
            } else {
                clock(self, period, output, stop)
            }
        })?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        for found in found {
            report.add("page_faults", found.faults);
            report.largest("period_ns", found.period.0);
            if let Some(moved) = found.moved {
                report.largest("phase_moved_ns", moved.0);
            }
            if let Some(reason) = found.unknown {
                let series = self.series(plan).swap_remove(INTERRUPT);
                report.doubts.push(Doubt::NotMeasured { series, reason });
            }
        }
        Ok(report)
    }
}

/// Everything that the loop found beside its samples.
struct Found {
    faults: u64,
    /// The time from interrupt to interrupt.
    period: Nanos,
    /// How far the anchor of the grid moved. The earliest samples may be too small by this time.
    moved: Option<Nanos>,
    /// The reason why nobody knows when the interrupts were due.
    unknown: Option<String>,
}

/// The grid of interrupts, as the answers alone show it. Interrupt `n` is due `n` periods after the anchor. The anchor
/// is as late as possible without any answer before its interrupt. So a latency is never negative, and too small by the
/// time that the quickest answer took.
struct Grid {
    period: Nanos,
    /// The instant of interrupt 0, by the earliest answer so far.
    anchor: Stamp<Monotonic>,
    /// How far the anchor moved after the first answer.
    moved: Nanos,
}

impl Grid {
    fn anchored(first: Stamp<Monotonic>, period: Nanos) -> Grid {
        Grid { period, anchor: first, moved: Nanos(0) }
    }

    /// Takes an answer to interrupts `oldest` to `newest` that came at `answered`. Returns when the oldest was due, and
    /// how late the answer is. `None` beyond the clock's range.
    fn answer(
        &mut self,
        oldest: u64,
        newest: u64,
        answered: Stamp<Monotonic>,
    ) -> Option<(Stamp<Monotonic>, Nanos)> {
        let latest = answered.checked_sub(self.period.checked_mul(newest)?)?;
        if let Some(earlier) = self.anchor.since(latest) {
            self.moved = self.moved.checked_add(earlier)?;
            self.anchor = latest;
        }
        let due = self.anchor.checked_add(self.period * oldest)?;
        Some((due, answered.since(due)?))
    }
}

/// Measures the real-time clock itself.
fn clock(
    probe: &Rtc,
    period: Nanos,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Found, RunError> {
    let device = Ticking::start(probe.rate_hz)?;
    let asked = period;
    // Without high-resolution timers a timer moves on by at least a tick (hrtimer_forward()); clock_getres(2) says so.
    let period = asked.max(resolution());
    let mut due = device.due(asked, period);
    let (mut passed, mut last, mut learned) = (0, now(), 0);
    while learned < LEARNED && !stop.load(Ordering::Relaxed) {
        let ticks = device.ticks()?;
        last = now();
        passed += ticks;
        // An answer that comes for several interrupts is late, and says less of the number.
        learned += u64::from(ticks == 1);
        if let Ok(due) = &mut due {
            due.learn(passed, last);
        }
    }
    let origin = last;
    let mut grid = Grid::anchored(origin, period);
    let mut record = Records::new(output, origin);
    let before = Usage::of_thread();
    // Interrupt 0 is the last one that was learned from. It anchors the grid, and the measured interrupts follow it.
    let mut next = 1;
    while next <= probe.count && !stop.load(Ordering::Relaxed) {
        let ticks = device.ticks()?;
        let answered = now();
        if ticks == 0 {
            record.loss(QUICKEST, Loss::Spurious, 1);
            continue;
        }
        let newest = next + ticks - 1;
        // Samples are numbered from 0 everywhere.
        let number = next - 1;
        let (quickest, late) = grid.answer(next, newest, answered).unzip();
        record.sample(QUICKEST, number, quickest, late);
        let apart = answered.ns().saturating_sub(last.ns()).abs_diff(asked.0);
        record.sample(INTERVAL, number, Some(last), Some(Nanos(apart)));
        let missed = newest.min(probe.count) - next;
        record.loss(QUICKEST, Loss::Superseded, missed);
        record.loss(INTERVAL, Loss::Superseded, missed);
        if let Ok(due) = &due {
            let due = due.of(passed + next);
            record.sample(INTERRUPT, number, due, due.and_then(|due| answered.since(due)));
            record.loss(INTERRUPT, Loss::Superseded, missed);
        }
        (next, last) = (newest + 1, answered);
    }
    let faults = record.faults(&before);
    Ok(Found { faults, period, moved: Some(grid.moved), unknown: due.err() })
}

/// The resolution of the kernel's timers (clock_getres(2)): 1 ns, or a tick.
fn resolution() -> Nanos {
    let resolution = clock_getres(ClockId::Monotonic);
    Nanos(resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64)
}

/// Writes all series of the same answers.
struct Records<'a> {
    output: &'a mut Output,
    origin: Stamp<Monotonic>,
}

impl<'a> Records<'a> {
    fn new(output: &'a mut Output, origin: Stamp<Monotonic>) -> Records<'a> {
        Records { output, origin }
    }

    /// Records that event `number` was due at `due` and took `latency`. If either is missing, the event is tainted.
    fn sample(
        &mut self,
        series: usize,
        number: u64,
        due: Option<Stamp<Monotonic>>,
        latency: Option<Nanos>,
    ) {
        let mut record = Recorder::new(self.output, series, self.origin);
        match due {
            Some(due) => record.sample(number, due, latency),
            None => record.loss(Loss::Tainted, 1),
        }
    }

    fn loss(&mut self, series: usize, loss: Loss, count: u64) {
        Recorder::new(self.output, series, self.origin).loss(loss, count);
    }

    /// The page faults of the calling thread since `before`.
    fn faults(&self, before: &Usage) -> u64 {
        Usage::of_thread().since(before).page_faults()
    }
}

/// The device with its periodic interrupt on.
struct Ticking {
    device: File,
    /// The readings of the clock before and after the interrupt was switched on.
    armed: (Stamp<Monotonic>, Stamp<Monotonic>),
}

impl Ticking {
    fn start(rate_hz: u32) -> Result<Ticking, RunError> {
        let device = File::open(DEVICE).map_err(|e| refused("opening it", &e))?;
        let set = |what, request, argument: libc::c_ulong| {
            // SAFETY: these requests take a number and no pointer.
            match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
                -1 => Err(refused(what, &io::Error::last_os_error())),
                _ => Ok(()),
            }
        };
        set("setting its rate", RTC_IRQP_SET, rate_hz.into())?;
        let before = now();
        set("switching its periodic interrupt on", RTC_PIE_ON, 0)?;
        Ok(Ticking { device, armed: (before, now()) })
    }

    /// When the interrupts are due, or the reason why nobody knows.
    fn due(&self, first: Nanos, period: Nanos) -> Result<Due, String> {
        let remedy = "run as root; the other series need no privilege";
        let mut list = String::with_capacity(TIMERS_BYTES);
        File::open(TIMERS)
            .and_then(|mut file| file.read_to_string(&mut list))
            .map_err(|e| format!("when its timer expires is in {TIMERS}: {e}: {remedy}"))?;
        let expiry = next_expiry(&list).ok_or_else(|| {
            format!("{TIMERS} does not show the clock's timer, so onset does not know when its interrupts are due")
        })?;
        let due = Due::at(expiry, period);
        match due.fits(self.armed, first) {
            true => Ok(due),
            false => Err(format!("the timer in {TIMERS} is not the one that the probe armed")),
        }
    }

    /// Blocks until there was an interrupt. Returns the number of interrupts since the last call.
    fn ticks(&self) -> Result<u64, RunError> {
        let mut word = [0u8; size_of::<libc::c_ulong>()];
        retry_on_intr(|| read(&self.device, &mut word))
            .map_err(|e| refused("reading", &e.into()))?;
        Ok(libc::c_ulong::from_ne_bytes(word) >> COUNT_SHIFT)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        // The kernel spins until the timer's handler has returned (rtc_irq_set_state()). On PREEMPT_RT this handler is
        // a thread of low priority, which has just woken the calling thread. At a higher priority this thread would
        // spin for ever. The kernel never refuses to lower a priority.
        let _ = rt::apply(Policy::Other(0));
        // SAFETY: this request takes no argument.
        unsafe { libc::ioctl(self.device.as_raw_fd(), RTC_PIE_OFF, 0) };
    }
}

fn refused(doing: &str, error: &io::Error) -> RunError {
    let remedy = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => "this machine has no real-time clock",
        Some(Errno::BUSY) => {
            "another program has it open; end that program (fuser /dev/rtc0 shows which)"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "run with sudo, or let your group read it and write the rate to /sys/class/rtc/rtc0/max_user_freq"
        }
        Some(Errno::INVAL | Errno::NOTTY) => "the clock's driver has no periodic interrupt",
        _ => "onset cannot measure this clock",
    };
    failure::unavailable(
        "periodic interrupt",
        format!(
            "{DEVICE}: {doing}: {error}: {remedy}; or measure a timerfd at that rate (timerfd = true)"
        ),
    )
}

/// Measures a periodic timerfd. Its due times are known exactly, so this is the probe `periodic` at the clock's rate.
fn timerfd(
    probe: &Rtc,
    period: Nanos,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Found, RunError> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .map_err(|e| failure::system("timerfd_create")(e.into()))?;
    let origin = now();
    let first = origin + period;
    let timespec = |ns: u64| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    let when = Itimerspec { it_interval: timespec(period.0), it_value: timespec(first.ns()) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &when)
        .map_err(|e| failure::system("timerfd_settime")(e.into()))?;
    let mut record = Records::new(output, origin);
    let before = Usage::of_thread();
    let (mut next, mut last) = (0, origin);
    while next < probe.count && !stop.load(Ordering::Relaxed) {
        let mut expired = [0u8; 8];
        retry_on_intr(|| read(&timer, &mut expired))
            .map_err(|e| failure::system("reading the timerfd")(e.into()))?;
        let answered = now();
        let newest = (next + u64::from_ne_bytes(expired)).min(probe.count);
        let due = first + period * next;
        record.sample(QUICKEST, next, Some(due), answered.since(due));
        let apart = answered.ns().saturating_sub(last.ns()).abs_diff(period.0);
        record.sample(INTERVAL, next, Some(last), Some(Nanos(apart)));
        record.loss(QUICKEST, Loss::Superseded, newest - next - 1);
        record.loss(INTERVAL, Loss::Superseded, newest - next - 1);
        (next, last) = (newest, answered);
    }
    Ok(Found { faults: record.faults(&before), period, moved: None, unknown: None })
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
