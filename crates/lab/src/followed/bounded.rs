// SPDX-License-Identifier: GPL-2.0-or-later
//! Says how an answer is compared with the bound of its run, and in which kernels there is a bound.

use rig::Follow;
use sample::{Nanos, Responder, Sample};
use serde::Serialize;
use std::fmt;
use trace::{Role, WATCHED};
use vmlinux::Map;

/// The roles that a bound needs. Without them no term is what it is said to be, nor the part of an answer that is
/// compared.
const NEEDED: [Role; 6] = [
    Role::CommonInterrupt,
    Role::Interrupt,
    Role::Handler,
    Role::WakeUp,
    Role::NeedResched,
    Role::Schedule,
];
/// The roles that a bound also needs on PREEMPT_RT: they tell who waits for a lock.
const NEEDED_FOR_RT: [Role; 2] = [Role::LockWait, Role::LockSleep];

/// An answer that is held against the bound.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Who answered.
    pub responder: &'static str,
    /// Number of the trigger.
    pub trigger: u64,
    /// When it was raised, since measuring began.
    pub at_ns: Nanos,
    /// From there to the switch to the responder's task.
    pub scheduling_ns: Nanos,
    /// The whole latency.
    pub latency_ns: Nanos,
}

impl Held {
    /// An answer that the bound speaks of.
    pub fn of(responder: Responder, sample: &Sample, scheduling_ns: Nanos) -> Held {
        Held {
            responder: responder.name(),
            trigger: sample.trigger,
            at_ns: sample.at,
            scheduling_ns,
            latency_ns: sample.latency,
        }
    }
}

/// The text about an answer that exceeds the bound.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { responder, trigger, scheduling_ns, .. } = self;
        write!(
            f,
            "{responder} was scheduled {} ns after trigger {trigger}, which is more than the bound: the follower or the analysis is wrong there; please report it",
            scheduling_ns.0
        )
    }
}

/// Whether a kernel shows everything that the terms of a bound, and the compared parts of answers, are made of.
pub fn bound_is_seen_in(map: &Map<Vec<u8>>, follow: &Follow) -> bool {
    let layout = map.layout();
    let rt: &[Role] = if layout.is_preempt_rt() { &NEEDED_FOR_RT } else { &[] };
    let watched =
        |role: &Role| follow.watches.iter().any(|w| WATCHED[usize::from(w.index)].role == *role);
    let facts = [layout.preempt_count, layout.current_task, layout.pid, layout.comm, layout.prio];
    facts.iter().all(Option::is_some) && NEEDED.iter().chain(rt).all(watched)
}
