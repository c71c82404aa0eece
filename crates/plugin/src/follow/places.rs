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
}

impl Follower {
    /// Finds the places of a block of the kernel's code that is being translated.
    pub(super) fn look(&self, block: &Block<'_>) {
        let count = block.instructions();
        if self.plan.inside_from > 0 {
            let (address, left) = (block.address(), count as u64);
            let place = Box::leak(Box::new(Place { why: Why::Due, address, left }));
            block.when_due(on_due, place as *const Place as usize);
        }
        for index in 0..count {
            let Some(instruction) = block.instruction(index) else { return };
            let address = instruction.address();
            let left = (count - index) as u64;
            let place =
                |why| Box::leak(Box::new(Place { why, address, left })) as *const Place as usize;
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
            match self.change(&instruction, address) {
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
