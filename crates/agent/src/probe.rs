// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset-agent probe DESCRIPTOR…`: runs one probe, the same on every machine and in the rig's guest.
//!
//! The agent reads the probe's plan (JSON) from its standard input. It puts the measurements into the rings behind the
//! inherited descriptors (one for each measuring thread, in order) and prints lines of [`Word`]. SIGTERM and SIGINT end
//! it early, and the rings keep all earlier measurements. The kernel kills it when the thread that started it ends.

use agent::Word;
use probes::{Output, Plan};
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Runs the probe. Returns the exit status.
pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    die_with_parent();
    share_one_arena();
    let outcome = measure(arguments);
    let (word, status) = match outcome {
        Ok(report) => (Word::Report(report), 0),
        Err(why) => (Word::Failed(why), 1),
    };
    println!("{}", word.line());
    status
}

/// Ends the probe with its parent. Otherwise a probe without a parent would spin at real-time priority for nobody. The
/// plan comes through a pipe, so a parent that ended before this call leaves the plan cut short.
fn die_with_parent() {
    // SAFETY: this is a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The C library gives each thread that allocates an arena of its own (mallopt(3)), and each arena locks 132 KiB of
/// memory. No measuring loop allocates, so one arena is enough for all threads.
fn share_one_arena() {
    // SAFETY: no other thread has been started yet.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

fn measure(arguments: impl Iterator<Item = String>) -> Result<probes::Report, String> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).map_err(|e| format!("reading the plan: {e}"))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|e| format!("the plan: {e}"))?;
    let outputs = arguments.map(output).collect::<Result<Vec<Output>, String>>()?;
    if outputs.len() != plan.threads() {
        return Err(format!("the plan has {} threads; {} rings", plan.threads(), outputs.len()));
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    probes::run(&plan, outputs, &STOP).map_err(|e| e.to_string())
}

/// The output through an inherited descriptor.
fn output(descriptor: String) -> Result<Output, String> {
    let fd: i32 = descriptor
        .parse()
        .ok()
        .filter(|fd| *fd > 2)
        .ok_or_else(|| format!("\"{descriptor}\" is no descriptor of a ring"))?;
    // SAFETY: the parent left the descriptor open for the whole life of this process. It names each ring once, and
    // writes no record itself.
    let ring = unsafe { wire::producer_of(BorrowedFd::borrow_raw(fd)) };
    ring.map(Output::new).map_err(|e| format!("ring {fd}: {e}"))
}
