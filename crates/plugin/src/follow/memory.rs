// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's kernel stacks, read where the host keeps them.
//!
//! QEMU walks the guest's page tables for everyone who asks for memory. This takes longer than all other steps of
//! copying a piece of a stack. The pages of a kernel stack do not move while its task runs, so their places are
//! remembered. They are forgotten when another task runs, since only then the stack of the previous task may go.

use crate::checks::{Check, Failed};
use crate::instrument::Instrument;
use crate::physical::Physical;
use crate::x86_64::PAGE;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many pages are remembered, by the lowest bits of their numbers. The stack of a task has four pages, and so has
/// the stack of interrupts. The two should seldom take each other's place.
const PAGES: usize = 64;
/// A number that no page has.
const NONE: u64 = u64::MAX;

/// The memory in which stacks lie. Only the vCPU's thread uses it.
pub struct StackMemory {
    physical: Physical,
    /// Whether somebody calls [`StackMemory::forget`] when another task runs.
    is_told: bool,
    pages: Pages,
}

impl StackMemory {
    /// The memory of a vCPU. If nobody will call [`StackMemory::forget`] (`is_told`), no page is remembered.
    pub fn new(physical: Physical, is_told: bool) -> StackMemory {
        StackMemory { physical, is_told, pages: Pages::new() }
    }

    /// Forgets all pages. Another task runs, and nobody knows what becomes of the previous task's stack.
    pub fn forget(&self) {
        self.pages.forget();
    }

    /// Fills `bytes` from `address` on. Returns false if the memory cannot be read.
    pub fn fill(&self, instrument: &Instrument, address: u64, bytes: &mut [u8]) -> bool {
        self.is_told && self.fill_by_pages(address, bytes) || instrument.fill(address, bytes)
    }

    fn fill_by_pages(&self, address: u64, bytes: &mut [u8]) -> bool {
        let walk = |number: u64| self.physical.page(number * PAGE);
        self.pages.pieces(address, bytes, walk, |at, piece| self.physical.read(at, piece))
    }

    /// Checks that both ways read the same at `address`, page by page and through the plugin interface, if both read.
    ///
    /// # Errors
    /// If the two ways read different bytes.
    pub fn check(&self, instrument: &Instrument, address: u64) -> Result<(), Failed> {
        let (mut here, mut there) = ([0; 64], [0; 64]);
        let read = self.fill_by_pages(address, &mut here) && instrument.fill(address, &mut there);
        self.forget();
        Check::Memory.passes(!read || here == there, || {
            format!("at {address:#x} there is {there:02x?}, and by its page {here:02x?}")
        })
    }
}

/// For each page the number that the kernel uses, and the place of its beginning in the guest's memory.
struct Pages([(AtomicU64, AtomicU64); PAGES]);

impl Pages {
    fn new() -> Pages {
        Pages(std::array::from_fn(|_| (AtomicU64::new(NONE), AtomicU64::new(0))))
    }

    fn forget(&self) {
        self.0.iter().for_each(|(number, _)| number.store(NONE, Relaxed));
    }

    /// Reads from `address` on, page by page. Returns false if `walk` does not find a page, or a page cannot be read.
    fn pieces(
        &self,
        address: u64,
        bytes: &mut [u8],
        walk: impl Fn(u64) -> Option<u64>,
        read: impl Fn(u64, &mut [u8]) -> bool,
    ) -> bool {
        let (mut rest, mut at) = (bytes, address);
        while !rest.is_empty() {
            let within = at % PAGE;
            let (piece, further) = rest.split_at_mut(rest.len().min((PAGE - within) as usize));
            let page = self.find(at / PAGE, &walk);
            if !page.is_some_and(|page| read(page + within, piece)) {
                return false;
            }
            at = at.wrapping_add(piece.len() as u64);
            rest = further;
        }
        true
    }

    /// The place at which the page of this number begins.
    fn find(&self, number: u64, walk: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let (known, begin) = &self.0[number as usize % PAGES];
        if known.load(Relaxed) == number {
            return Some(begin.load(Relaxed));
        }
        let found = walk(number)?;
        known.store(number, Relaxed);
        begin.store(found, Relaxed);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn a_page_is_looked_up_once_until_another_task_runs_or_another_page_takes_its_place() {
        let (pages, walked) = (Pages::new(), RefCell::new(Vec::new()));
        let find = |number| {
            pages.find(number, |number| {
                walked.borrow_mut().push(number);
                (number != 9).then_some(number * 1000)
            })
        };
        assert_eq!([5, 6, 5, 9, 9].map(find), [Some(5000), Some(6000), Some(5000), None, None]);
        assert_eq!(walked.take(), [5, 6, 9, 9], "what is not there may be there the next time");
        pages.forget();
        assert_eq!(find(5), Some(5000));
        assert_eq!(find(5 + PAGES as u64), Some(69_000));
        assert_eq!(find(5), Some(5000));
        assert_eq!(walked.take(), [5, 5 + PAGES as u64, 5]);
    }

    #[test]
    fn what_lies_on_two_pages_is_read_from_both() {
        let (pages, there) = (Pages::new(), Cell::new(true));
        // Pages 7 and 8 are in the reverse order. Each byte is the end of its address.
        let walk = |number: u64| there.get().then_some((8 - number % 7) * PAGE);
        let read = |at: u64, piece: &mut [u8]| {
            for (n, byte) in piece.iter_mut().enumerate() {
                *byte = (at / PAGE * 16) as u8 + (at as u8).wrapping_add(n as u8) % 16;
            }
            true
        };
        let mut bytes = [0; 4];
        assert!(pages.pieces(8 * PAGE - 2, &mut bytes, walk, read));
        assert_eq!(bytes, [0x8e, 0x8f, 0x70, 0x71]);
        there.set(false);
        assert!(pages.pieces(8 * PAGE - 2, &mut bytes, walk, read));
        pages.forget();
        assert!(!pages.pieces(8 * PAGE - 2, &mut bytes, walk, read));
        assert!(!pages.pieces(8 * PAGE, &mut bytes, |_| Some(0), |_, _| false));
    }
}
