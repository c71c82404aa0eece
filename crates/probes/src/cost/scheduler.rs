// SPDX-License-Identifier: GPL-2.0-or-later
//! How long the kernel takes to pick the next task and to switch to it, by how many tasks are ready (the fixed-cost
//! scheduler of the papers of 2002 and 2006). The tasks are threads of one process, so no address space is switched
//! among them.
//!
//! SCHED_OTHER and SCHED_FIFO: so many tasks yield in turn. This process is above them and sleeps meanwhile; the task
//! that has the last turn wakes it. A sleep with one turn is taken away.
//!
//! SCHED_DEADLINE, where a yield gives up the whole period: this process and another one, both with early deadlines,
//! hand a token to and fro, while the other tasks, with late deadlines, are ready and never run. They run after the
//! batch, and sleep until the next one makes them ready.

use super::Suite::Scheduler;
use super::bench::{Work, answered, empty};
use super::locks::{Shared, futex, wait, wake};
use super::partner::Partner;
use super::place::Place;
use super::row::Row;
use rt::Policy;
use sample::Nanos;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, scope, sleep};
use std::time::{Duration, Instant};

/// Yields of a batch: whole rounds of each number of tasks.
const YIELDS: u32 = 4_000;
/// Switches of a batch by the token.
const HANDOVERS: u32 = 400;

pub(super) static ROWS: [Row; 12] = [
    yields("switch_other_2", |_| Yields::start(2, Policy::Other(0))),
    yields("switch_other_10", |_| Yields::start(10, Policy::Other(0))),
    yields("switch_other_100", |_| Yields::start(100, Policy::Other(0))),
    yields("switch_other_1000", |_| Yields::start(1_000, Policy::Other(0))),
    yields("switch_fifo_2", |_| Yields::start(2, Policy::Fifo(FIFO))),
    yields("switch_fifo_10", |_| Yields::start(10, Policy::Fifo(FIFO))),
    yields("switch_fifo_100", |_| Yields::start(100, Policy::Fifo(FIFO))),
    yields("switch_fifo_1000", |_| Yields::start(1_000, Policy::Fifo(FIFO))),
    token("switch_deadline_2", |_| Token::start(2)),
    token("switch_deadline_10", |_| Token::start(10)),
    token("switch_deadline_100", |_| Token::start(100)),
    token("switch_deadline_1000", |_| Token::start(1_000)),
];

const fn yields(name: &'static str, make: fn(&Place) -> io::Result<Box<dyn Work>>) -> Row {
    Row::time((Scheduler, name), "sched_yield to the next of so many ready tasks", YIELDS, make)
}

const fn token(name: &'static str, make: fn(&Place) -> io::Result<Box<dyn Work>>) -> Row {
    Row::time(
        (Scheduler, name),
        "a switch to a woken task above the other ready ones",
        HANDOVERS,
        make,
    )
}

/// The priority of ready FIFO tasks: below the kernel's threads.
const FIFO: u8 = 10;
/// The priority of this process, above all tasks that yield.
const ABOVE: Policy = Policy::Fifo(90);
/// Early deadlines, of which two take less than half of the CPU.
const EARLY: Policy = Policy::Deadline {
    runtime: Nanos::from_millis(200),
    deadline: Nanos::from_millis(1_000),
    period: Nanos::from_millis(1_000),
};
/// Late deadlines: about the longest period that the kernel allows (sched_deadline_period_max_us). A thousand take a
/// quarter of the CPU. The run time is far above what a row needs.
const LATE: Policy = Policy::Deadline {
    runtime: Nanos::from_millis(1),
    deadline: Nanos::from_millis(4_000),
    period: Nanos::from_millis(4_000),
};

/// The words that all share. How many tasks are there; how often they were let go; what is left of their turns; whether
/// the last turn was; how many had theirs; whether a task was refused its policy; the token, here and there.
const READY: usize = 0;
const GATE: usize = 1;
const LEFT: usize = 2;
const DONE: usize = 3;
const SEEN: usize = 4;
const REFUSED: usize = 5;
const HERE: usize = 6;
const THERE: usize = 7;

type Words = [AtomicU32; Shared::WORDS];

/// A task's stack, of which it uses a page.
const STACK_BYTES: usize = 64 * 1024;
/// A slow machine starts a thousand threads in far less.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

