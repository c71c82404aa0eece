// SPDX-License-Identifier: GPL-2.0-or-later
//! The places in translated code at which the follower is called, found as QEMU translates a block.

use super::functions::on_function;
use super::{Follower, on_due, on_place, on_store};
use crate::instrument::Block;
use crate::x86_64::INSTRUCTION_BYTES_MAX;
use crate::x86_64::code::{self, Change, Step};

/// Why the follower is called at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The instruction changes something that is followed.
    Change(Change),
    /// A gate of the interrupt table leads to the instruction.
    Gate,
    /// The instruction is watched.
    Watch,
    /// The kernel would schedule here.
    Point,
    /// The instruction takes the lock of bottom halves, or releases it.
    Holds(bool),
    /// A block begins here, and a look may be due.
    Due,
    /// A function of the kernel begins here.
    Function,
    /// A function of the kernel returns here.
    Return,
}

/// A place in translated code at which the follower is called. Never freed: QEMU may keep the code. There are few.
pub struct Place {
    pub why: Why,
    pub address: u64,
    /// The number of instructions from the beginning of this one to the end of the block.
    pub left: u64,
    /// Whether the instruction adds one to the preemption count, and its block takes this away again before a stretch
    /// that opens here is long enough for a stack.
    pub brief: bool,
}

/// How many times its instructions a counted block counts, because the blocks that lead on to it are not counted. A
/// countdown that ends too early goes on. One that ends too late is made up for wherever the follower is called.
const COUNTED: u64 = 3;

/// Whether a block need not be counted: no loop has only blocks like this. A loop that makes a call and comes back from
/// it still has to jump back.
fn leads_on(block: &Block<'_>) -> bool {
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let last = block.last().map(|last| last.code(&mut bytes));
    last.is_some_and(|code| code::leads_on(code) || code::returns(code))
}

impl Follower {
    /// Finds the places in a block of the kernel's code, while QEMU translates the block.
    pub(super) fn look(&self, block: &Block<'_>) {
        let count = block.instructions();
        if self.plan.inside_from.0 > 0 && !leads_on(block) {
            let (address, left) = (block.address(), count as u64);
            let place = Place { why: Why::Due, address, left, brief: false };
            let number = Box::leak(Box::new(place)) as *const Place as usize;
            block.when_due(COUNTED * left, on_due, number);
        }
        // From the last instruction to the first, so that the successors of an instruction are known.
        let mut next: Option<(usize, Option<Step>)> = None;
        for index in (0..count).rev() {
            let Some(instruction) = block.instruction(index) else { return };
            let address = instruction.address();
            let left = (count - index) as u64;
            let mut bytes = [0; INSTRUCTION_BYTES_MAX];
            let code = instruction.code(&mut bytes);
            let change = self.change(code, address);
            let mut brief = false;
            if self
                .plan
                .preempt
                .is_some_and(|count| change == Some(Change::StoresPerCpu(count.offset)))
            {
                let step = code::step(code);
                brief = next.is_some_and(|(at, then)| {
                    let is_short = ((at - index) as u64) < self.plan.stacks_from.0;
                    (step, then) == (Some(Step::Up), Some(Step::Down)) && is_short
                });
                next = Some((index, step));
            }
            let place = |why| {
                let place = Place { why, address, left, brief };
                Box::leak(Box::new(place)) as *const Place as usize
            };
            if index == 0 && self.functions.contains(&address) {
                instruction.when_telling(on_function, place(Why::Function));
            }
            // A return from an interrupt counts as well, since the interrupt's entry is a function.
            let returns = code::returns(code) || change == Some(Change::ReturnsFromInterrupt);
            if self.plan.functions_from.is_some() && returns {
                instruction.when_telling(on_function, place(Why::Return));
            }
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
            if self.watches.places.contains_key(&address) {
                instruction.before(on_place, place(Why::Watch));
            }
            match change {
                Some(store @ (Change::StoresPerCpu(_) | Change::StoresShort(_))) => {
                    instruction.after_store(on_store, place(Why::Change(store)));
                }
                Some(change) => instruction.before(on_place, place(Why::Change(change))),
                None => {}
            }
        }
    }

    fn change(&self, code: &[u8], address: u64) -> Option<Change> {
        let change = code::change(code, address)?;
        match change {
            Change::StoresPerCpu(offset) => {
                [self.plan.preempt.map(|count| count.offset), self.plan.current]
                    .contains(&Some(offset))
                    .then_some(change)
            }
            Change::StoresShort(distance) => {
                (self.plan.counter == Some(distance)).then_some(change)
            }
            _ => Some(change),
        }
    }
}
