// SPDX-License-Identifier: GPL-2.0-or-later
//! An instant in the rig's machine, and the CPU that it belongs to. It does not hold the time that caches and bus would
//! have added.

use crate::{Insns, Nanos, Stamp, Virtual};

/// An instant, by both clocks of the rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Virtual time.
    pub time: Stamp<Virtual>,
    /// Instructions that the vCPU had completed.
    pub insns: Insns,
    /// The vCPU, from 0; 0 also for what happens outside of all of them.
    pub cpu: u8,
}

impl At {
    /// An instant of vCPU 0, which is the only one of most machines.
    pub const fn new(time: Stamp<Virtual>, insns: Insns) -> At {
        At { time, insns, cpu: 0 }
    }

    /// Time and instructions since `earlier`; `None` where either went backwards.
    pub fn since(self, earlier: At) -> Option<(Nanos, Insns)> {
        Some((self.time.since(earlier.time)?, self.insns.checked_sub(earlier.insns)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_since_another_only_where_neither_clock_went_back() {
        let at = |ns, insns| At::new(Stamp::from_ns(ns), Insns(insns));
        assert_eq!(at(9, 5).since(at(4, 5)), Some((Nanos(5), Insns(0))));
        assert_eq!(at(9, 5).since(at(10, 5)), None);
        assert_eq!(at(9, 5).since(at(9, 6)), None);
    }
}
