// SPDX-License-Identifier: GPL-2.0-or-later
//! The port by which the guest says where it is. The rig sees the write at that very instruction; the
//! numbers are those of the plugin's `generator.rs`.

use std::arch::asm;

const PORT: u16 = 0x4f4e;
/// What the port reads as inside the rig.
const PRESENT: u8 = 0x4f;

/// A phase of the run.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Mark {
    /// The load runs.
    WarmUp = 1,
    /// Measuring begins at this instruction.
    Measuring = 2,
}

/// Proof that the port may be used.
pub struct Marks(());

impl Marks {
    /// Asks for access to the port and checks that the rig is behind it.
    pub fn open() -> Result<Marks, String> {
        // SAFETY: only grants this process access to one port.
        if unsafe { libc::ioperm(PORT.into(), 1, 1) } != 0 {
            return Err(format!("ioperm: {}", std::io::Error::last_os_error()));
        }
        let value: u8;
        // SAFETY: reading a port that is the rig's, or absent.
        unsafe { asm!("in al, dx", in("dx") PORT, out("al") value, options(nomem, nostack)) };
        if value == PRESENT { Ok(Marks(())) } else { Err("not inside the rig".into()) }
    }

    /// Writes `mark`.
    pub fn set(&self, mark: Mark) {
        // SAFETY: `open` checked that the port is the rig's.
        unsafe { asm!("out dx, al", in("dx") PORT, in("al") mark as u8, options(nomem, nostack)) };
    }
}
