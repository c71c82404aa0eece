// SPDX-License-Identifier: GPL-2.0-or-later
//! The cause of a part of a latency, and the stage in which the part passed.

use crate::cpu::{Activity, Interrupt};
use crate::{Place, StackId, TaskId};
use serde::{Deserialize, Serialize};

/// Stages of an answer, in their order. Each is named for what it goes through, and ends where the next one begins;
/// what an answer does not go through (a wake-up, for a hard handler) it does not have. A task that was due at an
/// instant has the same stages: its timer stands for the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::words))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the line raised, or from the instant at which a task was due, to the first instruction of the kernel's
    /// entry.
    Line,
    /// To the driver's hard handler; from a timer's interrupt to the wake-up of the task.
    Entry,
    /// To the wake-up of the responder's task; of a task that another task wakes, from the instant at which it was due.
    Handler,
    /// To the request that the current task be replaced.
    WakeUp,
    /// To the scheduler that then switches to the responder's task.
    NeedResched,
    /// To the switch.
    Schedule,
    /// To user space, where the responder's task goes there.
    Resumed,
    /// To the pin, or to the reading of the clock.
    User,
}

/// The cause of a part of a latency. The code that shows a cause names its addresses, stacks and tasks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A task kept interrupts off.
    IrqsOff(Place),
    /// A task kept preemption off.
    PreemptOff(Place),
    /// Another interrupt ran; of a task that was due, also the one that woke it.
    Interrupt(Interrupt),
    /// A softirq ran. The field is the address of its function.
    Softirq(Option<u64>),
    /// A task ran that goes before the responder's, because its priority is as high or higher. Also a task in user
    /// space while nobody has woken the responder, as when softirqs were left to their thread.
    Task(TaskId),
    /// A task ran in the kernel that goes after the responder's. The kernel does not take the CPU from it there,
    /// although nothing is off (`preempt=none` and `voluntary`). The place is where the task was seen last.
    Kernel(TaskId, Place),
    /// The responder's task slept on a lock (PREEMPT_RT). `holders` are the task that held the lock, the task that held
    /// the lock on which this one slept, and so on. `doing` is what the CPU did meanwhile, and `running` is the task
    /// for which it did that.
    Lock {
        /// The holders. Empty if the holder is not known.
        holders: Vec<TaskId>,
        /// The task that ran.
        running: Option<TaskId>,
        /// What the CPU did.
        doing: Activity,
    },
    /// The responder's task slept on something that is no lock, until it was woken once more. Of a task that was due,
    /// only while nothing else ran.
    Sleep,
    /// The task was due, and the interrupt of its timer had not come yet, although interrupts were on: the kernel had
    /// set the timer for later, by rounding, by the task's timer slack, or because only the tick looks at its timers.
    Timer,
    /// The timer of `timer_softirq` waited for the next tick, as it does by construction; whatever the CPU did
    /// meanwhile delayed nobody. When the tick was due is not known, so a delay of its interrupt is in this, too.
    Tick,
    /// The idle task ran, on its way to the scheduler.
    Idle,
    /// The scheduler chose a task.
    Scheduler,
    /// The scheduler switched to the chosen task.
    Switch,
    /// Our interrupt was on its way into the kernel, with interrupts on.
    Entry,
    /// The driver's hard handler ran, or code that runs in its interrupt after it.
    Handler,
    /// The responder's task itself ran.
    Responder,
    /// None of these causes is known.
    Unexplained,
}

impl Cause {
    /// Whether the cause is an interrupt or a softirq, or a lock while one of them ran.
    pub(super) const fn is_served(&self) -> bool {
        matches!(
            self,
            Cause::Interrupt(_)
                | Cause::Softirq(_)
                | Cause::Lock { doing: Activity::Interrupt(_) | Activity::Softirq(_), .. }
        )
    }
}

/// Defines the word of each cause in one place.
macro_rules! words {
    ($($cause:pat => $word:literal,)*) => {
        impl Cause {
            /// All words that [`Cause::name`] returns.
            pub const NAMES: [&str; [$($word),*].len()] = [$($word),*];

            /// The cause's word in files and JSON. It is one of [`Cause::NAMES`].
            pub const fn name(&self) -> &'static str {
                match self {
                    $($cause => $word,)*
                }
            }
        }
    };
}

words! {
    Cause::IrqsOff(_) => "irqs_off",
    Cause::PreemptOff(_) => "preempt_off",
    Cause::Interrupt(_) => "interrupt",
    Cause::Softirq(_) => "softirq",
    Cause::Task(_) => "task",
    Cause::Kernel(..) => "kernel",
    Cause::Lock { .. } => "lock",
    Cause::Sleep => "sleep",
    Cause::Timer => "timer",
    Cause::Tick => "tick",
    Cause::Idle => "idle",
    Cause::Scheduler => "scheduler",
    Cause::Switch => "switch",
    Cause::Entry => "entry",
    Cause::Handler => "handler",
    Cause::Responder => "responder",
    Cause::Unexplained => "unexplained",
}

/// The label of one part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blame {
    /// The stage in which the part passed.
    pub stage: Stage,
    /// The cause of the part.
    pub cause: Cause,
    /// If the cause is an interrupt or a softirq, or a lock while one of them ran: the stacks that were taken in it, in
    /// their order.
    pub inside: Vec<StackId>,
}

/// The latencies that "Internals of the RT Patch" (Ottawa Linux Symposium 2007, section 1.1) tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::words))]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Interrupt latency: from the interrupt to its being serviced. All of the stages `line` and `entry`, but for locks
    /// that a handler waits for which the kernel made a thread.
    Interrupt,
    /// Wakeup or scheduling latency: after the handler, whatever keeps the task from running and is none of the two
    /// inversions: the scheduler, the switch, preemption or interrupts off, a task in the kernel, a task that goes
    /// first.
    Wakeup,
    /// Priority inversion: a task, the handler's or the responder's, waits for a resource that another owns,
    /// [`Cause::Lock`].
    PriorityInversion,
    /// Interrupt inversion: after the handler, the task waits for an interrupt or a softirq that serves somebody else.
    InterruptInversion,
    /// None of the paper's: the handler, the responder itself and its sleep, the wait for a tick, and what is
    /// unexplained.
    Other,
}

impl Blame {
    /// The paper's latency to which this part belongs.
    pub fn kind(&self) -> LatencyKind {
        match self.cause {
            Cause::Lock { .. } => LatencyKind::PriorityInversion,
            _ if self.stage <= Stage::Entry => LatencyKind::Interrupt,
            Cause::Interrupt(_) | Cause::Softirq(_) => LatencyKind::InterruptInversion,
            Cause::Handler | Cause::Responder | Cause::Sleep | Cause::Tick | Cause::Unexplained => {
                LatencyKind::Other
            }
            _ => LatencyKind::Wakeup,
        }
    }
}
