// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts the instructions of each function of the guest's kernel, for the stretches of the probe `cost`.
//!
//! QEMU adds one to a function's counter before each instruction, without a call. An instruction that faults is counted
//! and not executed: it is executed, and counted, once more after the fault. QEMU's own count has it once. So where the
//! kernel is entered after a page fault, one is taken from the function of the instruction that faulted. No other
//! exception of a sound kernel executes an instruction again; the host compares the sums with QEMU's count.

use crate::generator::pass_on_among_many;
use crate::instrument::{Block, Counters, Instrument, OnInstruction};
use crate::x86_64::USER_END;
use sample::Insns;
use wire::{Event, FunctionStarts};

/// The counter of all programs. The event tells it by the same number.
const PROGRAMS: usize = FunctionStarts::PROGRAMS as usize;
/// The counter of code that no function is known of, and the same.
const UNKNOWN: usize = FunctionStarts::UNKNOWN as usize;
/// The counter of the first function.
const FUNCTIONS: usize = 2;

/// What the functions executed.
pub struct Spending {
    functions: FunctionStarts,
    counters: Counters,
}

impl Spending {
    /// Counters for the functions of `functions`. QEMU is installing the plugin at this time.
    pub fn new(instrument: &Instrument, functions: FunctionStarts) -> Spending {
        let counters = instrument.counters(FUNCTIONS + functions.starts.len());
        Spending { functions, counters }
    }

    /// Looks at a block that QEMU translates. `on_fault` is called where the kernel is entered after a page fault.
    pub fn look(&self, block: &Block<'_>, on_fault: OnInstruction) {
        for instruction in (0..block.instructions()).filter_map(|index| block.instruction(index)) {
            let address = instruction.address();
            instruction.count(self.counters, counter(&self.functions, address));
            if address == self.functions.fault {
                instruction.before(on_fault, 0);
            }
        }
    }

    /// The instruction at `address` was counted and not executed.
    pub fn take_back(&self, instrument: &Instrument, address: u64) {
        let index = counter(&self.functions, address);
        let counted = instrument.value(self.counters, index);
        instrument.set(self.counters, index, counted.saturating_sub(1));
    }

    /// A stretch begins: all counters begin at 0.
    pub fn begin(&self, instrument: &Instrument) {
        for index in 0..FUNCTIONS + self.functions.starts.len() {
            instrument.set(self.counters, index, 0);
        }
    }

    /// The stretch ends: tells what each function executed in it.
    pub fn tell(&self, instrument: &Instrument) {
        let starts = self.functions.starts.iter().map(|(start, _)| *start);
        for (index, function) in [FunctionStarts::PROGRAMS, FunctionStarts::UNKNOWN]
            .into_iter()
            .chain(starts)
            .enumerate()
        {
            let insns = Insns(instrument.value(self.counters, index));
            if insns.0 > 0 {
                pass_on_among_many(&Event::Spent { function, insns });
            }
        }
    }
}

/// The counter of the instruction at `address`.
fn counter(functions: &FunctionStarts, address: u64) -> usize {
    if address < USER_END {
        return PROGRAMS;
    }
    match functions.starts.partition_point(|(start, _)| *start <= address).checked_sub(1) {
        Some(index) if functions.starts[index].1 => FUNCTIONS + index,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_counts_for_its_function_for_programs_or_for_nobody() {
        const AT: u64 = 0xffff_ffff_8100_0000;
        let functions = FunctionStarts {
            fault: 0,
            starts: vec![(AT, true), (AT + 16, true), (AT + 64, false)],
        };
        let counters = [0x40_0000, AT - 1, AT, AT + 15, AT + 16, AT + 63, AT + 64]
            .map(|address| counter(&functions, address));
        assert_eq!(counters, [PROGRAMS, UNKNOWN, 2, 2, 3, 3, UNKNOWN]);
    }
}
