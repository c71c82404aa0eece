// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of a latency that is compared with the bound, and the latencies of which the bound says nothing.

use crate::{Cause, Explanation, Stage};
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// Why the bound does not speak of an answer. The first that applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::words))]
#[serde(rename_all = "snake_case")]
pub enum Unbounded {
    /// An interrupt or softirqs answered, or the task had not slept: nothing was switched to.
    NotSwitched,
    /// The kernel had made the driver's handler a thread, which had to be switched to before.
    ThreadedHandler,
    /// The responder waited for a sleeping lock.
    Lock,
    /// Another task went before it.
    Task,
    /// A part is not understood.
    Unexplained,
}

impl Unbounded {
    fn of(stage: Stage, cause: &Cause) -> Option<Unbounded> {
        match cause {
            Cause::Scheduler | Cause::Switch if stage < Stage::Handler => {
                Some(Unbounded::ThreadedHandler)
            }
            Cause::Lock { .. } => Some(Unbounded::Lock),
            Cause::Task(_) => Some(Unbounded::Task),
            Cause::Unexplained => Some(Unbounded::Unexplained),
            _ => None,
        }
    }
}

/// The part of a latency that the bound is for: from the raised line to the switch to the responder's task.
///
/// # Errors
/// The reason why the bound does not speak of this latency.
pub fn scheduling(explanation: &Explanation) -> Result<Nanos, Unbounded> {
    let segments = || explanation.parts.segments();
    if !segments().any(|s| s.label.stage >= Stage::Resumed) {
        return Err(Unbounded::NotSwitched);
    }
    let before = || segments().filter(|s| s.label.stage < Stage::Resumed);
    match before().filter_map(|s| Unbounded::of(s.label.stage, &s.label.cause)).min() {
        Some(why) => Err(why),
        None => Ok(before().map(|s| s.length.time).sum()),
    }
}
