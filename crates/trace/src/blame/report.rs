// SPDX-License-Identifier: GPL-2.0-or-later
//! Causes and explanations with names, as they are shown and written as JSON.

use super::{Cause, Explanation, LatencyKind, Stage};
use crate::cpu::{Activity, Interrupt};
use crate::symbols::named;
use crate::{Length, Place, Stacks, Symbols, TaskId, Tasks};
use sample::{Insns, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cause whose tasks have their names: what two causes have to share to be one row of a ledger. Not the process id,
/// which a load that starts programs never uses twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    cause: &'static str,
    tasks: Vec<String>,
    doing: Option<&'static str>,
    interrupt: Option<Interrupt>,
    function: Option<u64>,
    place: Place,
}

/// A cause as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseReport {
    /// The cause, in one word.
    pub cause: String,
    /// Tasks with their priority, the interrupt, the softirq's function; empty where the cause has none.
    pub who: String,
    /// The stack or the one address that the cause is known by, innermost first.
    pub stack: Vec<String>,
}

/// One part of a latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    /// Through which stage.
    pub stage: Stage,
    /// Because of what.
    #[serde(flatten)]
    pub cause: CauseReport,
    /// From when on, since the trigger.
    pub from_ns: Nanos,
    /// How long.
    pub ns: Nanos,
    /// How many instructions.
    pub insns: Insns,
}

/// One latency, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplanationReport {
    /// Number of the trigger.
    pub trigger: u64,
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
    /// Time by the latencies of the RT patch's paper.
    pub kinds: BTreeMap<LatencyKind, Nanos>,
}

impl Activity {
    /// The word in files and JSON.
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

/// `name prio 49`; the address where the task was never named.
fn task_name(task: TaskId, tasks: &Tasks) -> String {
    match tasks.get(task) {
        Some(task) => format!("{} prio {}", task.name, task.prio),
        None => format!("task {:#x}", task.0),
    }
}

impl Cause {
    pub(crate) fn named(&self, tasks: &Tasks) -> Named {
        let mut named = Named {
            cause: self.name(),
            tasks: Vec::new(),
            doing: None,
            interrupt: None,
            function: None,
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
                // What ran meanwhile is worth a word where it was not the last holder.
                let stranger = running.filter(|r| holders.last().is_some_and(|last| last != r));
                named.tasks.extend(stranger.map(|r| format!("runs {}", task_name(r, tasks))));
                named.doing = Some(doing.name());
                named.place = doing.place();
            }
            _ => {}
        }
        named
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
        if let Some(Interrupt { entry, vector }) = self.interrupt {
            add(entry.map_or_else(|| "unknown entry".to_owned(), |entry| named(symbols, entry)));
            if let Some(vector) = vector {
                add(format!("vector {vector}"));
            }
        }
        if let Some(function) = self.function {
            add(named(symbols, function));
        }
        let mut stack = stacks.names(self.place, symbols);
        // The task was seen there last in an interrupt, which is over.
        if "kernel" == self.doing.unwrap_or(self.cause) {
            stack = interrupted(stack);
        }
        CauseReport { cause: self.cause.to_owned(), who, stack }
    }
}

/// Of a stack that was taken in an interrupt, what was interrupted; any other as it is.
fn interrupted(mut stack: Vec<String>) -> Vec<String> {
    // The entries of interrupts, not of exceptions: those are part of what a task does (arch/x86/include/asm/idtentry.h).
    let is_entry = |name: &String| {
        ["asm_common_interrupt", "asm_sysvec_"].iter().any(|entry| name.starts_with(entry))
    };
    match stack.iter().rposition(is_entry) {
        Some(entry) if entry + 1 < stack.len() => stack.split_off(entry + 1),
        _ => stack,
    }
}

impl Explanation {
    /// The explanation with names.
    pub fn report(
        &self,
        tasks: &Tasks,
        stacks: &Stacks,
        symbols: &dyn Symbols,
    ) -> ExplanationReport {
        let part = |segment: crate::Segment<'_, super::Blame>| PartReport {
            stage: segment.label.stage,
            cause: segment.label.cause.named(tasks).report(stacks, symbols),
            // No segment begins before the first.
            from_ns: segment.from.time.since(self.parts.from().time).unwrap_or_default(),
            ns: segment.length.time,
            insns: segment.length.insns,
        };
        let time = |(key, length): (_, Length)| (key, length.time);
        ExplanationReport {
            trigger: self.trigger,
            latency_ns: self.latency().time,
            insns: self.latency().insns,
            task: self.task.map_or_else(String::new, |task| task_name(task, tasks)),
            parts: self.parts.segments().map(part).collect(),
            stages: self.stages().into_iter().map(time).collect(),
            kinds: self.kinds().into_iter().map(|(k, length)| (k, length.time)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(names: &[&str]) -> Vec<String> {
        interrupted(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_was_interrupted_is_what_the_task_did() {
        let nested = [
            "try_to_wake_up+0x0",
            "asm_common_interrupt+0x26",
            "clear_page+0xb",
            "asm_exc_page_fault+0x26",
        ];
        assert_eq!(cut(&nested), ["clear_page+0xb", "asm_exc_page_fault+0x26"]);
        let twice = ["a", "asm_sysvec_x+0x1", "b", "asm_common_interrupt+0x26", "c"];
        assert_eq!(cut(&twice), ["c"]);
    }

    #[test]
    fn a_stack_without_an_interrupt_or_with_nothing_behind_it_stays() {
        assert_eq!(cut(&["a", "asm_exc_page_fault+0x26"]), ["a", "asm_exc_page_fault+0x26"]);
        assert_eq!(cut(&["a", "asm_sysvec_x+0x1"]), ["a", "asm_sysvec_x+0x1"]);
        assert_eq!(cut(&[]), Vec::<String>::new());
    }
}
