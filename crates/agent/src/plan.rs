// SPDX-License-Identifier: GPL-2.0-or-later
//! The plan (host to guest) and the words (guest to host).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the plan lies in the guest's image, as JSON.
pub const PLAN_PATH: &str = "/onset/plan.json";
/// The load's script in the image.
pub const LOAD_SCRIPT: &str = "/onset/load.sh";
/// The agent under the name by which load scripts repeat and count a command.
pub const REPEAT_PATH: &str = "/bin/repeat";
/// One file of eight bytes per counter, written by `repeat`.
pub const COUNTERS_DIR: &str = "/run/onset";
/// The variable that names another directory for these files.
pub const COUNTERS_VARIABLE: &str = "ONSET_COUNTERS";

/// A kernel module in the image, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Path in the guest.
    pub path: String,
    /// As on insmod's command line.
    pub parameters: String,
}

/// Everything that the guest's init is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Modules in the order of loading. The driver comes last, except for modules that the experiment adds.
    pub modules: Vec<Module>,
    /// Whether to run the `task` responder.
    pub task: bool,
    /// Time under load before measuring begins, in guest nanoseconds.
    pub warm_up_ns: u64,
    /// The guest ends by itself this long after measuring began, in guest nanoseconds. Where absent, it ends when it is
    /// told to.
    pub ends_after_ns: Option<u64>,
}

/// What the guest tells the host: one JSON object per line on the second serial line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// How the guest keeps time and what it is; sent before measuring.
    Context(BTreeMap<String, String>),
    /// Work done by the load during the measuring phase, and the kernel's own accounts of it.
    Counters(BTreeMap<String, u64>),
    /// What a probe says of its own run.
    Report(probes::Report),
    /// Records of a probe that its rings had no room for.
    Dropped(u64),
    /// The guest could not do what the plan says, and why.
    Failed(String),
}

impl Word {
    /// As a line of JSON, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("words have no unserialisable parts")
    }
}

/// The value in a counter's file; 0 for a file that is cut short.
pub fn counter_value(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
