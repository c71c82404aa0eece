// SPDX-License-Identifier: GPL-2.0-or-later
//! The components semaphore shuffle, deadlock breaking and message passing: one thread holds or sends, and a thread of
//! higher priority takes.

use super::bench::{Bench, Partner};
use crate::async_handler::Handover;
use crate::gate::Gate;
use crate::{RunError, failure};
use rt::{PiMutex, now};
use std::sync::atomic::{AtomicBool, Ordering};

/// The high thread asks for a semaphore that the low thread holds. The length is the time from the request until the
/// low thread runs, and from its release until the high one has the semaphore. Its own time does not count.
pub(super) fn semaphore_shuffle<S: Handover>(
    bench: &mut Bench,
    semaphore: &S,
) -> Result<(), RunError> {
    let (start, high) = (&Gate::default(), &Partner::default());
    let failed = failure::system("the semaphore");
    semaphore.tell().map_err(&failed)?;
    bench.enter(0)?;
    std::thread::scope(|threads| {
        let failed = &failed;
        let partner = threads.spawn(move || {
            high.run(|| {
                loop {
                    start.pass();
                    if high.has_ended() {
                        return Ok(());
                    }
                    let asked = now();
                    let got = semaphore.wait().map_err(failed)?;
                    semaphore.tell().map_err(failed)?;
                    high.answer(asked, got);
                }
            })
        });
        let placed = bench.enter(1);
        let done = placed.and_then(|()| {
            bench.repeat(
                |bench, number| {
                    semaphore.wait().map_err(failed)?;
                    start.open();
                    let own = now();
                    let release = now();
                    semaphore.tell().map_err(failed)?;
                    if let Some((asked, got)) = high.answered() {
                        bench.record(number, asked, &[(asked, own), (release, got)]);
                    }
                    Ok(())
                },
                |pace| pace.rest(),
            )
        });
        high.end();
        start.open();
        joined(partner).and(done)
    })
}

/// The high thread asks for a mutex that the low thread holds. A middle thread that is ready keeps the low one from
/// running, and priority inheritance resolves this. The low thread's own work does not count ([`semaphore_shuffle`]).
pub(super) fn deadlock_breaking(bench: &mut Bench) -> Result<(), RunError> {
    let (mutex, high) = (&PiMutex::new(())?, &Partner::default());
    let (start_middle, start_high) = (&Gate::default(), &Gate::default());
    let (broken, resolved) = (&AtomicBool::new(false), &AtomicBool::new(false));
    bench.enter(0)?;
    std::thread::scope(|threads| {
        threads.spawn(move || {
            loop {
                start_high.pass();
                if high.has_ended() {
                    return;
                }
                let asked = now();
                let guard = mutex.lock();
                let got = now();
                drop(guard);
                resolved.store(true, Ordering::Relaxed);
                high.answer(asked, got);
            }
        });
        let placed = bench.enter(1);
        threads.spawn(move || {
            loop {
                start_middle.pass();
                if high.has_ended() {
                    return;
                }
                start_high.open();
                // Without priority inheritance, this thread runs before the high thread has the mutex.
                broken.store(!resolved.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        let done = placed.and_then(|()| bench.enter(2)).and_then(|()| {
            bench.repeat(
                |bench, number| {
                    resolved.store(false, Ordering::Relaxed);
                    let guard = mutex.lock();
                    start_middle.open();
                    let own = now();
                    let release = now();
                    drop(guard);
                    match high.answered() {
                        Some((asked, got)) if !broken.load(Ordering::Relaxed) => {
                            bench.record(number, asked, &[(asked, own), (release, got)]);
                        }
                        _ => bench.taint(),
                    }
                    Ok(())
                },
                |pace| pace.rest(),
            )
        });
        high.end();
        start_middle.open();
        start_high.open();
        done
    })
}

/// The low thread sends a message to the waiting high thread. The length goes from before sending to after receiving.
pub(super) fn message_passing<Q: Handover>(bench: &mut Bench, queue: &Q) -> Result<(), RunError> {
    let high = &Partner::default();
    let failed = &failure::system("the message queue");
    bench.enter(0)?;
    std::thread::scope(|threads| {
        let partner = threads.spawn(move || {
            high.run(|| {
                loop {
                    let got = queue.wait().map_err(failed)?;
                    if high.has_ended() {
                        return Ok(());
                    }
                    high.answer(got, got);
                }
            })
        });
        let placed = bench.enter(1);
        let done = placed.and_then(|()| {
            bench.repeat(
                |bench, number| {
                    let sent = now();
                    queue.tell().map_err(failed)?;
                    if let Some((_, got)) = high.answered() {
                        bench.record(number, sent, &[(sent, got)]);
                    }
                    Ok(())
                },
                |pace| pace.rest(),
            )
        });
        high.end();
        let told = queue.tell().map_err(failed);
        joined(partner).and(done).and(told)
    })
}

fn joined(partner: std::thread::ScopedJoinHandle<Result<(), RunError>>) -> Result<(), RunError> {
    partner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
