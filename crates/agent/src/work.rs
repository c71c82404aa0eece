// SPDX-License-Identifier: GPL-2.0-or-later
//! A piece of work in the guest, in place of a probe: a shell script with a time limit. The rig is told the end of the
//! work, or of its time, before anybody interrupts the work or reports on it. So whoever follows the kernel sees the
//! work, and neither its end by force nor the report.

use crate::x86_64::Ports;
use agent::{PROGRAMS, Work, Worked};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use wire::Mark;

/// The file that takes what the work prints.
const SAID: &str = "/run/said";
/// Of what the work printed, this many bytes of the beginning and of the end are reported.
const SAID_MAX: usize = 2048;
/// How long interrupted work may take to end, in guest nanoseconds.
const GRACE_NS: u64 = 500_000_000;

/// Does the work, and ends measuring with it.
///
/// # Errors
/// If the work could not be started.
pub fn run(work: &Work, ports: &Ports) -> Result<Worked, String> {
    let failed = |e: std::io::Error| format!("the work: {e}");
    let mut child = start(&work.script).map_err(failed)?;
    let pid = Pid::from_child(&child);
    let ends = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
    let has_ended = wait(&ends, work.for_ns).map_err(failed)?;
    ports.set(Mark::Done);
    let has_ended_at_last = has_ended || {
        // Work that has just ended cannot be interrupted, and need not be.
        let _ = kill_process(pid, Signal::INT);
        wait(&ends, GRACE_NS).map_err(failed)?
    };
    let status = if has_ended_at_last { status(&mut child) } else { None };
    Ok(Worked { was_interrupted: !has_ended, status, said: said() })
}

fn start(script: &str) -> std::io::Result<Child> {
    let output = File::create(SAID)?;
    Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", PROGRAMS)
        .env("HOME", "/tmp")
        .env("LANG", "C")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

/// Waits for a process to end. Returns whether it did in this time.
fn wait(ends: &OwnedFd, limit_ns: u64) -> std::io::Result<bool> {
    let seconds = |ns: u64| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    let ended = poll(&mut [PollFd::new(ends, PollFlags::IN)], Some(&seconds(limit_ns)))?;
    Ok(ended > 0)
}

fn status(child: &mut Child) -> Option<i32> {
    child.wait().ok().and_then(|status| status.code())
}

fn said() -> String {
    let bytes = fs::read(SAID).unwrap_or_default();
    if bytes.len() <= 2 * SAID_MAX {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let [begin, end] = [&bytes[..SAID_MAX], &bytes[bytes.len() - SAID_MAX..]]
        .map(|part| String::from_utf8_lossy(part).into_owned());
    format!("{begin}\n…\n{end}")
}
