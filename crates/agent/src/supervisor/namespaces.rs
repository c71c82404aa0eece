// SPDX-License-Identifier: GPL-2.0-or-later
//! Namespaces for a load: processes that end as one, mounts that vanish with them, and a network of its own
//! (namespaces(7)). An ordinary user gets them by way of a user namespace, where the system allows one.

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The namespaces that this process could get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// Whether children of this process are in a process namespace of their own.
    pub processes: bool,
    /// Whether this process is in a mount and a network namespace, with empty `/tmp` and `/run`.
    pub mounts: bool,
}

/// The size of each tmpfs. It is plenty: the loads write 2 MiB there together.
const TMPFS: &std::ffi::CStr = c"mode=1777,size=256m";

/// The path at which a directory of the machine stays visible, whatever is hidden.
pub const KEPT: &str = "/run/kept";

/// Enters the namespaces that this user may make. `kept` stays visible at [`KEPT`]. This process must have one thread.
pub fn enter(kept: Option<&Path>) -> Namespaces {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let wanted = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
    let processes = unshare(wanted)
        || unshare(wanted | libc::CLONE_NEWUSER) && {
            // Maps this user to root, and nobody else (user_namespaces(7)). Without this map the mounts below fail too.
            let _ = fs::write("/proc/self/setgroups", "deny");
            let _ = fs::write("/proc/self/uid_map", format!("0 {uid} 1"));
            let _ = fs::write("/proc/self/gid_map", format!("0 {gid} 1"));
            true
        };
    Namespaces { processes, mounts: processes && take_mounts(kept).is_ok() }
}

fn unshare(flags: libc::c_int) -> bool {
    // SAFETY: the call takes no pointer. It moves this process alone, which has one thread and shares nothing.
    unsafe { libc::unshare(flags) == 0 }
}

/// Hides `/tmp` and `/run`. The programs, and the directories that the loads walk through, stay as they are.
fn take_mounts(kept: Option<&Path>) -> std::io::Result<()> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let kept = kept.and_then(|path| File::open(path).ok());
    for directory in ["/tmp", "/run"] {
        mount("tmpfs", directory, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, TMPFS)?;
    }
    if let Some(directory) = kept {
        fs::create_dir(KEPT)?;
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        // Recursively: a user namespace may not show a directory without the mounts below it (user_namespaces(7)).
        mount_bind_recursive(path, KEPT)?;
    }
    Ok(())
}
