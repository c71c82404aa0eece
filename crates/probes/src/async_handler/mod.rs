// SPDX-License-Identifier: GPL-2.0-or-later
//! An event handed to a waiting real-time thread (2007, "Internals of the RT patch", §10.3: `async_handler`).
//!
//! The sender reads the clock right before the call that tells, the receiver right after the one that waited. Before
//! each event the sender makes sure that the receiver waits: it has begun its next wait, and the kernel says that it
//! sleeps. An event whose receiver does not wait when it is due is not sent but counted.
//!
//! What it cannot see: a receiver whose state says that it sleeps is a moment later off its CPU. Across CPUs that
//! moment can in principle be met by an event; an event comes a period after the one before, the moment some µs.

mod handover;
mod ipc;
mod mechanism;
mod signal;

pub(crate) use ipc::{PosixQueue, SysvQueue, SysvSemaphore, isolate};
pub(crate) use mechanism::{Handover, PosixSemaphore};

use crate::gate::Gate;
use crate::plan::{Async, Mechanism, Placement, Plan};
use crate::priorities::below;
use crate::recorder::Recorder;
use crate::run::{check_count, check_time};
use crate::{Doubt, Output, Report, RunError, failure, overhead};
use handover::{Course, measure};
use mechanism::{Condvar, Eventfd, Pipe};
use rt::now;
use signal::{Signal, Sigwait};
use std::io;
use std::sync::atomic::AtomicBool;

/// `futex-same`, `futex-across`, for each mechanism and placement.
pub(crate) fn series(probe: &Async) -> Vec<String> {
    pairs(probe).map(|(mechanism, placement)| name(mechanism, placement)).collect()
}

fn pairs(probe: &Async) -> impl Iterator<Item = (Mechanism, Placement)> {
    probe.mechanisms.iter().flat_map(|m| probe.placements.iter().map(|p| (*m, *p)))
}

fn name(mechanism: Mechanism, placement: Placement) -> String {
    let mechanism = match mechanism {
        Mechanism::Condvar => "condvar",
        Mechanism::Futex => "futex",
        Mechanism::Eventfd => "eventfd",
        Mechanism::Pipe => "pipe",
        Mechanism::PosixSemaphore => "posix_semaphore",
        Mechanism::SysvSemaphore => "sysv_semaphore",
        Mechanism::PosixQueue => "posix_queue",
        Mechanism::SysvQueue => "sysv_queue",
        Mechanism::Signal => "signal",
        Mechanism::Sigwait => "sigwait",
    };
    match placement {
        Placement::Same => format!("{mechanism}-same"),
        Placement::Across => format!("{mechanism}-across"),
    }
}

/// Two threads of its own for each series in turn, but one way out. A mechanism that this system lacks becomes a doubt,
/// and the others are measured.
///
/// # Errors
/// A policy without a priority below it, CPUs that may not be used, or a mechanism that fails on the way.
pub(crate) fn run(
    plan: &Plan,
    probe: &Async,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Report, RunError> {
    check_count(probe.count)?;
    check_time("period_ns", probe.period)?;
    let mut report = Report::default();
    report.largest("overhead_ns", overhead::clock_read().0);
    let origin = now();
    for (series, (mechanism, placement)) in pairs(probe).enumerate() {
        let course = match course(plan, probe, placement)? {
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

/// `None` where there are too few CPUs.
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

/// The first CPU that this process may use beside those of the plan, whose latencies nobody measures.
fn another(measured: &[u32]) -> Option<u32> {
    rt::allowed_cpus().ok()?.into_iter().find(|cpu| !measured.contains(cpu))
}

/// On a thread of its own: it becomes the sender.
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

/// A mechanism that the system does not give (ENOSYS: not in this kernel; EACCES, EPERM: not in this container;
/// ENOSPC, EMFILE: its limits).
pub(crate) fn made<H>(mechanism: io::Result<H>) -> Result<H, RunError> {
    mechanism
        .map_err(|e| failure::unavailable("mechanism", format!("the system does not give it: {e}")))
}

/// The series has no samples, and why.
pub(crate) fn not_measured(report: &mut Report, series: String, reason: impl Into<String>) {
    report.doubts.push(Doubt::NotMeasured { series, reason: reason.into() });
}
