// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `inversion`: priority inversion on one CPU, unbounded and bounded (2007, "Internals of the RT patch", §6,
//! figures 1 and 2).
//!
//! The low thread holds a mutex, and the high thread asks for it. Then the middle thread, which does not want the
//! mutex, becomes ready and works. With a plain mutex, the wait of the high thread grows with the work of the middle
//! thread. It does not grow if the low thread inherits the priority of the high thread.
//!
//! Of the repetition with the longest wait of each series, the report has the instants at which each thread ran
//! ([`INSTANTS`]): who ran when, as both figures draw it.

use crate::definition::{Definition, Key, Kind, Measure, PERIOD_MIN, Sampled, events, sum, times};
use crate::gate::Gate;
use crate::pace::Pace;
use crate::plan::Plan;
use crate::priorities::strictly_below;
use crate::pthread::PlainMutex;
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::series::duration;
use crate::{Output, Report, RunError, failure, overhead};
use rt::{PiMutex, Usage, now};
use rustix::time::{ClockId, clock_gettime};
use sample::{Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The longest work of the middle thread. The kernel throttles real-time threads that work for longer.
const WORK_MAX: Nanos = Nanos(500_000_000);

/// The instants of a repetition at which a thread says that it runs, and which thread says so. A counter has each:
/// `low_locked_plain-1ms_ns`, counted from the first one. All threads are on one CPU, so a thread runs from its instant
/// until that of another thread, except for the switch.
pub const INSTANTS: [(&str, Thread); 11] = [
    ("low_began", Thread::Low),
    ("low_locked", Thread::Low),
    ("high_asked", Thread::High),
    ("low_went_on", Thread::Low),
    ("middle_began", Thread::Middle),
    ("middle_ended", Thread::Middle),
    ("low_works", Thread::Low),
    ("low_worked", Thread::Low),
    ("high_locked", Thread::High),
    ("high_ended", Thread::High),
    ("low_ended", Thread::Low),
];

/// The name of the counter of an instant in a series.
pub fn instant_counter(instant: &str, series: &str) -> String {
    format!("{instant}_{series}_ns")
}

/// A thread of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitThread"))]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    /// It wants the mutex, and has the highest priority.
    High,
    /// It does not want the mutex.
    Middle,
    /// It holds the mutex, and has the lowest priority.
    Low,
}

/// The place of each instant in [`INSTANTS`].
#[derive(Clone, Copy)]
enum Instant {
    LowBegan,
    LowLocked,
    HighAsked,
    LowWentOn,
    MiddleBegan,
    MiddleEnded,
    LowWorks,
    LowWorked,
    HighLocked,
    HighEnded,
    LowEnded,
}

pub(crate) const DEFINITION: Definition = Definition {
    name: "inversion",
    about: "How long a thread of high priority waits for a mutex of one of low priority, with and without priority inheritance",
    keys: &[
        Key {
            name: "middle",
            kind: Kind::Times(PERIOD_MIN),
            default: "1ms,2ms,5ms,10ms",
            help: "How long the middle thread works; with several, the probe measures one after the other.",
        },
        Key {
            name: "held",
            kind: Kind::Time(PERIOD_MIN),
            default: "500us",
            help: "How long the low thread holds the mutex.",
        },
        Key::count("Number of repetitions in each series."),
    ],
    examples: ["onset measure inversion", "onset measure inversion --middle 1ms,10ms --count 100"],
};

/// The probe's part of a plan: one series for each mutex and each length of the middle thread's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inversion {
    /// How long the middle thread works. The probe measures one length after the other.
    #[serde(rename = "middle_ns")]
    pub middle: Vec<Nanos>,
    /// How long the low thread holds the mutex.
    #[serde(rename = "held_ns")]
    pub held: Nanos,
    /// The number of repetitions for each series.
    pub count: u64,
}

impl Measure for Inversion {
    /// `plain-1ms` and `pi-1ms`, for each length of the middle thread's work.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        let both =
            |middle: &Nanos| ["plain", "pi"].map(|mutex| format!("{mutex}-{}", duration(*middle)));
        self.middle.iter().flat_map(both).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Stretches
    }

    fn duration(&self) -> Nanos {
        let held = times(self.held, self.middle.len() as u64, 1);
        // Two series: one with each kind of mutex.
        times(sum(&[sum(&self.middle), held]), self.count, 2)
    }

    fn events(&self) -> u64 {
        events(self.count, 2 * self.middle.len())
    }

    fn spins(&self) -> bool {
        true
    }

    /// Starts three threads, which share one output.
    ///
    /// # Errors
    /// A policy without priorities, a priority below 3, too long a time of work, or a missing privilege.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        let cpu = *plan.cpus.first().ok_or_else(|| failure::plan("cpus", "none; name one"))?;
        if self.middle.iter().chain([&self.held]).any(|work| *work > WORK_MAX) {
            return Err(failure::plan(
                "middle_ns, held_ns",
                format!(
                    "the kernel throttles work of more than {WORK_MAX} at real-time priority; make it shorter"
                ),
            ));
        }
        check_count(self.count)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let series = self.series(plan);
        let origin = now();
        report.add("origin_ns", origin.ns());
        for (pair, middle) in self.middle.iter().enumerate() {
            let course = Course { plan, cpu, probe: self, middle: *middle, stop };
            let names = &series[2 * pair..];
            let mut record = Recorder::new(output, 2 * pair, origin);
            let longest = course.measure_apart(&PlainMutex::new(), &mut record)?;
            longest.report(&names[0], &mut report);
            report.add("page_faults", record.faults());
            let mut record = Recorder::new(output, 2 * pair + 1, origin);
            let longest = course.measure_apart(&PiMutex::new(())?, &mut record)?;
            longest.report(&names[1], &mut report);
            report.add("page_faults", record.faults());
        }
        Ok(report)
    }
}

