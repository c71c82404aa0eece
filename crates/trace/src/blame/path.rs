// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the path of one answer through the events between trigger and pin: which interrupt was ours, who answered, who
//! woke the answering task, and where each stage begins. The same for a task that was due: whose interrupt woke it.

use super::Stage;
use crate::cpu::{Activity, Cpu};
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
    /// Of a task that was due: the event from which on the interrupt of its timer waited for the CPU. Before that it
    /// had not come.
    pub pending: usize,
    /// From the handler, which made a timer due, to the interrupt that brought the next tick. Only of an answer by that
    /// timer.
    tick: Option<(usize, usize)>,
    /// The beginnings of stages. Both values rise.
    begins: Vec<(usize, Stage)>,
    /// The sleeps of the responder's task between its first wake-up and its answer, each with its beginning and end.
    sleeps: Vec<(usize, usize)>,
    /// The stacks that were taken in each interrupt and softirq, by its beginning.
    inside: FxHashMap<Insns, Vec<StackId>>,
}

/// A wake-up.
#[derive(Clone, Copy)]
struct Wake {
    index: usize,
    /// The woken task.
    task: TaskId,
    /// The interrupt in which it happened.
    interrupt: Option<At>,
    /// The task that ran.
    running: Option<TaskId>,
}

/// The findings of one look over the events.
#[derive(Default)]
struct Found {
    handler: Option<(usize, Option<At>, Option<TaskId>)>,
    wakes: Vec<Wake>,
    runs: Vec<(usize, TaskId)>,
    /// The requests for another task. Below, the entries of the scheduler and the returns to user space.
    resched: Vec<usize>,
    schedule: Vec<usize>,
    user: Vec<(usize, Option<TaskId>)>,
    entries: Vec<(usize, At)>,
    /// The ticks, each by the entry of the interrupt that brought it.
    ticks: Vec<usize>,
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
    /// `by_timer` says whether the answer is that of a timer, which has to wait for a tick.
    pub fn find(cpu: &Cpu, events: &[Event], by_timer: bool) -> Path {
        let found = Found::look(cpu.clone(), events);
        match events.first().map(|event| event.what) {
            Some(What::Due { .. }) => Path::of_due(cpu, events, found),
            _ => Path::of_trigger(found, by_timer),
        }
    }

    /// The path of the task that runs at the end, from the instant at which it was due.
    fn of_due(cpu: &Cpu, events: &[Event], found: Found) -> Path {
        let responder = found.answered_by;
        let mut path = Path { responder, begins: vec![(0, Stage::Line)], ..Path::default() };
        let Some(task) = responder else { return path.with_inside(found) };
        if cpu.running() == Some(task) {
            // It was not asleep: it did what came before, or it does not sleep for what is measured.
            let user = cpu.activity() == Activity::User;
            path.begin(Some(0), if user { Stage::User } else { Stage::Resumed });
            path.goes_on(&found, task, 0);
            return path.with_inside(found);
        }
        let runs =
            found.runs.iter().find(|&&(_, running)| running == task).map(|&(index, _)| index);
        let wake = found.first_wake(task, 0).filter(|wake| runs.is_none_or(|run| run > wake.index));
        let Some(wake) = wake else {
            // It had been woken before.
            path.after_wake(&found, task, 0);
            return path.with_inside(found);
        };
        // Where a task woke it (softirqs in a thread, or who hands over), our interrupt is the one that woke that task.
        let by = wake.running.filter(|_| wake.interrupt.is_none());
        let by_woken = by.and_then(|by| found.first_wake(by, 0)).filter(|w| w.index < wake.index);
        path.own = wake.interrupt.or_else(|| by_woken.and_then(|wake| wake.interrupt));
        (path.handler_task, path.handler_woken) = (by, by_woken.map(|wake| wake.index));
        match (path.own, found.entries.iter().find(|&&(_, at)| Some(at) == path.own)) {
            (Some(_), Some(&(entry, _))) => {
                path.pending = pending(cpu, &events[..=entry]);
                path.begin(Some(entry), Stage::Entry);
            }
            // The CPU had come to the entry before.
            (Some(_), None) => path.begin(Some(0), Stage::Entry),
            (None, _) => path.begin(Some(0), Stage::Handler),
        }
        path.after_wake(&found, task, wake.index);
        path.with_inside(found)
    }

    fn with_inside(mut self, found: Found) -> Path {
        self.inside = found.inside;
        self
    }

