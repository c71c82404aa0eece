// SPDX-License-Identifier: GPL-2.0-or-later
//! The priorities of probes whose threads must preempt one another.

use crate::{RunError, failure};
use rt::Policy;

/// The policy that is `steps` priorities below `highest`. SCHED_OTHER has no priorities, so all its threads are alike.
///
/// # Errors
/// If there are too few priorities below `highest`, or if the policy has no priorities and is not SCHED_OTHER.
pub(crate) fn below(highest: Policy, steps: u8) -> Result<Policy, RunError> {
    let lower = |priority: u8| {
        priority.checked_sub(steps).filter(|lower| *lower >= 1).ok_or_else(|| {
            failure::plan("policy", format!(
                "{highest} has too few priorities below it: this probe needs {steps} lower ones; use priority {} or above",
                steps + 1
            ))
        })
    };
    match highest {
        Policy::Fifo(priority) => lower(priority).map(Policy::Fifo),
        Policy::RoundRobin(priority) => lower(priority).map(Policy::RoundRobin),
        Policy::Other(nice) => Ok(Policy::Other(nice)),
        Policy::Deadline { .. } => Err(failure::plan(
            "policy",
            format!(
                "{highest}: this probe has threads of several priorities, and SCHED_DEADLINE has no priorities; use --policy \
             fifo:80"
            ),
        )),
    }
}

/// The same as [`below`], for a probe whose definition needs that one thread preempts the other.
///
/// # Errors
/// The errors of [`below`], and SCHED_OTHER.
pub(crate) fn strictly_below(highest: Policy, steps: u8) -> Result<Policy, RunError> {
    match highest {
        Policy::Other(_) => Err(failure::plan(
            "policy",
            format!(
                "{highest}: this probe needs strict priorities for what it measures; use --policy fifo:80, as root or \
             with CAP_SYS_NICE"
            ),
        )),
        _ => below(highest, steps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Nanos;

    #[test]
    fn lower_threads_keep_the_policy_and_never_leave_the_range() {
        assert_eq!(below(Policy::Fifo(80), 2).ok(), Some(Policy::Fifo(78)));
        assert_eq!(below(Policy::RoundRobin(2), 1).ok(), Some(Policy::RoundRobin(1)));
        assert_eq!(below(Policy::Other(5), 2).ok(), Some(Policy::Other(5)));
        assert!(below(Policy::Fifo(2), 2).unwrap_err().to_string().contains("priority 3 or above"));
    }

    #[test]
    fn policies_without_priorities_are_refused_with_another_one_offered() {
        let period = Nanos::from_millis(1);
        let deadline = Policy::Deadline { runtime: period, deadline: period, period };
        assert!(below(deadline, 1).unwrap_err().to_string().contains("--policy fifo:80"));
        assert!(strictly_below(Policy::Other(0), 1).unwrap_err().to_string().contains("fifo:80"));
    }
}
