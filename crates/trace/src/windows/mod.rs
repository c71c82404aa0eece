// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds stretches in which the CPU did not take interrupts, did not let go of a task, or kept it on its CPU.
//!
//! A window is maximal: it opens when the first reason comes and closes when the last one goes. Its length is the time
//! that passed, even if the task was not running (migration, bottom halves on PREEMPT_RT). The window's parts tell how
//! much of the length were interrupts, softirqs and other tasks. A window has no length if it was open when following
//! began, when following ended or when records were lost. Such windows are counted as cut.
//!
//! The idle task does not count: it always runs with a preemption count of 1 (kernel/sched/core.c, `init_idle()`) and
//! looks for work by itself. A window that opens and closes between two events of the follower cannot be seen.

mod origin;
mod report;
mod tally;

pub use report::{Order, WindowBucket, WindowRow, WindowsReport};
pub use tally::{Length, Longest, Tally, TimeParts};

use crate::{At, Edge, Event, Place, Role, TaskId, What};
use rustc_hash::FxHashMap;
use sample::{Insns, Nanos};
use serde::{Deserialize, Serialize};

/// Bits of the preemption count (include/linux/preempt.h).
pub(crate) mod count {
    /// Softirqs are being served.
    pub const SOFTIRQ_SERVING: u32 = 0x0000_0100;
    /// The count of disabled softirqs, in steps of 0x200.
    pub const SOFTIRQ_OFF: u32 = 0x0000_fe00;
    /// The count of hard interrupts.
    pub const HARDIRQ: u32 = 0x000f_0000;
    /// The count of non-maskable interrupts.
    pub const NMI: u32 = 0x00f0_0000;
}

/// What a window keeps from happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::words))]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// Interrupts are masked.
    IrqsOff,
    /// The preemption count is not 0: no other task gets the CPU.
    PreemptOff,
    /// Bottom halves are disabled: softirqs wait.
    BhOff,
    /// The task may not move to another CPU.
    MigrationOff,
}

impl WindowKind {
    /// All kinds of windows.
    pub const ALL: [WindowKind; 4] =
        [WindowKind::IrqsOff, WindowKind::PreemptOff, WindowKind::BhOff, WindowKind::MigrationOff];

    /// The kind's word in files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            WindowKind::IrqsOff => "irqs_off",
            WindowKind::PreemptOff => "preempt_off",
            WindowKind::BhOff => "bh_off",
            WindowKind::MigrationOff => "migration_off",
        }
    }
}

/// Windows that have no length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cuts {
    /// Seen to close only.
    pub at_begin: u64,
    /// Seen to open only.
    pub at_end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    at: At,
    /// The opener, as it was told at the opening.
    first: Place,
    /// The opener, or the stack that was told at the closing.
    place: Place,
    /// The place of the CPU when the follower looked last. Of a nesting: in its longest stretch.
    inside: Place,
    /// How far into its stretch that look was. Only looks into nestings have this length.
    looked: Insns,
    /// The time that had been spent when the window opened, and the time spent while its task was away.
    before: TimeParts,
    /// The time of other tasks while the window's task was away.
    others: Nanos,
}

impl Open {
    fn new(at: At, place: Place, before: TimeParts) -> Self {
        let (inside, looked) = (Place::Unknown, Insns(0));
        Open { at, first: place, place, inside, looked, before, others: Nanos(0) }
    }

    /// The parts of the window, when `spent` has been spent.
    fn parts(&self, spent: TimeParts) -> TimeParts {
        TimeParts { others: self.others, ..spent.since(self.before) }
    }

    /// The same window with the stack that opened it, if this is told at last.
    fn opened_by(self, place: Place) -> Self {
        if matches!(place, Place::Stack(_)) { Open { place, ..self } } else { self }
    }
}

/// A nesting of one task.
#[derive(Clone, Copy, Debug)]
struct Nest {
    depth: u32,
    open: Open,
    /// Since when another task runs, and how much had been spent then.
    away: Option<(At, TimeParts)>,
}

