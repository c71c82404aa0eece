// SPDX-License-Identifier: GPL-2.0-or-later
//! Times batches. A batch has stretches: the operations themselves, and what is to be taken away from them or added.
//!
//! Each stretch is timed in the same way: a mark that the rig's witness sees, a reading of the clock, the operations,
//! a reading, a mark. A mark is a `getpid` with arguments, which the kernel does not look at, so it is the same call on
//! every target. The number of stretches that count is that of those that do not. So the cost of marks and readings is
//! not in the difference, on a machine on the average, and in the rig exactly.

use super::partner::GONE;
use super::row::Row;
use crate::Output;
use rt::now;
use sample::{Loss, Monotonic, Nanos, Stamp};
use std::hint::black_box;
use std::io;
use wire::ports;

/// The stretches of a batch by their signs: whether each counts. As many do as do not.
pub(super) type Signs = &'static [bool];

/// The operations, and the same number of empty turns of the loop.
const PLAIN: Signs = &[true, false];

/// The operations of a row, with all that they need.
pub(super) trait Work {
    /// The stretches of a batch.
    fn signs(&self) -> Signs {
        PLAIN
    }

    /// Gets ready for the next batch. Nobody measures this.
    fn before(&mut self, _ops: u32) -> io::Result<()> {
        Ok(())
    }

    /// The stretch `part`: `ops` operations. Part 0 is the operations themselves.
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()>;

    /// Clears away what a batch left. Nobody measures this.
    fn after(&mut self, _ops: u32) -> io::Result<()> {
        Ok(())
    }
}

/// Turns of a loop that do nothing.
pub(super) fn empty(ops: u32) {
    for _ in 0..ops {
        black_box(());
    }
}

/// One operation after the other, each by the same function.
pub(super) struct Each<F>(pub(super) F);

impl<F: FnMut() -> io::Result<()>> Work for Each<F> {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        if part > 0 {
            empty(ops);
            return Ok(());
        }
        for _ in 0..ops {
            self.0()?;
        }
        Ok(())
    }
}

/// The row's work: one operation after the other.
pub(super) fn each(
    operation: impl FnMut() -> io::Result<()> + 'static,
) -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Each(operation)))
}

/// Checks the answer of a system call.
#[inline]
pub(super) fn answered(answer: impl Into<i64>) -> io::Result<i64> {
    match answer.into() {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// Checks that a call moved `wanted` bytes. Where none come, the process at the other end is gone.
#[inline]
pub(super) fn moved(answer: isize, wanted: usize) -> io::Result<()> {
    match answered(answer as i64)? {
        n if n as usize == wanted => Ok(()),
        0 => Err(io::Error::from_raw_os_error(GONE)),
        n => Err(io::Error::other(format!("{n} of {wanted} bytes went through"))),
    }
}

/// Measures batches, and records them.
pub(super) struct Bench<'a> {
    output: &'a mut Output,
    origin: Stamp<Monotonic>,
}

/// What the stretches of a batch took.
pub(super) struct Times {
    began: Stamp<Monotonic>,
    number: u64,
    /// Those that count.
    counts_ns: i64,
    /// Those that do not.
    takes_ns: i64,
}

/// The batch of a series.
#[derive(Clone, Copy)]
struct Batch {
    series: u16,
    number: u32,
}

impl<'a> Bench<'a> {
    pub(super) fn new(output: &'a mut Output) -> Bench<'a> {
        Bench { output, origin: now() }
    }

    /// One batch that nobody counts.
    pub(super) fn warm_up(&mut self, row: &Row, work: &mut dyn Work) -> io::Result<()> {
        work.before(row.ops)?;
        for part in 0..work.signs().len() {
            work.stretch(part, row.ops)?;
        }
        work.after(row.ops)
    }

    /// Measures a batch.
    pub(super) fn batch(
        &mut self,
        row: &Row,
        (series, number): (u16, u64),
        work: &mut dyn Work,
    ) -> io::Result<Times> {
        work.before(row.ops)?;
        let mut times = Times { began: now(), number, counts_ns: 0, takes_ns: 0 };
        let batch = Batch { series, number: number as u32 };
        for (part, counts) in work.signs().iter().enumerate() {
            let took = stretch(batch, *counts, || work.stretch(part, row.ops))?;
            *if *counts { &mut times.counts_ns } else { &mut times.takes_ns } += took;
        }
        work.after(row.ops)?;
        Ok(times)
    }

    /// Records the batches of one row in one repetition. What is taken away from each is the median of what is to be
    /// taken away: an interrupt in one of these stretches would else make its batch too short. Returns the picoseconds
    /// of one operation of each. A difference below zero is a loss.
    pub(super) fn record(&mut self, row: &Row, series: u16, batches: &[Times]) -> Vec<u64> {
        let mut takes: Vec<i64> = batches.iter().map(|times| times.takes_ns).collect();
        takes.sort_unstable();
        let Some(taken) = takes.get(takes.len().saturating_sub(1) / 2) else { return Vec::new() };
        let mut all = Vec::with_capacity(batches.len());
        for times in batches {
            let at = times.began.since(self.origin);
            match (at, per_operation(times.counts_ns - taken, row.ops)) {
                (Some(at), Some(ps)) => {
                    self.output.sample(series, times.number, at, Nanos((ps + 500) / 1_000));
                    all.push(ps);
                }
                _ => self.output.loss(series, Loss::Tainted, 1),
            }
        }
        all
    }
}

/// The picoseconds of one of `ops` operations, rounded to the nearest. `None` below zero.
pub(super) fn per_operation(net_ns: i64, ops: u32) -> Option<u64> {
    let ps = u64::try_from(net_ns).ok()?.checked_mul(1_000)?;
    Some((ps + u64::from(ops) / 2) / u64::from(ops))
}

/// Times a stretch, in ns.
#[inline(never)]
fn stretch(
    batch: Batch,
    counts: bool,
    operations: impl FnOnce() -> io::Result<()>,
) -> io::Result<i64> {
    mark(batch, counts, false);
    let from = now();
    let done = operations();
    let to = now();
    mark(batch, counts, true);
    done?;
    // The probe gtod is there for a clock that goes backwards.
    Ok(to.since(from).unwrap_or_default().0 as i64)
}

/// Marks the beginning or the end of a stretch for whoever sees the machine from outside.
#[inline(always)]
fn mark(Batch { series, number }: Batch, counts: bool, ends: bool) {
    let flags =
        if counts { ports::BATCH_COUNTS } else { 0 } | if ends { ports::BATCH_ENDS } else { 0 };
    let what = u64::from(number) << ports::BATCH_BITS | flags;
    // SAFETY: getpid takes no argument; the kernel ignores these.
    unsafe { libc::syscall(libc::SYS_getpid, ports::BATCH, u64::from(series), what) };
}
