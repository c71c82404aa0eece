// SPDX-License-Identifier: GPL-2.0-or-later
//! Adds up windows that have an opener in common.

use super::count;
use crate::{At, Place};
use rustc_hash::FxHashMap;
use sample::{Insns, Nanos};
use std::ops::AddAssign;

/// How long something lasted, by both clocks. Lengths are ordered by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length {
    /// Virtual time.
    pub time: Nanos,
    /// Instructions.
    pub insns: Insns,
}

impl AddAssign for Length {
    fn add_assign(&mut self, other: Length) {
        self.time += other.time;
        self.insns += other.insns;
    }
}

/// The parts of a time. Each nanosecond is counted once, for the innermost of these parts. The preemption count tells
/// the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeParts {
    /// Non-maskable interrupts.
    pub nmi: Nanos,
    /// Hard interrupts.
    pub hardirq: Nanos,
    /// Softirqs that are served, if no thread serves them (PREEMPT_RT).
    pub softirq: Nanos,
    /// Other tasks, in a window that belongs to a task.
    pub others: Nanos,
    /// The code that had the window open.
    pub own: Nanos,
}

impl TimeParts {
    pub(super) fn spend(&mut self, count: u32, time: Nanos) {
        let part = match count {
            c if c & count::NMI != 0 => &mut self.nmi,
            c if c & count::HARDIRQ != 0 => &mut self.hardirq,
            c if c & count::SOFTIRQ_SERVING != 0 => &mut self.softirq,
            _ => &mut self.own,
        };
        *part += time;
    }

    /// Applies `change` to each part of the two.
    fn with(self, other: TimeParts, change: impl Fn(Nanos, Nanos) -> Nanos) -> TimeParts {
        TimeParts {
            nmi: change(self.nmi, other.nmi),
            hardirq: change(self.hardirq, other.hardirq),
            softirq: change(self.softirq, other.softirq),
            others: change(self.others, other.others),
            own: change(self.own, other.own),
        }
    }

    /// The sum of both.
    pub(super) fn and(self, more: TimeParts) -> TimeParts {
        self.with(more, |one, more| one + more)
    }

    /// The time since `before`. This value is what `before` has become.
    pub(super) fn since(self, before: TimeParts) -> TimeParts {
        self.with(before, |now, before| now - before)
    }

    /// Hard and non-maskable interrupts.
    pub fn interrupts(&self) -> Nanos {
        self.hardirq + self.nmi
    }
}

/// One window: the longest of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The length of the window.
    pub length: Length,
    /// The parts of the length. All are zero if interrupts were masked.
    pub parts: TimeParts,
    /// When the window opened.
    pub at: At,
    /// The stack that closed the window.
    pub closed_by: Place,
    /// The place of the CPU when the follower looked last.
    pub inside: Place,
}

/// Windows that were added up. Memory grows with the number of different stacks that close them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    count: u64,
    total: Length,
    longest: Option<Longest>,
    parts: TimeParts,
    closers: FxHashMap<Place, u64>,
    /// Bucket `b` counts lengths with `b` significant bits: 0 ns, 1 ns, 2 … 3 ns, 4 … 7 ns, …
    buckets: Buckets,
}

#[derive(Clone, Copy, Debug)]
struct Buckets([u64; 65]);

impl Default for Buckets {
    fn default() -> Self {
        Buckets([0; 65])
    }
}

impl Tally {
    pub(super) fn add(&mut self, window: Longest) {
        let Longest { length, parts, closed_by, .. } = window;
        self.count += 1;
        self.total += length;
        self.parts = self.parts.and(parts);
        *self.closers.entry(closed_by).or_default() += 1;
        self.buckets.0[(u64::BITS - length.time.0.leading_zeros()) as usize] += 1;
        if self.longest.is_none_or(|l| length > l.length) {
            self.longest = Some(window);
        }
    }

    /// Adds all windows of another tally.
    pub(super) fn merge(&mut self, other: &Tally) {
        self.count += other.count;
        self.total += other.total;
        self.parts = self.parts.and(other.parts);
        for (&closer, &count) in &other.closers {
            *self.closers.entry(closer).or_default() += count;
        }
        for (sum, count) in self.buckets.0.iter_mut().zip(other.buckets.0) {
            *sum += count;
        }
        // Of equally long windows the first one counts, in whatever order tallies come.
        let rank = |l: &Longest| (l.length, std::cmp::Reverse((l.at.time.ns(), l.at.insns)));
        self.longest = [self.longest, other.longest].into_iter().flatten().max_by_key(rank);
    }

    /// The number of windows, at least 1.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all lengths.
    pub fn total(&self) -> Length {
        self.total
    }

    /// The longest window. If several are equally long, the first of them.
    pub fn longest(&self) -> Longest {
        self.longest.expect("a tally is made by its first window")
    }

    /// The parts of the total. All are zero if interrupts were masked.
    pub fn parts(&self) -> TimeParts {
        self.parts
    }

    /// The stack that closed most of the windows. If several did, the one with the smallest number.
    pub fn closed_by(&self) -> Place {
        let most = self.closers.iter().max_by_key(|&(&place, &n)| (n, std::cmp::Reverse(place)));
        most.map_or(Place::Unknown, |(&place, _)| place)
    }

    /// The counts by length: each bucket's upper edge, which is exclusive, and its count. Empty buckets are left out.
    /// `None` is the bucket that has no edge below 2⁶⁴ ns.
    pub fn histogram(&self) -> impl Iterator<Item = (Option<Nanos>, u64)> {
        let edge = |bits: usize| 1u64.checked_shl(bits as u32).map(Nanos);
        let filled = self.buckets.0.iter().enumerate().filter(|&(_, &n)| n > 0);
        filled.map(move |(bits, &n)| (edge(bits), n))
    }
}
