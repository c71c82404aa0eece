// SPDX-License-Identifier: GPL-2.0-or-later
//! The lock of bottom halves, which PREEMPT_RT has: since when its holder keeps others from theirs.

use super::state::Since;
use super::{Follower, SOFTIRQ_DISABLE};
use crate::x86_64::General;
use sample::{At, Stretch};

impl Follower {
    /// Learns that a call of the function at `address` takes or releases the lock of bottom halves.
    pub(super) fn hold(&self, holds: bool, address: u64, at: At) {
        let mut followed = self.followed();
        if followed.aimer.is_none()
            || self.vcpu().cpu.register(General::Second) & SOFTIRQ_DISABLE == 0
        {
            return;
        }
        let before = followed.bh_held;
        followed.bh_held = if holds { before + 1 } else { before.saturating_sub(1) };
        match (before, followed.bh_held) {
            (0, 1) => {
                let key = self.capture(address).key();
                let since = Since::new(&mut followed.aimer, Stretch::BhHeld, || key, at);
                followed.bh_off = Some(since);
                let nested = followed.masked || followed.preempt != 0;
                self.aim(&mut followed, since, nested, address);
            }
            (1, 0) => {
                if let Some(since) = followed.bh_off.take() {
                    followed.closed(since, at.insns);
                }
            }
            _ => {}
        }
    }
}
