// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes QEMU's clock include every instruction before the vCPU halts.
//!
//! While the vCPU is idle, QEMU's main loop moves the virtual clock to the next timer. The vCPU executes `hlt` on a
//! thread of its own and without the big lock, and the main loop takes it for idle from then on. A moment later, the
//! instructions since the last reading of the clock are added to the clock (QEMU 10.0 and 11.1: `do_hlt`,
//! `icount_start_warp_timer`, `icount_process_data`).
//!
//! The main loop is awake every now and then, since each timer that ends wakes it. If it wakes in this moment, it moves
//! the clock by the time from the last reading to the timer. Then the instructions are added, and the timer is late by
//! as much. This happened rarely, but on a busy host more often than on an idle one: two runs from one snapshot were
//! not the same. Reading the clock before `hlt` leaves nothing to add.

use crate::checks::Failed;
use crate::forking;
use crate::instrument::{Block, Instrument, Instruments};
use crate::qemu::Qemu;
use crate::tlb;
use crate::x86_64::INSTRUCTION_BYTES_MAX;
use crate::x86_64::code::HALTING;
use std::ffi::{c_uint, c_void};
use std::sync::OnceLock;

static QEMU: OnceLock<Qemu> = OnceLock::new();
static INSTRUMENT: OnceLock<Instrument> = OnceLock::new();

/// Keeps `qemu` for [`before_halts`]. Call this before QEMU translates anything. Whoever instruments the guest's code
/// shows each block to [`before_halts`].
pub fn prepare(qemu: Qemu) {
    // The plugin is loaded only once.
    let _ = QEMU.set(qemu);
}

/// Instruments the guest's code for this purpose alone, if nobody else instruments the code.
///
/// # Errors
/// If QEMU lacks a part of the interface.
pub fn install(qemu: Qemu, id: u64) -> Result<(), Failed> {
    let instrument = Instrument::attach(id, qemu.interface())?;
    INSTRUMENT.get_or_init(|| instrument).on::<Halting>();
    Ok(())
}

struct Halting;

impl Instruments for Halting {
    fn translates(block: *mut c_void) {
        let instrument = INSTRUMENT.get().expect("set before the callback is registered");
        before_halts(&instrument.block(block));
    }
}

/// Lets the clock be read before the block's last instruction, if this instruction halts the vCPU. No other instruction
/// of a block can halt it.
pub fn before_halts(block: &Block<'_>) {
    // QEMU translates on the vCPU's thread, and before the guest executes anything.
    tlb::is_vcpu();
    let Some(last) = block.last() else { return };
    if HALTING.contains(&last.code(&mut [0; INSTRUCTION_BYTES_MAX])) {
        last.before(on_halt, 0);
    }
}

extern "C" fn on_halt(_vcpu: c_uint, _: *mut c_void) {
    forking::halts();
    // The vCPU is at the last instruction of a block, where the clock may be read.
    QEMU.get().expect("set before anything is translated").now();
}
