// SPDX-License-Identifier: GPL-2.0-or-later
//! Futexes, and the mutex of the C library that is made of them.

use super::Suite::Ipc;
use super::bench::{Work, answered, each};
use super::partner::Partner;
use super::place::Place;
use super::row::Row;
use crate::pthread::PlainMutex;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) static ROWS: [Row; 4] = [
    Row::time((Ipc, "mutex"), "pthread mutex locked and unlocked, free", 5_000, mutex),
    Row::time((Ipc, "futex_wake"), "FUTEX_WAKE with nobody waiting", 1_000, wake_nobody),
    Row::time((Ipc, "futex_round_trip"), "a process woken, and this one by it", 200, contended),
    Row::time((Ipc, "futex_pi"), "FUTEX_LOCK_PI and FUTEX_UNLOCK_PI, free", 500, priority),
];

/// A thread was started before. As long as a process has never had a second one, the C library locks without an atomic
/// instruction (glibc since 2.34, `SINGLE_THREAD_P`), and a program that needs a mutex has had one.
fn mutex(_: &Place) -> io::Result<Box<dyn Work>> {
    std::thread::Builder::new().spawn(|| ())?.join().map_err(|_| io::Error::other("a panic"))?;
    let mutex = PlainMutex::new();
    each(move || {
        mutex.lock();
        mutex.unlock();
        Ok(())
    })
}

/// The call `futex` (futex(2)). Words of another process need the shared form, so all have it.
#[inline]
pub(super) fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) -> io::Result<i64> {
    let timeout = ptr::null::<libc::timespec>();
    // SAFETY: the word is mapped, and no operation here looks at more.
    answered(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) })
}

fn wake_nobody(_: &Place) -> io::Result<Box<dyn Work>> {
    let word = Box::new(AtomicU32::new(0));
    each(move || futex(&word, libc::FUTEX_WAKE, 1).map(drop))
}

/// Words that several processes share; all are 0 at first.
pub(super) struct Shared(*mut libc::c_void);

impl Shared {
    const BYTES: usize = 4096;
    /// How many.
    pub(super) const WORDS: usize = 8;

    pub(super) fn map() -> io::Result<Shared> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the address.
        let memory = unsafe { libc::mmap(ptr::null_mut(), Self::BYTES, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Shared(memory))
        }
    }

    pub(super) fn words(&self) -> &[AtomicU32; Self::WORDS] {
        // SAFETY: a page of zeroes begins with so many such words, and stays mapped.
        unsafe { &*self.0.cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nobody has a word any more.
        unsafe { libc::munmap(self.0, Self::BYTES) };
    }
}

/// Waits until the word is 1, and takes that back.
pub(super) fn wait(word: &AtomicU32) -> io::Result<()> {
    while word.swap(0, Ordering::Acquire) == 0 {
        match futex(word, libc::FUTEX_WAIT, 0) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                return Err(e);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes the word 1, and wakes who waits for that.
pub(super) fn wake(word: &AtomicU32) -> io::Result<()> {
    word.store(1, Ordering::Release);
    futex(word, libc::FUTEX_WAKE, 1).map(drop)
}

fn contended(_: &Place) -> io::Result<Box<dyn Work>> {
    let shared = Shared::map()?;
    let partner = Partner::start(|| {
        let [here, there, ..] = shared.words();
        while wait(there).and_then(|()| wake(here)).is_ok() {}
    })?;
    each(move || {
        let _ = &partner;
        let [here, there, ..] = shared.words();
        wake(there)?;
        wait(here)
    })
}

/// Through the kernel each time. The C library would lock a free one without it.
fn priority(_: &Place) -> io::Result<Box<dyn Work>> {
    let word = Box::new(AtomicU32::new(0));
    each(move || {
        futex(&word, libc::FUTEX_LOCK_PI, 0)?;
        futex(&word, libc::FUTEX_UNLOCK_PI, 0).map(drop)
    })
}
