// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts that every component of the probe `rhealstone` needs: its CPU and priorities, its repetitions, and the
//! output of its times.

use crate::RunError;
use crate::gate::Gate;
use crate::pace::Pace;
use crate::priorities::strictly_below;
use crate::recorder::Recorder;
use rt::{Policy, Usage};
use sample::{Loss, Monotonic, Nanos, Stamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of repetitions between two rests. These take some milliseconds.
const BATCH: u64 = 1_000;

/// Measures one series of one component. All its threads run on one CPU, so a higher one always preempts a lower one.
pub(super) struct Bench<'a, 'o> {
    pub(super) cpu: u32,
    /// The policy of the highest thread.
    pub(super) highest: Policy,
    pub(super) count: u64,
    pub(super) record: &'a mut Recorder<'o>,
    pub(super) stop: &'a AtomicBool,
}

impl Bench<'_, '_> {
    /// Puts the calling thread on the CPU, `steps` priorities below the highest. Threads that it starts inherit both.
    /// When it goes below them, these threads run until they block. So all are in place before the first repetition.
    pub(super) fn enter(&self, steps: u8) -> Result<(), RunError> {
        rt::pin(self.cpu)?;
        rt::apply(strictly_below(self.highest, steps)?)?;
        Ok(())
    }

    /// Calls `repetition` with its number until there were enough, the probe is stopped, or a repetition fails. Calls
    /// `rest` now and then.
    pub(super) fn repeat(
        &mut self,
        mut repetition: impl FnMut(&mut Self, u64) -> Result<(), RunError>,
        mut rest: impl FnMut(&mut Pace),
    ) -> Result<(), RunError> {
        let mut pace = Pace::every(BATCH);
        let before = Usage::of_thread();
        for number in 0..self.count {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            repetition(self, number)?;
            if pace.is_due() {
                rest(&mut pace);
            }
        }
        self.record.loop_ended(&before);
        Ok(())
    }

    /// Records a repetition that began at `began`. Its length is the sum of `parts`, each with its beginning and end.
    pub(super) fn record(
        &mut self,
        number: u64,
        began: Stamp<Monotonic>,
        parts: &[(Stamp<Monotonic>, Stamp<Monotonic>)],
    ) {
        self.record.sample(number, began, sum(parts));
    }

    /// Counts a repetition whose length means nothing, because another thread ran than the definition says.
    pub(super) fn taint(&mut self) {
        self.record.loss(Loss::Tainted, 1);
    }

    /// Counts a repetition in which nothing happened that could be measured.
    pub(super) fn miss(&mut self) {
        self.record.loss(Loss::Unanswered, 1);
    }
}

fn sum(parts: &[(Stamp<Monotonic>, Stamp<Monotonic>)]) -> Option<Nanos> {
    parts.iter().try_fold(Nanos(0), |sum, (from, to)| sum.checked_add(to.since(*from)?))
}

/// Carries stamps from a thread of higher priority to the recording thread: when its part began and ended.
#[derive(Default)]
pub(super) struct Partner {
    from_ns: AtomicU64,
    to_ns: AtomicU64,
    ended: AtomicBool,
    failed: AtomicBool,
    /// The gate that opens when the stamps are in place.
    back: Gate,
}

impl Partner {
    /// For the partner: reports its part of a repetition.
    pub(super) fn answer(&self, from: Stamp<Monotonic>, to: Stamp<Monotonic>) {
        self.from_ns.store(from.ns(), Ordering::Relaxed);
        self.to_ns.store(to.ns(), Ordering::Relaxed);
        self.back.open();
    }

    /// For the partner: runs its loop. If the loop fails, the recording thread no longer waits for an answer.
    pub(super) fn run(&self, body: impl FnOnce() -> Result<(), RunError>) -> Result<(), RunError> {
        body().inspect_err(|_| {
            self.failed.store(true, Ordering::Release);
            self.back.open();
        })
    }

    /// For the recording thread: waits for the stamps. `None` if the partner failed.
    pub(super) fn answered(&self) -> Option<(Stamp<Monotonic>, Stamp<Monotonic>)> {
        self.back.pass();
        let stamp = |ns: &AtomicU64| Stamp::from_ns(ns.load(Ordering::Relaxed));
        (!self.failed.load(Ordering::Acquire)).then(|| (stamp(&self.from_ns), stamp(&self.to_ns)))
    }

    /// For the recording thread: ends the partner. Call this before the partner runs for the last time.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Stamp<Monotonic> {
        Stamp::from_ns(ns)
    }

    #[test]
    fn parts_add_up_and_one_that_runs_backwards_gives_no_length() {
        assert_eq!(sum(&[(at(10), at(14)), (at(20), at(21))]), Some(Nanos(5)));
        assert_eq!(sum(&[(at(10), at(14)), (at(20), at(19))]), None);
        assert_eq!(sum(&[]), Some(Nanos(0)));
    }
}
