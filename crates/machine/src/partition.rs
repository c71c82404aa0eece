// SPDX-License-Identifier: GPL-2.0-or-later
//! The isolated partition of CPUs: a cgroup of onset's own, whose CPUs the scheduler gives no other task
//! (Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files").
//!
//! It takes four steps to make: the root's children get the controller, the cgroup is made, it gets the CPUs, and it
//! becomes a partition. A kill may come between two of them. So its text says of all four how far they are, as in
//! `1-3|isolated|on`, and a text on the way counts as onset's own.

use crate::System;
use probes::context::cpu_list;
use std::fs;
use std::io;

/// Where cgroups of version 2 are.
const ROOT: &str = "/sys/fs/cgroup";
/// onset's own cgroup. Nobody else has a reason to make one of this name.
pub(crate) const DIRECTORY: &str = "/sys/fs/cgroup/onset";
/// The kind of a cgroup that is there and is no partition.
const MEMBER: &str = "member";
const ISOLATED: &str = "isolated";

/// How far the partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Its CPUs; empty where it has none, or where there is no cgroup.
    pub cpus: String,
    /// What the cgroup is (`cpuset.cpus.partition`); none where there is none.
    pub kind: Option<String>,
    /// Whether the root's children have the controller.
    pub controller: bool,
}

impl Partition {
    /// The partition in a text: `CPUS|KIND|on`, or CPUs alone for one that is to be made.
    pub fn of(text: &str) -> Partition {
        let mut parts = text.trim().split('|');
        let cpus = parts.next().unwrap_or_default().to_owned();
        match (parts.next(), parts.next()) {
            (Some(kind), Some(controller)) => {
                let kind = (!kind.is_empty()).then(|| kind.to_owned());
                Partition { cpus, kind, controller: controller == "on" }
            }
            _ => Partition { cpus, kind: Some(ISOLATED.into()), controller: true },
        }
    }

    /// Its text.
    pub fn text(&self) -> String {
        let controller = if self.controller { "on" } else { "off" };
        format!("{}|{}|{controller}", self.cpus, self.kind.as_deref().unwrap_or_default())
    }

    /// What it is, for people.
    pub fn shown(&self) -> String {
        match (&self.kind, self.cpus.as_str()) {
            (None, _) => "none".into(),
            (Some(kind), cpus) if kind == ISOLATED => cpus.into(),
            (Some(kind), cpus) => format!("{cpus} ({kind})"),
        }
    }

    /// Whether this is a state on the way from none to `made`, in either direction.
    pub fn is_on_the_way_to(&self, made: &Partition) -> bool {
        let steps = self
            .kind
            .as_deref()
            .is_none_or(|kind| kind == MEMBER || kind.split(' ').next() == made.kind.as_deref());
        self.controller && steps && (self.cpus.is_empty() || self.has_cpus_of(made))
    }

    /// Whether both have the same CPUs. The kernel writes a list of them in its own way: 2-3 where 3,2 was written.
    pub fn has_cpus_of(&self, other: &Partition) -> bool {
        self.cpus == other.cpus || cpu_list(&self.cpus) == cpu_list(&other.cpus)
    }
}

/// The text of the machine's partition. `None` without cgroups of version 2 that have the controller.
pub(crate) fn read(system: &System) -> Option<String> {
    let has = |file: &str| {
        let text = system.text(&format!("{ROOT}/{file}")).unwrap_or_default();
        text.split_whitespace().any(|controller| controller == "cpuset")
    };
    if !has("cgroup.controllers") {
        return None;
    }
    let kind = system.path(DIRECTORY).is_dir().then(|| {
        let kind = system.text(&format!("{DIRECTORY}/cpuset.cpus.partition"));
        kind.unwrap_or_else(|| MEMBER.into())
    });
    let cpus = system.text(&format!("{DIRECTORY}/cpuset.cpus")).unwrap_or_default();
    Some(Partition { cpus, kind, controller: has("cgroup.subtree_control") }.text())
}

