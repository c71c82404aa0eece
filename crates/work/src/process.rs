// SPDX-License-Identifier: GPL-2.0-or-later
//! Processes that end with the work that started them, and with this process, however it ends.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A child that is killed with its own children and reaped when it goes out of scope, and by the kernel
/// when we die.
pub struct Reaped(Child);

impl Reaped {
    /// Starts the program.
    ///
    /// # Errors
    /// Those of the system.
    pub fn spawn(command: &mut Command) -> std::io::Result<Reaped> {
        let parent = std::process::id();
        // A group of its own: the terminal's Ctrl-C reaches us alone, and we decide.
        command.process_group(0);
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The parent may have died before the line above.
                if libc::getppid() as u32 != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        command.spawn().map(Reaped)
    }

    /// The exit status, when it has ended.
    pub fn ended(&mut self) -> std::io::Result<Option<std::process::ExitStatus>> {
        self.0.try_wait()
    }
}

impl Reaped {
    /// Its ends of the pipes that it was started with, once.
    pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.0.stdin.take(), self.0.stdout.take(), self.0.stderr.take())
    }

    /// Its exit status, once it has ended.
    pub fn wait(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.0.wait()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends it SIGTERM.
    pub fn ask_to_end(&self) {
        // SAFETY: a plain system call; until it is reaped nobody else has its number.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGTERM) };
    }
}

/// Leaves the descriptors open across exec, in the child alone.
pub fn inherit(command: &mut Command, descriptors: Vec<RawFd>) {
    // SAFETY: fcntl is async-signal-safe, and the descriptors outlive the spawn.
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
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // What apt-get or make started would outlive them. Until it is reaped nobody else has its number.
        if let Ok(None) = self.0.try_wait() {
            // SAFETY: a plain system call; the group was made in `spawn`.
            unsafe { libc::killpg(self.0.id() as libc::pid_t, libc::SIGKILL) };
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
