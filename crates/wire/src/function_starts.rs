// SPDX-License-Identifier: GPL-2.0-or-later
//! What the witness is told to count by function: where the functions of the guest's kernel begin.
//!
//! The module cannot see whether the places are those of the guest that is measured.

use alloc::vec::Vec;

/// The functions by which instructions are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionStarts {
    /// Where the kernel enters after a page fault. The instruction that faulted is executed once more, and counts once.
    pub fault: u64,
    /// Where each stretch of code begins, rising, and whether it is a function. What is no function is a hole between
    /// the kernel's code and its modules.
    pub starts: Vec<(u64, bool)>,
}

impl FunctionStarts {
    /// Stands for all programs, where an event tells a function ([`Event::Spent`](crate::Event)).
    pub const PROGRAMS: u64 = 0;
    /// Stands for code that no function is known of.
    pub const UNKNOWN: u64 = 1;
    /// The most functions that fit. A kernel has some 60,000.
    pub const MAX: usize = 1 << 20;
    /// In the file, a hole has this bit less than its address: the kernel has the upper half of the addresses.
    const FUNCTION: u64 = 1 << 63;

    /// As a file: the entry, and then the starts; little-endian u64 each.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let start = |(at, is_function): &(u64, bool)| match is_function {
            true => at | Self::FUNCTION,
            false => at & !Self::FUNCTION,
        };
        let words = core::iter::once(self.fault).chain(self.starts.iter().map(start));
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Of words as [`FunctionStarts::to_bytes`] writes them. `None` where they do not rise, or are none or too many.
    pub(crate) fn of_words(words: &[u64]) -> Option<FunctionStarts> {
        let (fault, starts) = words.split_first()?;
        let start = |word: &u64| (word | Self::FUNCTION, word & Self::FUNCTION != 0);
        let starts: Vec<_> = starts.iter().map(start).collect();
        let rises = starts.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (rises && starts.len() <= Self::MAX).then_some(FunctionStarts { fault: *fault, starts })
    }
}
