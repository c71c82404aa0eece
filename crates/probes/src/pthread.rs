// SPDX-License-Identifier: GPL-2.0-or-later
//! The C library's own mutex without priority inheritance, and its condition variable. The probes measure these, and
//! not the ones of Rust's standard library.

use std::cell::UnsafeCell;

/// A `pthread_mutex_t` with default attributes: `PTHREAD_PRIO_NONE`. It guards no data of its own.
pub(crate) struct PlainMutex {
    /// Boxed, because a mutex must not move once a thread has used it.
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
}

// SAFETY: a pthread mutex is made to be used by several threads.
unsafe impl Send for PlainMutex {}
// SAFETY: as for `Send`.
unsafe impl Sync for PlainMutex {}

impl PlainMutex {
    pub(crate) fn new() -> PlainMutex {
        PlainMutex { mutex: Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)) }
    }

    /// Locks the mutex. Never fails: a normal mutex reports no deadlock and no dead owner (pthread_mutex_lock(3p)).
    pub(crate) fn lock(&self) {
        // SAFETY: the mutex is initialised and never moves.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    /// Unlocks the mutex. Only the thread that locked it may call this.
    pub(crate) fn unlock(&self) {
        // SAFETY: the mutex is initialised and never moves.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }
}

impl Drop for PlainMutex {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference any more, so nobody holds the lock.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

/// A `pthread_cond_t` with default attributes.
pub(crate) struct Condition {
    condition: Box<UnsafeCell<libc::pthread_cond_t>>,
}

// SAFETY: a pthread condition variable is made to be used by several threads.
unsafe impl Send for Condition {}
// SAFETY: as for `Send`.
unsafe impl Sync for Condition {}

impl Condition {
    pub(crate) fn new() -> Condition {
        Condition { condition: Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER)) }
    }

    /// Waits for a signal. The wait may also end without one, so look at the predicate. The caller holds `mutex`.
    pub(crate) fn wait(&self, mutex: &PlainMutex) {
        // SAFETY: both are initialised and never move.
        unsafe { libc::pthread_cond_wait(self.condition.get(), mutex.mutex.get()) };
    }

    /// Wakes one waiter.
    pub(crate) fn signal(&self) {
        // SAFETY: the condition variable is initialised and never moves.
        unsafe { libc::pthread_cond_signal(self.condition.get()) };
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference any more, so nobody waits.
        unsafe { libc::pthread_cond_destroy(self.condition.get()) };
    }
}
