// SPDX-License-Identifier: GPL-2.0-or-later
//! Namespaces for a load: processes that end as one, mounts that vanish with them, and a network of its own
//! (namespaces(7)). An ordinary user gets them by way of a user namespace, where the system allows one.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// What could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// Children of ours are in a process namespace of their own.
    pub processes: bool,
    /// We are in a mount and a network namespace, with empty `/tmp` and `/run`.
    pub mounts: bool,
}

/// Plenty for what the loads write there, 2 MiB together.
const TMPFS: &std::ffi::CStr = c"mode=1777,size=256m";

/// Where a directory of the machine stays visible whatever is hidden.
pub const KEPT: &str = "/run/kept";

/// Enters what this user may make; `kept` stays visible at [`KEPT`]. This process must have one thread.
pub fn enter(kept: Option<&Path>) -> Namespaces {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let wanted = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
    let processes = unshare(wanted)
        || unshare(wanted | libc::CLONE_NEWUSER) && {
            // Ourselves as root, and nobody else (user_namespaces(7)). Refused, the mounts below are too.
            let _ = fs::write("/proc/self/setgroups", "deny");
            let _ = fs::write("/proc/self/uid_map", format!("0 {uid} 1"));
            let _ = fs::write("/proc/self/gid_map", format!("0 {gid} 1"));
            true
        };
    Namespaces { processes, mounts: processes && take_mounts(kept).is_ok() }
}

fn unshare(flags: libc::c_int) -> bool {
    // SAFETY: takes no pointer; moves this process alone, which has one thread and shares nothing by these flags.
    unsafe { libc::unshare(flags) == 0 }
}

/// The programs, and what the loads walk through, stay as they are.
fn take_mounts(kept: Option<&Path>) -> std::io::Result<()> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let kept = kept.and_then(|path| File::open(path).ok());
    for directory in ["/tmp", "/run"] {
        mount("tmpfs", directory, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, TMPFS)?;
    }
    if let Some(directory) = kept {
        fs::create_dir(KEPT)?;
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        // Recursively, for what is mounted below it may not be shown without (user_namespaces(7)).
        mount_bind_recursive(path, KEPT)?;
    }
    Ok(())
}
