// SPDX-License-Identifier: GPL-2.0-or-later
//! A file that one process at a time has locked, and that names this process.

use crate::System;
use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// Where who changes a machine locks it, whatever journal it writes.
const OF_MACHINE: &str = "/run/onset-tune.lock";
/// How often a lock is tried before somebody else is at work.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A lock that this process has, until it is dropped. After a kill it ends with the last program that this process had
/// started: what such a program still changes, the next process has to find changed.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Locks a file. The inner error is the number of the process that has it locked, or `unknown`.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn take(mut file: File) -> io::Result<Result<Lock, String>> {
        if !is_locked(&file) {
            let mut process = String::new();
            let _ = file.take(20).read_to_string(&mut process);
            return Ok(Err(if process.is_empty() { "unknown".into() } else { process }));
        }
        fcntl_setfd(&file, FdFlags::empty())?;
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        Ok(Ok(Lock(file)))
    }

    /// Locks a machine against who writes another journal. No lock where nobody can have one: a machine without /run,
    /// and a user who may not write there, and so changes no setting of the machine either.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn of_machine(system: &System) -> io::Result<Result<Option<Lock>, String>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = match options.open(system.path(OF_MACHINE)) {
            Ok(file) => file,
            Err(e) if is_nobodys(e.kind()) => return Ok(Ok(None)),
            Err(e) => return Err(io::Error::new(e.kind(), format!("{OF_MACHINE}: {e}"))),
        };
        Ok(Lock::take(file)?.map(Some))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = confined::unlock(&self.0);
    }
}

fn is_nobodys(kind: ErrorKind) -> bool {
    [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem]
        .contains(&kind)
}

/// Locks a file that nobody else has locked. Of a process that was killed, a program that it started may still be at
/// work.
fn is_locked(file: &File) -> bool {
    (0..TRIES).any(|n| {
        if n > 0 {
            std::thread::sleep(PAUSE);
        }
        confined::try_lock(file).is_ok()
    })
}
