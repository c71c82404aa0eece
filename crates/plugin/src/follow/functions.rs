// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells each call of a function of the kernel and its return, from a given time on: before, the places where it would tell
//! cost a comparison each time that they are executed.

use super::places::{Place, Why};
use super::{Follower, KERNEL, follower, record};
use crate::follow::state::Followed;
use crate::generator::since_measuring_began;
use crate::vcpu::General;
use sample::{Kind, Stamp, Virtual};
use std::ffi::{c_uint, c_void};

pub extern "C" fn on_function(_vcpu: c_uint, place: *mut c_void) {
    // SAFETY: a leaked Place, given by `look`.
    follower().function(unsafe { &*place.cast::<Place>() });
}

impl Follower {
    /// Begins to tell, if it is time. Asked as interrupts are masked, which the trigger's own interrupt does at the latest.
    pub(super) fn begin_functions(&self, followed: &mut Followed, now: Stamp<Virtual>) {
        let Some(from) = followed.functions_from else { return };
        if since_measuring_began(now).is_some_and(|now| now >= from) {
            followed.functions_from = None;
            self.instrument.tell();
        }
    }

    /// A function begins, or returns. With the stack of a program nothing is called, nor by the first instructions of a system
    /// call, which still have it.
    fn function(&self, place: &Place) {
        let cpu = &self.vcpu().cpu;
        let stack = cpu.register(General::Rsp);
        if stack >= KERNEL {
            cpu.check(place.left == 1);
            let kind = if place.why == Why::Function { Kind::Function } else { Kind::Return };
            record(kind, 0, stack as u32, place.address, cpu.time(place.left));
        }
    }
}
