// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms by which one thread tells another that an event came, behind one interface.
//!
//! All mechanisms remember an event: a thread that is told before it waits does not wait.

use crate::gate::Gate;
use crate::pthread::{Condition, PlainMutex};
use rt::now;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use sample::{Monotonic, Stamp};
use std::cell::UnsafeCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mechanism. One thread waits, and another thread tells it that an event came. Neither call allocates.
pub(crate) trait Handover: Sync {
    /// Prepares the waiting thread, once, before it waits for the first time.
    fn enter(&self) -> io::Result<()> {
        Ok(())
    }

    /// Waits to be told. Returns the reading of the clock right after the wait.
    ///
    /// # Errors
    /// The error of the system. The mechanism cannot be used any more.
    fn wait(&self) -> io::Result<Stamp<Monotonic>>;

    /// Prepares the telling thread for the next event. This is not part of the measured time.
    fn prepare(&self) {}

    /// Tells the waiting thread that an event came.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    fn tell(&self) -> io::Result<()>;
}

/// The result of a call of the C library that returns −1 and `errno`.
pub(super) fn checked(returned: impl Into<i64>) -> io::Result<i64> {
    match returned.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Repeats a call of the C library while signals interrupt it.
pub(super) fn uninterrupted<R: Into<i64>>(mut call: impl FnMut() -> R) -> io::Result<i64> {
    loop {
        match checked(call()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A mutex, a condition variable, and the flag between them. The sender sets the flag and frees the mutex before it
/// takes its stamp. So the probe measures `pthread_cond_signal`, and not a mutex that is handed over twice.
pub(super) struct Condvar {
    mutex: PlainMutex,
    condition: Condition,
    /// The flag. Threads read and write it under the mutex.
    told: AtomicU32,
}

impl Condvar {
    pub(super) fn new() -> Condvar {
        let (mutex, condition) = (PlainMutex::new(), Condition::new());
        Condvar { mutex, condition, told: AtomicU32::new(0) }
    }
}

impl Handover for Condvar {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        self.mutex.lock();
        while self.told.load(Ordering::Relaxed) == 0 {
            self.condition.wait(&self.mutex);
        }
        let woken = now();
        self.told.fetch_sub(1, Ordering::Relaxed);
        self.mutex.unlock();
        Ok(woken)
    }

    fn prepare(&self) {
        self.mutex.lock();
        self.told.fetch_add(1, Ordering::Relaxed);
        self.mutex.unlock();
    }

    fn tell(&self) -> io::Result<()> {
        self.condition.signal();
        Ok(())
    }
}

impl Handover for Gate {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        self.pass();
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        self.open();
        Ok(())
    }
}

pub(super) struct Eventfd {
    fd: OwnedFd,
}

impl Eventfd {
    pub(super) fn new() -> io::Result<Eventfd> {
        Ok(Eventfd { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)? })
    }
}

impl Handover for Eventfd {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        retry_on_intr(|| read(&self.fd, &mut [0u8; 8]))?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        write(&self.fd, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

pub(super) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Pipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { reader, writer })
    }
}

impl Handover for Pipe {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        match retry_on_intr(|| read(&self.reader, &mut [0u8; 1]))? {
            1 => Ok(now()),
            _ => Err(Errno::PIPE.into()),
        }
    }

    fn tell(&self) -> io::Result<()> {
        write(&self.writer, &[1])?;
        Ok(())
    }
}

pub(crate) struct PosixSemaphore {
    /// Boxed, because a semaphore must not move once a thread has used it.
    semaphore: Box<UnsafeCell<libc::sem_t>>,
}

// SAFETY: a semaphore is made to be used by several threads.
unsafe impl Sync for PosixSemaphore {}

impl PosixSemaphore {
    pub(crate) fn new() -> io::Result<PosixSemaphore> {
        // SAFETY: these are plain bytes. sem_init initialises them before anything else sees them.
        let semaphore = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: the memory has room for a semaphore. Only threads share it, and its value is 0.
        checked(unsafe { libc::sem_init(semaphore.get(), 0, 0) })?;
        Ok(PosixSemaphore { semaphore })
    }
}

impl Handover for PosixSemaphore {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        // SAFETY: the semaphore is initialised and never moved.
        uninterrupted(|| unsafe { libc::sem_wait(self.semaphore.get()) })?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        // SAFETY: the semaphore is initialised and never moved.
        checked(unsafe { libc::sem_post(self.semaphore.get()) })?;
        Ok(())
    }
}

impl Drop for PosixSemaphore {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference any more, so nobody waits.
        unsafe { libc::sem_destroy(self.semaphore.get()) };
    }
}
