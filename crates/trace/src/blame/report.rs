// SPDX-License-Identifier: GPL-2.0-or-later
//! Causes and explanations with names, in the form in which they are shown and written as JSON.

use super::{Beginning, Blame, Cause, Disturbed, Explanation, LatencyKind, Stage};
use crate::cpu::{Activity, Interrupt};
use crate::entries::{Callee, Of, interrupt_name, interrupted, softirq_name, without_place};
use crate::priority::priority;
use crate::symbols::named;
use crate::{Length, Place, Reader, Segment, StackId, Stacks, Sum, Symbols, TaskId, Tasks};
use sample::{Insns, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cause whose tasks have their names. Two causes with equal values share one row of a ledger. The process id is no
/// part of it, since a load that starts programs never uses one twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    cause: &'static str,
    tasks: Vec<String>,
    doing: Option<&'static str>,
    interrupt: Option<Interrupt>,
    function: Option<u64>,
    ran: Ran,
    place: Place,
}

/// A cause as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseReport {
    /// The cause, in one word.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Cause::NAMES)))]
    pub cause: String,
    /// Tasks with their priority, the interrupt or the softirq with whom it called; empty where the cause has none.
    pub who: String,
    /// The stack or the one address that the cause is known by, innermost first; of an interrupt or a softirq, the
    /// functions from whom it called out to its entry, where that was seen.
    pub stack: Vec<String>,
}

/// One part of a latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartReport {
    /// Through which stage.
    pub stage: Stage,
    /// Because of what.
    #[serde(flatten)]
    pub cause: CauseReport,
    /// From when on, since the trigger or the instant at which the task was due.
    pub from_ns: Nanos,
    /// How long.
    pub ns: Nanos,
    /// How many instructions.
    pub insns: Insns,
}

/// One latency, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplanationReport {
    /// Number of the trigger; where a task was due, of the probe's event.
    pub trigger: u64,
    /// What the latency begins with.
    pub beginning: Beginning,
    /// The latency.
    pub latency_ns: Nanos,
    /// Instructions in it.
    pub insns: Insns,
    /// The responder's task, with its priority; empty where an interrupt or softirqs answered.
    pub task: String,
    /// The parts in their order, which add up to the latency.
    pub parts: Vec<PartReport>,
    /// Time by stage.
    pub stages: BTreeMap<Stage, Nanos>,
    /// Stretches of the latencies of the RT patch's paper.
    pub kinds: BTreeMap<LatencyKind, Sum>,
    /// What disturbed, from half a millisecond before the trigger on.
    pub disturbances: Vec<Disturbed>,
}

impl Activity {
    /// The kind's word in files and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Activity::Unknown => "unknown",
            Activity::Interrupt(_) => "interrupt",
            Activity::Softirq(_) => "softirq",
            Activity::Scheduler => "scheduler",
            Activity::Switch => "switch",
            Activity::IrqsOff(_) => "irqs_off",
            Activity::PreemptOff(_) => "preempt_off",
            Activity::Idle => "idle",
            Activity::Kernel(_) => "kernel",
            Activity::User => "user",
        }
    }

    fn place(&self) -> Place {
        match *self {
            Activity::IrqsOff(place) | Activity::PreemptOff(place) | Activity::Kernel(place) => {
                place
            }
            _ => Place::Unknown,
        }
    }
}

/// The task as `name RT 50`. If the task was never named, its address.
fn task_name(task: TaskId, tasks: &Tasks) -> String {
    match tasks.get(task) {
        Some(task) => format!("{} {}", task.name, priority(task.prio)),
        None => format!("task {:#x}", task.0),
    }
}

impl Cause {
    /// The cause with names. For an interrupt or a softirq, also with the stacks that were taken inside.
    pub(crate) fn named(
        &self,
        inside: &[StackId],
        reader: &Reader,
        symbols: &dyn Symbols,
    ) -> Named {
        let tasks = reader.tasks();
        let mut named = Named {
            cause: self.name(),
            tasks: Vec::new(),
            doing: None,
            interrupt: None,
            function: None,
            ran: Ran::default(),
            place: Place::Unknown,
        };
        match self {
            Cause::IrqsOff(place) | Cause::PreemptOff(place) => named.place = *place,
            Cause::Interrupt(interrupt) => named.interrupt = Some(*interrupt),
            Cause::Softirq(function) => named.function = *function,
            Cause::Task(task) => named.tasks.push(task_name(*task, tasks)),
            Cause::Kernel(task, place) => {
                named.tasks.push(task_name(*task, tasks));
                named.place = *place;
            }
            Cause::Lock { holders, running, doing } => {
                named.tasks = holders.iter().map(|&task| task_name(task, tasks)).collect();
                // The running task is worth a word if it was not the last holder.
                let stranger = running.filter(|r| holders.last().is_some_and(|last| last != r));
                named.tasks.extend(stranger.map(|r| format!("runs {}", task_name(r, tasks))));
                named.doing = Some(doing.name());
                named.place = doing.place();
                match *doing {
                    Activity::Interrupt(interrupt) => named.interrupt = Some(interrupt),
                    Activity::Softirq(function) => named.function = function,
                    _ => {}
                }
            }
            _ => {}
        }
        let of = if named.interrupt.is_some() { Of::Interrupt } else { Of::Softirq };
        named.ran = Ran::of(of, inside, reader.stacks(), symbols);
        named
    }
}

