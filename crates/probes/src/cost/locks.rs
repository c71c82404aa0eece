// SPDX-License-Identifier: GPL-2.0-or-later
//! Futexes, and the mutex of the C library that is made of them.

use super::Suite::Ipc;
use super::bench::{Work, answered, each};
use super::partner::{self, Partner};
use super::place::Place;
use super::row::Row;
use crate::pthread::PlainMutex;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) static ROWS: [Row; 6] = [
    Row::time((Ipc, "mutex"), "pthread mutex locked and unlocked, free", 5_000, mutex),
    Row::time((Ipc, "futex_wake"), "FUTEX_WAKE with nobody waiting", 1_000, wake_nobody),
    Row::time((Ipc, "futex_round_trip"), "a process woken, and this one by it", 200, contended),
    Row::time((Ipc, "futex_pi"), "FUTEX_LOCK_PI and FUTEX_UNLOCK_PI, free", 500, priority),
    Row::time(
        (Ipc, "futex_contended"),
        "a lock handed to a process that sleeps, and back",
        100,
        |_| Between::start::<Plain>(),
    ),
    Row::time(
        (Ipc, "futex_pi_contended"),
        "the same by FUTEX_LOCK_PI and FUTEX_UNLOCK_PI",
        100,
        |_| Between::start::<Inheriting>(),
    ),
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
        futex(word, libc::FUTEX_WAIT, 0).map(drop).or_else(again)?;
    }
    Ok(())
}

/// Whether to wait again after this error of FUTEX_WAIT.
fn again(e: io::Error) -> io::Result<()> {
    match e.raw_os_error() {
        Some(libc::EAGAIN) => Ok(()),
        Some(libc::EINTR) if !partner::has_ended() => Ok(()),
        _ => Err(e),
    }
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

/// A lock that goes to and fro between two processes. The one that has it hands it over only when the other one waits.
trait Lock {
    /// Hands the lock over.
    fn unlock(lock: &AtomicU32, me: u32) -> io::Result<()>;

    /// Sleeps in the kernel until the lock is handed over.
    fn lock(lock: &AtomicU32, me: u32) -> io::Result<()>;
}

/// The number of the process that has the lock, and whether the other one sleeps.
struct Plain;

/// The bit of a process that sleeps, as the kernel has it in words of PI futexes.
const SLEEPS: u32 = libc::FUTEX_WAITERS;

impl Lock for Plain {
    fn unlock(lock: &AtomicU32, me: u32) -> io::Result<()> {
        match lock.swap(1 - me, Ordering::AcqRel) & SLEEPS {
            0 => Ok(()),
            _ => futex(lock, libc::FUTEX_WAKE, 1).map(drop),
        }
    }

    fn lock(lock: &AtomicU32, me: u32) -> io::Result<()> {
        loop {
            let word = lock.load(Ordering::Acquire);
            if word & !SLEEPS == me {
                return Ok(());
            }
            let sleeps = word | SLEEPS;
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            if lock.compare_exchange(word, sleeps, order.0, order.1).is_ok() {
                futex(lock, libc::FUTEX_WAIT, sleeps).map(drop).or_else(again)?;
            }
        }
    }
}

/// The kernel itself hands such a lock to the process that waits for it.
struct Inheriting;

impl Lock for Inheriting {
    fn unlock(lock: &AtomicU32, _me: u32) -> io::Result<()> {
        futex(lock, libc::FUTEX_UNLOCK_PI, 0).map(drop)
    }

    fn lock(lock: &AtomicU32, _me: u32) -> io::Result<()> {
        futex(lock, libc::FUTEX_LOCK_PI, 0).map(drop)
    }
}

/// As long as this lives, this process and those that it starts do not preempt the process that wakes them (sched(7),
/// SCHED_BATCH; under a real-time policy they do not anyway). A process that did would find nobody who waits.
struct Batch {
    is_changed: bool,
}

impl Batch {
    fn begin() -> io::Result<Batch> {
        // SAFETY: this is a plain system call.
        let policy = answered(unsafe { libc::sched_getscheduler(0) })?;
        let is_changed = policy == i64::from(libc::SCHED_OTHER);
        if is_changed {
            Batch::become_one(libc::SCHED_BATCH)?;
        }
        Ok(Batch { is_changed })
    }

    fn become_one(policy: libc::c_int) -> io::Result<()> {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameter outlives the call.
        answered(unsafe { libc::sched_setscheduler(0, policy, &none) }).map(drop)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.is_changed {
            // It is always allowed.
            let _ = Batch::become_one(libc::SCHED_OTHER);
        }
    }
}

/// The lock between this process (0) and its partner (1).
struct Between<'a> {
    lock: &'a AtomicU32,
    /// How often each has asked for the lock, and has had it.
    asked: [&'a AtomicU32; 2],
    had: [&'a AtomicU32; 2],
}

impl<'a> Between<'a> {
    fn of(words: &'a [AtomicU32; Shared::WORDS]) -> Between<'a> {
        let [lock, asked, other_asked, had, other_had, ..] = words;
        Between { lock, asked: [asked, other_asked], had: [had, other_had] }
    }

    fn start<L: Lock>() -> io::Result<Box<dyn Work>> {
        let shared = Shared::map()?;
        let batch = Batch::begin()?;
        let [lock, ..] = shared.words();
        // Nobody has it, or process 0.
        L::lock(lock, 0)?;
        let partner = Partner::start(|| {
            let between = Between::of(shared.words());
            if between.lock::<L>(1).is_ok() {
                while between.hand_over::<L>(1).is_ok() {}
            }
        })?;
        each(move || {
            let _ = (&partner, &batch);
            Between::of(shared.words()).hand_over::<L>(0)
        })
    }

    /// Waits for the lock.
    fn lock<L: Lock>(&self, me: usize) -> io::Result<()> {
        let turn = self.had[me].load(Ordering::Relaxed) + 1;
        self.asked[me].store(turn, Ordering::Release);
        L::lock(self.lock, me as u32)?;
        self.had[me].store(turn, Ordering::Release);
        Ok(())
    }

    /// Hands the lock over to the other process, and has it again at the end.
    ///
    /// If the process that was woken runs before the other one waits (a tick came between, or another CPU), it stands
    /// back until the other has asked, and hands over again if the other was not yet in the kernel.
    fn hand_over<L: Lock>(&self, me: usize) -> io::Result<()> {
        let other = 1 - me;
        let had = self.had[other].load(Ordering::Acquire);
        while self.asked[other].load(Ordering::Acquire) == had {
            stand_back()?;
        }
        loop {
            L::unlock(self.lock, me as u32)?;
            self.lock::<L>(me)?;
            if self.had[other].load(Ordering::Acquire) != had {
                return Ok(());
            }
            stand_back()?;
        }
    }
}

/// Lets others run. Fails if nobody is there any more.
fn stand_back() -> io::Result<()> {
    partner::check()?;
    // SAFETY: this is a plain system call.
    answered(unsafe { libc::sched_yield() }).map(drop)
}
