// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU plugin: the interrupt generator and logic analyser of the virtual rig.
//!
//! Loaded by `-plugin file=…`, it becomes a parallel port of the machine whose interrupt it raises by
//! schedule and whose pins it watches, in virtual time; or it hands the plan of a probe to the guest, and takes what
//! the probe measured. It instruments no instruction but those that halt, unless it is asked to be a [`witness`] of the probe or
//! to [`follow`] the kernel, so the guest runs at full speed, and it is not part of the guest's saved state.

mod config;
pub mod disturbance;
pub mod follow;
pub mod generator;
pub mod guest;
mod halting;
mod instrument;
mod qemu;
mod symbols;
pub mod witness;

pub use config::{Config, ConfigError, Start, Stimulus, Triggers};

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;

/// The plugin interface that witness and follower need: the first that reads the guest's memory.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 4;

/// QEMU's entry point. Non-zero makes QEMU refuse to start.
///
/// # Safety
/// Called by QEMU with `argc` NUL-terminated strings in `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const std::ffi::c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let words: Vec<String> = (0..argc as usize)
        // SAFETY: promised by the caller.
        .map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_string_lossy().into_owned())
        .collect();
    match start(id, &words) {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("{message}");
            1
        }
    }
}

fn start(id: u64, words: &[String]) -> Result<(), String> {
    let config = Config::parse(words.iter().map(String::as_str), |path| std::fs::read(path))
        .map_err(|e| e.to_string())?;
    let qemu = qemu::Qemu::attach().map_err(|e| format!("onset plugin: {e}"))?;
    // SAFETY: a descriptor that our parent left open for us, for as long as we live; it promises that nobody
    // else writes records.
    let records = unsafe { sample::producer_of(BorrowedFd::borrow_raw(config.ring_fd)) }
        .map_err(|e| format!("onset plugin: ring_fd: {e}"))?;
    halting::prepare(qemu);
    // They exclude each other.
    let instrumented = match config.follow.clone() {
        Some(plan) => follow::install(qemu, id, plan, config.aim()),
        None if config.witness => witness::install(qemu, id),
        None => halting::install(id),
    };
    instrumented.map_err(|e| format!("onset plugin: {e}"))?;
    generator::install(qemu, config, records);
    Ok(())
}
