// SPDX-License-Identifier: GPL-2.0-or-later
//! The plan (host to guest) and the words (guest to host).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The path of the plan in the guest's image. The plan is JSON.
pub const PLAN_PATH: &str = "/onset/plan.json";
/// The directory of all programs in the image, and the guest's PATH.
pub const PROGRAMS: &str = "/usr/bin";
/// The path of the load's script in the image.
pub const LOAD_SCRIPT: &str = "/onset/load.sh";
/// The path of the agent under the name by which load scripts repeat and count a command.
pub const REPEAT_PATH: &str = "/bin/repeat";
/// The path of the agent under the name by which load scripts play a file as a media player does.
pub const PLAY_PATH: &str = "/bin/play";
/// The directory of the counters. `repeat` and `play` write one file of eight bytes for each counter.
pub const COUNTERS_DIR: &str = "/run/onset";
/// The variable that names another directory for the counters.
pub const COUNTERS_VARIABLE: &str = "ONSET_COUNTERS";

/// A kernel module in the image, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The path in the guest.
    pub path: String,
    /// The parameters, as on insmod's command line.
    pub parameters: String,
}

/// The process that answers as the `task` responder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskProcess {
    /// A process of the agent, which blocks in read() and answers by ioctl().
    Agent,
    /// A program of the image, by its path in the guest and its arguments.
    Program(Vec<String>),
}

/// Everything that the host tells the guest's init.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The modules in the order of loading. The driver comes last, except for modules that the experiment adds.
    pub modules: Vec<Module>,
    /// The `task` responder. `None` if no task answers.
    pub task: Option<TaskProcess>,
    /// How long the guest is under load before measuring begins, in guest nanoseconds.
    pub warm_up_ns: u64,
    /// How long after the beginning of measuring the guest ends by itself, in guest nanoseconds. If absent, the guest
    /// ends when the host tells it to.
    pub ends_after_ns: Option<u64>,
}

/// Work that init starts in a saved guest, in place of a probe. The rig tells it after the guest was restored, so one
/// saved guest serves every piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The shell script of the work.
    pub script: String,
    /// How long the work may go on, in guest nanoseconds. Then it is interrupted, as by Ctrl-C.
    pub for_ns: u64,
}

/// What became of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worked {
    /// Whether its time was over before it ended.
    pub was_interrupted: bool,
    /// Its exit status. `None` if a signal ended it, or if it went on after it had been interrupted.
    pub status: Option<i32>,
    /// What it printed. Of a long text, the beginning and the end.
    pub said: String,
}

/// What the guest tells the host: one JSON object in each line on the second serial line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The guest's context, such as how it keeps time. Sent before measuring.
    Context(BTreeMap<String, String>),
    /// The load's work during the measuring phase, and the kernel's own accounts of the load.
    Counters(BTreeMap<String, u64>),
    /// A probe's report about its own run.
    Report(probes::Report),
    /// What became of work.
    Worked(Worked),
    /// The number of a probe's records for which its rings had no room.
    Dropped(u64),
    /// The guest could not do what the plan says. The text says why.
    Failed(String),
}

impl Word {
    /// The word as a line of JSON, without the end of the line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("words have no unserialisable parts")
    }
}

/// The value in a counter's file. A file that is cut short counts as 0.
pub fn counter_value(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
