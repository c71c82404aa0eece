// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells what the CPU does at each instant, from the events up to it.

use crate::windows::count;
use crate::{At, Event, Place, Role, StackId, TaskId, What};
use rustc_hash::FxHashMap;
use sample::Insns;

/// An entry of the kernel that the CPU has not left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// When the CPU came to the entry. This tells the entry from every other.
    pub at: At,
    /// The address of the entry.
    pub entry: u64,
    /// The vector, if the entry serves several.
    pub vector: Option<u8>,
    /// Whether it is an exception. An exception runs for the task that raised it, an interrupt for somebody else.
    exception: bool,
    /// Whether the preemption count has had the interrupt in it. Before that the entry's code runs, and after it the
    /// exit's.
    counted: bool,
    /// The stacks that were taken inside.
    seen: Seen,
}

/// The stacks that were taken while one interrupt or one softirq ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen(Vec<StackId>);

/// Looks come at growing distances. So this number is enough for all looks of an interrupt or softirq without nesting.
const SEEN_KEPT: usize = 16;

impl Seen {
    /// Adds another stack. A stack of the follower's look tells where the time goes. A stack of a call on the way tells
    /// only that the call happened. Of these stacks the first is kept, until there is a look.
    fn add(&mut self, stack: StackId, looked: bool) {
        let Seen(stacks) = self;
        match (looked, stacks.len()) {
            (false, 1..) => return,
            (true, SEEN_KEPT) => drop(stacks.remove(0)),
            _ => {}
        }
        stacks.push(stack);
    }
}

/// A running action of the softirqs.
#[derive(Clone, Debug)]
struct Action {
    function: u64,
    /// Its beginning, which tells it from every other action.
    since: Insns,
    seen: Seen,
}

/// The identity of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interrupt {
    /// The address of the kernel's entry. `None` if the CPU entered before the follower began.
    pub entry: Option<u64>,
    /// The vector, if the entry serves several.
    pub vector: Option<u8>,
}

/// The activity of the CPU: the innermost reason why it does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// The activity is not known, because it was not followed.
    Unknown,
    /// An interrupt runs: its entry, handler or exit.
    Interrupt(Interrupt),
    /// A softirq runs. The field is the address of its function.
    Softirq(Option<u64>),
    /// The scheduler chooses a task.
    Scheduler,
    /// The scheduler switches to a task.
    Switch,
    /// A task runs with interrupts off. They are off since this place.
    IrqsOff(Place),
    /// A task runs with preemption off. It is off since this place.
    PreemptOff(Place),
    /// The idle task looks for work, or sleeps.
    Idle,
    /// A task runs in the kernel with nothing off. The place is where it was seen last.
    Kernel(Place),
    /// A task runs in user space.
    User,
}

/// The task that serves softirqs, in kernels in which tasks do (PREEMPT_RT). It serves them with bottom halves
/// disabled.
#[derive(Clone, Copy, Debug)]
struct Server {
    task: TaskId,
    /// How often it has disabled migration since. Enabling bottom halves enables migration once more.
    nested: u32,
}

/// A task that waits for a sleeping lock, or waited for one last.
#[derive(Clone, Copy, Debug, Default)]
struct Waiter {
    owner: Option<TaskId>,
    /// Whether the task has queued for the lock since the last switch to it.
    asked: bool,
    /// Whether the CPU switched away from the task while it asked, and nobody has woken it yet.
    asleep: bool,
}

/// The state of the CPU. Memory grows with the number of tasks that sleep inside an entry or wait for a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    masked: Option<bool>,
    masked_at: Place,
    count: Option<u32>,
    disabled_at: Place,
    running: Option<(TaskId, u32)>,
    frames: Vec<Frame>,
    parked: FxHashMap<TaskId, Vec<Frame>>,
    waiters: FxHashMap<TaskId, Waiter>,
    scheduling: bool,
    switching: bool,
    user: bool,
    softirq: Option<Action>,
    /// Whether the kernel disables bottom halves by calls (PREEMPT_RT).
    bh_by_calls: bool,
    server: Option<Server>,
    seen_at: Place,
}

