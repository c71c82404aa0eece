// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's kernel stacks, read where the host has them.
//!
//! QEMU walks the guest's page tables for whoever asks for memory, which takes longer than all the rest of copying a piece of a
//! stack. Where the pages of a stack lie does not change while the CPU runs on it: that is remembered, and forgotten when another
//! task runs.

use crate::instrument::Instrument;
use crate::qemu::{Cpu, Ram};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Pages that are remembered: the task's stack has four, and so has that of interrupts.
const PAGES: usize = 16;
/// No page has this number.
const NONE: u64 = u64::MAX;

/// The memory in which stacks lie. Used on the vCPU's thread only.
pub struct StackMemory {
    cpu: Cpu,
    /// Whether it is told when another task runs.
    is_told: bool,
    /// Looked up when it is needed first: a vCPU is made before the machine has RAM.
    ram: OnceLock<Option<Ram>>,
    /// By its lowest bits the number of each page, as the kernel has it, and where it begins in the guest's RAM.
    pages: [(AtomicU64, AtomicU64); PAGES],
}

impl StackMemory {
    /// That of this vCPU. Where [`StackMemory::forget`] will not be called (`is_told`), nothing is remembered.
    pub fn new(cpu: Cpu, is_told: bool) -> StackMemory {
        let pages = std::array::from_fn(|_| (AtomicU64::new(NONE), AtomicU64::new(0)));
        StackMemory { cpu, is_told, ram: OnceLock::new(), pages }
    }

    /// Another task runs: what becomes of the stack of the one before is not known.
    pub fn forget(&self) {
        self.pages.iter().for_each(|(number, _)| number.store(NONE, Relaxed));
    }

    /// Fills `bytes` with what is at `address`; false where it cannot be read.
    pub fn fill(&self, instrument: &Instrument, address: u64, bytes: &mut [u8]) -> bool {
        let ram = self.ram.get_or_init(|| self.cpu.ram().filter(|_| self.is_told));
        let Some(ram) = ram else { return instrument.fill(address, bytes) };
        let mut rest = &mut *bytes;
        let mut at = address;
        while !rest.is_empty() {
            let within = at % PAGE;
            let (piece, further) = rest.split_at_mut(rest.len().min((PAGE - within) as usize));
            let page = self.page(at / PAGE).map(|page| page + within);
            if !page.is_some_and(|from| ram.read(from, piece)) {
                return instrument.fill(address, bytes);
            }
            at = at.wrapping_add(piece.len() as u64);
            rest = further;
        }
        true
    }

    /// Where the page of this number begins in the guest's RAM.
    fn page(&self, number: u64) -> Option<u64> {
        let (known, begin) = &self.pages[number as usize % PAGES];
        if known.load(Relaxed) == number {
            return Some(begin.load(Relaxed));
        }
        let found = self.cpu.physical(number * PAGE)?;
        known.store(number, Relaxed);
        begin.store(found, Relaxed);
        Some(found)
    }
}
