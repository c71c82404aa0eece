// SPDX-License-Identifier: GPL-2.0-or-later
//! The page that a program shares with the probe `cycles`: a ring of the program's cycles. The program writes, and
//! needs no system call for it; the probe reads.
//!
//! The memory is behind an inherited descriptor whose number is in the environment variable [`VARIABLE`]. All words are
//! 64 bits wide, little endian.
//!
//! | offset | bytes | word |
//! |---|---|---|
//! | 0 | 8 | cycles written since the beginning; only the program changes it |
//! | 8 | 8 | cycles that the ring holds ([`CAPACITY`]) |
//! | 64 | 32 each | a cycle: number, release, start, end |
//!
//! Cycle *n*, from 0, goes to place *n* modulo the capacity. The program writes the cycle first,
//! and then one more into the first word. The writer never waits for the reader: a cycle that was overwritten before
//! the reader took it is counted as dropped.

use core::sync::atomic::{AtomicU64, Ordering, fence};

/// The environment variable that holds the number of the descriptor.
pub const VARIABLE: &str = "ONSET_CYCLES";
/// How many cycles the ring holds. A reader that looks each 10 ms loses none up to 800,000 cycles a second.
pub const CAPACITY: u64 = 8192;
/// The words before the first cycle.
const HEAD_WORDS: usize = 8;
/// The words of a cycle.
const CYCLE_WORDS: usize = 4;
/// The length of the shared memory in bytes.
pub const BYTES: usize = 8 * (HEAD_WORDS + CYCLE_WORDS * CAPACITY as usize);

/// One cycle of a program. The times are on CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// The number of the cycle in the program's own count, in which the cycles that it skipped have numbers, too.
    pub number: u64,
    /// When the cycle was due.
    pub release_ns: u64,
    /// When the program began it.
    pub start_ns: u64,
    /// When the program had done its work.
    pub end_ns: u64,
}

/// The program says that it has written fewer cycles than before, or that it began before the reader did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsBackwards;

/// Reads the ring. A value is for one program from its beginning.
pub struct Cycles<'a> {
    words: &'a [AtomicU64],
    next: u64,
}

impl<'a> Cycles<'a> {
    /// A reader of the memory `words`, which is all zero. This tells the program how many cycles there is room for.
    ///
    /// # Panics
    /// If there are not [`BYTES`] bytes.
    pub fn new(words: &'a [AtomicU64]) -> Cycles<'a> {
        assert_eq!(words.len() * 8, BYTES, "the whole memory");
        words[1].store(CAPACITY.to_le(), Ordering::Relaxed);
        Cycles { words, next: 0 }
    }

    /// Takes all new cycles in their order. Returns how many were overwritten before they could be taken.
    ///
    /// # Errors
    /// [`RunsBackwards`], before which every sound cycle was taken.
    pub fn take(&mut self, mut each: impl FnMut(Cycle)) -> Result<u64, RunsBackwards> {
        let written = self.written();
        if written < self.next {
            return Err(RunsBackwards);
        }
        let mut dropped = 0;
        // The program may be writing over the oldest one just now.
        let oldest = written.saturating_sub(CAPACITY - 1);
        if oldest > self.next {
            dropped += oldest - self.next;
            self.next = oldest;
        }
        while self.next < written {
            let cycle = self.read(self.next);
            // The words above are read before the count below.
            fence(Ordering::Acquire);
            // A count that falls meanwhile is refused at the next look.
            if self.written().saturating_sub(self.next) < CAPACITY {
                each(cycle);
            } else {
                dropped += 1;
            }
            self.next += 1;
        }
        Ok(dropped)
    }

    fn written(&self) -> u64 {
        u64::from_le(self.words[0].load(Ordering::Acquire))
    }

    fn read(&self, number: u64) -> Cycle {
        let first = HEAD_WORDS + CYCLE_WORDS * (number % CAPACITY) as usize;
        let word = |place: usize| u64::from_le(self.words[first + place].load(Ordering::Relaxed));
        Cycle { number: word(0), release_ns: word(1), start_ns: word(2), end_ns: word(3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn memory() -> Vec<AtomicU64> {
        (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect()
    }

    /// What a program does for each cycle.
    fn write(words: &[AtomicU64], number: u64) {
        let written = u64::from_le(words[0].load(Ordering::Relaxed));
        let capacity = u64::from_le(words[1].load(Ordering::Relaxed));
        let first = HEAD_WORDS + CYCLE_WORDS * (written % capacity) as usize;
        for (place, value) in
            [number, 10 * number, 10 * number + 1, 10 * number + 5].into_iter().enumerate()
        {
            words[first + place].store(value.to_le(), Ordering::Relaxed);
        }
        words[0].store((written + 1).to_le(), Ordering::Release);
    }

    #[test]
    fn every_cycle_comes_once_in_order_while_the_reader_keeps_up() {
        let memory = memory();
        let (mut cycles, mut numbers) = (Cycles::new(&memory), Vec::new());
        for round in 0..5 {
            (round * 6_000..(round + 1) * 6_000).for_each(|n| write(&memory, n));
            let take = |cycle: Cycle| {
                assert_eq!((cycle.release_ns, cycle.start_ns, cycle.end_ns), {
                    let n = cycle.number;
                    (10 * n, 10 * n + 1, 10 * n + 5)
                });
                numbers.push(cycle.number);
            };
            assert_eq!(cycles.take(take), Ok(0));
        }
        assert!(numbers.into_iter().eq(0..30_000));
    }

    #[test]
    fn cycles_that_were_written_over_are_counted_and_the_rest_is_sound() {
        let memory = memory();
        let (mut cycles, mut numbers) = (Cycles::new(&memory), Vec::new());
        (0..3 * CAPACITY).for_each(|n| write(&memory, n));
        let dropped = cycles.take(|cycle| numbers.push(cycle.number)).unwrap();
        assert_eq!(dropped + numbers.len() as u64, 3 * CAPACITY);
        assert!(numbers.into_iter().eq(dropped..3 * CAPACITY));
    }

    #[test]
    fn a_count_that_falls_is_refused() {
        let memory = memory();
        let mut cycles = Cycles::new(&memory);
        (0..5).for_each(|n| write(&memory, n));
        assert_eq!(cycles.take(|_| ()), Ok(0));
        memory[0].store(2u64.to_le(), Ordering::Release);
        assert_eq!(cycles.take(|_| ()), Err(RunsBackwards));
    }
}
