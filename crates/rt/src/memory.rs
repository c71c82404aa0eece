// SPDX-License-Identifier: GPL-2.0-or-later
//! Resident memory, so that no page fault delays the task.

use crate::Error;
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use std::hint::black_box;

/// How much of the stack the thread touches. A measuring loop uses a few hundred bytes of it. A signal frame with
/// AVX-512 state and a call into the C library stay below this size.
const STACK_BYTES: usize = 64 * 1024;
const PAGE_BYTES: usize = 4096;

/// Makes all present and future mappings resident until the process ends (mlockall(2),
/// `MCL_CURRENT | MCL_FUTURE`).
///
/// # Errors
/// [`Error::MemoryLimit`] with the figures, if the process lacks `CAP_IPC_LOCK`.
pub fn lock_memory() -> Result<(), Error> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| match errno {
        Errno::NOMEM | Errno::PERM | Errno::AGAIN => Error::MemoryLimit {
            limit_kib: getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX) / 1024,
            mapped_kib: mapped_kib(),
        },
        errno => Error::System { call: "mlockall", errno },
    })?;
    // mlockall does not lock the kernel's pages from which the clock is read. The first reading maps these pages.
    crate::now();
    Ok(())
}

/// Touches 64 KiB of the calling thread's stack. This is needed if memory is not locked or the stack can grow.
#[inline(never)]
pub fn prefault_stack() {
    let mut stack = [0u8; STACK_BYTES];
    for byte in stack.iter_mut().step_by(PAGE_BYTES) {
        *black_box(byte) = 1;
    }
    black_box(&stack);
}

/// The size that `mlockall` counts: all mapped memory (`VmSize` of proc_pid_status(5)).
fn mapped_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    size.and_then(|size| size.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