    fn of_trigger(found: Found, by_timer: bool) -> Path {
        let (handler, in_interrupt, in_task) = match found.handler {
            Some((index, interrupt, task)) => (Some(index), interrupt, task),
            None => (None, None, None),
        };
        let handler_task = in_task.filter(|_| in_interrupt.is_none());
        let handler_woken = handler_task.and_then(|task| found.first_wake(task, 0));
        let own = in_interrupt.or_else(|| handler_woken.and_then(|wake| wake.interrupt));
        let responder = found.answered_by;
        let tick = handler.filter(|_| by_timer).and_then(|from| {
            let next = found.ticks.iter().find(|&&tick| tick > from);
            next.map(|&tick| (from, tick))
        });
        let handled = handler.unwrap_or(0);
        // Whoever serves timers may have been woken before the tick, for others.
        let woken = responder.and_then(|task| {
            let late = tick.and_then(|(_, tick)| found.first_wake(task, tick));
            late.or_else(|| found.first_wake(task, handled))
        });
        // Softirqs ran in a task that nobody woke for them: the task that enabled bottom halves serves them.
        let holder = found.serving.filter(|&(task, _)| {
            woken.is_none() && !found.answered_in_softirq && responder == Some(task)
        });
        let is_own = woken.is_some() || !(found.answered_in_softirq || holder.is_some());
        let responder = responder.filter(|_| is_own);
        // If the handler was not seen, our interrupt is the one that woke the responder.
        let own = own.or_else(|| woken.and_then(|wake| wake.interrupt));
        // If no wake-up was seen either, our interrupt is the one that answered.
        let own = own.or(found.answered_in);
        let mut path = Path {
            own,
            tick,
            responder,
            handler_task,
            handler_woken: handler_woken.map(|wake| wake.index),
            holder,
            begins: vec![(0, Stage::Line)],
            ..Path::default()
        };
        let entry = found.entries.iter().find(|&&(_, at)| Some(at) == own);
        path.begin(entry.map(|&(index, _)| index), Stage::Entry);
        path.begin(handler, Stage::Handler);
        if let (Some(task), Some(wake)) = (responder, woken) {
            path.after_wake(&found, task, wake.index);
        }
        path.with_inside(found)
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

    /// Whether the timer waits for the next tick after event `index`.
    pub fn awaits_tick(&self, index: usize) -> bool {
        self.tick.is_some_and(|(from, to)| from <= index && index < to)
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
        self.goes_on(found, task, run);
    }

    /// The task runs since event `run`.
    fn goes_on(&mut self, found: &Found, task: TaskId, run: usize) {
        let user = found.user.iter().find(|&&(i, t)| i > run && t == Some(task));
        self.begin(user.map(|&(i, _)| i), Stage::User);
        // The task was switched away from, and woken after that. So it slept in between.
        let mut last = run;
        for &(index, _) in found.runs.iter().filter(|&&(i, t)| i > run && t == task) {
            let away = found.runs.iter().find(|&&(i, _)| i > last).map_or(index, |&(i, _)| i);
            let wakes = found.wakes.iter().rev().filter(|w| w.task == task && w.index < index);
            if let Some(wake) = wakes.map(|wake| wake.index).find(|&i| i > away) {
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
                    Role::WakeUp => {
                        let (task, running) = (TaskId(taken), cpu.running());
                        found.wakes.push(Wake { index, task, interrupt, running });
                    }
                    Role::NeedResched => found.resched.push(index),
                    Role::Schedule => found.schedule.push(index),
                    Role::Tick => found.ticks.extend(found.entries.last().map(|&(entry, _)| entry)),
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

    /// The first wake-up of `task` after event `from`.
    fn first_wake(&self, task: TaskId, from: usize) -> Option<Wake> {
        self.wakes.iter().find(|wake| wake.index >= from && wake.task == task).copied()
    }
}

/// An interrupt that waits is taken within so many instructions once nothing masks it.
const TAKEN_WITHIN: Insns = Insns(4);

/// The event from which on the interrupt of the last event waited for the CPU, as far as is known: from there on,
/// interrupts were masked all the time.
fn pending(cpu: &Cpu, events: &[Event]) -> usize {
    let mut cpu = cpu.clone();
    let mut since = 0;
    for (index, pair) in events.windows(2).enumerate() {
        cpu.event(&pair[0]);
        let passed = pair[1].at.since(pair[0].at).map_or(Insns(0), |(_, insns)| insns);
        let idles = cpu.activity() == Activity::Idle;
        if cpu.masked() != Some(true) && (passed > TAKEN_WITHIN || idles) {
            since = index + 1;
        }
    }
    since
}

fn has_stack(event: &Event) -> bool {
    let (What::Inside { place, .. } | What::Enter { place, .. }) = event.what else { return false };
    matches!(place, Place::Stack(_))
}

fn is_device(event: &Event) -> bool {
    let what = event.what;
    matches!(
        what,
        What::Trigger { .. } | What::Disturbance { .. } | What::Due { .. } | What::Done { .. }
    )
}

fn is_masking(event: &Event) -> bool {
    matches!(event.what, What::Irqs { masked: true, .. })
}
