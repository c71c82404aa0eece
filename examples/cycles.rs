// SPDX-License-Identifier: GPL-2.0-or-later
// A control loop of 1 ms that reports its cycles (docs/own-program.md). Build: rustc -O examples/cycles.rs
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::{ptr, slice, thread, time::Duration};

#[repr(C)]
struct Timespec(i64, i64);
unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut AtomicU64;
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// CLOCK_MONOTONIC in nanoseconds.
fn now() -> u64 {
    let mut time = Timespec(0, 0);
    // SAFETY: the time is written to, and nothing else.
    unsafe { clock_gettime(1, &mut time) };
    time.0 as u64 * 1_000_000_000 + time.1 as u64
}

fn main() {
    const PERIOD_NS: u64 = 1_000_000;
    let file = std::env::var("ONSET_CYCLES").ok().and_then(|number| number.parse().ok()).expect("onset starts it");
    // SAFETY: the memory behind the descriptor is so long: PROT_READ | PROT_WRITE, MAP_SHARED.
    let page = unsafe { slice::from_raw_parts(mmap(ptr::null_mut(), 64 + 8192 * 32, 3, 1, file, 0), 8 + 8192 * 4) };
    let capacity = page[1].load(Relaxed);
    let mut release = now() + PERIOD_NS;
    for number in 0.. {
        thread::sleep(Duration::from_nanos(release.saturating_sub(now())));
        let start = now();
        // The work comes here.
        let place = 8 + 4 * (number % capacity) as usize;
        let cycle = [number, release, start, now()];
        cycle.iter().zip(&page[place..]).for_each(|(value, word)| word.store(*value, Relaxed));
        page[0].store(number + 1, Release);
        release += PERIOD_NS;
    }
}