impl Nest {
    /// Learns that the CPU was at `place`, `far` into the task's stretch. A task that was preempted goes on with a new
    /// stretch, and a look into its short rest tells nothing of where the window's time went.
    fn look(&mut self, far: Insns, place: Place) {
        if far >= self.open.looked {
            (self.open.inside, self.open.looked) = (place, far);
        }
    }

    /// Learns that the nesting's task runs again.
    fn come_back(&mut self, at: At, spent: TimeParts) {
        let Some((since, then)) = self.away.take() else { return };
        let Some((time, _)) = at.since(since) else { return };
        self.open.before = self.open.before.and(spent.since(then));
        self.open.others += time;
    }
}

/// What windows that are counted together have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowKey {
    /// The kind of the windows.
    pub kind: WindowKind,
    /// The opener of the windows.
    pub opened_by: Place,
    /// The place of the CPU when the follower looked last, in a window in which other tasks ran: in the longest
    /// stretch of the window's own task. Unknown for windows that were too short for a look.
    pub inside: Place,
}

/// Follows events, and keeps a tally for each pair of stacks: the one that opened a window, and the one inside. Memory
/// grows with the number of different stacks and of tasks inside a window, not with time.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    tallies: FxHashMap<WindowKey, Tally>,
    cuts: [Cuts; 4],
    /// `None` while this is not known.
    masked: Option<Option<Open>>,
    count: Option<u32>,
    preempt: Option<Option<Open>>,
    /// Whether the idle task ran when the window `preempt` opened.
    opened_idle: bool,
    bh: Option<Option<Open>>,
    running: Option<(TaskId, u32)>,
    /// What the CPU spent its time on. Below, until when this is known.
    spent: TimeParts,
    spent_until: Option<At>,
    /// When the CPU entered the scheduler last, and how much had been spent then.
    scheduling: Option<(At, TimeParts)>,
    migration: FxHashMap<TaskId, Nest>,
    bh_tasks: FxHashMap<TaskId, Nest>,
    /// Whether the kernel tells of bottom halves by calls (PREEMPT_RT).
    bh_by_calls: bool,
    /// Windows shorter than this have no stack. Below, those that are not looked into. Both hold whatever the follower
    /// told.
    stacks_from: Insns,
    inside_from: Insns,
}

