// SPDX-License-Identifier: GPL-2.0-or-later
//! A control group for a load (cgroups(7), version 2). It keeps the load to its CPUs and within limits, and is killed
//! as one.
//!
//! The supervisor makes the group in an ancestor of its own group. In this ancestor the user may make groups, and it
//! gives its children most of the wanted controllers. For root that is mostly the top. In a user's session it is the
//! group that systemd has delegated to the user.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The memory limit. In the guest, with its kernel, all loads run in 256 MiB, and the compiler in 512 MiB.
const MEMORY_MAX: &str = "1073741824";
/// The limit on processes. All loads together have some 150. A defect that forks without end is stopped here.
const PIDS_MAX: &str = "2048";
const CONTROLLERS: [&str; 3] = ["cpuset", "memory", "pids"];
const PREFIX: &str = "onset-load-";

/// A load's control group. When it is dropped, its processes are killed and it is removed.
pub struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// Makes the group. `None` if this user may not make one.
    pub fn create() -> Option<Cgroup> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let (top, own) = place(&mounts, &groups)?;
        let name = format!("{PREFIX}{}", std::process::id());
        candidates(&top, &own).into_iter().find_map(|parent| {
            sweep(&parent);
            let directory = parent.join(&name);
            fs::create_dir(&directory).ok().map(|()| Cgroup { directory })
        })
    }

    /// Limits the group as far as its controllers allow. Returns the names of the controllers that do.
    pub fn limit(&self, cpus: &BTreeSet<u32>) -> Vec<String> {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let limits = [
            ("cpuset", "cpuset.cpus", cpus.join(",")),
            ("memory", "memory.max", MEMORY_MAX.into()),
            ("pids", "pids.max", PIDS_MAX.into()),
        ];
        let set = |(controller, file, value): (&str, &str, String)| {
            let path = self.directory.join(file);
            // In a directory that is no control group, writing would make a new file.
            (path.exists() && fs::write(path, value).is_ok()).then(|| controller.to_owned())
        };
        limits.into_iter().filter_map(set).collect()
    }

    /// The file by which a process enters the group: a process that writes 0 to it is in.
    pub fn entrance(&self) -> std::io::Result<File> {
        OpenOptions::new().write(true).open(self.directory.join("cgroup.procs"))
    }

    pub fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|l| l == "populated 1")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The file exists since Linux 5.14. The processes have been killed one by one as well.
        let _ = fs::write(self.directory.join("cgroup.kill"), "1");
        // A process leaves its group a moment after its parent has waited for it.
        const TRIES: u32 = 200;
        for _ in 0..TRIES {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The visible top of the hierarchy, and our own group in it.
fn place(mountinfo: &str, cgroup: &str) -> Option<(PathBuf, PathBuf)> {
    // The fields are: id parent device root mount-point options … - type source options (proc_pid_mountinfo(5)).
    let mount = mountinfo.lines().find(|l| l.contains(" - cgroup2 "))?;
    let mut fields = mount.split(' ').skip(3);
    let (root, top) = (fields.next()?, PathBuf::from(fields.next()?));
    let path = cgroup.lines().find_map(|l| l.strip_prefix("0::"))?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    // For a group above the part that a namespace shows, the path begins with "..".
    let own = if below.starts_with("..") { top.clone() } else { top.join(below) };
    Some((top, own))
}

/// Our own group and the groups above it; the group with the most controllers for its children comes first. Moving a
/// process into a child of a group takes the right to write to that group's list of processes.
fn candidates(top: &Path, own: &Path) -> Vec<PathBuf> {
    let mut candidates: Vec<PathBuf> = own
        .ancestors()
        .take_while(|d| d.starts_with(top))
        .filter(|d| OpenOptions::new().write(true).open(d.join("cgroup.procs")).is_ok())
        .map(Path::to_owned)
        .collect();
    candidates.sort_by_key(|directory| {
        let given = fs::read_to_string(directory.join("cgroup.subtree_control"));
        let given = given.unwrap_or_default();
        let has = |c: &&str| given.split_whitespace().any(|g| g == *c);
        std::cmp::Reverse(CONTROLLERS.iter().filter(|c| has(c)).count())
    });
    candidates
}

/// Removes the empty groups of supervisors that were killed.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_is_found_below_the_mount() {
        let mounts = "25 30 0:23 / /sys rw - sysfs sysfs rw\n35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let groups = "1:name=systemd:/x\n0::/user.slice/session-1.scope\n";
        let (top, own) = place(mounts, groups).unwrap();
        assert_eq!(top, Path::new("/sys/fs/cgroup"));
        assert_eq!(own, Path::new("/sys/fs/cgroup/user.slice/session-1.scope"));
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_is_understood() {
        let mounts = "35 25 0:30 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup ro\n";
        let expected = PathBuf::from("/sys/fs/cgroup/a");
        assert_eq!(place(mounts, "0::/docker/1/a\n").unwrap().1, expected);
        assert_eq!(place(mounts, "0::/elsewhere\n"), None);
        assert_eq!(place("", "0::/\n"), None);
    }

    #[test]
    fn the_ancestor_with_the_most_controllers_is_tried_first() {
        let top = std::env::temp_dir().join(format!("onset-cgroup-{}", std::process::id()));
        let own = top.join("user.slice/session.scope");
        fs::create_dir_all(&own).unwrap();
        for (directory, given) in
            [(&top, "cpuset memory pids"), (&top.join("user.slice"), "memory pids"), (&own, "")]
        {
            fs::write(directory.join("cgroup.subtree_control"), given).unwrap();
            fs::write(directory.join("cgroup.procs"), "").unwrap();
        }
        let found = candidates(&top, &own);
        fs::remove_file(top.join("cgroup.procs")).unwrap();
        let without_top = candidates(&top, &own);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(found, [top.clone(), top.join("user.slice"), own.clone()]);
        assert_eq!(without_top, [top.join("user.slice"), own]);
    }
}
