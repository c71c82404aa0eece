// SPDX-License-Identifier: GPL-2.0-or-later
//! Decides when to look where the CPU is, in stretches that become long. The opener of a stretch does not always tell
//! what takes long in the stretch: an interrupt's entry says nothing of the handler.
//!
//! A stretch is looked at when it is as long as a given number of instructions, twice as long, four times as long, and
//! so on. So the last look is in the stretch's second half. Most probably the part that takes most of the stretch is
//! there, too. A long stretch costs few looks. A stretch inside another one is looked at by its own length, so that a
//! short one does not decide for the long one around it.

use super::{Followed, Follower, Place};
use crate::generator::pass_on_among_many;
use sample::{At, Insns, Stretch, Stretches};
use wire::Event;

/// An open stretch.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: u64,
    /// The length at which the next look is due.
    due: u64,
}

/// The length of a stretch at which its first countdown ends. Countdowns follow at twice, four, eight … times this
/// length, whether the stretch is looked at yet or not. A countdown counts by blocks and is off by a few instructions.
/// Without this, a follower that looks at shorter stretches, too, would look at the longer ones at other places.
const FIRST: u64 = 500;

/// Decides when to look. [`crate::instrument::Block::when_due`] counts down, in the blocks that end loops
/// ([`super::places`]). So looks happen at these blocks, and where the CPU masks interrupts, or changes its count or
/// its task.
#[derive(Debug)]
pub struct Looks {
    /// The length of a stretch at the end of its first countdown.
    first: u64,
    /// The length of a stretch at its first look.
    from: u64,
    /// The kinds of stretches that are looked at.
    kinds: Stretches,
    /// The open stretch of each kind.
    open: [Option<Open>; Stretch::ALL.len()],
    /// When the countdown ends. 0 if there is no countdown.
    ends: u64,
}

impl Looks {
    /// Decides for stretches of these `kinds`. The first look is at the length `from`, and at one instruction at least.
    pub fn new(from: Insns, kinds: Stretches) -> Looks {
        let from = from.0.max(1);
        Looks { first: from.min(FIRST), from, kinds, open: [None; Stretch::ALL.len()], ends: 0 }
    }

    /// Whether a stretch of this kind is open.
    pub fn is_open(&self, kind: Stretch) -> bool {
        self.open[index(kind)].is_some()
    }

    /// Whether the countdown should have ended.
    fn is_due(&self, now: Insns) -> bool {
        self.ends != 0 && self.ends <= now.0
    }

    /// A stretch opens, in place of an open one of its kind. Returns the new value for the countdown. `None` if the
    /// countdown ends early enough. So it is not set each time that interrupts are masked.
    pub fn begin(&mut self, kind: Stretch, now: Insns) -> Option<Insns> {
        if !self.kinds.contains(kind) {
            return None;
        }
        let due = now.0 + self.first;
        self.open[index(kind)] = Some(Open { since: now.0, due });
        if now.0 < self.ends && self.ends <= due {
            return None;
        }
        self.ends = due;
        Some(Insns(self.first))
    }

    /// A stretch of this kind closes.
    pub fn end(&mut self, kind: Stretch) {
        self.open[index(kind)] = None;
    }

    /// The length of the open stretch of this kind. 0 if no stretch is open.
    fn length(&self, kind: Stretch, now: Insns) -> Insns {
        Insns(self.open[index(kind)].map_or(0, |open| now.0.saturating_sub(open.since)))
    }

    /// The countdown has ended. Returns the kinds of stretches to look at, added up, and the new value for the
    /// countdown. The value is `None` if no stretch is open.
    pub fn due(&mut self, now: Insns) -> (u8, Option<Insns>) {
        let mut kinds = 0;
        for (kind, open) in Stretch::ALL.into_iter().zip(&mut self.open) {
            let Some(open) = open.as_mut().filter(|open| open.due <= now.0) else { continue };
            if now.0 - open.since >= self.from {
                kinds |= kind as u8;
            }
            while open.due <= now.0 {
                open.due += open.due - open.since;
            }
        }
        let next = self.open.iter().flatten().map(|open| open.due).min();
        self.ends = next.unwrap_or(0);
        (kinds, next.map(|next| Insns(next - now.0)))
    }
}

