// SPDX-License-Identifier: GPL-2.0-or-later
//! The context of a run: everything on which a latency may depend, as the running kernel reports it.
//!
//! The context is read only from `/proc`, `/sys` and `/dev`, so that a static binary in the rig's guest reads the same
//! as the command on a machine. A value that cannot be read is absent, never empty. There are fewer values in a
//! container, without privilege, or on another architecture. A context is of one moment. Compare two contexts to see
//! what happened between them ([`crate::validity`]).

mod boot;
mod cpu;
mod kernel;
pub mod keys;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod parse;
#[cfg(not(fuzzing))]
mod parse;
mod system;
mod tasks;
mod tree;

pub use kernel::hz;
pub use parse::{CPUS_MAX, chosen, cpu_list, cpu_mask, show_cpu_list};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use tree::Tree;

/// The values that were read: one text for each of the [`keys`]. In files a context is a flat object of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(BTreeMap<String, String>);

impl Context {
    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The text of a key that each CPU has. The context keeps it as `KEY.cpuN`.
    pub fn of_cpu(&self, key: &str, cpu: u32) -> Option<&str> {
        self.get(&of_cpu(key, cpu))
    }

    /// The value of a key, if it is a whole number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }

    /// The value of a CPU's key, if it is a whole number.
    pub fn number_of_cpu(&self, key: &str, cpu: u32) -> Option<i64> {
        self.of_cpu(key, cpu)?.parse().ok()
    }

    /// The value of a key, if it is a list of CPUs. The CPUs rise.
    pub fn cpus(&self, key: &str) -> Option<Vec<u32>> {
        self.get(key).and_then(cpu_list)
    }

    /// The other CPUs that share the core of `cpu`.
    pub fn siblings(&self, cpu: u32) -> Vec<u32> {
        let all = self.of_cpu(keys::SMT_SIBLINGS, cpu).and_then(cpu_list).unwrap_or_default();
        all.into_iter().filter(|c| *c != cpu).collect()
    }

    fn set(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value.map(|v| v.to_string()).filter(|v| !v.is_empty()) {
            self.0.insert(key.into(), value);
        }
    }

    fn set_of_cpu(&mut self, key: &str, cpu: u32, value: Option<impl Display>) {
        self.set(&of_cpu(key, cpu), value);
    }
}

impl From<BTreeMap<String, String>> for Context {
    fn from(map: BTreeMap<String, String>) -> Context {
        Context(map)
    }
}

impl From<Context> for BTreeMap<String, String> {
    fn from(context: Context) -> BTreeMap<String, String> {
        context.0
    }
}

fn of_cpu(key: &str, cpu: u32) -> String {
    format!("{key}.cpu{cpu}")
}

/// Reads the context of a measurement on `cpus`. This takes milliseconds, and some 20 µs more for each thread of the
/// machine. Read the context before and after measuring, never while measuring.
pub fn read(cpus: &[u32]) -> Context {
    read_below(&Tree::new("/"), cpus)
}

fn read_below(tree: &Tree, cpus: &[u32]) -> Context {
    let cpus: BTreeSet<u32> = cpus.iter().copied().collect();
    let mut context = Context::default();
    kernel::read(tree, &mut context);
    cpu::read(tree, &cpus, &mut context);
    system::read(tree, &mut context);
    tasks::read(tree, &cpus, &mut context);
    context
}

#[cfg(test)]
mod tests;
