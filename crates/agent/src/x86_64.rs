// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the agent knows of the processor's architecture, x86-64: the rig's I/O ports, and the names that Linux has
//! for a PC's serial line and clock.
//!
//! By the ports the guest says where it is, learns what to do, and hands over what a probe measured. The rig sees each
//! access at that very instruction.

use std::arch::asm;
use wire::ports::{ABSENT, CLOCK, DATA, MARK, PLAN, PRESENT};
use wire::{Event, Mark};

/// The path of the second serial line.
pub const WIRE: &str = "/dev/ttyS1";
/// The name that the time-stamp counter has as clock source before its calibration is refined
/// (arch/x86/kernel/tsc.c).
pub const EARLY_CLOCK: &str = "tsc-early";

/// The number of ports, from the first to the last.
const COUNT: libc::c_ulong = (CLOCK + 4 - MARK) as libc::c_ulong;

/// Proof that the ports may be used.
pub struct Ports(());

impl Ports {
    /// Asks for access to the ports and checks that the rig is behind them.
    pub fn open() -> Result<Ports, String> {
        // SAFETY: the call only grants this process access to a few ports.
        if unsafe { libc::ioperm(MARK.into(), COUNT, 1) } != 0 {
            return Err(format!("ioperm: {}", std::io::Error::last_os_error()));
        }
        let value: u8;
        // SAFETY: the port belongs to the rig or is absent.
        unsafe { asm!("in al, dx", in("dx") MARK, out("al") value, options(nomem, nostack)) };
        if value == PRESENT { Ok(Ports(())) } else { Err("not inside the rig".into()) }
    }

    /// Writes `mark`.
    pub fn set(&self, mark: Mark) {
        // SAFETY: `open` checked that the port is the rig's.
        unsafe { asm!("out dx, al", in("dx") MARK, in("al") mark as u8, options(nomem, nostack)) };
    }

    /// The plan of the probe that is to run. `None` if the rig measures from outside, or if a saved guest runs without
    /// the plugin.
    pub fn plan(&self) -> Option<Vec<u8>> {
        let read = || {
            let word: u32;
            // SAFETY: the port belongs to the rig or is absent.
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
            // SAFETY: the port belongs to the rig, which gave the plan to which the event belongs.
            unsafe { asm!("out dx, eax", in("dx") DATA, in("eax") word, options(nomem, nostack)) };
        }
    }

    /// Reads CLOCK_MONOTONIC between two writes that the rig sees, and tells the rig the reading.
    ///
    /// Yields first, so that a ready task runs before the reading and not within it. The first write directly follows
    /// that system call. If the rig has a witness, it compares the witness with the port by these writes.
    pub fn tell_clock(&self) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: this is a system call without arguments, and a port of the rig.
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
        // SAFETY: the clock exists, and there is room for its time.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        for half in [ns as u32, (ns >> 32) as u32] {
            // SAFETY: the port belongs to the rig.
            unsafe { asm!("out dx, eax", in("dx") CLOCK, in("eax") half, options(nomem, nostack)) };
        }
    }
}
