// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the path of one answer through the events between trigger and pin: which interrupt was ours, who answered, who
//! woke the answering task, and where each stage begins.

use super::Stage;
use crate::cpu::Cpu;
use crate::{At, Event, Place, Role, StackId, TaskId, What};
use rustc_hash::FxHashMap;
use sample::Insns;

/// The path. Indices are those of the events between trigger and edge, with both.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// When the CPU reached the entry of the interrupt that brought the trigger.
    pub own: Option<At>,
    /// The task that answered. `None` if an interrupt or a softirq at its end answered.
    pub responder: Option<TaskId>,
    /// The task that ran the handler, if the kernel had made the handler a thread.
    pub handler_task: Option<TaskId>,
    /// The wake-up of `handler_task`.
    pub handler_woken: Option<usize>,
    /// The task that had bottom halves disabled, and that served the answering softirq when it enabled them; and since
    /// when. Set only if nothing else tells who answered (PREEMPT_RT) and nobody woke the task.
    pub holder: Option<(TaskId, usize)>,
    /// The beginnings of stages. Both values rise.
    begins: Vec<(usize, Stage)>,
    /// The sleeps of the responder's task between its first wake-up and its answer, each with its beginning and end.
    sleeps: Vec<(usize, usize)>,
    /// The stacks that were taken in each interrupt and softirq, by its beginning.
    inside: FxHashMap<Insns, Vec<StackId>>,
}

/// The findings of one look over the events.
#[derive(Default)]
struct Found {
    handler: Option<(usize, Option<At>, Option<TaskId>)>,
    /// The wake-ups: the index, the woken task, and the interrupt in which they happened.
    wakes: Vec<(usize, TaskId, Option<At>)>,
    runs: Vec<(usize, TaskId)>,
    /// The requests for another task. Below, the entries of the scheduler and the returns to user space.
    resched: Vec<usize>,
    schedule: Vec<usize>,
    user: Vec<(usize, Option<TaskId>)>,
    entries: Vec<(usize, At)>,
    answered_by: Option<TaskId>,
    answered_in_softirq: bool,
    /// The task that enabled bottom halves last. Below, the task that then began to serve softirqs.
    enabling: Option<TaskId>,
    serving: Option<(TaskId, usize)>,
    /// The interrupt in which the edge was made.
    answered_in: Option<At>,
    inside: FxHashMap<Insns, Vec<StackId>>,
}

impl Path {
    /// Finds the path in `events`, from the trigger (first) to the edge (last). `cpu` is the state before them.
    pub fn find(cpu: &Cpu, events: &[Event]) -> Path {
        let found = Found::look(cpu.clone(), events);
        let (handler, in_interrupt, in_task) = match found.handler {
            Some((index, interrupt, task)) => (Some(index), interrupt, task),
            None => (None, None, None),
        };
        let handler_task = in_task.filter(|_| in_interrupt.is_none());
        let handler_woken = handler_task.and_then(|task| found.first_wake(task, 0));
        let own = in_interrupt.or_else(|| handler_woken.and_then(|(_, interrupt)| interrupt));
        let responder = found.answered_by;
        let woken = responder.and_then(|task| found.first_wake(task, handler.unwrap_or(0)));
        // Softirqs ran in a task that nobody woke for them: the task that enabled bottom halves serves them.
        let holder = found.serving.filter(|&(task, _)| {
            woken.is_none() && !found.answered_in_softirq && responder == Some(task)
        });
        let is_own = woken.is_some() || !(found.answered_in_softirq || holder.is_some());
        let responder = responder.filter(|_| is_own);
        // If the handler was not seen, our interrupt is the one that woke the responder.
        let own = own.or_else(|| woken.and_then(|(_, interrupt)| interrupt));
        // If no wake-up was seen either, our interrupt is the one that answered.
        let own = own.or(found.answered_in);
        let mut path = Path {
            own,
            responder,
            handler_task,
            handler_woken: handler_woken.map(|(index, _)| index),
            holder,
            begins: vec![(0, Stage::Line)],
            sleeps: Vec::new(),
            inside: FxHashMap::default(),
        };
        let entry = found.entries.iter().find(|&&(_, at)| Some(at) == own);
        path.begin(entry.map(|&(index, _)| index), Stage::Entry);
        path.begin(handler, Stage::Handler);
        if let (Some(task), Some((woken, _))) = (responder, woken) {
            path.after_wake(&found, task, woken);
        }
        path.inside = found.inside;
        path
    }

    /// The stacks that were taken, before or after, in the interrupt or the softirq that runs now.
    pub fn inside(&self, cpu: &Cpu) -> Vec<StackId> {
        let stacks = cpu.serving_since().and_then(|since| self.inside.get(&since));
        stacks.cloned().unwrap_or_default()
    }

