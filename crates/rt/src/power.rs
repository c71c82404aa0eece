// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps the kernel from saving power or work at the expense of being in time.

use crate::Error;
use rustix::thread::set_current_timer_slack;
use sample::Nanos;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;

/// Sets how much later than asked the kernel may end the sleeps of the calling thread, to save wake-ups
/// (PR_SET_TIMERSLACK(2const)). The default is 50 µs. 0 means 1 ns, which is the shortest. Threads under a real-time
/// policy have no slack, whatever is set.
///
/// # Errors
/// [`Error::System`].
pub fn timer_slack(slack: Nanos) -> Result<(), Error> {
    set_current_timer_slack(Some(NonZeroU64::new(slack.0).unwrap_or(NonZeroU64::MIN)))
        .map_err(|errno| Error::System { call: "prctl(PR_SET_TIMERSLACK)", errno })
}

/// While this value lives, no CPU enters an idle state that takes longer to leave than the caller asked for
/// (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of Service for CPUs").
#[derive(Debug)]
pub struct CpuDmaLatency {
    /// The kernel drops the request when the file is closed.
    _request: File,
}

impl CpuDmaLatency {
    /// Asks for wake-ups within `latency`, counted in whole microseconds. With 0, idle CPUs poll.
    ///
    /// # Errors
    /// [`Error::PowerManagement`]. Usually only root may write to this file.
    pub fn hold(latency: Nanos) -> Result<CpuDmaLatency, Error> {
        let failed = |e: std::io::Error| {
            Error::PowerManagement(
                rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO),
            )
        };
        let micros = i32::try_from(latency.as_micros()).unwrap_or(i32::MAX);
        let mut file =
            OpenOptions::new().write(true).open("/dev/cpu_dma_latency").map_err(failed)?;
        // The kernel reads four bytes as a binary number.
        file.write_all(&micros.to_ne_bytes()).map_err(failed)?;
        Ok(CpuDmaLatency { _request: file })
    }
}
