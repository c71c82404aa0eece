// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms of Linux that can answer an interrupt, each with its own pin of the port.

use crate::SeriesId;
use core::fmt;
use core::str::FromStr;

/// A mechanism that answers a trigger. The discriminant is the pin that it toggles; the kernel module has the same
/// numbers from `driver/onset_wire.h`. A parallel port has the pins 0 … 7 (D0 … D7). Those above are in a second data
/// register, which the rig has; a GPIO line may be any of them.
///
/// "2006 thesis" is "Unintrusive Measurement of Interrupt and Scheduler Latency", chapter 3: it names what a driver can
/// answer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[repr(u8)]
pub enum Responder {
    /// The hard interrupt handler itself.
    Hardirq = 0,
    /// The handler's thread (`request_threaded_irq`), SCHED_FIFO 50.
    ThreadedIrq = 1,
    /// A tasklet: the softirq `TASKLET_SOFTIRQ` (2006 thesis, table 3.3 and §3.1.8).
    Tasklet = 2,
    /// A bottom-half workqueue item (Linux 6.9 and later).
    BhWork = 3,
    /// An item on the system workqueue (2006 thesis, §3.1.9).
    Work = 4,
    /// An item on the high-priority system workqueue (nice −20).
    WorkHighpri = 5,
    /// A kernel thread with SCHED_FIFO.
    Kthread = 6,
    /// A user process with SCHED_FIFO that blocks in read() and answers by ioctl().
    Task = 7,
    /// A tasklet of high priority (`tasklet_hi_schedule`): the softirq `HI_SOFTIRQ`, which the kernel serves before all
    /// others (2006 thesis, table 3.3 and §3.1.8).
    TaskletHi = 8,
    /// A timer of the kernel that is due at once (`mod_timer(jiffies)`): its function runs in `TIMER_SOFTIRQ` (2006
    /// thesis, table 3.3) at the next tick, so it is up to a tick late by construction.
    TimerSoftirq = 9,
    /// A kernel thread with SCHED_FIFO that waits in an ordinary wait queue (`wait_event_interruptible`) for `wake_up`.
    /// The thesis' driver wakes its reader so (2006 thesis, §5.5.2); [`Responder::Kthread`] waits in a simple one.
    Waitqueue = 10,
}

/// All responders in pin order.
pub const ALL_RESPONDERS: [Responder; 11] = [
    Responder::Hardirq,
    Responder::ThreadedIrq,
    Responder::Tasklet,
    Responder::BhWork,
    Responder::Work,
    Responder::WorkHighpri,
    Responder::Kthread,
    Responder::Task,
    Responder::TaskletHi,
    Responder::TimerSoftirq,
    Responder::Waitqueue,
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
            Responder::TaskletHi => "tasklet_hi",
            Responder::TimerSoftirq => "timer_softirq",
            Responder::Waitqueue => "waitqueue",
        }
    }

    /// The pin, which is its number.
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
pub struct ResponderSet(u16);

impl ResponderSet {
    /// All responders.
    pub const ALL: ResponderSet = ResponderSet((1 << ALL_RESPONDERS.len()) - 1);

    /// Those for which a parallel port has a data pin, D0 … D7. They are measured where nobody chooses.
    pub const OF_PORT: ResponderSet = ResponderSet(0xff);

    /// The set whose pins are the bits of `mask`. `None` where a bit is nobody's.
    pub const fn from_mask(mask: u16) -> Option<Self> {
        if mask & !Self::ALL.0 == 0 { Some(ResponderSet(mask)) } else { None }
    }

    /// The pins as a bit mask.
    pub const fn mask(self) -> u16 {
        self.0
    }

    /// The members whose bit in `pins` is set.
    pub const fn at(self, pins: u16) -> Self {
        ResponderSet(self.0 & pins)
    }

    /// Whether `self` has all members of `other`.
    pub const fn contains_all(self, other: ResponderSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether `r` is in the set.
    pub const fn contains(self, r: Responder) -> bool {
        self.0 >> r.pin() & 1 == 1
    }

    /// The place of `r` among the members in pin order: the index of its series in a run that measures this
    /// set. For one that is no member, the place that it would have.
    pub const fn rank(self, r: Responder) -> SeriesId {
        SeriesId((self.0 & ((1u16 << r.pin()) - 1)).count_ones() as u16)
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
        for mask in 0..=ResponderSet::ALL.mask() {
            let set = ResponderSet::from_mask(mask).expect("bits of responders");
            let ranks = set.iter().map(|r| set.rank(r).index());
            assert!(ranks.eq(0..set.iter().count()), "{mask:#b}");
        }
    }

    #[test]
    fn all_are_those_that_are_listed_and_a_bit_of_nobody_makes_no_set() {
        assert!(ResponderSet::ALL.iter().eq(ALL_RESPONDERS));
        assert_eq!(ALL_RESPONDERS.into_iter().collect::<ResponderSet>(), ResponderSet::ALL);
        assert_eq!(ResponderSet::from_mask(0x7ff), Some(ResponderSet::ALL));
        assert_eq!([0x800, 0x8001, 0xffff].map(ResponderSet::from_mask), [None; 3]);
    }

    #[test]
    fn a_port_has_no_pin_for_the_youngest_three() {
        let port = ResponderSet::OF_PORT;
        assert!(port.iter().all(|r| r.pin() < 8) && port.contains(Responder::Task));
        let more = [Responder::TaskletHi, Responder::TimerSoftirq, Responder::Waitqueue];
        assert!(more.into_iter().all(|r| !port.contains(r)));
        assert!(ResponderSet::ALL.contains_all(port) && !port.contains_all(ResponderSet::ALL));
    }
}
