// SPDX-License-Identifier: GPL-2.0-or-later
//! The report of a probe beside its samples, and the reasons why it could not measure.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Everything that a probe found beside its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Counts and figures. The unit ends the name of each (`lost_ns_cpu0`).
    pub counters: BTreeMap<String, u64>,
    /// The doubts about the samples.
    pub doubts: Vec<Doubt>,
}

impl Report {
    /// Adds `value` to the counter `name`.
    pub fn add(&mut self, name: impl Into<String>, value: u64) {
        let counter = self.counters.entry(name.into()).or_default();
        *counter = counter.saturating_add(value);
    }

    /// Sets the figure `name` to `value`, unless the figure is larger already.
    pub fn largest(&mut self, name: impl Into<String>, value: u64) {
        let figure = self.counters.entry(name.into()).or_default();
        *figure = value.max(*figure);
    }
}

/// The probe did not get something that it wanted, and went on without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Doubt {
    /// Memory could not be locked, so a page fault may come in between.
    MemoryNotLocked {
        /// The reason, and what to do.
        reason: String,
    },
    /// The CPUs could not be kept out of deep idle states, though the plan asked for it.
    PmQosRefused {
        /// The reason, and what to do.
        reason: String,
    },
    /// The time-stamp counter may change its rate or stop. Invalidates.
    TscNotInvariant,
    /// The measuring loop took page faults. Invalidates.
    PageFaults {
        /// The number of page faults.
        faults: u64,
    },
    /// The overrun policy ended a series before its count.
    Stopped {
        /// Its name.
        series: String,
    },
    /// A series has no samples, because the system lacks or forbids what it needs.
    NotMeasured {
        /// Its name.
        series: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The repetitions of some series do not agree.
    NotStable {
        /// Their names, each with how far the medians of its repetitions lie apart.
        spreads: Vec<String>,
    },
}

impl Doubt {
    /// The word that names the kind in files and JSON.
    pub const fn code(&self) -> &'static str {
        match self {
            Doubt::MemoryNotLocked { .. } => "memory_not_locked",
            Doubt::PmQosRefused { .. } => "pm_qos_refused",
            Doubt::TscNotInvariant => "tsc_not_invariant",
            Doubt::PageFaults { .. } => "page_faults",
            Doubt::Stopped { .. } => "stopped",
            Doubt::NotMeasured { .. } => "not_measured",
            Doubt::NotStable { .. } => "not_stable",
        }
    }

    /// Whether the doubt makes the samples meaningless.
    pub const fn invalidates(&self) -> bool {
        match self {
            Doubt::TscNotInvariant | Doubt::PageFaults { .. } => true,
            Doubt::MemoryNotLocked { .. }
            | Doubt::PmQosRefused { .. }
            | Doubt::Stopped { .. }
            | Doubt::NotMeasured { .. }
            | Doubt::NotStable { .. } => false,
        }
    }

    /// The symptom: what the probe saw.
    pub fn symptom(&self) -> String {
        match self {
            Doubt::MemoryNotLocked { reason } => {
                format!("the probe could not lock its memory: {reason}")
            }
            Doubt::PmQosRefused { reason } => {
                format!("the probe could not keep the CPUs out of deep idle states: {reason}")
            }
            Doubt::TscNotInvariant => "the time-stamp counter is not invariant".into(),
            Doubt::PageFaults { faults } => format!("the measuring loop took {faults} page faults"),
            Doubt::Stopped { series } => format!("{series} ended at its first overrun"),
            Doubt::NotMeasured { series, reason } => format!("{series} was not measured: {reason}"),
            Doubt::NotStable { spreads } => format!(
                "the medians of the repetitions lie more than 5 % apart: {}",
                spreads.join(", ")
            ),
        }
    }

    /// The probable cause.
    pub const fn cause(&self) -> &'static str {
        match self {
            Doubt::MemoryNotLocked { .. } | Doubt::PmQosRefused { .. } => {
                "the process lacks a privilege"
            }
            Doubt::TscNotInvariant => {
                "the processor is old, or the virtual machine hides that the counter is invariant"
            }
            Doubt::PageFaults { .. } => "memory was not locked, or onset has a defect",
            Doubt::Stopped { .. } => "the experiment asks for this: overrun = \"stop\"",
            Doubt::NotMeasured { .. } => {
                "the kernel or a container lacks what the series needs, or forbids it"
            }
            Doubt::NotStable { .. } => "the machine did something else, or changed its speed",
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Doubt::MemoryNotLocked { .. } | Doubt::PmQosRefused { .. } => {
                "do what the reason says, or do not trust the longest latencies"
            }
            Doubt::TscNotInvariant => "measure with another clock",
            Doubt::PageFaults { .. } => {
                "allow the process to lock memory; if it may already, please report this with the bundle"
            }
            Doubt::Stopped { .. } => {
                "write overrun = \"skip\" to go on, and count the lost periods"
            }
            Doubt::NotMeasured { .. } => "do what the reason says, or leave the series out",
            Doubt::NotStable { .. } => {
                "measure again on an idle machine, or compare by the least and the greatest median"
            }
        }
    }
}

/// Why a probe did not run, or did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The plan asks for something that makes no sense.
    Plan {
        /// The part of the plan, as the plan's JSON names it.
        part: &'static str,
        /// The mistake, and what would be right.
        wrong: String,
    },
    /// The kernel refuses to make the thread what the plan asks for.
    Refused(rt::Error),
    /// This machine or process lacks what the probe needs.
    Unavailable {
        /// The thing that is missing.
        what: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// A system call failed that should not fail.
    System {
        /// The name of the system call.
        call: &'static str,
        /// The error that the system call returned.
        errno: Errno,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan { part, wrong } => write!(f, "{part}: {wrong}"),
            RunError::Refused(e) => e.fmt(f),
            RunError::Unavailable { what, reason } => write!(f, "no {what}: {reason}"),
            RunError::System { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<rt::Error> for RunError {
    fn from(e: rt::Error) -> RunError {
        RunError::Refused(e)
    }
}