/// The lowest bits of `rt_mutex_base.owner`, which are flags (kernel/locking/rtmutex_common.h).
const OWNER_FLAGS: u64 = 7;

/// How many holders are followed. A longer chain is cut, and so is a deadlock.
const CHAIN: usize = 8;

impl Cpu {
    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        match event.what {
            What::Irqs { masked, place, .. } => {
                if masked {
                    self.user = false;
                    self.masked_at = place;
                }
                self.masked = Some(masked);
            }
            What::Preempt { count, place, .. } => self.preempt(count, place),
            What::Run { task, pid } => self.run(task, pid),
            What::Enter { role, address, taken, place, .. } => {
                self.user = false;
                if let Place::Stack(_) = place {
                    self.seen_at = place;
                }
                self.enter(role, address, taken, event.at);
                // At an interrupt's end the CPU enters the scheduler. The scheduler's stack says nothing of whom the
                // interrupt served.
                if role != Role::Schedule {
                    self.see(place, false);
                }
            }
            What::Leave { user, .. } => self.leave(user),
            What::Inside { place, .. } => {
                // If a task runs on in the kernel with nothing off, nothing else tells where it is.
                if let Place::Stack(_) = place {
                    self.seen_at = place;
                }
                self.see(place, true);
            }
            What::Gap => *self = Cpu::default(),
            What::Trigger { .. }
            | What::Due { .. }
            | What::Done { .. }
            | What::Disturbance { .. }
            | What::Pins { .. }
            | What::Function { .. }
            | What::Return { .. } => {}
        }
    }

    /// Takes a stack. The stack belongs to the running softirq, and to the interrupt that runs in this softirq. It does
    /// not belong to the interrupt at whose end softirqs run: that interrupt has finished its own work.
    fn see(&mut self, place: Place, looked: bool) {
        let Place::Stack(stack) = place else { return };
        if let Activity::Interrupt(_) = self.activity()
            && let Some(frame) = self.frames.iter_mut().rev().find(|f| !f.exception)
        {
            frame.seen.add(stack, looked);
        }
        let is_on = self.server.is_none() || self.serves();
        if let Some(action) = self.softirq.as_mut().filter(|_| is_on) {
            action.seen.add(stack, looked);
        }
    }

    /// Whether the running task serves softirqs, in kernels in which tasks do.
    fn serves(&self) -> bool {
        self.server.is_some_and(|server| self.running() == Some(server.task))
    }

    /// The softirq that the running task serves, in kernels in which tasks do; and its function if known.
    pub fn served_by_task(&self) -> Option<Option<u64>> {
        self.serves().then(|| self.softirq.as_ref().map(|action| action.function))
    }

    /// Whether the preemption count tells that softirqs are served, at an interrupt's end or where a task lets them.
    pub fn counts_softirq(&self) -> bool {
        self.count.unwrap_or(0) & count::SOFTIRQ_SERVING != 0
    }

    /// The stacks that were taken so far in the interrupt and in the softirq that have begun and not ended, each by its
    /// beginning.
    pub fn seen(&self) -> impl Iterator<Item = (Insns, &[StackId])> {
        let frame = self.interrupt().map(|f| (f.at.insns, &f.seen));
        let action = self.softirq.as_ref().map(|a| (a.since, &a.seen));
        frame.into_iter().chain(action).map(|(since, Seen(stacks))| (since, stacks.as_slice()))
    }

    /// When the running interrupt began, or otherwise the running softirq.
    pub fn serving_since(&self) -> Option<Insns> {
        match self.activity() {
            Activity::Interrupt(_) => self.interrupt().map(|frame| frame.at.insns),
            Activity::Softirq(_) => self.softirq.as_ref().map(|action| action.since),
            _ if self.serves() => self.softirq.as_ref().map(|action| action.since),
            _ => None,
        }
    }

    /// The task that runs.
    pub fn running(&self) -> Option<TaskId> {
        self.running.map(|(task, _)| task)
    }

    /// Learns where interrupts or preemption were turned off, while they are off. The events tell this only when they
    /// are on again.
    pub fn learn(&mut self, irqs: bool, place: Place) {
        if irqs && self.masked == Some(true) {
            self.masked_at = place;
        } else if !irqs && self.preempt_off() {
            self.disabled_at = place;
        }
    }

    /// Whether interrupts are masked. `None` if this is not known.
    pub fn masked(&self) -> Option<bool> {
        self.masked
    }

    /// The place at which interrupts were masked last.
    pub fn masked_at(&self) -> Place {
        self.masked_at
    }

    /// The interrupt with the innermost entry. Exceptions inside it do not count.
    pub fn interrupt(&self) -> Option<&Frame> {
        self.frames.iter().rev().find(|f| !f.exception)
    }

    /// Whether preemption is off. The idle task's own count does not count.
    pub fn preempt_off(&self) -> bool {
        self.disabled().is_some_and(|n| n != 0)
    }

    /// The place at which preemption was turned off last.
    pub fn disabled_at(&self) -> Place {
        self.disabled_at
    }

    /// The activity of the CPU.
    pub fn activity(&self) -> Activity {
        let count = self.count.unwrap_or(0);
        let frame = self.interrupt();
        let interrupt =
            Interrupt { entry: frame.map(|f| f.entry), vector: frame.and_then(|f| f.vector) };
        if count & (count::HARDIRQ | count::NMI) != 0 || frame.is_some_and(|f| !f.counted) {
            return Activity::Interrupt(interrupt);
        }
        if count & count::SOFTIRQ_SERVING != 0 {
            return Activity::Softirq(self.softirq.as_ref().map(|action| action.function));
        }
        if self.switching {
            return Activity::Switch;
        }
        if self.scheduling {
            return Activity::Scheduler;
        }
        match self.masked {
            None => return Activity::Unknown,
            Some(true) if frame.is_some() => return Activity::Interrupt(interrupt),
            Some(true) => return Activity::IrqsOff(self.masked_at),
            Some(false) => {}
        }
        match (self.disabled(), self.running) {
            (None, _) => Activity::Unknown,
            (Some(1..), _) => Activity::PreemptOff(self.disabled_at),
            (Some(0), Some((_, 0))) => Activity::Idle,
            (Some(0), _) if self.user => Activity::User,
            (Some(0), _) => Activity::Kernel(self.seen_at),
        }
    }

    /// The task that holds the lock on which `task` sleeps, the task that holds the lock on which that holder sleeps,
    /// and so on. `None` if `task` does not sleep on a lock. Empty if the holder is not known.
    pub fn holders(&self, task: TaskId) -> Option<Vec<TaskId>> {
        let asleep = |t: TaskId| self.waiters.get(&t).filter(|w| w.asleep);
        let mut next = asleep(task)?.owner;
        let mut chain = Vec::new();
        while let Some(owner) = next
            && chain.len() < CHAIN
            && owner != task
            && !chain.contains(&owner)
        {
            chain.push(owner);
            next = asleep(owner).and_then(|w| w.owner);
        }
        Some(chain)
    }

    /// The preemption count without the part that the idle task always has.
    fn disabled(&self) -> Option<u32> {
        let idle = self.running.is_some_and(|(_, pid)| pid == 0);
        self.count.map(|n| n.saturating_sub(u32::from(idle)))
    }

    fn preempt(&mut self, count: u32, place: Place) {
        self.user = false;
        let was_off = self.preempt_off();
        self.count = Some(count);
        if !was_off {
            self.disabled_at = place;
        }
        if !self.preempt_off() {
            // The scheduler and the tail of a switch run with preemption off (kernel/sched/core.c).
            self.scheduling = false;
            self.switching = false;
        }
        if count & (count::HARDIRQ | count::NMI) != 0
            && let Some(frame) = self.frames.iter_mut().rev().find(|f| !f.exception)
        {
            frame.counted = true;
        }
        if count & count::SOFTIRQ_SERVING == 0 && self.server.is_none() {
            self.softirq = None;
        }
    }

    fn run(&mut self, task: TaskId, pid: u32) {
        if let Some((before, _)) = self.running {
            let frames = std::mem::take(&mut self.frames);
            if !frames.is_empty() {
                self.parked.insert(before, frames);
            }
            if let Some(waiter) = self.waiters.get_mut(&before) {
                waiter.asleep = waiter.asked;
            }
        }
        self.frames = self.parked.remove(&task).unwrap_or_default();
        if let Some(waiter) = self.waiters.get_mut(&task) {
            waiter.asked = false;
            waiter.asleep = false;
        }
        // The first task is the one that the follower found, and nothing switched to it.
        self.switching = self.running.is_some();
        self.running = Some((task, pid));
        self.scheduling = false;
        self.user = false;
        self.seen_at = Place::Unknown;
    }

    fn enter(&mut self, role: Role, address: u64, taken: u64, at: At) {
        match role {
            Role::CommonInterrupt | Role::Interrupt | Role::Exception => self.frames.push(Frame {
                at,
                entry: address,
                // The stub pushes a byte, and the CPU extends it.
                vector: (role == Role::CommonInterrupt).then_some(taken as u8),
                exception: role == Role::Exception,
                counted: false,
                seen: Seen::default(),
            }),
            Role::Schedule => {
                self.scheduling = true;
                self.switching = false;
            }
            Role::SwitchTo => {
                self.scheduling = false;
                self.switching = true;
            }
            Role::SoftirqAction => {
                self.softirq =
                    Some(Action { function: address, since: at.insns, seen: Seen::default() });
            }
            Role::WakeUp => {
                if let Some(waiter) = self.waiters.get_mut(&TaskId(taken)) {
                    waiter.asleep = false;
                }
            }
            Role::BhDisable => self.bh_by_calls = true,
            Role::Softirq if self.bh_by_calls => {
                self.server = self.running().map(|task| Server { task, nested: 0 });
                self.softirq = None;
            }
            Role::MigrateDisable | Role::MigrateEnable if self.serves() => {
                self.server = self.server.and_then(|server| {
                    let enables = role == Role::MigrateEnable;
                    let nested =
                        if enables { server.nested.checked_sub(1)? } else { server.nested + 1 };
                    Some(Server { nested, ..server })
                });
                if self.server.is_none() {
                    self.softirq = None;
                }
            }
            Role::LockOwner => self.ask(Some(taken & !OWNER_FLAGS), false),
            Role::LockWait => self.ask(Some(taken & !OWNER_FLAGS), true),
            Role::LockSleep => self.ask(None, true),
            _ => {}
        }
    }

    /// Learns that the running task asks for a lock: for the lock of `owner`, or of the owner whom it asked last.
    /// `sleeps` says whether the task will sleep for the lock, or only may.
    fn ask(&mut self, owner: Option<u64>, sleeps: bool) {
        let Some((task, _)) = self.running else { return };
        let waiter = self.waiters.entry(task).or_default();
        if let Some(owner) = owner {
            waiter.owner = (owner != 0).then_some(TaskId(owner));
        }
        waiter.asked |= sleeps;
    }

    fn leave(&mut self, user: bool) {
        if user {
            self.frames.clear();
            if let Some((task, _)) = self.running {
                // No task goes back to user space while it waits for a lock of the kernel.
                self.waiters.remove(&task);
            }
        } else {
            self.frames.pop();
        }
        self.user = user;
    }
}
