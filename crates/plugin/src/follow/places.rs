// SPDX-License-Identifier: GPL-2.0-or-later
//! The places in translated code at which the follower is called, found as QEMU translates a block.

use super::code::{self, Change};
use super::{Follower, on_due, on_place, on_store};
use crate::instrument::{Block, INSTRUCTION_BYTES_MAX, Instruction};

/// Why we are called at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It changes what is followed.
    Change(Change),
    /// A gate of the interrupt table leads here.
    Gate,
    /// It is watched.
    Watch,
    /// The kernel would schedule here.
    Point,
    /// It takes the lock of bottom halves, or releases it.
    Holds(bool),
    /// A block begins here, and it may be time to look.
    Due,
}

/// A place in translated code where we are called. Never freed: QEMU may keep the code, and has few enough.
pub struct Place {
    pub why: Why,
    pub address: u64,
    /// Instructions from the beginning of this one to the end of the block.
    pub left: u64,
    /// Whether the same variable is stored to again before a stretch that opens here would get a stack.
    pub brief: bool,
}

impl Follower {
    /// Finds the places of a block of the kernel's code that is being translated.
    pub(super) fn look(&self, block: &Block<'_>) {
        let count = block.instructions();
        if self.plan.inside_from > 0 {
            let (address, left) = (block.address(), count as u64);
            let place = Place { why: Why::Due, address, left, brief: false };
            block.when_due(on_due, Box::leak(Box::new(place)) as *const Place as usize);
        }
        // From the last to the first: what comes soon has then been seen.
        let mut stored_at = None;
        for index in (0..count).rev() {
            let Some(instruction) = block.instruction(index) else { return };
            let address = instruction.address();
            let left = (count - index) as u64;
            let change = self.change(&instruction, address);
            let mut brief = false;
            if let Some(Change::StoresPerCpu(offset)) = change
                && self.plan.preempt == Some(offset)
            {
                brief = stored_at
                    .is_some_and(|next: usize| ((next - index) as u64) < self.plan.stacks_from);
                stored_at = Some(index);
            }
            let place = |why| {
                let place = Place { why, address, left, brief };
                Box::leak(Box::new(place)) as *const Place as usize
            };
            if index == 0 && self.plan.is_gate(address) {
                instruction.before(on_place, place(Why::Gate));
            }
            if self.plan.points.contains(&address) {
                instruction.before(on_place, place(Why::Point));
            }
            for (at, holds) in [(self.plan.holds, true), (self.plan.releases, false)] {
                if at == Some(address) {
                    instruction.before(on_place, place(Why::Holds(holds)));
                }
            }
            if self.plan.watches.contains_key(&address) {
                instruction.before(on_place, place(Why::Watch));
            }
            match change {
                Some(store @ Change::StoresPerCpu(_)) => {
                    instruction.after_store(on_store, place(Why::Change(store)));
                }
                Some(change) => instruction.before(on_place, place(Why::Change(change))),
                None => {}
            }
        }
    }

    fn change(&self, instruction: &Instruction<'_>, address: u64) -> Option<Change> {
        let mut bytes = [0; INSTRUCTION_BYTES_MAX];
        let change = code::change(instruction.code(&mut bytes), address)?;
        match change {
            Change::StoresPerCpu(offset) => {
                [self.plan.preempt, self.plan.current].contains(&Some(offset)).then_some(change)
            }
            _ => Some(change),
        }
    }
}
