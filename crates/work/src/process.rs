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

    /// Sends it and its own children SIGTERM, unless it was reaped.
    pub fn ask_to_end(&self) {
        self.to_group(libc::SIGTERM);
    }

    /// Whether it has ended. It is not reaped, so its group keeps its number.
    ///
    /// # Errors
    /// Those of the system. After it was reaped, that there is no such child.
    pub fn has_ended(&self) -> std::io::Result<bool> {
        // SAFETY: zeros are a siginfo_t, and the call only writes into it.
        let (ended, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            (libc::waitid(libc::P_PID, self.0.id(), &raw mut info, options), info)
        };
        match ended {
            // SAFETY: waitid fills this field; it is 0 as long as there is nothing to tell.
            0 => Ok(unsafe { info.si_pid() } != 0),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    /// Whether children of its own are left in its group, which it began.
    pub fn has_children(&self) -> bool {
        let own = self.0.id().to_string();
        let is_of_group = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Behind the name, which may have anything: state, parent, group.
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(&own)
        };
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().into_string().ok());
        pids.any(|pid| pid.as_bytes()[0].is_ascii_digit() && pid != own && is_of_group(&pid))
    }

    /// Kills it and its own children, unless it was reaped.
    pub fn kill_all(&self) {
        self.to_group(libc::SIGKILL);
    }

    fn to_group(&self, signal: libc::c_int) {
        if self.has_ended().is_ok() {
            // SAFETY: a plain system call; until it is reaped nobody else has its number.
            unsafe { libc::killpg(self.0.id() as libc::pid_t, signal) };
        }
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
