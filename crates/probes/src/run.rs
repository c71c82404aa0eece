// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs a plan: the work before and after a measurement that all probes share.

use crate::definition::TIME_MAX;
use crate::plan::Plan;
use crate::report::{Doubt, Report, RunError};
use crate::{Output, threads};
use rt::Usage;
use sample::Nanos;
use std::sync::atomic::AtomicBool;

/// The beginning of the counters that name the CPUs on which measuring threads were seen.
pub const RAN_ON: &str = "ran_on_cpu";
/// The most series of a plan. The number of a series has 16 bits on the wire.
const SERIES_MAX: usize = 1 << 16;
/// The range of lengths of time. A shorter time is below the cost of a system call. A longer one is a mistake.
const TIME: std::ops::RangeInclusive<Nanos> = Nanos(1_000)..=TIME_MAX;

/// Measures what `plan` asks for, until the work is done or `stop` is set. A set `stop` ends the run within one period.
/// Each measuring thread puts its samples into its own of `outputs`. The function ends all outputs in every case.
///
/// The calling thread needs no privilege and keeps its own policy. Memory stays locked after the run.
///
/// # Errors
/// [`RunError`]. The outputs hold everything that was measured before the failure.
///
/// # Panics
/// If there are fewer outputs than [`Plan::threads`].
pub fn run(plan: &Plan, mut outputs: Vec<Output>, stop: &AtomicBool) -> Result<Report, RunError> {
    assert!(outputs.len() >= plan.threads(), "an output for each measuring thread");
    let answer = check(plan).and_then(|()| measure(plan, &mut outputs, stop));
    outputs.into_iter().for_each(Output::end);
    answer
}

fn measure(plan: &Plan, outputs: &mut [Output], stop: &AtomicBool) -> Result<Report, RunError> {
    let mut doubts = Vec::new();
    if plan.probe.locks_memory()
        && let Err(e) = rt::lock_memory()
    {
        doubts.push(Doubt::MemoryNotLocked { reason: e.to_string() });
    }
    let _latency = if plan.pm_qos {
        rt::CpuDmaLatency::hold(Nanos(0))
            .map_err(|e| doubts.push(Doubt::PmQosRefused { reason: e.to_string() }))
            .ok()
    } else {
        None
    };
    let before = Usage::of_process();
    let mut report = plan.probe.run(plan, outputs, stop)?;
    let used = Usage::of_process().since(&before);
    // Where another program measures, the resources that that program used count.
    if plan.probe.programs().is_empty() {
        report.add("cpu_time_ns", used.cpu_time.0);
        report.largest("memory_peak_kib", rt::memory_peak_kib());
    }
    for cpu in threads::seen_cpus() {
        report.add(format!("{RAN_ON}{cpu}"), 1);
    }
    if let Some(&faults @ 1..) = report.counters.get("page_faults") {
        doubts.push(Doubt::PageFaults { faults });
    }
    report.doubts.append(&mut doubts);
    Ok(report)
}

fn check(plan: &Plan) -> Result<(), RunError> {
    let wrong = |part, wrong: String| Err(RunError::Plan { part, wrong });
    if plan.cpus.is_empty() {
        return wrong("cpus", "there are none; name at least one".into());
    }
    if !plan.cpus.is_sorted_by(|a, b| a < b) {
        return wrong("cpus", "name each CPU once, in rising order".into());
    }
    let mut names = plan.series();
    if names.is_empty() || names.len() > SERIES_MAX {
        return wrong("probe", format!("{} series; 1 … {SERIES_MAX} are possible", names.len()));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => wrong("probe", format!("{} is named twice; name it once", twice[0])),
        None => Ok(()),
    }
}

/// Checks that a count is at least 1.
pub(crate) fn check_count(count: u64) -> Result<(), RunError> {
    match count {
        0 => Err(RunError::Plan { part: "count", wrong: "it is 0; measure at least one".into() }),
        _ => Ok(()),
    }
}

/// Checks that a thread can sleep for a length of time.
pub(crate) fn check_time(part: &'static str, time: Nanos) -> Result<(), RunError> {
    if TIME.contains(&time) {
        return Ok(());
    }
    Err(RunError::Plan { part, wrong: format!("{time} is outside of 1us … 60min") })
}
