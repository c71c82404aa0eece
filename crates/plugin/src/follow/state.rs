// SPDX-License-Identifier: GPL-2.0-or-later
//! What the follower knows of the guest at any moment.

use super::aim::Aimer;
use super::looks::Looks;
use super::nests::{Nests, Task};
use super::stacks::{Capture, Stacks};
use crate::generator::pass_on_among_many;
use rustc_hash::FxHashMap;
use sample::{Aim, At, Insns, Nanos, Occurrence, Stretch};
use std::collections::BTreeMap;
use std::path::Path;
use wire::Event;
use wire::plan::Plan;

/// An open stretch, with the moment of its opening. If triggers are aimed, also its number among all stretches.
#[derive(Clone, Copy)]
pub struct Since {
    pub at: At,
    pub occurrence: Option<Occurrence>,
}

impl Since {
    /// Opens a stretch at `at`. `key` stands for its opener. The function calls `key` only if triggers are aimed.
    pub fn new(
        aimer: &mut Option<Aimer>,
        kind: Stretch,
        key: impl FnOnce() -> u64,
        at: At,
    ) -> Since {
        let occurrence = aimer.as_mut().map(|aimer| aimer.opened(kind, key()));
        Since { at, occurrence }
    }
}

/// A stretch of a kind that gets stacks, with the opener of the last one. The copy of a stack stays in its place: a
/// virtual second makes millions of copies, and moving one takes as long as making it.
#[derive(Default)]
pub struct Opened {
    pub since: Option<Since>,
    pub opener: Capture,
}

/// A stretch of each kind that gets stacks.
#[derive(Default)]
pub struct Openers {
    pub irqs_off: Opened,
    pub preempt_off: Opened,
}

impl Openers {
    pub fn of(&mut self, kind: Stretch) -> &mut Opened {
        match kind {
            Stretch::IrqsOff => &mut self.irqs_off,
            _ => &mut self.preempt_off,
        }
    }
}

pub struct Followed {
    pub masked: bool,
    pub preempt: u32,
    pub openers: Openers,
    /// While the CPU is in the kernel: since when the kernel was at no place where it would schedule.
    pub unscheduled: Option<Since>,
    /// How often the holder of the lock of bottom halves has disabled them.
    pub bh_held: u32,
    /// Since when bottom halves are disabled.
    pub bh_off: Option<Since>,
    pub aimer: Option<Aimer>,
    pub looks: Option<Looks>,
    /// When to begin reporting calls of functions. `None` once that has begun.
    pub functions_from: Option<Nanos>,
    /// The running task. 0 while it is not known.
    pub task: Task,
    /// Whether the running task is the idle task.
    pub idle: bool,
    pub nests: Nests,
    pub stacks: Stacks,
    /// The last value of each task's counter, if counters are followed.
    pub counters: FxHashMap<Task, u16>,
    /// The number, priority and name of each task as last reported, by the task's address.
    pub tasks: BTreeMap<u64, (u32, u32, [u64; 2])>,
}

impl Followed {
    /// The state of a guest in user space.
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn new(plan: &Plan, aim: Option<Aim>) -> Result<Followed, String> {
        Ok(Followed {
            masked: false,
            preempt: 0,
            openers: Openers::default(),
            unscheduled: None,
            bh_held: 0,
            bh_off: None,
            aimer: aim.map(Aimer::new).or_else(|| plan.numbers.then(Aimer::counting)),
            looks: (plan.inside_from > Insns(0))
                .then(|| Looks::new(plan.inside_from, plan.inside_kinds)),
            functions_from: plan.functions_from,
            task: 0,
            idle: false,
            nests: Nests::default(),
            counters: FxHashMap::default(),
            stacks: Stacks::new(plan.map.as_deref().map(Path::new))?,
            tasks: BTreeMap::new(),
        })
    }

    /// Gives triggers this aim from now on. Without one, stretches are only counted.
    ///
    /// # Errors
    /// If the stretches until now were not numbered.
    pub fn aim_at(&mut self, aim: Option<Aim>) -> Result<(), String> {
        match (&mut self.aimer, aim) {
            (Some(aimer), aim) => aimer.aim_at(aim),
            (None, Some(_)) => return Err("an aim for stretches that were not numbered".into()),
            (None, None) => {}
        }
        Ok(())
    }

    /// Closes a stretch.
    pub fn closed(&mut self, since: Since, now: Insns) {
        let (Some(aimer), Some(occurrence)) = (&mut self.aimer, since.occurrence) else { return };
        let length = now - since.at.insns;
        if aimer.closed(occurrence, length.0) {
            let (opened, cpu, length) = (since.at.time, since.at.cpu, length);
            pass_on_among_many(&Event::Stretch { opened, cpu, length, occurrence });
        }
    }

    pub fn end_unscheduled(&mut self, now: Insns) {
        if let Some(since) = self.unscheduled.take() {
            self.closed(since, now);
        }
    }
}