/// Makes the partition, or removes it, as the text says.
///
/// # Errors
/// Of the operating system, with the step.
pub(crate) fn write(system: &System, text: &str) -> io::Result<()> {
    let wanted = Partition::of(text);
    let now = Partition::of(&read(system).ok_or(io::ErrorKind::NotFound)?);
    let directory = system.path(DIRECTORY);
    let give = |file: &str, value: &str| {
        let path = format!("{ROOT}/{file}");
        let given = system.give(&system.path(&path), value);
        given.map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
    };
    let step = |done: io::Result<()>| {
        done.map_err(|e| io::Error::new(e.kind(), format!("{DIRECTORY}: {e}")))
    };
    let Some(kind) = &wanted.kind else {
        if now.kind.is_some() {
            // Its CPUs go back to the root with it; a cgroup that is no partition any more goes in one step.
            give("onset/cpuset.cpus.partition", MEMBER)?;
            // Whoever was moved there goes on in the root, where all CPUs are. One that ends meanwhile needs nothing.
            let inside = system.text(&format!("{DIRECTORY}/cgroup.procs")).unwrap_or_default();
            inside.lines().for_each(|process| drop(give("cgroup.procs", process)));
            step(fs::remove_dir(&directory))?;
        }
        if !now.controller || wanted.controller {
            return Ok(());
        }
        // Without the controller those cgroups would lose their CPUs, too.
        let others = ["cpuset.cpus", "cpuset.mems"]
            .into_iter()
            .flat_map(|file| system.matching(&format!("{ROOT}/*/{file}")))
            .find(|path| system.text(path).is_some_and(|text| !text.is_empty()));
        return match others {
            None => give("cgroup.subtree_control", "-cpuset"),
            Some(path) => step(Err(io::Error::other(format!(
                "{path} has a value meanwhile, so the controller cpuset stays on for all cgroups; undo again when that is empty"
            )))),
        };
    };
    if !now.controller {
        give("cgroup.subtree_control", "+cpuset")?;
    }
    if now.kind.is_none() {
        step(fs::create_dir(&directory))?;
    }
    if now.cpus != wanted.cpus {
        // The kernel hears nothing of a write of no bytes, so the empty list is a line without a number.
        let cpus = if wanted.cpus.is_empty() { "\n" } else { &wanted.cpus };
        give("onset/cpuset.cpus", cpus)?;
    }
    give("onset/cpuset.cpus.partition", kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written_and_cpus_alone_are_a_partition_to_be_made() {
        for text in ["1-3|isolated|on", "||off", "|member|on", "1|isolated invalid (why)|on"] {
            assert_eq!(Partition::of(text).text(), text);
        }
        assert_eq!(Partition::of("1-3\n").text(), "1-3|isolated|on");
        let shown = ["||on", "1|isolated|on", "1|isolated invalid (why)|on"];
        let shown = shown.map(|text| Partition::of(text).shown());
        assert_eq!(shown, ["none", "1", "1 (isolated invalid (why))"]);
    }

    #[test]
    fn an_empty_list_of_cpus_is_written_as_a_line() {
        let root = tempfile::tempdir().unwrap();
        let system = System::below(root.path());
        let put = |file: &str, text: &str| {
            let path = root.path().join("sys/fs/cgroup").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("cgroup.controllers", "cpuset\n");
        put("cgroup.subtree_control", "cpuset\n");
        put("onset/cpuset.cpus", "1-3\n");
        put("onset/cpuset.cpus.partition", "isolated\n");
        write(&system, "|member|on").unwrap();
        let cpus = root.path().join("sys/fs/cgroup/onset/cpuset.cpus");
        assert_eq!(fs::read_to_string(cpus).unwrap(), "\n");
        assert_eq!(read(&system).unwrap(), "|member|on");
    }

    #[test]
    fn every_step_is_on_the_way_and_what_somebody_else_made_is_not() {
        let made = Partition::of("1-3");
        for step in [
            "||on",
            "|member|on",
            "1-3|member|on",
            "1-3|isolated|on",
            "1-3|isolated invalid (x)|on",
        ] {
            assert!(Partition::of(step).is_on_the_way_to(&made), "{step}");
        }
        for (asked, kernels) in [("2,3", "2-3"), ("3,2", "2-3"), ("1-2,3", "1-3")] {
            let step = Partition::of(&format!("{kernels}|member|on"));
            assert!(step.is_on_the_way_to(&Partition::of(asked)), "{asked}");
        }
        for other in ["2|isolated|on", "1-3|root|on", "||off"] {
            assert!(!Partition::of(other).is_on_the_way_to(&made), "{other}");
        }
    }
}
