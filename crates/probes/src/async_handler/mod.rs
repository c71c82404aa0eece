// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `async`: how late a waiting real-time thread handles an event (2007, "Internals of the RT patch", §10.3:
//! `async_handler`).
//!
//! The sender reads the clock right before the call that sends the event. The receiver reads it right after the call
//! that waited. Before each event the sender makes sure that the receiver waits: the receiver has begun its next wait,
//! and the kernel says that it sleeps. If the receiver does not wait when an event is due, the event is not sent but
//! counted.
//!
//! What the probe cannot see: a receiver whose state says that it sleeps leaves its CPU a moment later. With two CPUs
//! an event could in principle come in this moment. But an event comes a whole period after the event before it, and
//! the moment takes some µs.

mod handover;
mod ipc;
mod mechanism;
mod signal;

pub(crate) use ipc::{PosixQueue, SysvQueue, SysvSemaphore, isolate};
pub(crate) use mechanism::{Handover, PosixSemaphore};

use crate::definition::{Definition, Key, Measure, Sampled, events, times, word};
use crate::gate::Gate;
use crate::plan::Plan;
use crate::priorities::below;
use crate::recorder::Recorder;
use crate::run::{check_count, check_time};
use crate::{Doubt, Output, Report, RunError, failure, overhead};
use handover::{Course, measure};
use mechanism::{Condvar, Eventfd, Pipe};
use rt::now;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use signal::{Signal, Sigwait};
use std::io;
use std::sync::atomic::AtomicBool;

pub(crate) const DEFINITION: Definition = Definition {
    name: "async",
    about: "How late a waiting task runs after another task gave it an event",
    keys: &[
        Key::words::<Mechanism>("mechanisms", "condvar", "How: {}."),
        Key::words::<Placement>("placements", "same", "Where the tasks run: {} (CPUs)."),
        Key::period("Time from one event to the next, for example 1ms."),
        Key::count("Number of events in each series."),
    ],
    examples: [
        "onset measure async --mechanism futex,eventfd --placement same,across --cpus 0-1",
        "onset measure async --period 500us --load ipc",
    ],
};

/// The probe's part of a plan: one series for each mechanism and placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Async {
    /// The mechanisms that hand over the event. The probe measures one after the other.
    pub mechanisms: Vec<Mechanism>,
    /// The places where the two threads run. The probe measures one after the other.
    pub placements: Vec<Placement>,
    /// The time from event to event.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// The number of events in each series.
    pub count: u64,
}

/// How one thread tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The mutex and the condition variable of the C library.
    Condvar,
    /// A bare futex.
    Futex,
    /// An eventfd.
    Eventfd,
    /// A pipe.
    Pipe,
    /// A POSIX semaphore, by `sem_post` and `sem_wait`.
    PosixSemaphore,
    /// A System V semaphore, by `semop`.
    SysvSemaphore,
    /// A POSIX message queue, by `mq_send` and `mq_receive`.
    PosixQueue,
    /// A System V message queue, by `msgsnd` and `msgrcv`.
    SysvQueue,
    /// A signal and its handler.
    Signal,
    /// A signal that the receiver takes by `sigwaitinfo`.
    Sigwait,
}

/// The CPUs on which the two threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Both threads run on the first CPU of the plan.
    Same,
    /// The receiver runs on the plan's first CPU, the sender on the second.
    Across,
}

fn pairs(probe: &Async) -> impl Iterator<Item = (Mechanism, Placement)> {
    probe.mechanisms.iter().flat_map(|m| probe.placements.iter().map(|p| (*m, *p)))
}

fn name(mechanism: Mechanism, placement: Placement) -> String {
    format!("{}-{}", word(&mechanism), word(&placement))
}

