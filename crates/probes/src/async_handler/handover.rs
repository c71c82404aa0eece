// SPDX-License-Identifier: GPL-2.0-or-later
//! One series of the probe `async`: one thread hands events to a waiting thread, one in each period.

use super::mechanism::Handover;
use crate::recorder::Recorder;
use crate::sleeper::Sleeper;
use crate::threads::become_measuring;
use crate::{RunError, failure};
use rt::{Clock, Policy, SystemClock, Usage, now};
use rustix::thread::Pid;
use sample::{Loss, Monotonic, Nanos, Stamp};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// How long to sleep before looking again whether the other thread is there.
const START: Duration = Duration::from_micros(200);

/// Who runs where, and how often.
pub(super) struct Course {
    /// CPU and policy of the waiting thread.
    pub(super) receiver: (u32, Policy),
    /// CPU and policy of the telling thread, which is the calling one.
    pub(super) sender: (u32, Policy),
    pub(super) period: Nanos,
    pub(super) count: u64,
}

/// What the two threads know of each other.
#[derive(Default)]
struct Event {
    /// The receiver's number in the system, once it has one.
    receiver: AtomicI32,
    /// How many waits the receiver has begun.
    waits: AtomicU64,
    /// How many events were sent …
    sent: AtomicU64,
    /// … with which number the last one …
    number: AtomicU64,
    /// … and when, on CLOCK_MONOTONIC.
    sent_ns: AtomicU64,
    /// Events that were not sent because the receiver did not wait; the receiver reports them.
    skipped: AtomicU64,
    /// The sender sends no more.
    ended: AtomicBool,
    /// The receiver receives no more.
    left: AtomicBool,
}

/// Runs the course; the calling thread is the telling one. Each event is a sample or is counted: as superseded where
/// the receiver did not yet wait for it.
///
/// # Errors
/// What the mechanism, the scheduler or `/proc` refuses.
pub(super) fn measure<H: Handover>(
    mechanism: &H,
    course: &Course,
    record: &mut Recorder,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let event = &Event::default();
    std::thread::scope(|threads| {
        let receiver = threads.spawn(move || {
            let received = receive(mechanism, course, event, record);
            event.left.store(true, Ordering::Release);
            received
        });
        let sent = send(mechanism, course, event, stop);
        end(mechanism, event);
        match receiver.join() {
            Ok(received) => received.and(sent),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Tells the receiver that nothing more comes; not before it can be told.
fn end<H: Handover>(mechanism: &H, event: &Event) {
    while event.waits.load(Ordering::Acquire) == 0 && !event.left.load(Ordering::Acquire) {
        std::thread::sleep(START);
    }
    event.ended.store(true, Ordering::Release);
    mechanism.prepare();
    // Fails only where the receiver has left already.
    let _ = mechanism.tell();
}

fn send<H: Handover>(
    mechanism: &H,
    course: &Course,
    event: &Event,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    become_measuring(course.sender.1, Some(course.sender.0))?;
    while event.waits.load(Ordering::Acquire) == 0 {
        if event.left.load(Ordering::Acquire) {
            return Ok(());
        }
        std::thread::sleep(START);
    }
    let receiver = Pid::from_raw(event.receiver.load(Ordering::Acquire));
    let sleeper = match receiver {
        Some(receiver) => Sleeper::of(receiver).map_err(failure::system("the receiver's state"))?,
        None => return Ok(()),
    };
    let start = now();
    let mut sent = 0;
    for number in 0..course.count {
        let gone = stop.load(Ordering::Relaxed) || event.left.load(Ordering::Relaxed);
        let Some(due) = due(start, course.period, number).filter(|_| !gone) else { break };
        SystemClock.sleep_until(due);
        if event.waits.load(Ordering::Acquire) != sent + 1 || !sleeper.sleeps() {
            event.skipped.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        mechanism.prepare();
        sent += 1;
        event.number.store(number, Ordering::Relaxed);
        event.sent.store(sent, Ordering::Relaxed);
        event.sent_ns.store(now().ns(), Ordering::Release);
        mechanism.tell().map_err(failure::system("telling the receiver"))?;
    }
    Ok(())
}

/// When event `number` is due: the first one a period after the start, so that the receiver had time to settle.
fn due(start: Stamp<Monotonic>, period: Nanos, number: u64) -> Option<Stamp<Monotonic>> {
    start.checked_add(period.checked_mul(number.checked_add(1)?)?)
}

fn receive<H: Handover>(
    mechanism: &H,
    course: &Course,
    event: &Event,
    record: &mut Recorder,
) -> Result<(), RunError> {
    become_measuring(course.receiver.1, Some(course.receiver.0))?;
    mechanism.enter().map_err(failure::system("the receiver"))?;
    event.receiver.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    let before = Usage::of_thread();
    let mut received = 0;
    loop {
        event.waits.store(received + 1, Ordering::Release);
        let woken = mechanism.wait().map_err(failure::system("waiting for the sender"))?;
        let sent_at = Stamp::from_ns(event.sent_ns.load(Ordering::Acquire));
        let sent = event.sent.load(Ordering::Relaxed);
        record.loss(Loss::Superseded, event.skipped.swap(0, Ordering::Relaxed));
        if sent > received {
            received = sent;
            record.sample(event.number.load(Ordering::Relaxed), sent_at, woken.since(sent_at));
        } else if event.ended.load(Ordering::Acquire) {
            record.loop_ended(&before);
            return Ok(());
        } else {
            record.loss(Loss::Spurious, 1);
        }
    }
}
