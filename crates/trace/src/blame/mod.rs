// SPDX-License-Identifier: GPL-2.0-or-later
//! Says where the time of one latency went. A latency is an interval, and is cut into parts that add up to it exactly.
//! Each part has its stage and its cause. There are two kinds of intervals: from the raised line to the pin's edge, and
//! from the instant at which a task was due to the instant at which it went on.
//!
//! The responder's task is the task that runs at the end. There is no such task where an interrupt made the edge, or
//! where softirqs did at the interrupt's end or in a task that nobody woke for that.
//!
//! Before our interrupt's entry, only masked interrupts can delay, and a timer that is set for later (`due.rs`). From
//! the entry to the handler, only other interrupts can. From then on, whatever keeps the responder from running can.
//! Where reasons are nested, the innermost one is the cause. A lock is an exception: as long as the responder sleeps on
//! a lock, the lock is the cause, together with what its holder was doing.
//!
//! Two things cannot be seen: why a task that goes first goes first, and whether a task that was switched away from and
//! woken later had been ready all the time.

mod cause;
mod due;
mod history;
mod path;
mod report;

pub use cause::{Blame, Cause, LatencyKind, Stage};
pub use history::{FELT_FOR, History, Unexplainable};
pub(crate) use report::Named;
pub use report::{CauseReport, ExplanationReport, PartReport};

use crate::cpu::{Activity, Cpu};
use crate::{Event, Length, Partition, Sum, TaskId, Tasks, What};
use path::Path;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One latency, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The number of the trigger, or of the event at which the task was due.
    pub trigger: u64,
    /// What it began with.
    pub beginning: Beginning,
    /// The responder's task.
    pub task: Option<TaskId>,
    /// The parts, which add up to the latency.
    pub parts: Partition<Blame>,
    /// The disturbances from half a millisecond before the trigger on.
    pub disturbances: Vec<Disturbed>,
}

/// What a latency begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// The generator raised the line.
    Trigger,
    /// A task was due.
    Due,
}

/// That the other device interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbed {
    /// When its line was to rise, since the trigger: negative where it was before.
    pub from_ns: i64,
    /// How many timers its handler starts, to expire all at once.
    #[cfg_attr(feature = "schema", schemars(range(max = sample::Disturbance::TIMERS_MAX)))]
    pub timers: u8,
}

impl Explanation {
    /// The length of the latency.
    pub fn latency(&self) -> Length {
        self.parts.total()
    }

    /// The time of each stage. The times add up to the latency.
    pub fn stages(&self) -> BTreeMap<Stage, Length> {
        self.by(|blame| blame.stage)
    }

    /// The time of each cause. The times add up to the latency.
    pub fn causes(&self) -> BTreeMap<&Cause, Length> {
        self.by(|blame| &blame.cause)
    }

    /// The stretches of each of the four latencies of the RT patch's paper, and of none of them. They add up to the
    /// latency.
    pub fn kinds(&self) -> BTreeMap<LatencyKind, Sum> {
        Sum::by(self.parts.segments().map(|part| (part.label.kind(), part.length.time)))
    }

    fn by<'a, K: Ord>(&'a self, key: impl Fn(&'a Blame) -> K) -> BTreeMap<K, Length> {
        let mut sums = BTreeMap::new();
        for segment in self.parts.segments() {
            *sums.entry(key(segment.label)).or_default() += segment.length;
        }
        sums
    }
}

/// Cuts the time from the first event (the trigger, or that a task was due) to the last one (the edge, or that it went
/// on). Returns the responder's task and the parts. `cpu` is the state before the first event. `by_timer` says whether
/// the answer is that of a timer, which has to wait for a tick.
fn explain(
    mut cpu: Cpu,
    events: &[Event],
    by_timer: bool,
    tasks: &Tasks,
) -> Option<(Option<TaskId>, Partition<Blame>)> {
    let path = Path::find(&cpu, events, by_timer);
    let (first, rest) = events.split_first()?;
    cpu.event(first);
    let mut parts = Partition::new(first.at);
    for (index, event) in rest.iter().enumerate() {
        // This part passed between event `index` and this one, in the state after event `index`.
        let stage = path.stage(index);
        let cause = match first.what {
            What::Due { .. } => due::cause(&cpu, &path, index, stage, tasks),
            _ => cause(&cpu, &path, index, stage, tasks),
        };
        let inside = if cause.is_served() { path.inside(&cpu) } else { Vec::new() };
        parts.until(event.at, Blame { stage, cause, inside }).ok()?;
        cpu.event(event);
    }
    Some((path.responder, parts))
}

fn cause(cpu: &Cpu, path: &Path, index: usize, stage: Stage, tasks: &Tasks) -> Cause {
    let activity = cpu.activity();
    let own = path.own.is_some() && cpu.interrupt().map(|f| f.at) == path.own;
    let handles = own || (path.handler_task.is_some() && path.handler_task == cpu.running());
    if path.awaits_tick(index) && !handles {
        return Cause::Tick;
    }
    match stage {
        Stage::Line => before_entry(cpu, activity, path.own.is_some()),
        Stage::Entry => match path.handler_task {
            Some(task) if path.handler_woken.is_some_and(|woken| index >= woken) => {
                waiting(cpu, activity, own, task, tasks)
            }
            _ => match activity {
                Activity::Interrupt(_) if own => Cause::Entry,
                Activity::Interrupt(other) => Cause::Interrupt(other),
                Activity::Unknown => Cause::Unexplained,
                _ => Cause::Entry,
            },
        },
        Stage::Handler | Stage::WakeUp | Stage::NeedResched | Stage::Schedule => {
            match path.responder {
                // The handler runs as a task, and has not woken the responder yet.
                _ if stage == Stage::Handler
                    && path.handler_task.is_some()
                    && path.handler_task == cpu.running() =>
                {
                    own_time(cpu, activity, Cause::Handler)
                }
                Some(task) => waiting(cpu, activity, own, task, tasks),
                None => match path.holder {
                    Some((holder, serves)) if !own => held(cpu, activity, holder, index >= serves),
                    _ => in_interrupt(cpu, activity, own),
                },
            }
        }
        Stage::Resumed | Stage::User => match path.responder {
            Some(_) if path.sleeps(index) && !sleeps_on_lock(cpu, path) => match activity {
                Activity::Interrupt(other) => Cause::Interrupt(other),
                _ => Cause::Sleep,
            },
            Some(task) => waiting(cpu, activity, own, task, tasks),
            None => Cause::Unexplained,
        },
    }
}