impl Measure for Async {
    /// The names of the series, such as `futex-same` and `futex-across`.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        pairs(self).map(|(mechanism, placement)| name(mechanism, placement)).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Stretches
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, self.mechanisms.len() * self.placements.len())
    }

    fn events(&self) -> u64 {
        events(self.count, self.mechanisms.len() * self.placements.len())
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        Some(self.period)
    }

    /// Starts two threads for each series in turn. All series share one output. If this system lacks a mechanism, that
    /// becomes a doubt, and the probe measures the other mechanisms.
    ///
    /// # Errors
    /// A policy without a priority below it, a CPU that may not be used, or a mechanism that fails while measuring.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        check_count(self.count)?;
        check_time("period_ns", self.period)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let origin = now();
        report.add("origin_ns", origin.ns());
        for (series, (mechanism, placement)) in pairs(self).enumerate() {
            let course = match course(plan, self, placement)? {
                Some(course) => course,
                None => {
                    not_measured(
                        &mut report,
                        name(mechanism, placement),
                        "it needs two CPUs, and the probe may use one",
                    );
                    continue;
                }
            };
            let mut record = Recorder::new(output, series, origin);
            let measured = std::thread::scope(|threads| {
                let sender = threads.spawn(|| hand_over(mechanism, &course, &mut record, stop));
                sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            report.add("page_faults", record.faults());
            match measured {
                Err(RunError::Unavailable { reason, .. }) => {
                    not_measured(&mut report, name(mechanism, placement), reason)
                }
                other => other?,
            }
        }
        Ok(report)
    }
}

/// The course for a placement. `None` if there are too few CPUs.
fn course(plan: &Plan, probe: &Async, placement: Placement) -> Result<Option<Course>, RunError> {
    let sender = match placement {
        Placement::Same => plan.cpus.first().copied(),
        Placement::Across => plan.cpus.get(1).copied().or_else(|| another(&plan.cpus)),
    };
    let (Some(receiver), Some(sender)) = (plan.cpus.first(), sender) else { return Ok(None) };
    Ok(Some(Course {
        receiver: (*receiver, plan.policy),
        sender: (sender, below(plan.policy, 1)?),
        period: probe.period,
        count: probe.count,
    }))
}

/// The first CPU that this process may use and that the plan does not name. Nobody measures latencies on this CPU.
fn another(measured: &[u32]) -> Option<u32> {
    rt::allowed_cpus().ok()?.into_iter().find(|cpu| !measured.contains(cpu))
}

/// Measures one series on a thread of its own. This thread becomes the sender.
fn hand_over(
    mechanism: Mechanism,
    course: &Course,
    record: &mut Recorder,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    isolate();
    match mechanism {
        Mechanism::Condvar => measure(&Condvar::new(), course, record, stop),
        Mechanism::Futex => measure(&Gate::default(), course, record, stop),
        Mechanism::Eventfd => measure(&made(Eventfd::new())?, course, record, stop),
        Mechanism::Pipe => measure(&made(Pipe::new())?, course, record, stop),
        Mechanism::PosixSemaphore => measure(&made(PosixSemaphore::new())?, course, record, stop),
        Mechanism::SysvSemaphore => measure(&made(SysvSemaphore::new())?, course, record, stop),
        Mechanism::PosixQueue => measure(&made(PosixQueue::new())?, course, record, stop),
        Mechanism::SysvQueue => measure(&made(SysvQueue::new())?, course, record, stop),
        Mechanism::Signal => measure(&made(Signal::new())?, course, record, stop),
        Mechanism::Sigwait => measure(&Sigwait::new(), course, record, stop),
    }
}

/// A mechanism, or the reason why the system does not give it (ENOSYS: the kernel lacks it; EACCES, EPERM: the
/// container forbids it; ENOSPC, EMFILE: a limit is reached).
pub(crate) fn made<H>(mechanism: io::Result<H>) -> Result<H, RunError> {
    mechanism
        .map_err(|e| failure::unavailable("mechanism", format!("the system does not give it: {e}")))
}

/// Records that the series has no samples, and the reason.
pub(crate) fn not_measured(report: &mut Report, series: String, reason: impl Into<String>) {
    report.doubts.push(Doubt::NotMeasured { series, reason: reason.into() });
}
