// SPDX-License-Identifier: GPL-2.0-or-later
//! The first process of a load. It runs the load's script, says when the script has returned, and then takes in the
//! orphans until nobody is left. In a process namespace of its own it is process 1 there.

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// Runs the script and takes in the orphans. Returns the exit status, which is 1 if the script failed.
pub fn run(mut arguments: impl Iterator<Item = String>) -> i32 {
    let script = arguments.next().unwrap_or_default();
    // All processes that the script starts get the console that the supervisor gave this process. The supervisor's pipe
    // is for this process alone.
    let console = match std::io::stderr().as_fd().try_clone_to_owned() {
        Ok(console) => Stdio::from(console),
        Err(_) => Stdio::null(),
    };
    let status = Command::new("/bin/sh").arg(&script).stdin(Stdio::null()).stdout(console).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            eprintln!("the script: {status}");
            return 1;
        }
        Err(e) => {
            eprintln!("/bin/sh: {e}");
            return 1;
        }
    }
    let ready = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    if ready.and_then(|mut pipe| pipe.write_all(b"\n")).is_err() {
        return 1;
    }
    loop {
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return 0,
        }
    }
}