fn index(kind: Stretch) -> usize {
    Stretch::ALL.iter().position(|of| *of == kind).expect("one of all")
}

impl Followed {
    pub(super) fn end_looks(&mut self, kind: Stretch) {
        if let Some(looks) = &mut self.looks {
            looks.end(kind);
        }
    }
}

impl Follower {
    pub(super) fn begin_looks(&self, followed: &mut Followed, kind: Stretch, at: At) {
        let wait = followed.looks.as_mut().and_then(|looks| looks.begin(kind, at.insns));
        if let Some(Insns(wait)) = wait {
            self.instrument.due_in(wait);
        }
    }

    /// Learns that the preemption count or the task has changed. The idle task always has a count of 1
    /// (kernel/sched/core.c, `init_idle()`). A higher count of this task is a stretch of its own.
    pub(super) fn look_at_count(&self, followed: &mut Followed, at: At) {
        let off = followed.preempt > u32::from(followed.idle);
        match followed.looks.as_ref().map(|looks| looks.is_open(Stretch::PreemptOff)) {
            Some(false) if off => self.begin_looks(followed, Stretch::PreemptOff, at),
            Some(true) if !off => followed.end_looks(Stretch::PreemptOff),
            _ => {}
        }
    }

    /// Looks where the CPU is. The countdown has ended, at the beginning of a block.
    pub(super) fn look_inside(&self, place: &Place) {
        self.look_at(place, self.vcpu().cpu.time(place.left));
    }

    /// Looks where the CPU is if a look is due. The follower is at `place` anyway, and knows the exact time. In code
    /// that changes what is followed all the time, this costs less than a countdown that is set again and again.
    pub(super) fn look_if_due(&self, place: &Place, at: At) {
        if self.followed().looks.as_ref().is_some_and(|looks| looks.is_due(at.insns)) {
            self.look_at(place, at);
        }
    }

