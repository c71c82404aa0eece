// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a guest cannot have one more process.

use super::PROCESSES_MAX;
use std::fmt;

/// Why there is no room for one more process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// There are as many as there may be.
    Processes,
    /// The machine has less memory left than a process may have to have for itself.
    Memory,
    /// The system refused a fork with this number of an error.
    Refused(u32),
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Processes => {
                write!(
                    f,
                    "a guest has {PROCESSES_MAX} processes at the most; fewer trials at once (--jobs) leave room"
                )
            }
            NoRoom::Memory => f.write_str(
                "little memory is left on this machine; fewer trials at once (--jobs) take less",
            ),
            NoRoom::Refused(errno) => {
                let why = std::io::Error::from_raw_os_error(errno.cast_signed());
                write!(
                    f,
                    "QEMU cannot fork itself: {why}; see vm.overcommit_memory, and the limits of processes and memory"
                )
            }
        }
    }
}
