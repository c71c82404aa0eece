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

/// An open stretch: since when it is open, and, only where triggers are aimed, which of all it is.
#[derive(Clone, Copy)]
pub struct Since {
    pub at: At,
    pub occurrence: Option<Occurrence>,
}

impl Since {
    /// A stretch opens at this moment. `key` stands for its opener, and is asked for only where triggers are aimed.
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

/// A stretch that gets stacks, with what opened the last one. The copy of a stack stays where it is, since millions are
/// made in a virtual second and moving one takes as long as making it.
#[derive(Default)]
pub struct Opened {
    pub since: Option<Since>,
    pub opener: Capture,
}

/// One of each kind that gets stacks.
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
    /// While in the kernel: since when it has not been at a place where it would schedule.
    pub unscheduled: Option<Since>,
    /// How often bottom halves are disabled, by whoever holds their lock.
    pub bh_held: u32,
    /// Since when they are.
    pub bh_off: Option<Since>,
    pub aimer: Option<Aimer>,
    pub looks: Option<Looks>,
    /// From when on calls of functions are to be told, until they are.
    pub functions_from: Option<Nanos>,
    /// What runs; 0 while not known.
    pub task: Task,
    /// Whether that is the idle task.
    pub idle: bool,
    pub nests: Nests,
    pub stacks: Stacks,
    /// What each task's counter was last, where it is followed.
    pub counters: FxHashMap<Task, u16>,
    /// Priority and name by address of the task, as they were last told.
    pub tasks: BTreeMap<u64, (u32, u32, [u64; 2])>,
}

impl Followed {
    /// As in user space.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn new(plan: &Plan, aim: Option<Aim>) -> Result<Followed, String> {
        Ok(Followed {
            masked: false,
            preempt: 0,
            openers: Openers::default(),
            unscheduled: None,
            bh_held: 0,
            bh_off: None,
            aimer: aim.map(Aimer::new),
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

    /// A stretch closes.
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
