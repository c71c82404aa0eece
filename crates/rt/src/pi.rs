// SPDX-License-Identifier: GPL-2.0-or-later
//! A mutex with priority inheritance, and a condition to wait for under it.
//!
//! While a thread waits for the mutex, its holder runs at the waiter's priority if that priority is higher than its
//! own. So no thread of a priority in between can prolong the wait (`PTHREAD_PRIO_INHERIT`; `FUTEX_LOCK_PI` in the
//! kernel, which follows chains of holders: Documentation/locking/rt-mutex.rst). Where nobody else has the mutex,
//! neither locking nor unlocking enters the kernel.

use crate::Error;
use rustix::io::Errno;
use rustix::thread::futex;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A mutex with priority inheritance around a value. A panic while a thread holds the mutex poisons nothing.
pub struct PiMutex<T: ?Sized> {
    /// In a box of its own, because a `pthread_mutex_t` may not move.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: threads reach the value only through a guard, and there is one guard at a time.
unsafe impl<T: ?Sized + Send> Send for PiMutex<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: ?Sized + Send> Sync for PiMutex<T> {}

impl<T> PiMutex<T> {
    /// Makes an unlocked mutex.
    ///
    /// # Errors
    /// [`Error::System`] on kernels without `CONFIG_FUTEX_PI`.
    pub fn new(value: T) -> Result<PiMutex<T>, Error> {
        // SAFETY: pthread_mutex_init(3p): the attributes are initialised before they are used and destroyed after. The
        // mutex is in its box before it is initialised and stays there.
        unsafe {
            let raw = Box::new(UnsafeCell::new(std::mem::zeroed()));
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            checked("pthread_mutexattr_init", libc::pthread_mutexattr_init(&raw mut attributes))?;
            let made = checked(
                "pthread_mutexattr_setprotocol(PTHREAD_PRIO_INHERIT)",
                libc::pthread_mutexattr_setprotocol(
                    &raw mut attributes,
                    libc::PTHREAD_PRIO_INHERIT,
                ),
            )
            .and_then(|()| {
                // With this kind, locking twice returns an error and is no deadlock.
                let kind = libc::PTHREAD_MUTEX_ERRORCHECK;
                checked(
                    "pthread_mutexattr_settype",
                    libc::pthread_mutexattr_settype(&raw mut attributes, kind),
                )
            })
            .and_then(|()| {
                checked(
                    "pthread_mutex_init",
                    libc::pthread_mutex_init(raw.get(), &raw const attributes),
                )
            });
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            made.map(|()| PiMutex { raw, value: UnsafeCell::new(value) })
        }
    }
}

impl<T: ?Sized> PiMutex<T> {
    /// Waits until the mutex is free and takes it.
    ///
    /// # Panics
    /// If the calling thread holds the mutex already.
    pub fn lock(&self) -> PiGuard<'_, T> {
        // SAFETY: `new` initialised the mutex.
        let answer = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        assert_eq!(answer, 0, "PiMutex: this thread holds it already");
        PiGuard { mutex: self, thread: PhantomData }
    }

    /// Takes the mutex if it is free.
    pub fn try_lock(&self) -> Option<PiGuard<'_, T>> {
        // SAFETY: `new` initialised the mutex.
        let answer = unsafe { libc::pthread_mutex_trylock(self.raw.get()) };
        (answer == 0).then_some(PiGuard { mutex: self, thread: PhantomData })
    }
}

impl<T: ?Sized> Drop for PiMutex<T> {
    fn drop(&mut self) {
        // SAFETY: `new` initialised the mutex. A guard borrows the mutex, so nobody holds it. If somebody forgot a
        // guard, the call does nothing.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

/// The right to use the value of a [`PiMutex`]. It ends with the guard's scope, and stays in the thread that locked.
#[must_use = "the mutex is unlocked at once if the guard is not kept"]
pub struct PiGuard<'a, T: ?Sized> {
    mutex: &'a PiMutex<T>,
    /// Makes the guard not `Send`: only the thread that locked may unlock.
    thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives only a shared reference to the value.
unsafe impl<T: ?Sized + Sync> Sync for PiGuard<'_, T> {}

impl<T: ?Sized> Deref for PiGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for PiGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for PiGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
    }
}

/// A condition to wait for. The wait gives the [`PiMutex`] up. Wake-ups can be spurious, so wait in a loop.
///
/// This is a futex and not a `pthread_cond_t`, whose inner lock inherits no priority (glibc bug 11588). The kernel
/// wakes the waiter with the highest priority first.
#[derive(Debug, Default)]
pub struct PiCondvar {
    /// The number of notifications.
    notified: AtomicU32,
}

impl PiCondvar {
    /// Makes a condition for which nobody waits.
    pub const fn new() -> PiCondvar {
        PiCondvar { notified: AtomicU32::new(0) }
    }

    /// Gives the mutex up, sleeps until a notification comes, and takes the mutex again. A notification between the
    /// first two steps is not lost.
    pub fn wait<'a, T: ?Sized>(&self, guard: PiGuard<'a, T>) -> PiGuard<'a, T> {
        let seen = self.notified.load(Ordering::Relaxed);
        let mutex = guard.mutex;
        drop(guard);
        // Somebody notified since, or a signal interrupted the wait. The caller looks at its condition again.
        let _ = futex::wait(&self.notified, futex::Flags::PRIVATE, seen, None);
        mutex.lock()
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.notify(i32::MAX as u32);
    }

    fn notify(&self, threads: u32) {
        self.notified.fetch_add(1, Ordering::Relaxed);
        // The call fails for no address that is mapped.
        let _ = futex::wake(&self.notified, futex::Flags::PRIVATE, threads);
    }
}

fn checked(call: &'static str, answer: libc::c_int) -> Result<(), Error> {
    match answer {
        0 => Ok(()),
        errno => Err(Error::System { call, errno: Errno::from_raw_os_error(errno) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_never_hold_it_at_once() {
        let mutex = PiMutex::new(0u64).unwrap();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..10_000 {
                        let mut n = mutex.lock();
                        // This is not atomic, so a second holder would make counts go missing.
                        let read = std::hint::black_box(*n);
                        *n = read + 1;
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 40_000);
    }

    #[test]
    fn trying_does_not_wait_and_succeeds_once_it_is_free() {
        let mutex = PiMutex::new(()).unwrap();
        let held = mutex.lock();
        std::thread::scope(|s| {
            s.spawn(|| assert!(mutex.try_lock().is_none()));
        });
        drop(held);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    #[should_panic(expected = "holds it already")]
    fn locking_twice_is_a_panic_and_no_deadlock() {
        let mutex = PiMutex::new(()).unwrap();
        let _held = mutex.lock();
        let _again = mutex.lock();
    }

    #[test]
    fn a_value_that_is_handed_back_and_forth_arrives_every_time() {
        let turn = PiMutex::new(0u32).unwrap();
        let changed = PiCondvar::new();
        let play = |mine: u32| {
            for _ in 0..2_000 {
                let mut turn = turn.lock();
                while *turn % 2 != mine {
                    turn = changed.wait(turn);
                }
                *turn += 1;
                changed.notify_one();
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| play(0));
            s.spawn(|| play(1));
        });
        assert_eq!(*turn.lock(), 4_000);
    }

    #[test]
    fn everybody_who_waits_is_woken() {
        let open = PiMutex::new(false).unwrap();
        let changed = PiCondvar::new();
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    let mut open = open.lock();
                    while !*open {
                        open = changed.wait(open);
                    }
                });
            }
            *open.lock() = true;
            changed.notify_all();
        });
    }
}