    /// The stage that event `index` begins or continues.
    pub fn stage(&self, index: usize) -> Stage {
        let begun = self.begins.iter().rev().find(|&&(from, _)| from <= index);
        begun.map_or(Stage::Line, |&(_, stage)| stage)
    }

    /// Whether the responder's task sleeps after event `index`.
    pub fn sleeps(&self, index: usize) -> bool {
        self.sleeps.iter().any(|&(from, to)| from <= index && index < to)
    }

    /// Lets a stage begin at `index`. If `index` is unknown, or before the last stage, the stage does not exist.
    fn begin(&mut self, index: Option<usize>, stage: Stage) {
        let last = self.begins.last().map_or(0, |&(last, _)| last);
        if let Some(index) = index.filter(|&i| i >= last) {
            self.begins.push((index, stage));
        }
    }

    fn after_wake(&mut self, found: &Found, task: TaskId, woken: usize) {
        self.begin(Some(woken), Stage::WakeUp);
        let run = found.runs.iter().find(|&&(i, t)| i > woken && t == task).map(|&(i, _)| i);
        let before_run = |i: &&usize| **i > woken && run.is_some_and(|run| **i < run);
        self.begin(found.resched.iter().find(before_run).copied(), Stage::NeedResched);
        self.begin(found.schedule.iter().rev().find(before_run).copied(), Stage::Schedule);
        let Some(run) = run else { return };
        self.begin(Some(run), Stage::Resumed);
        let user = found.user.iter().find(|&&(i, t)| i > run && t == Some(task));
        self.begin(user.map(|&(i, _)| i), Stage::User);
        // The task was switched away from, and woken after that. So it slept in between.
        let mut last = run;
        for &(index, _) in found.runs.iter().filter(|&&(i, t)| i > run && t == task) {
            let away = found.runs.iter().find(|&&(i, _)| i > last).map_or(index, |&(i, _)| i);
            let wakes = found.wakes.iter().rev().filter(|&&(i, t, _)| t == task && i < index);
            if let Some(wake) = wakes.map(|&(i, ..)| i).find(|&i| i > away) {
                self.sleeps.push((away, wake));
            }
            last = index;
        }
    }
}

impl Found {
    fn look(mut cpu: Cpu, events: &[Event]) -> Found {
        let mut found = Found::default();
        for (index, event) in events.iter().enumerate() {
            cpu.event(event);
            if index == 0 || has_stack(event) {
                found.inside.extend(cpu.seen().map(|(since, stacks)| (since, stacks.to_vec())));
            }
            let interrupt = cpu.interrupt().map(|frame| frame.at);
            match event.what {
                What::Run { task, .. } => found.runs.push((index, task)),
                What::Leave { user: true, .. } => found.user.push((index, cpu.running())),
                What::Enter { role, taken, .. } => match role {
                    Role::CommonInterrupt | Role::Interrupt => {
                        // The gate masks interrupts at the stub, one instruction before the entry. An event of a device
                        // may come between the two.
                        let before = events[..index].iter().rposition(|e| !is_device(e));
                        let gate = before.filter(|&i| is_masking(&events[i]));
                        found.entries.push((gate.unwrap_or(index), event.at));
                    }
                    Role::Handler if found.handler.is_none() => {
                        found.handler = Some((index, interrupt, cpu.running()));
                    }
                    Role::WakeUp => found.wakes.push((index, TaskId(taken), interrupt)),
                    Role::NeedResched => found.resched.push(index),
                    Role::Schedule => found.schedule.push(index),
                    Role::BhEnable => found.enabling = cpu.running(),
                    Role::BhDisable => found.enabling = None,
                    Role::Softirq => {
                        let task = found.enabling.filter(|&task| cpu.running() == Some(task));
                        found.serving = task.map(|task| (task, index));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        found.answered_in_softirq = cpu.counts_softirq();
        found.answered_in = cpu.interrupt().map(|frame| frame.at);
        found.answered_by = cpu.running().filter(|_| cpu.interrupt().is_none());
        found
    }

    /// The first wake-up of `task` after event `from`, and the interrupt in which it happened.
    fn first_wake(&self, task: TaskId, from: usize) -> Option<(usize, Option<At>)> {
        let wake = self.wakes.iter().find(|&&(i, t, _)| i >= from && t == task);
        wake.map(|&(index, _, interrupt)| (index, interrupt))
    }
}

fn has_stack(event: &Event) -> bool {
    let (What::Inside { place, .. } | What::Enter { place, .. }) = event.what else { return false };
    matches!(place, Place::Stack(_))
}

fn is_device(event: &Event) -> bool {
    matches!(event.what, What::Trigger { .. } | What::Disturbance { .. })
}

fn is_masking(event: &Event) -> bool {
    matches!(event.what, What::Irqs { masked: true, .. })
}