/// The code that ran in an interrupt or a softirq, by the stacks that were taken in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Ran {
    /// The function that the entry called in the end.
    handler: Option<String>,
    /// The functions from the handler out to the entry. If none was called, from the place of the CPU.
    functions: Vec<String>,
}

impl Ran {
    /// Finds the code by the last of the stacks that came furthest.
    fn of(of: Of, inside: &[StackId], stacks: &Stacks, symbols: &dyn Symbols) -> Ran {
        let names = inside.iter().map(|&stack| stacks.names(Place::Stack(stack), symbols));
        let names: Vec<_> = names.collect();
        let callees = names.iter().filter_map(|stack| Callee::of(of, stack));
        let Some(callee) = callees.max_by_key(|callee| callee.depth) else { return Ran::default() };
        let frames = if callee.is_handler() { callee.frames() } else { callee.inside };
        // Two calls of one function are one here, so that code that ran twice is one row.
        let functions: Vec<_> = frames.iter().map(|frame| without_place(frame)).collect();
        let handler = functions.first().filter(|_| callee.is_handler()).cloned();
        Ran { handler, functions }
    }
}

impl Named {
    pub(crate) fn report(&self, stacks: &Stacks, symbols: &dyn Symbols) -> CauseReport {
        let mut who = self.tasks.join(" < ");
        let mut add = |text: String| {
            if !who.is_empty() {
                who.push_str(": ");
            }
            who.push_str(&text);
        };
        if let Some(doing) = self.doing {
            add(doing.to_owned());
        }
        if let Some(interrupt) = self.interrupt {
            add(interrupt_text(interrupt, symbols));
        }
        if let Some(function) = self.function {
            add(softirq_name(&named(symbols, function)).to_owned());
        }
        if let Some(handler) = &self.ran.handler {
            add(handler.clone());
        }
        let mut stack = match self.place {
            Place::Unknown => self.ran.functions.clone(),
            place => stacks.names(place, symbols),
        };
        // The task was seen there last in an interrupt, which is over.
        if "kernel" == self.doing.unwrap_or(self.cause) {
            stack = interrupted(stack);
        }
        CauseReport { cause: self.cause.to_owned(), who, stack }
    }
}

/// The interrupt as `local timer`, or `vector 39`.
fn interrupt_text(Interrupt { entry, vector }: Interrupt, symbols: &dyn Symbols) -> String {
    let entry = entry.map_or_else(|| "unknown entry".to_owned(), |entry| named(symbols, entry));
    match (interrupt_name(&entry), vector) {
        (name, None) => name.to_owned(),
        ("", Some(vector)) => format!("vector {vector}"),
        (name, Some(vector)) => format!("{name} vector {vector}"),
    }
}

impl Explanation {
    /// The explanation with names.
    pub fn report(&self, reader: &Reader, symbols: &dyn Symbols) -> ExplanationReport {
        let cause = |Blame { cause, inside, .. }: &Blame| {
            cause.named(inside, reader, symbols).report(reader.stacks(), symbols)
        };
        let part = |segment: Segment<'_, Blame>| PartReport {
            stage: segment.label.stage,
            cause: cause(segment.label),
            // No segment begins before the first one.
            from_ns: segment.from.time.since(self.parts.from().time).unwrap_or_default(),
            ns: segment.length.time,
            insns: segment.length.insns,
        };
        let time = |(key, length): (_, Length)| (key, length.time);
        ExplanationReport {
            trigger: self.trigger,
            beginning: self.beginning,
            latency_ns: self.latency().time,
            insns: self.latency().insns,
            task: self.task.map_or_else(String::new, |task| task_name(task, reader.tasks())),
            parts: self.parts.segments().map(part).collect(),
            stages: self.stages().into_iter().map(time).collect(),
            kinds: self.kinds(),
            disturbances: self.disturbances.clone(),
        }
    }
}