/// The operation that both kinds of mutex have.
trait Mutex: Sync {
    /// Runs `inside` while the calling thread holds the mutex.
    fn hold<R>(&self, inside: impl FnOnce() -> R) -> R;
}

impl Mutex for PlainMutex {
    fn hold<R>(&self, inside: impl FnOnce() -> R) -> R {
        self.lock();
        let result = inside();
        self.unlock();
        result
    }
}

impl Mutex for PiMutex<()> {
    fn hold<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _guard = self.lock();
        inside()
    }
}

/// The measurement with one length of the middle thread's work.
struct Course<'a> {
    plan: &'a Plan,
    cpu: u32,
    probe: &'a Inversion,
    middle: Nanos,
    stop: &'a AtomicBool,
}

/// The state that the threads share.
#[derive(Default)]
struct Cast {
    start_high: Gate,
    start_middle: Gate,
    /// The high thread opens this gate when both stamps are in place.
    back: Gate,
    /// In the order of [`INSTANTS`].
    instants_ns: [AtomicU64; INSTANTS.len()],
    ended: AtomicBool,
}

/// The repetition with the longest wait.
#[derive(Default)]
struct Longest {
    wait: Option<Nanos>,
    instants_ns: [u64; INSTANTS.len()],
}

impl Longest {
    fn report(&self, series: &str, report: &mut Report) {
        if self.wait.is_none() {
            return;
        }
        for ((name, _), ns) in INSTANTS.iter().zip(self.instants_ns) {
            report.add(instant_counter(name, series), ns.saturating_sub(self.instants_ns[0]));
        }
    }
}

impl Course<'_> {
    /// Measures on a thread of its own, because the policy of that thread changes.
    fn measure_apart<M: Mutex>(
        &self,
        mutex: &M,
        record: &mut Recorder,
    ) -> Result<Longest, RunError> {
        std::thread::scope(|threads| {
            let low = threads.spawn(|| self.measure(mutex, record));
            low.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Makes the calling thread the low one. Threads that it starts inherit its CPU and its priority at that moment.
    /// When the low thread goes below that priority, these threads run until they wait.
    fn measure<M: Mutex>(&self, mutex: &M, record: &mut Recorder) -> Result<Longest, RunError> {
        let mut longest = Longest::default();
        let cast = &Cast::default();
        let priority = |steps| strictly_below(self.plan.policy, steps);
        let (high, middle, low) = (priority(0)?, priority(1)?, priority(2)?);
        rt::prefault_stack();
        rt::pin(self.cpu)?;
        rt::apply(high)?;
        std::thread::scope(|threads| {
            threads.spawn(move || cast.play_high(mutex));
            let placed = rt::apply(middle);
            threads.spawn(move || cast.play_middle(self.middle));
            let done = placed.and_then(|()| rt::apply(low));
            if done.is_ok() {
                longest = self.play_low(cast, mutex, record);
            }
            cast.ended.store(true, Ordering::Release);
            cast.start_middle.open();
            cast.start_high.open();
            done?;
            Ok(longest)
        })
    }

    fn play_low<M: Mutex>(&self, cast: &Cast, mutex: &M, record: &mut Recorder) -> Longest {
        let mut longest = Longest::default();
        let mut pace = Pace::every(1);
        let before = Usage::of_thread();
        for number in 0..self.probe.count {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            cast.mark(Instant::LowBegan);
            mutex.hold(|| {
                cast.mark(Instant::LowLocked);
                cast.start_high.open();
                // The high thread waits for the mutex now.
                cast.mark(Instant::LowWentOn);
                cast.start_middle.open();
                cast.mark(Instant::LowWorks);
                work(self.probe.held);
                cast.mark(Instant::LowWorked);
            });
            cast.back.pass();
            cast.mark(Instant::LowEnded);
            let asked = cast.instant(Instant::HighAsked);
            let wait = cast.instant(Instant::HighLocked).since(asked);
            record.sample(number, asked, wait);
            if wait > longest.wait {
                longest.wait = wait;
                longest.instants_ns =
                    cast.instants_ns.each_ref().map(|ns| ns.load(Ordering::Relaxed));
            }
            if pace.is_due() {
                pace.rest();
            }
        }
        record.loop_ended(&before);
        longest
    }
}

impl Cast {
    /// Says that the calling thread runs now. The gates order what one thread writes before what another reads.
    fn mark(&self, instant: Instant) {
        self.instants_ns[instant as usize].store(now().ns(), Ordering::Relaxed);
    }

    fn instant(&self, instant: Instant) -> Stamp<Monotonic> {
        Stamp::from_ns(self.instants_ns[instant as usize].load(Ordering::Relaxed))
    }

    fn play_high<M: Mutex>(&self, mutex: &M) {
        loop {
            self.start_high.pass();
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            self.mark(Instant::HighAsked);
            mutex.hold(|| self.mark(Instant::HighLocked));
            self.mark(Instant::HighEnded);
            self.back.open();
        }
    }

    fn play_middle(&self, length: Nanos) {
        loop {
            self.start_middle.pass();
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            self.mark(Instant::MiddleBegan);
            work(length);
            self.mark(Instant::MiddleEnded);
        }
    }
}

/// Computes until the calling thread has used `length` of CPU time. Time in which it is preempted does not count.
fn work(length: Nanos) {
    let used = || {
        let t = clock_gettime(ClockId::ThreadCPUTime);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    };
    let end = used().saturating_add(length.0);
    while used() < end {
        std::hint::spin_loop();
    }
}
