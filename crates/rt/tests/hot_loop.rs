// SPDX-License-Identifier: GPL-2.0-or-later
//! What runs once per period allocates nothing and takes no page fault: counted, by the allocator and by the kernel.

use rt::{Overrun, PiCondvar, PiMutex, PreciseSleep, Release, SystemClock, Usage};
use sample::Nanos;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and page faults of this thread while `run` runs. What runs for the first time may still be fetched from
/// the program's file where memory cannot be locked, so it runs twice.
fn counted(mut run: impl FnMut()) -> (u64, u64) {
    if let Err(e) = rt::lock_memory() {
        println!("{e}");
    }
    rt::prefault_stack();
    run();
    let before = (ALLOCATIONS.get(), Usage::of_thread());
    run();
    let after = (ALLOCATIONS.get(), Usage::of_thread());
    (after.0 - before.0, after.1.since(&before.1).page_faults())
}

#[test]
fn the_allocator_of_this_test_does_count() {
    let (allocations, _) = counted(|| drop(std::hint::black_box(vec![1u8; 100])));
    assert_eq!(allocations, 1);
}

#[test]
fn periodic_release_neither_allocates_nor_faults_under_any_overrun_policy() {
    for overrun in [Overrun::Skip, Overrun::CatchUp, Overrun::Stop] {
        let counts = counted(|| {
            let mut release = Release::new(rt::now() + Nanos(100_000), Nanos(100_000), overrun);
            (0..100).for_each(|_| _ = std::hint::black_box(release.wait(&SystemClock)));
        });
        assert_eq!(counts, (0, 0), "{overrun:?}");
    }
}

#[test]
fn precise_sleep_neither_allocates_nor_faults() {
    let mut sleep = PreciseSleep::calibrate(&SystemClock, Nanos::from_micros(100));
    let counts = counted(|| {
        for _ in 0..100 {
            let due = rt::now() + Nanos(200_000);
            assert!(sleep.sleep_until(&SystemClock, due) >= due);
        }
    });
    assert_eq!(counts, (0, 0));
}

#[test]
fn locking_migrating_and_notifying_neither_allocate_nor_fault() {
    let (mutex, changed) = (PiMutex::new(0u64).unwrap(), PiCondvar::new());
    let cpus = rt::allowed_cpus().unwrap();
    let counts = counted(|| {
        for cpu in cpus.iter().cycle().take(100) {
            *mutex.lock() += 1;
            changed.notify_all();
            rt::pin(*cpu).unwrap();
        }
    });
    assert_eq!(counts, (0, 0));
    assert_eq!(*mutex.lock(), 200);
}
