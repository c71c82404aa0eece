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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What the kernel promises now, in µs: the least of what all processes ask for.
    fn promised() -> std::io::Result<i32> {
        let mut bytes = [0; 4];
        File::open("/dev/cpu_dma_latency")?.read_exact(&mut bytes)?;
        Ok(i32::from_ne_bytes(bytes))
    }

    #[test]
    fn the_kernel_keeps_its_promise_while_it_is_held_and_no_longer() {
        let Ok(before) = promised() else {
            return eprintln!("skip: only root may read /dev/cpu_dma_latency");
        };
        let asked = 7.min(before);
        let held = CpuDmaLatency::hold(Nanos::from_micros(asked as u64)).expect("root may");
        assert!(promised().expect("readable") <= asked);
        drop(held);
        assert_eq!(promised().expect("readable"), before);
    }
}
