// SPDX-License-Identifier: GPL-2.0-or-later
//! A process at the other end of a message.
//!
//! If such a process ends before it is told to (the kernel kills one where memory is short), nothing would come from it
//! any more, and this process holds its ends of pipes too. So the signal of its end interrupts the call that waits, and
//! a timer does so again and again: the signal may have come just before the call.

use super::bench::answered;
use super::syscalls::{caught, install};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a partner ended before it was told to.
static ENDED: AtomicBool = AtomicBool::new(false);
/// How often a call that waits is interrupted then.
const AGAIN: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 10_000 };
const NEVER: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 0 };

/// The error of a partner that ended before it was told to.
pub(super) const GONE: i32 = libc::ESRCH;

extern "C" fn ended(_signal: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
    interrupt_every(AGAIN);
}

/// Starts or stops the timer.
fn interrupt_every(time: libc::timeval) {
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: this is a plain system call, also in a signal's handler.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, ptr::null_mut()) };
}

/// From here on the end of a partner is an error.
fn watch() -> io::Result<()> {
    install(libc::SIGALRM, caught as *const () as libc::sighandler_t)?;
    install(libc::SIGCHLD, ended as *const () as libc::sighandler_t)
}

/// Whether a partner ended before it was told to.
pub(super) fn has_ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

/// Fails with [`GONE`] if a partner ended before it was told to.
pub(super) fn check() -> io::Result<()> {
    match has_ended() {
        true => Err(io::Error::from_raw_os_error(GONE)),
        false => Ok(()),
    }
}

/// Forgets the partners that there were.
pub(super) fn forget() {
    ENDED.store(false, Ordering::Relaxed);
}

/// A process that this process started, and that ends with it.
pub(super) struct Partner(libc::pid_t);

impl Partner {
    /// Starts a process that runs `body` and ends. It has the memory and the open files of this process.
    pub(super) fn start(body: impl FnOnce()) -> io::Result<Partner> {
        watch()?;
        // SAFETY: this process has one thread, so the new process has all of it that it needs.
        match unsafe { libc::fork() } {
            -1 => {
                let failure = io::Error::last_os_error();
                // There is no partner whose end would be an error.
                // SAFETY: this is a plain system call.
                unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
                Err(failure)
            }
            0 => {
                // SAFETY: these are plain system calls.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                // A panic must not run what the other process has to run.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                // SAFETY: as above.
                unsafe { libc::_exit(0) }
            }
            id => Ok(Partner(id)),
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // SAFETY: nobody has waited for the process yet, so its number is its own.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            interrupt_every(NEVER);
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, ptr::null_mut(), 0);
        }
    }
}

/// A pipe: its reading and its writing end.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors, which nobody else owns afterwards.
    unsafe {
        answered(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A pair of connected stream sockets of AF_UNIX.
pub(super) fn socketpair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: as in `pipe`.
    unsafe {
        answered(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Reads up to `buffer`'s length.
#[inline]
pub(super) fn read(fd: &impl AsRawFd, buffer: &mut [u8]) -> isize {
    // SAFETY: there is room for so many bytes.
    unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) }
}

/// Writes `buffer`.
#[inline]
pub(super) fn write(fd: &impl AsRawFd, buffer: &[u8]) -> isize {
    // SAFETY: there are so many bytes.
    unsafe { libc::write(fd.as_raw_fd(), buffer.as_ptr().cast(), buffer.len()) }
}

/// For a partner: sends back each message of `bytes` bytes, until the other end is closed.
pub(super) fn echo(from: &impl AsRawFd, to: &impl AsRawFd, bytes: usize) {
    let mut buffer = vec![0; bytes];
    while read(from, &mut buffer) == bytes as isize && write(to, &buffer) == bytes as isize {}
}

/// For a partner: writes as much as the other end takes, `chunk` bytes at a time.
pub(super) fn pour(to: &impl AsRawFd, chunk: usize) {
    let buffer = vec![1; chunk];
    while write(to, &buffer) > 0 {}
}

/// Reads `bytes` bytes, as they come.
#[inline]
pub(super) fn drain(from: &impl AsRawFd, bytes: usize, buffer: &mut [u8]) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let most = left.min(buffer.len());
        match answered(read(from, &mut buffer[..most]) as i64)? {
            0 => return Err(io::Error::from_raw_os_error(GONE)),
            n => left -= n as usize,
        }
    }
    Ok(())
}
