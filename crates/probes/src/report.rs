// SPDX-License-Identifier: GPL-2.0-or-later
//! What a probe says beside its samples, and why it could not measure.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What a run found beside its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Counts and figures; the unit ends the name (`lost_ns_cpu0`).
    pub counters: BTreeMap<String, u64>,
    /// What makes the samples doubtful.
    pub doubts: Vec<Doubt>,
}

impl Report {
    /// Adds `value` to the counter `name`.
    pub fn add(&mut self, name: impl Into<String>, value: u64) {
        let counter = self.counters.entry(name.into()).or_default();
        *counter = counter.saturating_add(value);
    }

    /// Takes `value` for the figure `name` unless it has a larger one.
    pub fn largest(&mut self, name: impl Into<String>, value: u64) {
        let figure = self.counters.entry(name.into()).or_default();
        *figure = value.max(*figure);
    }
}

/// Something that the probe wanted and did not get, and went on without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Doubt {
    /// Memory could not be locked, so a page fault may come in between.
    MemoryNotLocked {
        /// Why, and what to do.
        reason: String,
    },
    /// The CPUs could not be kept out of deep idle states, though the plan asked for it.
    PmQosRefused {
        /// Why, and what to do.
        reason: String,
    },
    /// The time-stamp counter may change its rate or stop.
    TscNotInvariant,
    /// The measuring loop took page faults.
    PageFaults {
        /// How many.
        faults: u64,
    },
    /// The overrun policy ended a series before its count.
    Stopped {
        /// Which one.
        series: String,
    },
    /// A series has no samples, because the system lacks or forbids what it needs.
    NotMeasured {
        /// Which one.
        series: String,
        /// Why, and what to do.
        reason: String,
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
        }
    }

    /// Whether the samples mean nothing.
    pub const fn invalidates(&self) -> bool {
        match self {
            Doubt::TscNotInvariant | Doubt::PageFaults { .. } => true,
            Doubt::MemoryNotLocked { .. }
            | Doubt::PmQosRefused { .. }
            | Doubt::Stopped { .. }
            | Doubt::NotMeasured { .. } => false,
        }
    }

    /// What was seen.
    pub fn symptom(&self) -> String {
        match self {
            Doubt::MemoryNotLocked { reason } => format!("memory is not locked: {reason}"),
            Doubt::PmQosRefused { reason } => format!("deep idle states stay allowed: {reason}"),
            Doubt::TscNotInvariant => "the time-stamp counter is not invariant".into(),
            Doubt::PageFaults { faults } => format!("{faults} page faults while measuring"),
            Doubt::Stopped { series } => format!("{series} ended at its first overrun"),
            Doubt::NotMeasured { series, reason } => format!("{series} was not measured: {reason}"),
        }
    }

    /// What probably caused it.
    pub const fn cause(&self) -> &'static str {
        match self {
            Doubt::MemoryNotLocked { .. } | Doubt::PmQosRefused { .. } => "a missing privilege",
            Doubt::TscNotInvariant => "an old processor, or a virtual machine that hides it",
            Doubt::PageFaults { .. } => "memory that was not locked, or a defect of onset",
            Doubt::Stopped { .. } => "the plan says so: overrun = \"stop\"",
            Doubt::NotMeasured { .. } => "the kernel or a container lacks or forbids it",
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Doubt::MemoryNotLocked { .. } | Doubt::PmQosRefused { .. } => {
                "do what the reason says, or distrust the worst samples"
            }
            Doubt::TscNotInvariant => "measure with another clock",
            Doubt::PageFaults { .. } => {
                "allow memory to be locked; else report it with this bundle"
            }
            Doubt::Stopped { .. } => "take overrun = \"skip\" to go on and count",
            Doubt::NotMeasured { .. } => "do what the reason says, or leave it out",
        }
    }
}

/// Why a probe did not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The plan asks for something that makes no sense.
    Plan {
        /// Which part of it, as in the plan's JSON.
        part: &'static str,
        /// What is wrong, and what is right.
        wrong: String,
    },
    /// The thread may not be what the plan asks for.
    Refused(rt::Error),
    /// This machine or process lacks what the probe needs.
    Unavailable {
        /// What.
        what: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A system call failed that should not.
    System {
        /// Which one.
        call: &'static str,
        /// What it answered.
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