impl Windows {
    /// Windows of which nothing has been followed yet. A follower may tell stacks of shorter stretches than windows are
    /// to have, and may look into shorter ones. The same run then still has the same windows with the same stacks,
    /// however closely it was followed.
    pub fn new(stacks_from: Insns, inside_from: Insns) -> Self {
        Windows { stacks_from, inside_from, ..Self::default() }
    }

    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        let at = event.at;
        match event.what {
            What::Irqs { masked, place, opened } => {
                let open = self.masked.map(|open| open.map(|open| open.opened_by(opened)));
                self.masked = Some(self.step(WindowKind::IrqsOff, open, masked, at, place));
            }
            What::Preempt { count, place, opened } => self.preempt(count, at, place, opened),
            What::Run { task, pid } => {
                self.switch(task, at);
                self.running = Some((task, pid));
                // What counts as disabled depends on whether the idle task runs.
                if let Some(count) = self.count {
                    self.preempt(count, at, Place::Unknown, Place::Unknown);
                }
            }
            What::Enter { role, taken, place, opened, .. } => {
                self.enter(role, taken, at, place, opened);
            }
            What::Inside { irqs_off, preempt_off, unscheduled, place } => {
                self.inside([irqs_off, preempt_off], unscheduled, at, place);
            }
            What::Gap => self.forget(),
            What::Trigger { .. }
            | What::Due { .. }
            | What::Done { .. }
            | What::Disturbance { .. }
            | What::Pins { .. }
            | What::Leave { .. }
            | What::Function { .. }
            | What::Return { .. } => {}
        }
    }

    /// Ends the following. Open windows have no length.
    pub fn finish(&mut self) {
        self.forget();
    }

    /// The tallies, in no order.
    pub fn tallies(&self) -> impl Iterator<Item = (WindowKey, &Tally)> {
        self.tallies.iter().map(|(&key, tally)| (key, tally))
    }

    /// The windows of a kind that have no length.
    pub fn cuts(&self, kind: WindowKind) -> Cuts {
        self.cuts[kind as usize]
    }

    /// One step of something that is either off or on. `before` is the window that was open (`None`: unknown). Returns
    /// the window that is open now.
    fn step(
        &mut self,
        kind: WindowKind,
        before: Option<Option<Open>>,
        off: bool,
        at: At,
        place: Place,
    ) -> Option<Open> {
        match (before, off) {
            (None, false) => self.cuts[kind as usize].at_begin += 1,
            (Some(Some(open)), true) => return Some(open),
            (_, true) => return Some(Open::new(at, place, self.spent)),
            (Some(Some(open)), false) => self.close(kind, &open, at, place),
            (Some(None), false) => {}
        }
        None
    }

    fn close(&mut self, kind: WindowKind, open: &Open, at: At, closed_by: Place) {
        // The reader lets no event go back in time.
        let Some((time, insns)) = at.since(open.at) else { return };
        let length = Length { time, insns };
        let told = |place: Place| match place {
            Place::Stack(_) if insns < self.stacks_from => Place::Unknown,
            place => place,
        };
        // An interrupt's gate is told when the window opens, however long the window will be.
        let opened_by = if insns < self.stacks_from { open.first } else { open.place };
        let (opened_by, closed_by) = (told(opened_by), told(closed_by));
        let key = WindowKey { kind, opened_by, inside: open.inside };
        // Nothing else runs while interrupts are masked.
        let parts = match kind {
            WindowKind::IrqsOff => TimeParts::default(),
            _ => open.parts(self.spent),
        };
        let longest = Longest { length, parts, at: open.at, closed_by, inside: open.inside };
        self.tallies.entry(key).or_default().add(longest);
    }

    /// Counts the time until now for what the preemption count says.
    fn spend(&mut self, at: At) {
        if let Some((time, _)) = self.spent_until.and_then(|until| at.since(until)) {
            self.spent.spend(self.count.unwrap_or(0), time);
        }
        self.spent_until = Some(at);
    }

    fn switch(&mut self, to: TaskId, at: At) {
        self.spend(at);
        let spent = self.spent;
        // The time for choosing another task belongs to that task.
        let scheduling = self.scheduling.take();
        for nests in [&mut self.migration, &mut self.bh_tasks] {
            if let Some(nest) = self.running.and_then(|(task, _)| nests.get_mut(&task)) {
                // If a window opened since then, the scheduler kept the task this time.
                let left = scheduling.filter(|(entered, _)| entered.since(nest.open.at).is_some());
                nest.away = Some(left.unwrap_or((at, spent)));
            }
            if let Some(nest) = nests.get_mut(&to) {
                nest.come_back(at, spent);
            }
        }
    }

    fn preempt(&mut self, count: u32, at: At, place: Place, opened: Place) {
        self.spend(at);
        let idle = self.running.is_some_and(|(_, pid)| pid == 0);
        self.count = Some(count);
        let off = count.saturating_sub(u32::from(idle)) != 0;
        // A window that opened while the idle task ran is a part of the kernel's one stretch.
        let told = if self.opened_idle { Place::Unknown } else { opened };
        let before = self.preempt.map(|open| open.map(|open| open.opened_by(told)));
        let was_off = before.flatten().is_some();
        self.preempt = Some(self.step(WindowKind::PreemptOff, before, off, at, place));
        if off && !was_off {
            self.opened_idle = idle;
        }
        let off = count & count::SOFTIRQ_OFF != 0;
        self.bh = Some(self.step(WindowKind::BhOff, self.bh, off, at, place));
    }

    fn enter(&mut self, role: Role, taken: u64, at: At, place: Place, opened: Place) {
        if role == Role::Schedule {
            self.spend(at);
            self.scheduling = Some((at, self.spent));
            return;
        }
        let (Some((task, _)), Some((kind, edge))) = (self.running, role.edge()) else { return };
        self.spend(at);
        if kind == WindowKind::BhOff {
            // Disabling adds 0x200. Softirqs that are served add 0x100, which is no window (include/linux/preempt.h).
            let disables = taken & u64::from(count::SOFTIRQ_OFF) != 0;
            // Kernels other than PREEMPT_RT have a function for enabling only.
            self.bh_by_calls |= disables && edge == Edge::Opens;
            if !disables || !self.bh_by_calls {
                return;
            }
        }
        let nests = match kind {
            WindowKind::BhOff => &mut self.bh_tasks,
            _ => &mut self.migration,
        };
        match edge {
            Edge::Opens => nest(nests, task, Open::new(at, place, self.spent)),
            Edge::Closes => match unnest(nests, task) {
                Unnest::Closed(open) => self.close(kind, &open.opened_by(opened), at, place),
                Unnest::Unknown => self.cuts[kind as usize].at_begin += 1,
                Unnest::Inner => {}
            },
        }
    }

    /// Learns where the CPU was when the follower looked into an open stretch: with interrupts masked, with preemption
    /// off, or while a task goes from one place where the kernel would schedule to the next one. The last kind is as
    /// near as a look comes to windows of which only calls of functions tell.
    fn inside(
        &mut self,
        [irqs_off, preempt_off]: [bool; 2],
        unscheduled: Option<Insns>,
        at: At,
        place: Place,
    ) {
        let from = self.inside_from;
        let is_long = |open: Option<Option<Open>>| {
            open.flatten().and_then(|o| at.since(o.at)).is_some_and(|(_, insns)| insns >= from)
        };
        let irqs_off = irqs_off && is_long(self.masked);
        let preempt_off = preempt_off && is_long(self.preempt);
        let unscheduled = unscheduled.filter(|insns| *insns >= from);
        let counted = [
            (irqs_off, &mut self.masked),
            (preempt_off, &mut self.preempt),
            (preempt_off, &mut self.bh),
        ];
        let counted = counted
            .into_iter()
            .filter_map(|(looked, open)| open.as_mut().and_then(Option::as_mut).filter(|_| looked));
        let nests = [&mut self.migration, &mut self.bh_tasks];
        counted.for_each(|open| open.inside = place);
        let Some((far, (task, _))) = unscheduled.zip(self.running) else { return };
        let called = nests.into_iter().filter_map(|nests| nests.get_mut(&task));
        called.for_each(|nest| nest.look(far, place));
    }

    fn forget(&mut self) {
        let open = [self.masked.take(), self.preempt.take(), self.bh.take()];
        let kinds = [WindowKind::IrqsOff, WindowKind::PreemptOff, WindowKind::BhOff];
        for (kind, open) in kinds.into_iter().zip(open) {
            self.cuts[kind as usize].at_end += u64::from(open.flatten().is_some());
        }
        self.cuts[WindowKind::MigrationOff as usize].at_end += self.migration.len() as u64;
        self.cuts[WindowKind::BhOff as usize].at_end += self.bh_tasks.len() as u64;
        self.migration.clear();
        self.bh_tasks.clear();
        self.count = None;
        self.running = None;
        self.spent_until = None;
        self.scheduling = None;
    }
}

fn nest(nests: &mut FxHashMap<TaskId, Nest>, task: TaskId, open: Open) {
    let nest = nests.entry(task).or_insert(Nest { depth: 0, open, away: None });
    nest.depth += 1;
}

enum Unnest {
    Closed(Open),
    Inner,
    Unknown,
}

fn unnest(nests: &mut FxHashMap<TaskId, Nest>, task: TaskId) -> Unnest {
    let Some(nest) = nests.get_mut(&task) else { return Unnest::Unknown };
    nest.depth -= 1;
    if nest.depth > 0 {
        return Unnest::Inner;
    }
    nests.remove(&task).map_or(Unnest::Unknown, |nest| Unnest::Closed(nest.open))
}

#[cfg(test)]
mod tests;
