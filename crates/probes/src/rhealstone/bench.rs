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

/// Repetitions between two rests: some milliseconds.
const BATCH: u64 = 1_000;

/// One series of one component. All its threads run on one CPU, so the higher one always preempts the lower one.
pub(super) struct Bench<'a, 'o> {
    pub(super) cpu: u32,
    /// Of the highest thread.
    pub(super) highest: Policy,
    pub(super) count: u64,
    pub(super) record: &'a mut Recorder<'o>,
    pub(super) stop: &'a AtomicBool,
}

impl Bench<'_, '_> {
    /// Puts the calling thread on the CPU, `steps` priorities below the highest. Threads that it starts inherit both,
    /// and once it goes below them they run until they block: so everybody is in place before the first repetition.
    pub(super) fn enter(&self, steps: u8) -> Result<(), RunError> {
        rt::pin(self.cpu)?;
        rt::apply(strictly_below(self.highest, steps)?)?;
        Ok(())
    }

    /// Does `repetition` with its number until there were enough, or the probe is stopped, or it fails; rests now and
    /// then in `rest`.
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

    /// A repetition that began at `began`; its length is the sum of `parts`, each from … to.
    pub(super) fn record(
        &mut self,
        number: u64,
        began: Stamp<Monotonic>,
        parts: &[(Stamp<Monotonic>, Stamp<Monotonic>)],
    ) {
        self.record.sample(number, began, sum(parts));
    }

    /// A repetition in which something else ran than the definition says, so that its length means nothing.
    pub(super) fn taint(&mut self) {
        self.record.loss(Loss::Tainted, 1);
    }

    /// A repetition in which nothing happened that could be measured.
    pub(super) fn miss(&mut self) {
        self.record.loss(Loss::Unanswered, 1);
    }
}

fn sum(parts: &[(Stamp<Monotonic>, Stamp<Monotonic>)]) -> Option<Nanos> {
    parts.iter().try_fold(Nanos(0), |sum, (from, to)| sum.checked_add(to.since(*from)?))
}

/// What a thread of higher priority tells the one that records: when its part began and ended.
#[derive(Default)]
pub(super) struct Partner {
    from_ns: AtomicU64,
    to_ns: AtomicU64,
    ended: AtomicBool,
    failed: AtomicBool,
    /// Opened when the stamps are in place.
    back: Gate,
}

impl Partner {
    /// By the partner: its part of a repetition.
    pub(super) fn answer(&self, from: Stamp<Monotonic>, to: Stamp<Monotonic>) {
        self.from_ns.store(from.ns(), Ordering::Relaxed);
        self.to_ns.store(to.ns(), Ordering::Relaxed);
        self.back.open();
    }

    /// By the partner: runs its loop; where that fails, nobody waits for an answer any more.
    pub(super) fn run(&self, body: impl FnOnce() -> Result<(), RunError>) -> Result<(), RunError> {
        body().inspect_err(|_| {
            self.failed.store(true, Ordering::Release);
            self.back.open();
        })
    }

    /// By the recording thread: the stamps, once they are there; `None` when the partner failed.
    pub(super) fn answered(&self) -> Option<(Stamp<Monotonic>, Stamp<Monotonic>)> {
        self.back.pass();
        let stamp = |ns: &AtomicU64| Stamp::from_ns(ns.load(Ordering::Relaxed));
        (!self.failed.load(Ordering::Acquire)).then(|| (stamp(&self.from_ns), stamp(&self.to_ns)))
    }

    /// By the recording thread, before it lets the partner go for the last time.
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