    fn look_at(&self, place: &Place, at: At) {
        let mut followed = self.followed();
        let Some(looks) = &mut followed.looks else { return };
        let (kinds, wait) = looks.due(at.insns);
        let unscheduled = looks.length(Stretch::Unscheduled, at.insns);
        self.instrument.due_in(wait.map_or(u64::MAX, |wait| wait.0));
        if kinds != 0 {
            let stack = self.stack(&mut followed.stacks, &self.capture(place.address), at);
            let (kinds, stack) = (Stretches::from_mask(kinds), Some(stack));
            pass_on_among_many(&Event::Inside { at, kinds, unscheduled, stack });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(mask: u8) -> Stretches {
        Stretches::from_mask(mask)
    }

    #[test]
    fn a_stretch_is_looked_at_when_it_is_as_long_as_told_and_twice_as_long_and_so_on() {
        let mut looks = Looks::new(Insns(100), kinds(7));
        assert_eq!(looks.begin(Stretch::IrqsOff, Insns(1000)), Some(Insns(100)));
        assert_eq!([1099, 1100].map(|now| looks.is_due(Insns(now))), [false, true]);
        assert_eq!(looks.due(Insns(1100)), (1, Some(Insns(100))));
        assert_eq!(looks.due(Insns(1203)), (1, Some(Insns(197))));
        assert_eq!(looks.length(Stretch::IrqsOff, Insns(1203)), Insns(203));
        assert_eq!(looks.length(Stretch::PreemptOff, Insns(1203)), Insns(0));
        assert_eq!(looks.due(Insns(1400)), (1, Some(Insns(400))));
    }

    #[test]
    fn a_short_stretch_inside_a_long_one_is_not_looked_at_and_changes_nothing_for_it() {
        let mut looks = Looks::new(Insns(100), kinds(7));
        assert_eq!(looks.begin(Stretch::PreemptOff, Insns(0)), Some(Insns(100)));
        assert_eq!(looks.begin(Stretch::IrqsOff, Insns(60)), None);
        looks.end(Stretch::IrqsOff);
        assert_eq!(looks.due(Insns(100)), (2, Some(Insns(100))));
        // A stretch that lasts is looked at by its own length.
        assert_eq!(looks.begin(Stretch::IrqsOff, Insns(110)), None);
        assert_eq!(looks.due(Insns(200)), (2, Some(Insns(10))));
        assert_eq!(looks.due(Insns(210)), (1, Some(Insns(100))));
    }

    #[test]
    fn where_nothing_is_open_nothing_is_due_until_something_opens() {
        let mut looks = Looks::new(Insns(100), kinds(7));
        looks.begin(Stretch::IrqsOff, Insns(0));
        looks.end(Stretch::IrqsOff);
        assert_eq!(looks.due(Insns(100)), (0, None));
        assert!(!looks.is_due(Insns(4999)));
        assert_eq!(looks.begin(Stretch::IrqsOff, Insns(5000)), Some(Insns(100)));
    }

    #[test]
    fn a_countdown_that_ends_too_early_goes_on() {
        let mut looks = Looks::new(Insns(100), kinds(7));
        looks.begin(Stretch::Unscheduled, Insns(0));
        assert_eq!(looks.due(Insns(90)), (0, Some(Insns(10))));
        assert_eq!(looks.due(Insns(100)), (4, Some(Insns(100))));
    }

    #[test]
    fn long_stretches_are_looked_at_when_they_would_be_if_shorter_ones_were_too() {
        let looked = |from| {
            let mut looks = Looks::new(Insns(from), kinds(7));
            let mut next = looks.begin(Stretch::IrqsOff, Insns(10)).map(|wait| 10 + wait.0);
            let mut looked = Vec::new();
            while let Some(now) = next.filter(|now| *now < 40_000) {
                let (kinds, wait) = looks.due(Insns(now));
                looked.extend((kinds != 0).then_some(now - 10));
                next = wait.map(|wait| now + wait.0);
            }
            looked
        };
        assert_eq!(looked(4_000), [4_000, 8_000, 16_000, 32_000]);
        assert_eq!(looked(500)[3..], looked(4_000));
    }

    proptest! {
        /// Steps of the guest: a number of instructions, and then an event.
        #[test]
        fn the_last_look_of_a_stretch_lies_in_its_second_half(
            steps in prop::collection::vec((1u64..400, 0usize..3, any::<bool>()), 1..300)
        ) {
            let (mut looks, mut now, mut ends) = (Looks::new(Insns(100), kinds(7)), 0, None);
            let mut open: [Option<(u64, Option<u64>)>; 3] = [None; 3];
            for (passed, which, opens) in steps {
                let until = now + passed;
                while let Some(end) = ends.filter(|end| *end <= until) {
                    let (kinds, next) = looks.due(Insns(end));
                    ends = next.map(|next| end + next.0);
                    for (kind, open) in Stretch::ALL.into_iter().zip(&mut open) {
                        if kinds & kind as u8 != 0 {
                            open.as_mut().expect("only what is open is looked at").1 = Some(end);
                        }
                    }
                }
                now = until;
                if opens {
                    if let Some(wait) = looks.begin(Stretch::ALL[which], Insns(now)) {
                        ends = Some(now + wait.0);
                    }
                    open[which] = Some((now, None));
                } else if let Some((since, last)) = open[which].take() {
                    looks.end(Stretch::ALL[which]);
                    let length = now - since;
                    prop_assert_eq!(last.is_some(), length >= 100);
                    prop_assert!(last.is_none_or(|last| 2 * (last - since) > length));
                }
            }
        }
    }
}
