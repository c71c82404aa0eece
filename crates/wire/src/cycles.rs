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
//! the reader took it is lost, and the reader says so with the next one.

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
    /// How many were overwritten since the last one that was taken.
    lost: u64,
}

impl<'a> Cycles<'a> {
    /// A reader of the memory `words`, which is all zero. This tells the program how many cycles there is room for.
    ///
    /// # Panics
    /// If there are not [`BYTES`] bytes.
    pub fn new(words: &'a [AtomicU64]) -> Cycles<'a> {
        assert_eq!(words.len() * 8, BYTES, "the whole memory");
        words[1].store(CAPACITY.to_le(), Ordering::Relaxed);
        Cycles { words, next: 0, lost: 0 }
    }

    /// Takes all new cycles in their order, each with how many were overwritten between the cycle before and this one.
    ///
    /// # Errors
    /// [`RunsBackwards`], before which every sound cycle was taken.
    pub fn take(&mut self, mut each: impl FnMut(Cycle, u64)) -> Result<(), RunsBackwards> {
        let written = self.written();
        if written < self.next {
            return Err(RunsBackwards);
        }
        // The program may be writing over the oldest one just now.
        let oldest = written.saturating_sub(CAPACITY - 1);
        if oldest > self.next {
            self.lost += oldest - self.next;
            self.next = oldest;
        }
        while self.next < written {
            let cycle = self.read(self.next);
            // The words above are read before the count below.
            fence(Ordering::Acquire);
            // A count that falls meanwhile is refused at the next look.
            if self.written().saturating_sub(self.next) < CAPACITY {
                each(cycle, core::mem::take(&mut self.lost));
            } else {
                self.lost += 1;
            }
            self.next += 1;
        }
        Ok(())
    }

    /// How many cycles were overwritten since the last one that was taken.
    pub fn lost(&self) -> u64 {
        self.lost
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
            let take = |cycle: Cycle, lost: u64| {
                assert_eq!(lost, 0);
                assert_eq!((cycle.release_ns, cycle.start_ns, cycle.end_ns), {
                    let n = cycle.number;
                    (10 * n, 10 * n + 1, 10 * n + 5)
                });
                numbers.push(cycle.number);
            };
            assert_eq!(cycles.take(take), Ok(()));
        }
        assert!(numbers.into_iter().eq(0..30_000));
    }

    #[test]
    fn cycles_that_were_written_over_are_counted_and_the_rest_is_sound() {
        let memory = memory();
        let (mut cycles, mut numbers) = (Cycles::new(&memory), Vec::new());
        (0..3 * CAPACITY).for_each(|n| write(&memory, n));
        let mut all_lost = Vec::new();
        let mut take = |cycle: Cycle, lost| {
            numbers.push(cycle.number);
            all_lost.push(lost);
        };
        cycles.take(&mut take).unwrap();
        (0..2 * CAPACITY).for_each(|n| write(&memory, 3 * CAPACITY + n));
        cycles.take(&mut take).unwrap();
        // Each is told with the cycle that follows it, and only there.
        let first = 2 * CAPACITY + 1;
        let second = 4 * CAPACITY + 1;
        assert!(numbers.iter().copied().eq((first..3 * CAPACITY).chain(second..5 * CAPACITY)));
        let told: Vec<u64> = all_lost.iter().copied().filter(|lost| *lost > 0).collect();
        assert_eq!(told, [first, CAPACITY + 1]);
        assert_eq!((all_lost[0], cycles.lost()), (first, 0));
    }

    #[test]
    fn a_count_that_falls_is_refused() {
        let memory = memory();
        let mut cycles = Cycles::new(&memory);
        (0..5).for_each(|n| write(&memory, n));
        assert_eq!(cycles.take(|_, _| ()), Ok(()));
        memory[0].store(2u64.to_le(), Ordering::Release);
        assert_eq!(cycles.take(|_, _| ()), Err(RunsBackwards));
    }
}
