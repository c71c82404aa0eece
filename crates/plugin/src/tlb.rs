// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps the host's clock out of the vCPU's table of translated addresses (TLB).
//!
//! QEMU makes the table larger and smaller: by how many entries were in use within 100 ms of the host's clock
//! (`tlb_mmu_resize_locked` in accel/tcg/cputlb.c, QEMU 10.0 and 11.1). The guest sees the size. As long as an address
//! is in the table, nobody walks the page tables for it, and so nobody sets its Accessed bit again after the kernel has
//! cleared it. What keeps count of these bits, as DAMON does (on by default in Debian's 7.3) and the reclaim of memory,
//! then takes other ways: two runs from one snapshot were not the same on a busy host.
//!
//! QEMU reads the host's clock by `gettimeofday`. The rig has QEMU's dynamic linker take this library before the C
//! library (`LD_PRELOAD`), so that QEMU calls the function here. On the vCPU's thread, where QEMU calls it for the
//! table alone, the time is a count of these calls: it follows from what the guest does.

use crate::checks::{Check, Failed};
use crate::trying::host_clock;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// How much later each call on the vCPU's thread is, in µs. It is chosen: a busy guest flushes the table some thousand
/// times in 100 ms.
const STEP_US: i64 = 100;
/// No clock of a host is as early as this, in ns: a day after 1970. The vCPU's thread would get there after 800 million
/// calls.
const EARLY_NS: i64 = 86_400_000_000_000;

/// The vCPU's thread; 0 before it is known.
static VCPU: AtomicUsize = AtomicUsize::new(0);
/// The calls on the vCPU's thread. A fork of QEMU goes on from the count of its parent.
static CALLS: AtomicI64 = AtomicI64::new(0);
/// Whether the clock is being tried, before there is a vCPU.
static TRIED: AtomicBool = AtomicBool::new(false);

/// Says that the calling thread is the vCPU's. Before the first call QEMU takes the host's time, which is later than
/// any count: the table does not become smaller by it.
pub fn is_vcpu() {
    if VCPU.load(Ordering::Relaxed) == 0 {
        VCPU.store(this_thread(), Ordering::Relaxed);
    }
}

fn this_thread() -> usize {
    // SAFETY: the call only asks. The number is the same in a fork.
    unsafe { libc::pthread_self() as usize }
}

/// Checks that QEMU reads the host's clock by the function here. `read` has QEMU read it, in ns.
pub fn check(read: impl FnOnce() -> i64) -> Result<(), Failed> {
    TRIED.store(true, Ordering::Relaxed);
    let counted = read();
    TRIED.store(false, Ordering::Relaxed);
    Check::HostClock.passes(counted < EARLY_NS, || {
        format!(
            "QEMU's clock of the host is at {counted} ns where the plugin's function counts; QEMU has to be started with the \
             plugin in LD_PRELOAD, as onset does"
        )
    })
}

/// The time of day (gettimeofday(2)): on the vCPU's thread a count, elsewhere the host's.
///
/// # Safety
/// As gettimeofday(2): `time` is null, or there is room for a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, _zone: *mut c_void) -> c_int {
    let is_counted = TRIED.load(Ordering::Relaxed) || VCPU.load(Ordering::Relaxed) == this_thread();
    let us = match is_counted {
        true => CALLS.fetch_add(1, Ordering::Relaxed) * STEP_US,
        false => host_clock(libc::CLOCK_REALTIME) / 1_000,
    };
    let now = libc::timeval { tv_sec: us / 1_000_000, tv_usec: us % 1_000_000 };
    if !time.is_null() {
        // SAFETY: the caller promises this.
        unsafe { time.write(now) };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i64 {
        let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: there is room.
        assert_eq!(unsafe { gettimeofday(&raw mut time, std::ptr::null_mut()) }, 0);
        time.tv_sec * 1_000_000 + time.tv_usec
    }

    #[test]
    fn the_vcpus_thread_counts_and_all_others_have_the_hosts_time() {
        let host = || now() > EARLY_NS / 1_000;
        assert!(host());
        std::thread::spawn(|| {
            is_vcpu();
            let first = now();
            assert_eq!([now(), now()], [first + STEP_US, first + 2 * STEP_US]);
            assert!(first < EARLY_NS / 1_000);
        })
        .join()
        .unwrap();
        assert!(host());
        // SAFETY: nothing is written.
        assert_eq!(unsafe { gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()) }, 0);
    }
}
