// SPDX-License-Identifier: GPL-2.0-or-later
//! Tries the parts of QEMU that can be tried: its clocks, and a port that the plugin claims.

use crate::checks::{Check, Failed};
use crate::qemu::{Ports, QEMU_CLOCK_VIRTUAL, Qemu, Width, had_room};
use crate::symbols::symbols;
use crate::tlb;
use std::ffi::{c_int, c_void};
use wire::ports::TRIED;

const QEMU_CLOCK_REALTIME: c_int = 0;
const QEMU_CLOCK_HOST: c_int = 2;
/// How far one of QEMU's clocks may be from the host's clock when the host's is read a moment later, in ns.
const READ_WITHIN: i64 = 60_000_000_000;

symbols! {
    /// The functions that trials need. Each trial looks them up by itself, because the first trial comes before there
    /// is a machine.
    struct Symbols {
        qemu_clock_get_ns: fn(c_int) -> i64;
        icount_get: fn() -> i64;
        cpu_inl: fn(u32) -> u32;
        cpu_outl: fn(u32, u32);
        cpu_inb: fn(u32) -> u8;
        memory_region_set_enabled: fn(*mut c_void, bool);
    }
}

impl Qemu {
    /// Checks the clocks before there is a machine, when the virtual clock stands still.
    pub(crate) fn check_clocks(&self) -> Result<(), Failed> {
        let symbols = Symbols::resolve()?;
        let clocks = [QEMU_CLOCK_REALTIME, QEMU_CLOCK_VIRTUAL, QEMU_CLOCK_HOST];
        // SAFETY: this is legal before there is a vCPU.
        let read = |clock| unsafe { (symbols.qemu_clock_get_ns)(clock) };
        let clocks = clocks.map(read);
        are_clocks(clocks, [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME].map(host_clock))?;
        tlb::check(|| read(QEMU_CLOCK_HOST))
    }

    /// Checks, when the machine begins to run, that the virtual clock is the one that counts instructions.
    pub fn check_virtual_clock(&self) -> Result<(), Failed> {
        let symbols = Symbols::resolve()?;
        // SAFETY: this is legal where `now` is legal.
        let (now, counted) = (self.now(), unsafe { (symbols.icount_get)() } as u64);
        Check::Clocks.passes(now.ns() == counted, || {
            format!("the one numbered 1 is at {} ns, and the instructions' at {counted}", now.ns())
        })
    }

    /// Checks ports when they are claimed: claims one more port and tries it. The two halves of the word that is tried
    /// differ from each other.
    pub fn check_ports(&self) -> Result<(), Failed> {
        const MARK: u32 = 0x0102_8304;
        struct Tried(u32);
        impl Ports for Tried {
            const WIDTH: Width = Width::Word;
            fn read(&mut self, offset: u64) -> u32 {
                self.0.wrapping_add(offset as u32)
            }
            fn write(&mut self, offset: u64, value: u32) {
                self.0 = !value.wrapping_add(offset as u32);
            }
        }
        let symbols = Symbols::resolve()?;
        let region = self.claim_ports(c"onset-tried", TRIED, 4, Tried(MARK));
        let port = u32::from(TRIED);
        // SAFETY: the big lock is held, and nobody else owns the port.
        let (read, byte, again) = unsafe {
            let read = (symbols.cpu_inl)(port);
            let byte = (symbols.cpu_inb)(port);
            (symbols.cpu_outl)(port, MARK);
            let again = (symbols.cpu_inl)(port);
            (symbols.memory_region_set_enabled)(region, false);
            (read, byte, again)
        };
        Check::Ports.passes(read == MARK && again == !MARK && byte != MARK as u8, || {
            format!("one that holds {MARK:#x} reads as {read:#x}, by a byte as {byte:#x}, and when that was written as {again:#x}")
        })?;
        had_room(region)
    }
}

/// Checks that QEMU's clocks are the expected ones: two of them agree with the host's clocks, which were read at the
/// same time, and the virtual clock stands at 0. All times are in ns.
fn are_clocks([realtime, virt, host]: [i64; 3], [monotonic, wall]: [i64; 2]) -> Result<(), Failed> {
    let near = |a: i64, b: i64| a.abs_diff(b) < READ_WITHIN as u64;
    Check::Clocks.passes(near(realtime, monotonic) && near(host, wall) && virt == 0, || {
        format!("those numbered 0, 1 and 2 are at {realtime}, {virt} and {host} ns; expected were {monotonic}, 0 and {wall}")
    })
}

/// The time of one of the host's clocks, in ns.
pub(crate) fn host_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: every Linux has this clock, and there is room for its time.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_have_other_numbers_fail_their_check() {
        let [monotonic, wall] = [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME].map(host_clock);
        assert_eq!(are_clocks([monotonic, 0, wall], [monotonic + 5, wall + 5]), Ok(()));
        let orders = [[0, monotonic, wall], [wall, 0, monotonic], [monotonic, wall, 0]];
        for order in orders {
            let failed = are_clocks(order, [monotonic, wall]).unwrap_err();
            assert_eq!(failed.check, Check::Clocks);
        }
    }
}
