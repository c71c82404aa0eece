// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms of Linux that can answer an interrupt, each with its own pin of the port.

use crate::SeriesId;
use core::fmt;
use core::str::FromStr;

/// A mechanism that answers a trigger. The discriminant is the data pin (D0 … D7) it toggles; the
/// kernel module has the same numbers from `driver/onset_wire.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Responder {
    /// The hard interrupt handler itself.
    Hardirq = 0,
    /// The handler's thread (`request_threaded_irq`), SCHED_FIFO 50.
    ThreadedIrq = 1,
    /// A tasklet (softirq).
    Tasklet = 2,
    /// A bottom-half workqueue item (Linux 6.9 and later).
    BhWork = 3,
    /// An item on the system workqueue.
    Work = 4,
    /// An item on the high-priority system workqueue (nice −20).
    WorkHighpri = 5,
    /// A kernel thread with SCHED_FIFO.
    Kthread = 6,
    /// A user process with SCHED_FIFO that blocks in read() and answers by ioctl().
    Task = 7,
}

/// All responders in pin order.
pub const ALL_RESPONDERS: [Responder; 8] = [
    Responder::Hardirq,
    Responder::ThreadedIrq,
    Responder::Tasklet,
    Responder::BhWork,
    Responder::Work,
    Responder::WorkHighpri,
    Responder::Kthread,
    Responder::Task,
];

impl Responder {
    /// The word used in files, JSON, pages and module parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Responder::Hardirq => "hardirq",
            Responder::ThreadedIrq => "threaded_irq",
            Responder::Tasklet => "tasklet",
            Responder::BhWork => "bh_work",
            Responder::Work => "work",
            Responder::WorkHighpri => "work_highpri",
            Responder::Kthread => "kthread",
            Responder::Task => "task",
        }
    }

    /// The data pin, 0 … 7.
    pub const fn pin(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No responder has this name; [`ALL_RESPONDERS`] lists those that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownResponder;

impl fmt::Display for UnknownResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown responder; known are")?;
        for r in ALL_RESPONDERS {
            write!(f, " {r}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownResponder {}

impl FromStr for Responder {
    type Err = UnknownResponder;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        ALL_RESPONDERS.into_iter().find(|r| r.name() == name).ok_or(UnknownResponder)
    }
}

/// A set of responders, as the bit mask of their pins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponderSet(u8);

impl ResponderSet {
    /// The set whose pins are the bits of `mask`.
    pub const fn from_mask(mask: u8) -> Self {
        ResponderSet(mask)
    }

    /// The pins as a bit mask.
    pub const fn mask(self) -> u8 {
        self.0
    }

    /// Whether `r` is in the set.
    pub const fn contains(self, r: Responder) -> bool {
        self.0 >> r.pin() & 1 == 1
    }

    /// The place of `r` among the members in pin order: the index of its series in a run that measures this
    /// set. For one that is no member, the place that it would have.
    pub const fn rank(self, r: Responder) -> SeriesId {
        SeriesId((self.0 & ((1u8 << r.pin()) - 1)).count_ones() as u16)
    }

    /// The members in pin order.
    pub fn iter(self) -> impl Iterator<Item = Responder> {
        ALL_RESPONDERS.into_iter().filter(move |r| self.contains(*r))
    }
}

impl FromIterator<Responder> for ResponderSet {
    fn from_iter<I: IntoIterator<Item = Responder>>(iter: I) -> Self {
        ResponderSet(iter.into_iter().fold(0, |mask, r| mask | 1 << r.pin()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_its_responder() {
        for r in ALL_RESPONDERS {
            assert_eq!(r.name().parse(), Ok(r));
        }
        assert_eq!("softirq".parse::<Responder>(), Err(UnknownResponder));
    }

    #[test]
    fn a_set_lists_its_members_in_pin_order() {
        let set: ResponderSet = [Responder::Task, Responder::Hardirq].into_iter().collect();
        assert_eq!(set.mask(), 0x81);
        assert!(set.iter().eq([Responder::Hardirq, Responder::Task]));
    }

    #[test]
    fn the_rank_of_a_member_is_its_place_in_the_list() {
        for mask in 0..=u8::MAX {
            let set = ResponderSet::from_mask(mask);
            let ranks = set.iter().map(|r| set.rank(r).index());
            assert!(ranks.eq(0..set.iter().count()), "{mask:#b}");
        }
    }
}
