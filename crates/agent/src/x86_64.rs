// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the agent knows of the processor's architecture, x86-64: the rig's I/O ports, and the names that Linux has
//! for a PC's serial line and clock.
//!
//! By the ports the guest says where it is, learns what to do, and hands over what a probe measured. The rig sees each
//! access at that very instruction.

use std::arch::asm;
use wire::ports::{ABSENT, CLOCK, DATA, MARK, PLAN, PRESENT};
use wire::{Event, Mark};

/// The second serial line.
pub const WIRE: &str = "/dev/ttyS1";
/// The name that the time-stamp counter has as clock source before its calibration is refined
/// (arch/x86/kernel/tsc.c).
pub const EARLY_CLOCK: &str = "tsc-early";

/// From the first to the last of them.
const COUNT: libc::c_ulong = (CLOCK + 4 - MARK) as libc::c_ulong;

/// Proof that the ports may be used.
pub struct Ports(());

impl Ports {
    /// Asks for access to the ports and checks that the rig is behind them.
    pub fn open() -> Result<Ports, String> {
        // SAFETY: only grants this process access to a few ports.
        if unsafe { libc::ioperm(MARK.into(), COUNT, 1) } != 0 {
            return Err(format!("ioperm: {}", std::io::Error::last_os_error()));
        }
        let value: u8;
        // SAFETY: reading a port that is the rig's, or absent.
        unsafe { asm!("in al, dx", in("dx") MARK, out("al") value, options(nomem, nostack)) };
        if value == PRESENT { Ok(Ports(())) } else { Err("not inside the rig".into()) }
    }

    /// Writes `mark`.
    pub fn set(&self, mark: Mark) {
        // SAFETY: `open` checked that the port is the rig's.
        unsafe { asm!("out dx, al", in("dx") MARK, in("al") mark as u8, options(nomem, nostack)) };
    }

    /// The plan of the probe that is to run; `None` where the rig measures from outside, or a saved guest runs
    /// without the plugin.
    pub fn plan(&self) -> Option<Vec<u8>> {
        let read = || {
            let word: u32;
            // SAFETY: a port of the rig's, or absent.
            unsafe { asm!("in eax, dx", in("dx") PLAN, out("eax") word, options(nomem, nostack)) };
            word
        };
        let length = match read() {
            0 | ABSENT => return None,
            length => length as usize,
        };
        let mut plan = Vec::with_capacity(length + 3);
        while plan.len() < length {
            plan.extend(read().to_le_bytes());
        }
        plan.truncate(length);
        Some(plan)
    }

    /// Hands an event to the rig.
    pub fn hand_over(&self, event: &Event) {
        for bytes in event.encode().as_chunks::<4>().0 {
            let word = u32::from_le_bytes(*bytes);
            // SAFETY: a port of the rig's, which gave the plan that the event belongs to.
            unsafe { asm!("out dx, eax", in("dx") DATA, in("eax") word, options(nomem, nostack)) };
        }
    }

    /// Reads CLOCK_MONOTONIC between two writes that the rig sees, and tells it what was read.
    ///
    /// Yields first, so that whoever is ready runs before the reading and not in between. The first write is the first
    /// instruction after that system call. Where the rig has a witness, it checks the witness against the port by this.
    pub fn tell_clock(&self) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a system call without arguments, and a port of the rig's.
        unsafe {
            asm!(
                "syscall",
                "out dx, eax",
                inlateout("rax") libc::SYS_sched_yield => _,
                in("dx") CLOCK,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        // SAFETY: a clock that exists, and room for its time.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        for half in [ns as u32, (ns >> 32) as u32] {
            // SAFETY: a port of the rig's.
            unsafe { asm!("out dx, eax", in("dx") CLOCK, in("eax") half, options(nomem, nostack)) };
        }
    }
}
