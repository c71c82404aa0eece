// SPDX-License-Identifier: GPL-2.0-or-later
//! A probe inside the guest. Init makes the probe's rings and runs the probe as it would run anywhere. It hands the
//! records to the rig once the probe has ended, so that nothing runs beside the probe that would not on a real machine.

use crate::x86_64::Ports;
use agent::{PROGRAMS, Word};
use probes::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use wire::{Channel, Event};

/// The room in each ring beyond the planned events, for losses and the end.
const RESERVE: u64 = 1024;

/// A probe that is ready to run, with its rings.
pub struct Measurement {
    plan: Vec<u8>,
    rings: Vec<Channel>,
}

impl Measurement {
    /// Takes a plan and makes the rings for it.
    ///
    /// # Errors
    /// If the bytes are no plan, or if the plan's records do not fit into this guest.
    pub fn prepare(bytes: Vec<u8>) -> Result<Measurement, String> {
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|e| format!("the plan: {e}"))?;
        let threads = plan.threads();
        let records = plan.probe.events().saturating_add(RESERVE);
        let needed = records.saturating_mul(Event::BYTES as u64 * threads as u64);
        let free = available_bytes();
        // The other half of the free memory is for the probe itself and the load.
        if needed > free / 2 {
            let [needed, free] = [needed, free].map(|bytes| bytes >> 20);
            return Err(format!(
                "the probe's records need {needed} MiB, and the guest has {free} MiB to spare, half of it for them; \
                 measure less at once or give the guest more memory"
            ));
        }
        let ring = |_| Channel::with_capacity(records as usize).map_err(|e| e.to_string());
        let rings = (0..threads).map(ring).collect::<Result<_, String>>()?;
        Ok(Measurement { plan: bytes, rings })
    }

    /// Runs the probe to its end, or until a byte on the wire asks it to end early. Returns the probe's words.
    ///
    /// # Errors
    /// If the probe could not be run, or ended with a failure. The records are sound in the second case, too.
    pub fn run(&self, wire: &mut File) -> Result<Vec<Word>, String> {
        let (status, said) = self.run_probe(wire).map_err(|e| format!("the probe: {e}"))?;
        let text = String::from_utf8_lossy(&said);
        let words: Vec<Word> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let failed = words.iter().find_map(|w| match w {
            Word::Failed(why) => Some(why.clone()),
            _ => None,
        });
        match failed {
            Some(why) => Err(why),
            None if !status.success() => Err(format!("the probe ended with {status}")),
            None => Ok(words),
        }
    }

    fn run_probe(&self, wire: &mut File) -> std::io::Result<(ExitStatus, Vec<u8>)> {
        let descriptors: Vec<i32> = self.rings.iter().map(Channel::fd).collect();
        let mut command = Command::new("/proc/self/exe");
        command.arg("probe").args(descriptors.iter().map(i32::to_string));
        command.env_clear().env("PATH", PROGRAMS).env("LANG", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: fcntl is async-signal-safe, and the rings outlive the spawn.
        unsafe {
            command.pre_exec(move || {
                for fd in &descriptors {
                    if libc::fcntl(*fd, libc::F_SETFD, 0) != 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        // Dropping the pipe at once marks the end of the plan.
        child.stdin.take().expect("piped").write_all(&self.plan)?;
        let said = listen(&mut child, wire)?;
        Ok((child.wait()?, said))
    }

    /// Hands every record to the rig, thread by thread. Returns the number of records that had no room in the rings.
    ///
    /// # Errors
    /// If a ring holds bytes that are no event.
    pub fn hand_over(mut self, ports: &Ports) -> Result<u64, String> {
        let mut dropped = 0;
        for ring in &mut self.rings {
            ring.drain(|event, _| {
                // The end of one thread is not the end of the run.
                if !event.is_last() {
                    ports.hand_over(event);
                }
            })
            .map_err(|e| e.to_string())?;
            dropped += ring.dropped();
        }
        Ok(dropped)
    }
}

/// Reads the probe's output up to its end. If a byte comes on the wire, the function interrupts the probe, as Ctrl-C
/// does on a machine. The probe then ends and keeps what it has measured.
///
/// The function waits for the output and the wire at once, and nothing runs meanwhile.
fn listen(child: &mut Child, wire: &mut File) -> std::io::Result<Vec<u8>> {
    let mut output = child.stdout.take().expect("piped");
    let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let mut ready = [PollFd::new(&output, PollFlags::IN), PollFd::new(&*wire, PollFlags::IN)];
        poll(&mut ready, None)?;
        let [output_ready, wire_ready] = ready.map(|fd| !fd.revents().is_empty());
        if wire_ready {
            wire.read_exact(&mut [0])?;
            // SAFETY: this is a plain system call. Nobody has waited for the child yet, so nobody else has its number.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
        }
        if output_ready {
            match output.read(&mut chunk)? {
                0 => return Ok(said),
                n => said.extend(&chunk[..n]),
            }
        }
    }
}

/// The value of `MemAvailable` (proc_meminfo(5)).
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
