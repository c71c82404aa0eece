// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU plugin: the interrupt generator and logic analyser of the virtual rig.
//!
//! QEMU loads it by `-plugin file=…`. The plugin becomes a parallel port of the machine: it raises the port's interrupt
//! by schedule and watches the port's pins, in virtual time. If a probe measures, the plugin instead hands the probe's
//! plan to the guest and takes the probe's measurements.
//!
//! By itself the plugin instruments the instructions that halt and no others, so the guest runs at full speed. It
//! instruments more only if it is asked to be a [`witness`] of the probe or to [`follow`] the kernel. It is not part of
//! the guest's saved state.

mod checks;
mod commands;
pub mod disturbance;
pub mod follow;
mod forking;
pub mod generator;
pub mod guest;
mod halting;
mod instrument;
pub mod interface;
mod layout;
mod pausing;
mod physical;
mod qemu;
mod spending;
mod symbols;
mod tlb;
mod trying;
mod vcpu;
pub mod witness;
mod x86_64;

use interface::Info;

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;
use wire::Arguments;
use wire::arguments::{PASSED, TRIAL};

/// QEMU's entry point. A result other than 0 makes QEMU refuse to start.
///
/// # Safety
/// QEMU calls this with `argc` NUL-terminated strings in `argv`, and with facts about itself in `info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let words: Vec<String> = (0..argc as usize)
        // SAFETY: the caller promises this.
        .map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_string_lossy().into_owned())
        .collect();
    // SAFETY: the caller promises this.
    match start(id, unsafe { &*info }, &words) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("{message}");
            1
        }
    }
}

fn start(id: u64, info: &Info, words: &[String]) -> Result<(), String> {
    let qemu = qemu::Qemu::attach(info).map_err(|e| format!("onset plugin: {e}"))?;
    if words.iter().any(|word| word.starts_with(TRIAL)) {
        let said = try_all(qemu, id).map_err(|e| format!("onset plugin: {e}"))?;
        println!("{said}");
        // SAFETY: the call ends the process, before QEMU has made anything.
        unsafe { libc::_exit(0) }
    }
    let told = Arguments::parse(words.iter().map(String::as_str), |path| std::fs::read(path))
        .map_err(|e| e.to_string())?;
    // SAFETY: the parent left this descriptor open for the plugin, for the plugin's whole life. It promises that nobody
    // else writes events.
    let events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(told.ring_fd)) }
        .map_err(|e| format!("onset plugin: ring_fd: {e}"))?;
    halting::prepare(qemu);
    pausing::prepare(qemu);
    // The three cases exclude each other.
    let instrumented = match told.follow.clone() {
        Some(plan) => follow::install(qemu, id, plan, told.aim()),
        None if told.witness => witness::install(qemu, id, told.functions.clone()),
        None => halting::install(qemu, id).map_err(|failed| qemu.refusal(&failed)),
    };
    instrumented.map_err(|e| format!("onset plugin: {e}"))?;
    generator::install(qemu, told, events);
    Ok(())
}

/// Tries whether QEMU has all of the plugin interface.
fn try_all(qemu: qemu::Qemu, id: u64) -> Result<String, String> {
    let attached = instrument::Instrument::attach(id, qemu.interface());
    attached.map_err(|failed| qemu.refusal(&failed))?;
    Ok(format!("{PASSED}{}", qemu.interface().number()))
}
