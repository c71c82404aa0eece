// SPDX-License-Identifier: GPL-2.0-or-later
//! A guard against real-time threads that run away.

use crate::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sample::Nanos;

/// While this value lives, the kernel stops a FIFO or RR thread of this process that does not block for the given time.
/// It sends `SIGXCPU`, which ends the process unless it is handled (`RLIMIT_RTTIME`, getrlimit(2)). Without this, a
/// loop at a high priority takes its CPU until somebody pulls the plug or throttling lets others in.
#[derive(Debug)]
pub struct RuntimeLimit {
    before: Option<u64>,
}

impl RuntimeLimit {
    /// Sets the limit, in whole microseconds and at least one. The kernel counts at its ticks. The limit holds for the
    /// whole process, so hold one at a time.
    ///
    /// # Errors
    /// [`Error::System`] if a lower hard limit is in force.
    pub fn hold(without_blocking: Nanos) -> Result<RuntimeLimit, Error> {
        let before = getrlimit(Resource::Rttime).current;
        set(Some(without_blocking.as_micros().max(1)))?;
        Ok(RuntimeLimit { before })
    }
}

impl Drop for RuntimeLimit {
    fn drop(&mut self) {
        // This limit was in force before, so it is not above the hard limit.
        let _ = set(self.before);
    }
}

fn set(current: Option<u64>) -> Result<(), Error> {
    let maximum = getrlimit(Resource::Rttime).maximum;
    setrlimit(Resource::Rttime, Rlimit { current, maximum })
        .map_err(|errno| Error::System { call: "setrlimit(RLIMIT_RTTIME)", errno })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_in_force_while_it_is_held_and_then_as_before() {
        let before = getrlimit(Resource::Rttime);
        let guard = RuntimeLimit::hold(Nanos::from_millis(500)).unwrap();
        assert_eq!(getrlimit(Resource::Rttime).current, Some(500_000));
        drop(guard);
        assert_eq!(getrlimit(Resource::Rttime), before);
    }
}