fn sleeps_on_lock(cpu: &Cpu, path: &Path) -> bool {
    path.responder.is_some_and(|task| cpu.holders(task).is_some())
}

/// The cause while the line is raised. Only masked interrupts keep the CPU from taking the interrupt. If our entry was
/// not seen (`entered`), nothing tells how much of the rest came before it.
fn before_entry(cpu: &Cpu, activity: Activity, entered: bool) -> Cause {
    match (cpu.masked(), activity) {
        (Some(false), _) if entered => Cause::Entry,
        (None | Some(false), _) => Cause::Unexplained,
        (Some(true), Activity::Interrupt(other)) => Cause::Interrupt(other),
        (Some(true), _) => Cause::IrqsOff(cpu.masked_at()),
    }
}

/// The cause if an interrupt, or softirqs, will answer.
fn in_interrupt(cpu: &Cpu, activity: Activity, own: bool) -> Cause {
    match activity {
        Activity::Interrupt(_) if own => Cause::Handler,
        Activity::Interrupt(other) => Cause::Interrupt(other),
        Activity::Softirq(action) => Cause::Softirq(action),
        Activity::IrqsOff(place) => Cause::IrqsOff(place),
        Activity::PreemptOff(place) => Cause::PreemptOff(place),
        Activity::Scheduler => Cause::Scheduler,
        Activity::Switch => Cause::Switch,
        Activity::Idle => Cause::Idle,
        Activity::Kernel(place) => {
            cpu.running().map_or(Cause::Unexplained, |task| Cause::Kernel(task, place))
        }
        Activity::User => cpu.running().map_or(Cause::Unexplained, Cause::Task),
        Activity::Unknown => Cause::Unexplained,
    }
}

/// The cause while a task for which we wait runs by itself. Only interrupts of this task are not its own time. If the
/// task serves softirqs, then this is what it does, and the softirq that answers is the last one.
fn own_time(cpu: &Cpu, activity: Activity, itself: Cause) -> Cause {
    match (activity, cpu.served_by_task()) {
        (Activity::Interrupt(other), _) => Cause::Interrupt(other),
        (Activity::Softirq(action), _) => Cause::Softirq(action),
        (Activity::Scheduler, _) => Cause::Scheduler,
        (Activity::Switch, _) => Cause::Switch,
        (Activity::Unknown, _) => Cause::Unexplained,
        (_, Some(action)) => Cause::Softirq(action),
        (_, None) => itself,
    }
}

/// The cause if the task `holder` will answer when it enables bottom halves again. `serves` says whether it serves them
/// now.
fn held(cpu: &Cpu, activity: Activity, holder: TaskId, serves: bool) -> Cause {
    let running = cpu.running();
    match running {
        Some(task) if task == holder && serves => own_time(cpu, activity, Cause::Responder),
        _ => Cause::Lock { holders: vec![holder], running, doing: activity },
    }
}

/// The cause that keeps `task` from running, although it should.
fn waiting(cpu: &Cpu, activity: Activity, own: bool, task: TaskId, tasks: &Tasks) -> Cause {
    if let (Activity::Interrupt(_), true) = (activity, own) {
        return Cause::Handler;
    }
    let running = cpu.running();
    if running == Some(task) {
        return own_time(cpu, activity, Cause::Responder);
    }
    if let Some(holders) = cpu.holders(task) {
        return Cause::Lock { holders, running, doing: activity };
    }
    let order = running.and_then(|other| goes_first(other, task, tasks));
    match (activity, running, order) {
        // This task would run anyway, so what it turns off delays nobody.
        (
            Activity::Kernel(_) | Activity::User | Activity::IrqsOff(_) | Activity::PreemptOff(_),
            Some(other),
            Some(Ordering::Less),
        )
        | (Activity::Kernel(_) | Activity::User, Some(other), Some(Ordering::Equal)) => {
            Cause::Task(other)
        }
        _ => in_interrupt(cpu, activity, own),
    }
}

/// The lowest priority of real-time tasks plus one (include/linux/sched/prio.h, `MAX_RT_PRIO`).
const MAX_RT_PRIO: u8 = 100;

/// Whether the running task `other` goes before `task`. The lower number goes first. Of two real-time tasks with
/// equal numbers, the running one goes on. Other tasks with equal numbers share the CPU. `None` if a priority is not
/// known.
fn goes_first(other: TaskId, task: TaskId, tasks: &Tasks) -> Option<Ordering> {
    let (other, task) = (tasks.get(other)?.prio, tasks.get(task)?.prio);
    match (other.cmp(&task), other) {
        (Ordering::Equal, ..MAX_RT_PRIO) => Some(Ordering::Less),
        (order, _) => Some(order),
    }
}

#[cfg(test)]
mod tests;
