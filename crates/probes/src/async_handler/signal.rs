// SPDX-License-Identifier: GPL-2.0-or-later
//! Signals as mechanisms of the probe `async`: with a handler, and without.

use super::mechanism::{Handover, checked, uninterrupted};
use rt::now;
use sample::{Monotonic, Stamp};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

thread_local! {
    /// When the handler last ran on this thread. The value is constant and has no destructor, so it is a plain
    /// thread-local word that a handler may touch.
    static HANDLED: Cell<Option<Stamp<Monotonic>>> = const { Cell::new(None) };
}

extern "C" fn handler(_: libc::c_int) {
    HANDLED.set(Some(now()));
}

/// The signal with a handler. Neither the C library nor cargo's test harness uses this signal or the one below.
fn number_handled() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

fn number_awaited() -> libc::c_int {
    libc::SIGRTMIN() + 4
}

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigemptyset fills the set, and the numbers are valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Blocks `signal` on the calling thread. Returns the mask that the thread had.
fn block(signal: libc::c_int) -> libc::sigset_t {
    let mut before = set_of(&[]);
    // SAFETY: both sets outlive the call. The call cannot fail with a valid `how`.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&[signal]), &raw mut before) };
    before
}

/// Sends the signal to one thread, as an event for that thread.
fn tell_thread(thread: &AtomicI32, signal: libc::c_int) -> io::Result<()> {
    let thread = thread.load(Ordering::Acquire);
    // SAFETY: there are no pointers.
    checked(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) })?;
    Ok(())
}

fn own_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A handler that stamps in its first instruction, on a thread that waits in `sigsuspend`. Outside of the wait the
/// thread blocks the signal, so that no signal is lost.
pub(super) struct Signal {
    thread: AtomicI32,
    before: libc::sigaction,
    /// The mask during the wait: the thread's own mask without the signal.
    open: libc::sigset_t,
}

impl Signal {
    pub(super) fn new() -> io::Result<Signal> {
        // SAFETY: both are plain data, filled below.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_mask = set_of(&[]);
        // SAFETY: the handler only reads the clock and writes a thread-local word.
        checked(unsafe { libc::sigaction(number_handled(), &raw const action, &raw mut before) })?;
        let mut open = set_of(&[]);
        // SAFETY: the call reads the mask of this thread. Threads that it starts inherit this mask.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut open);
            libc::sigdelset(&raw mut open, number_handled());
        }
        Ok(Signal { thread: AtomicI32::new(0), before, open })
    }
}

impl Handover for Signal {
    fn enter(&self) -> io::Result<()> {
        block(number_handled());
        self.thread.store(own_number(), Ordering::Release);
        Ok(())
    }

    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        loop {
            // SAFETY: the mask is valid. The call always fails, with EINTR, once a handler has run.
            unsafe { libc::sigsuspend(&raw const self.open) };
            if let Some(handled) = HANDLED.take() {
                return Ok(handled);
            }
        }
    }

    fn tell(&self) -> io::Result<()> {
        tell_thread(&self.thread, number_handled())
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // SAFETY: this is the action that was set before.
        unsafe { libc::sigaction(number_handled(), &raw const self.before, std::ptr::null_mut()) };
    }
}

/// A mechanism by `sigwaitinfo` for a blocked signal. It needs no handler.
pub(super) struct Sigwait {
    thread: AtomicI32,
    set: libc::sigset_t,
}

impl Sigwait {
    pub(super) fn new() -> Sigwait {
        Sigwait { thread: AtomicI32::new(0), set: set_of(&[number_awaited()]) }
    }
}

impl Handover for Sigwait {
    fn enter(&self) -> io::Result<()> {
        block(number_awaited());
        self.thread.store(own_number(), Ordering::Release);
        Ok(())
    }

    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        let nothing = std::ptr::null_mut();
        // SAFETY: the set is valid. Nobody asks for the data that came with the signal.
        uninterrupted(|| unsafe { libc::sigwaitinfo(&raw const self.set, nothing) })?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        tell_thread(&self.thread, number_awaited())
    }
}
