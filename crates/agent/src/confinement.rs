// SPDX-License-Identifier: GPL-2.0-or-later
//! What the command and the supervisor of a load on a machine say to each other.
//!
//! The command starts the agent under the name [`SUPERVISOR`], writes one [`Request`] as a line of JSON to its standard
//! input, and reads one [`Reply`]. The supervisor answers each further line with the account as it stands. When its
//! input ends, for whatever reason, the supervisor ends the load and removes all that it made.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The name under which the agent is a supervisor.
pub const SUPERVISOR: &str = "onset-load";
/// The name under which the agent is the first process of a load. Only the supervisor uses it.
pub const FIRST: &str = "onset-load-first";

/// A load, and the CPUs and the disk that it may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The load's script ([`crate::Load::script`]).
    pub script: String,
    /// The programs that the script runs.
    pub programs: Vec<String>,
    /// Whether the script makes network namespaces.
    pub needs_network: bool,
    /// The CPUs that the load must not use.
    pub avoid: Vec<u32>,
    /// A directory on the disk that the load is to keep busy. Without a directory the load writes to memory.
    pub disk: Option<PathBuf>,
}

/// The supervisor's answer: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The load runs.
    Started(Confinement),
    /// The load does not run, and nothing of it is left. The text says why, and what to do.
    Refused(String),
    /// What the load has done until now.
    Account(Account),
}

/// What keeps a load in its place, as far as the user's privileges allow. The load's affinity always does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// The CPUs that the load runs on, rising.
    pub cpus: Vec<u32>,
    /// The controllers of the load's own control group that limit it. Absent if the load has no group.
    pub cgroup: Option<Vec<String>>,
    /// Whether the load's processes are in a namespace of their own, which the kernel ends as one.
    pub processes: bool,
    /// Whether the load has its own mounts and its own network.
    pub mounts: bool,
}

/// The text, as in `affinity, cgroup (cpuset memory pids), process namespace, mount and network namespace`.
impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("affinity")?;
        match self.cgroup.as_deref() {
            None => {}
            Some([]) => f.write_str(", cgroup")?,
            Some(controllers) => write!(f, ", cgroup ({})", controllers.join(" "))?,
        }
        f.write_str(if self.processes { ", process namespace" } else { "" })?;
        f.write_str(if self.mounts { ", mount and network namespace" } else { "" })
    }
}

/// What a load has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The load's counters since its start.
    pub counters: BTreeMap<String, u64>,
    /// The text that the load's programs printed.
    pub console: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_load_is_said_in_one_line() {
        let mut held = Confinement { cpus: vec![0], ..Confinement::default() };
        assert_eq!(held.to_string(), "affinity");
        held.cgroup = Some(vec!["cpuset".into(), "pids".into()]);
        (held.processes, held.mounts) = (true, true);
        let expected =
            "affinity, cgroup (cpuset pids), process namespace, mount and network namespace";
        assert_eq!(held.to_string(), expected);
    }
}
