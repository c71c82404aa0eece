// SPDX-License-Identifier: GPL-2.0-or-later
//! A pin of the parallel port, as a line to toggle.

use crate::report::RunError;
use crate::toggle::line::Level;
#[cfg(target_arch = "x86_64")]
use crate::toggle::line::last_errno;
#[cfg(target_arch = "x86_64")]
use rustix::io::Errno;

/// Pin D7 of the data register of a parallel port. The other data pins go low.
#[cfg(target_arch = "x86_64")]
pub(crate) struct ParallelPort(u16);

#[cfg(target_arch = "x86_64")]
impl ParallelPort {
    const D7: u8 = 0x80;

    /// Gives the calling thread, and no other thread, the right to write to the port (ioperm(2)).
    pub(crate) fn open(port: u16) -> Result<ParallelPort, RunError> {
        // SAFETY: the call asks for the right to one port. The kernel checks whether the thread may have it.
        if unsafe { libc::ioperm(port.into(), 1, 1) } == 0 {
            return Ok(ParallelPort(port));
        }
        let reason = match last_errno() {
            Errno::PERM => {
                "it needs CAP_SYS_RAWIO and a kernel that is not locked down; run with sudo, or \
                            toggle memory"
                    .to_owned()
            }
            errno => format!("ioperm: {errno}"),
        };
        Err(RunError::Unavailable { what: format!("parallel port at {port:#x}"), reason })
    }
}

#[cfg(target_arch = "x86_64")]
impl Level for ParallelPort {
    #[inline]
    fn set(&mut self, high: bool) -> Result<(), RunError> {
        let level = if high { Self::D7 } else { 0 };
        // SAFETY: `open` got the right to this port, and a data register takes any value.
        unsafe {
            core::arch::asm!(
                "out dx, al", in("dx") self.0, in("al") level, options(nomem, nostack, preserves_flags)
            );
        }
        Ok(())
    }
}

/// A stand-in, since other processors have no such ports.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) struct ParallelPort;

#[cfg(not(target_arch = "x86_64"))]
impl ParallelPort {
    pub(crate) fn open(_port: u16) -> Result<ParallelPort, RunError> {
        Err(RunError::Unavailable {
            what: "parallel port".into(),
            reason: "this processor has no I/O ports; take a GPIO line".into(),
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Level for ParallelPort {
    fn set(&mut self, _high: bool) -> Result<(), RunError> {
        Ok(())
    }
}
