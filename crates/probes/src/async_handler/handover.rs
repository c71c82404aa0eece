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

/// The pause between two looks at whether the other thread is ready.
const START: Duration = Duration::from_micros(200);

/// Which thread runs where, and how often events come.
pub(super) struct Course {
    /// The CPU and the policy of the waiting thread.
    pub(super) receiver: (u32, Policy),
    /// The CPU and the policy of the sending thread, which is the calling thread.
    pub(super) sender: (u32, Policy),
    pub(super) period: Nanos,
    pub(super) count: u64,
}

/// The state that the two threads share.
#[derive(Default)]
struct Event {
    /// The receiver's thread number, once it has one.
    receiver: AtomicI32,
    /// The number of waits that the receiver has begun.
    waits: AtomicU64,
    /// The number of events that were sent.
    sent: AtomicU64,
    /// The number of the event that was sent last.
    number: AtomicU64,
    /// When that event was sent, on CLOCK_MONOTONIC.
    sent_ns: AtomicU64,
    /// Events that were not sent because the receiver did not wait. The receiver reports them.
    skipped: AtomicU64,
    /// Whether the sender will send no more.
    ended: AtomicBool,
    /// Whether the receiver will receive no more.
    left: AtomicBool,
}

/// Runs the course. The calling thread sends the events. Each event becomes a sample or is counted. An event is counted
/// as superseded if the receiver did not yet wait for it.
///
/// # Errors
/// The mechanism, the scheduler or `/proc` refuses something.
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

/// Tells the receiver that nothing more comes. It first waits until the receiver can be told.
fn end<H: Handover>(mechanism: &H, event: &Event) {
    while event.waits.load(Ordering::Acquire) == 0 && !event.left.load(Ordering::Acquire) {
        std::thread::sleep(START);
    }
    event.ended.store(true, Ordering::Release);
    mechanism.prepare();
    // This fails only if the receiver has already left.
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

/// When event `number` is due. The first event is due a period after the start, so the receiver has time to settle.
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
        // Nobody knows how late these would have been: the receiver may have been kept away after it read the clock,
        // and then no sample bounds them.
        record.loss(Loss::Overrun, event.skipped.swap(0, Ordering::Relaxed));
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
