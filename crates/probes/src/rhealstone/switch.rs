// SPDX-License-Identifier: GPL-2.0-or-later
//! The components task switch and preemption.

use super::bench::{Bench, Partner};
use crate::RunError;
use crate::gate::Gate;
use rt::now;
use sample::{Monotonic, Stamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The thread beside the recording one. It takes stamps again and again until it is told to rest or to end.
#[derive(Default)]
struct Other {
    stamp_ns: AtomicU64,
    resting: AtomicBool,
    ended: AtomicBool,
    wake: Gate,
}

impl Other {
    fn stamp(&self) -> Stamp<Monotonic> {
        Stamp::from_ns(self.stamp_ns.load(Ordering::Relaxed))
    }

    /// Takes a stamp, then runs `between`, until the thread is told to end.
    fn run(&self, between: impl Fn()) {
        while !self.ended.load(Ordering::Relaxed) {
            if self.resting.load(Ordering::Relaxed) {
                self.wake.pass();
            }
            self.stamp_ns.store(now().ns(), Ordering::Relaxed);
            between();
        }
    }

    /// Lets this thread rest while `sleep` sleeps.
    fn rest(&self, sleep: impl FnOnce()) {
        self.resting.store(true, Ordering::Relaxed);
        sleep();
        self.resting.store(false, Ordering::Relaxed);
        self.wake.open();
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Two threads of one priority take turns by `sched_yield`. The length goes from before one thread's yield to the other
/// thread's return from its own yield. It has one system call left and entered, one switch, one reading of the clock.
pub(super) fn task_switch(bench: &mut Bench) -> Result<(), RunError> {
    bench.enter(0)?;
    let other = &Other::default();
    std::thread::scope(|threads| {
        threads.spawn(move || other.run(std::thread::yield_now));
        // The other thread's first turn. From here on it waits inside its yield.
        std::thread::yield_now();
        let done = bench.repeat(
            |bench, number| {
                let from = now();
                std::thread::yield_now();
                let to = other.stamp();
                // An earlier stamp means that the yield came back without a turn of the other thread.
                if to < from {
                    bench.miss()
                } else {
                    bench.record(number, from, &[(from, to)])
                }
                Ok(())
            },
            |pace| {
                other.rest(|| {
                    // Lets the other thread come to rest. Without this, the other one would go on yielding to nobody.
                    std::thread::yield_now();
                    pace.rest();
                });
                std::thread::yield_now();
            },
        );
        other.end();
        other.wake.open();
        done
    })
}

/// A thread loops in user space and reads the clock. In each turn it makes a thread of higher priority ready
/// (FUTEX_WAKE), which preempts it. The length goes from its last reading to the first reading of the higher thread. It
/// contains the system call that wakes, the scheduler and the switch. It contains no interrupt. Nobody sleeps, so each
/// repetition has an answer.
pub(super) fn preemption(bench: &mut Bench) -> Result<(), RunError> {
    let (ready, high) = (&Gate::default(), &Partner::default());
    bench.enter(0)?;
    std::thread::scope(|threads| {
        threads.spawn(move || {
            loop {
                ready.pass();
                let running = now();
                if high.has_ended() {
                    return;
                }
                high.answer(running, running);
            }
        });
        let placed = bench.enter(1);
        let done = placed.and_then(|()| {
            bench.repeat(
                |bench, number| {
                    let low = now();
                    ready.open();
                    if let Some((_, running)) = high.answered() {
                        bench.record(number, low, &[(low, running)]);
                    }
                    Ok(())
                },
                |pace| pace.rest(),
            )
        });
        high.end();
        ready.open();
        done
    })
}