/// Starts a process with `tasks` threads under `policy`, and waits until all of them wait at the gate.
fn crowd(
    shared: &Shared,
    tasks: u32,
    policy: Policy,
    body: fn(&Words, u32),
) -> io::Result<Partner> {
    let partner = Partner::start(|| {
        let words = shared.words();
        let task = || {
            if rt::apply(policy).is_err() {
                words[REFUSED].store(1, Ordering::Release);
                return;
            }
            words[READY].fetch_add(1, Ordering::Release);
            body(words, tasks);
        };
        scope(|s| {
            for _ in 0..tasks {
                if Builder::new().stack_size(STACK_BYTES).spawn_scoped(s, task).is_err() {
                    words[REFUSED].store(1, Ordering::Release);
                }
            }
        });
    })?;
    let words = shared.words();
    let since = Instant::now();
    while words[READY].load(Ordering::Acquire) < tasks {
        if words[REFUSED].load(Ordering::Acquire) != 0 {
            return Err(io::Error::other("a thread was refused, or refused its policy"));
        }
        if since.elapsed() > STARTED_WITHIN {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(Duration::from_millis(1));
    }
    Ok(partner)
}

/// Waits at the gate until it is opened once more.
fn pass(gate: &AtomicU32, passed: &mut u32) {
    while gate.load(Ordering::Acquire) == *passed {
        // The loop looks again, whatever the answer.
        let _ = futex(gate, libc::FUTEX_WAIT, *passed);
    }
    *passed = gate.load(Ordering::Acquire);
}

fn open(gate: &AtomicU32) -> io::Result<()> {
    gate.fetch_add(1, Ordering::Release);
    futex(gate, libc::FUTEX_WAKE, i32::MAX as u32).map(drop)
}

/// This thread under another policy, until this is dropped.
struct Under(libc::sched_attr);

impl Under {
    fn take(policy: Policy) -> io::Result<Under> {
        // SAFETY: the structure consists of integers.
        let mut before: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: there is room for so many bytes. Thread 0 is the caller.
        answered(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut before, size, 0) })?;
        let refused = |e: rt::Error| io::Error::new(io::ErrorKind::PermissionDenied, e.to_string());
        rt::apply(policy).map(|()| Under(before)).map_err(refused)
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        // SAFETY: the kernel filled the structure. Nobody is refused the policy that he had.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw mut self.0, 0) };
    }
}

/// Tasks that yield in turn. The fields end in this order: the tasks first, then the policy above them.
struct Yields {
    _tasks: Partner,
    _above: Under,
    shared: Shared,
}

impl Yields {
    fn start(tasks: u32, policy: Policy) -> io::Result<Box<dyn Work>> {
        // A refusal here has a reason and a remedy, which one of a thread has not.
        drop(Under::take(ABOVE)?);
        let shared = Shared::map()?;
        let tasks = crowd(&shared, tasks, policy, |words, _| {
            pass(&words[GATE], &mut 0);
            loop {
                if words[LEFT].fetch_sub(1, Ordering::Relaxed) == 1 {
                    let _ = wake(&words[DONE]);
                }
                std::thread::yield_now();
            }
        })?;
        let above = Under::take(ABOVE)?;
        open(&shared.words()[GATE])?;
        Ok(Box::new(Yields { _tasks: tasks, _above: above, shared }))
    }
}

impl Work for Yields {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        let words = self.shared.words();
        words[LEFT].store(if part == 0 { ops + 1 } else { 1 }, Ordering::Release);
        wait(&words[DONE])
    }
}

/// A pair of tasks above others that are ready. The fields end in this order.
struct Token {
    others: Option<Partner>,
    _pair: Partner,
    _early: Under,
    shared: Shared,
}

impl Token {
    fn start(tasks: u32) -> io::Result<Box<dyn Work>> {
        // A refusal here has a reason and a remedy, which one of a thread has not.
        drop(Under::take(EARLY)?);
        let shared = Shared::map()?;
        let others = match tasks - 2 {
            0 => None,
            others => Some(crowd(&shared, others, LATE, |words, others| {
                let mut passed = 0;
                loop {
                    pass(&words[GATE], &mut passed);
                    if words[SEEN].fetch_add(1, Ordering::AcqRel) + 1 == others {
                        let _ = wake(&words[DONE]);
                    }
                }
            })?),
        };
        shared.words()[READY].store(0, Ordering::Release);
        let pair = crowd(&shared, 1, EARLY, |words, _| {
            while wait(&words[THERE]).and_then(|()| wake(&words[HERE])).is_ok() {}
        })?;
        Ok(Box::new(Token { others, _pair: pair, _early: Under::take(EARLY)?, shared }))
    }
}

impl Work for Token {
    /// Makes the others ready. They do not run, since this process has the earlier deadline.
    fn before(&mut self, _ops: u32) -> io::Result<()> {
        let words = self.shared.words();
        words[SEEN].store(0, Ordering::Release);
        if self.others.is_some() { open(&words[GATE]) } else { Ok(()) }
    }

    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        let words = self.shared.words();
        if part > 0 {
            empty(ops / 2);
            return Ok(());
        }
        for _ in 0..ops / 2 {
            wake(&words[THERE])?;
            wait(&words[HERE])?;
        }
        Ok(())
    }

    /// Lets the others run, and sleep again.
    fn after(&mut self, _ops: u32) -> io::Result<()> {
        if self.others.is_some() { wait(&self.shared.words()[DONE]) } else { Ok(()) }
    }
}
