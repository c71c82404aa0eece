// SPDX-License-Identifier: GPL-2.0-or-later
//! Reports each call of a function of the kernel and its return, from a given time on. Before this time each execution
//! of such a place costs a comparison.

use super::places::{Place, Why};
use super::{Follower, follower};
use crate::follow::state::Followed;
use crate::generator::{pass_on_among_many, since_measuring_began};
use crate::x86_64::{General, KERNEL};
use sample::{Stamp, Virtual};
use std::ffi::{c_uint, c_void};
use wire::Event;

pub extern "C" fn on_function(_vcpu: c_uint, place: *mut c_void) {
    // SAFETY: the pointer is to a leaked Place, and `look` gave it.
    follower().function(unsafe { &*place.cast::<Place>() });
}

impl Follower {
    /// Begins to report functions, if it is time. The follower calls this when interrupts are masked. The trigger's own
    /// interrupt masks them at the latest.
    pub(super) fn begin_functions(&self, followed: &mut Followed, now: Stamp<Virtual>) {
        let Some(from) = followed.functions_from else { return };
        if since_measuring_began(now).is_some_and(|now| now >= from) {
            followed.functions_from = None;
            self.instrument.tell();
        }
    }

    /// Reports that a function begins or returns. While the stack is a program's, nothing is reported. The first
    /// instructions of a system call still have this stack, too.
    fn function(&self, place: &Place) {
        let cpu = &self.vcpu().cpu;
        let stack = cpu.register(General::Stack);
        if stack >= KERNEL {
            cpu.check(place.left == 1);
            let (at, address, stack_pointer) = (cpu.time(place.left), place.address, stack as u32);
            pass_on_among_many(&match place.why {
                Why::Function => Event::Function { at, address, stack_pointer },
                _ => Event::Return { at, address, stack_pointer },
            });
        }
    }
}
