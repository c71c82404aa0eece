// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs several machines at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The content of a mutex that several workers share, also after one of them panicked: what they share is changed at
/// once, so it is whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` for each number below `count`, in their order and up to `jobs` of them at once, until one breaks. Work
/// that was begun by then still ends.
pub fn at_once(jobs: usize, count: usize, work: impl Fn(usize) -> ControlFlow<()> + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            if work(number).is_break() {
                next.store(count, Ordering::Relaxed);
            }
        }
    };
    let cancel = &work::Cancel::current();
    std::thread::scope(|threads| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            threads.spawn(|| cancel.during(worker));
        }
    });
}
