// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `cycles`: the user's own program, which sleeps and works in cycles. The program reports when each cycle was
//! due (its release), when it began and when its work was done, through a page that it shares with the probe
//! (`wire::cycles`). So the probe judges how late the program began, how long it took, and when its answer was there.
//!
//! The probe believes the program's times; it checks only that they follow each other and have passed. It does not see
//! what the program waited for. The program costs nothing for the report but writing 40 bytes to memory.

use crate::definition::{Definition, Key, Measure, events, times};
use crate::ladder::aside;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::report::{Report, RunError};
use crate::run::{check_count, check_time};
use crate::{Output, failure};
use rt::{Policy, now};
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use sample::{Loss, Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::cycles::{BYTES, Cycle, Cycles as Ring, VARIABLE};

/// The series, in the order of their numbers.
const SERIES: [&str; 3] = ["start", "computation", "response"];
/// How often the probe looks for new cycles.
const LOOK: Duration = Duration::from_millis(10);
/// How long the probe waits for the first cycle, and from one cycle to the next beyond the period.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the program has to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(1);

pub(crate) const DEFINITION: Definition = Definition {
    name: "cycles",
    about: "How late your own program begins its cycles, and how long it takes for them",
    keys: &[
        Key::period(
            "The period of the program's cycles. The probe plans its time by it, and the program keeps its own.",
        ),
        Key::count("How many cycles the probe takes."),
    ],
    examples: [
        "onset measure cycles --period 1ms --count 60000 -- ./my-loop",
        "onset measure cycles --policy fifo:80 --cpus 1 --limit response.max=500us -- ./my-loop --gain 2",
    ],
};

/// The probe's part of a plan. The series are `start` (from the release to the start of a cycle), `computation` (from
/// the start to the end) and `response` (from the release to the end).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycles {
    /// The time from one release to the next, as the user says.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// The number of cycles.
    pub count: u64,
}

impl Measure for Cycles {
    fn series(&self, _plan: &Plan) -> Vec<String> {
        SERIES.map(String::from).to_vec()
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, 1)
    }

    fn events(&self) -> u64 {
        events(self.count, SERIES.len())
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        Some(self.period)
    }

    /// Starts the program with the plan's policy on the plan's CPUs, and one thread beside it that reads. `at` counts
    /// from the first release.
    ///
    /// # Errors
    /// If there is no program, if it cannot be started, reports nothing, or ends with a failure.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_count(self.count)?;
        check_time("period_ns", self.period)?;
        let output = &mut outputs[0];
        let command = plan.program.as_deref().filter(|command| !command.is_empty());
        let command =
            command.ok_or_else(|| failure::plan("program", "there is none; name yours"))?;
        let shared = Shared::new().map_err(|e| failure::system("memfd_create")(e.into()))?;
        std::thread::scope(|threads| {
            let apart = threads.spawn(|| {
                aside()?;
                // The program reads the size of the ring, so that the ring is made first.
                let mut ring = Ring::new(shared.words());
                let mut running = Running::start(command, plan, &shared)?;
                let mut seen =
                    Seen { probe: self, output, origin: None, first: 0, next: 0, cycles: 0 };
                let mut report = follow(&mut running, &mut seen, &mut ring, stop)?;
                report.add("cycles", seen.cycles);
                Ok(report)
            });
            apart.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Takes cycles until there are enough, the program ends, or `stop` is set.
fn follow(
    running: &mut Running,
    seen: &mut Seen<'_>,
    ring: &mut Ring<'_>,
    stop: &AtomicBool,
) -> Result<Report, RunError> {
    let patience = PATIENCE + Duration::from_nanos(seen.probe.period.0);
    let mut last = Instant::now();
    loop {
        // Asked before the ring is read, so that the last cycles of a program that has ended are taken.
        let ended = running.ended()?;
        let before = seen.cycles;
        let dropped = ring.take(|cycle| seen.take(cycle)).map_err(|_| {
            failure::unavailable(
                &running.name,
                "it counts its cycles backwards; docs/own-program.md has the layout of its page",
            )
        })?;
        seen.lose(Loss::Dropped, dropped);
        if seen.cycles > before {
            last = Instant::now();
        }
        if seen.are_all() || stop.load(Ordering::Relaxed) {
            running.end();
            return Ok(Report::default());
        }
        if let Some(status) = ended {
            return match status.success() && seen.cycles > 0 {
                true => {
                    seen.lose(Loss::Unanswered, seen.probe.count - seen.next);
                    Ok(Report::default())
                }
                false => Err(running.failed(status, seen.cycles)),
            };
        }
        if last.elapsed() > patience {
            return Err(running.silent(seen.cycles, patience));
        }
        std::thread::sleep(LOOK);
    }
}

/// Turns cycles into samples and losses.
struct Seen<'a> {
    probe: &'a Cycles,
    output: &'a mut Output,
    /// The first release.
    origin: Option<Stamp<Monotonic>>,
    /// The number of the first cycle in the program's own count.
    first: u64,
    /// The number that the next cycle should have, from 0.
    next: u64,
    /// How many cycles have come.
    cycles: u64,
}

impl Seen<'_> {
    fn are_all(&self) -> bool {
        self.next >= self.probe.count
    }

    fn take(&mut self, cycle: Cycle) {
        if self.are_all() {
            return;
        }
        let [release, start, end] =
            [cycle.release_ns, cycle.start_ns, cycle.end_ns].map(Stamp::<Monotonic>::from_ns);
        if self.origin.is_none() {
            self.first = cycle.number;
        }
        let origin = *self.origin.get_or_insert(release);
        self.cycles += 1;
        let number = cycle.number.checked_sub(self.first).filter(|number| *number >= self.next);
        let Some(number) = number.filter(|_| end <= now()) else {
            // A number that was there before, or a time that is yet to come.
            self.next += 1;
            return self.lose(Loss::Tainted, 1);
        };
        let within = number.min(self.probe.count);
        let skipped = within - self.next;
        self.lose(Loss::Overrun, skipped);
        self.next = within;
        if within < number || self.are_all() {
            return;
        }
        self.next += 1;
        let latencies = [
            (release, start.since(release)),
            (start, end.since(start)),
            (release, end.since(release)),
        ];
        for (series, (at, latency)) in latencies.into_iter().enumerate() {
            Recorder::new(self.output, series, origin).sample(number, at, latency);
        }
    }

    /// Counts lost cycles, of which every series has lost as many.
    fn lose(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            (0..SERIES.len()).for_each(|series| self.output.loss(series as u16, loss, count));
        }
    }
}

/// The memory that the program shares with the probe.
struct Shared {
    fd: OwnedFd,
    memory: *mut libc::c_void,
}

// SAFETY: the memory is reached only through atomics, and unmapped once, on drop.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> rustix::io::Result<Shared> {
        let fd = rustix::fs::memfd_create("onset-cycles", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, BYTES as u64)?;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(std::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, &fd, 0)?
        };
        Ok(Shared { fd, memory })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many bytes, is aligned to a page, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), BYTES / 8) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nobody has a reference any more.
        let _ = unsafe { rustix::mm::munmap(self.memory, BYTES) };
    }
}

/// The program while it runs. When this value is dropped, the program is gone, however it ended.
struct Running {
    name: String,
    child: Child,
}

impl Running {
    fn start(command: &[String], plan: &Plan, shared: &Shared) -> Result<Running, RunError> {
        let name = format!("cycles of {}", command[0]);
        let descriptor = shared.fd.as_raw_fd();
        let cpus = plan.cpus.clone();
        if let Policy::Deadline { .. } = plan.policy {
            let wrong = "a task with this policy starts no program; measure with other, and let the program take the policy itself";
            return Err(failure::plan("policy", wrong));
        }
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).env(VARIABLE, descriptor.to_string());
        // The standard output of this process is for its own words.
        child.stdin(Stdio::null()).stdout(std::io::stderr());
        // SAFETY: only system calls are made between fork and exec, and nothing is allocated.
        unsafe {
            child.pre_exec(move || prepare(descriptor, &cpus));
        }
        // The program inherits the policy of this thread.
        rt::apply(plan.policy)?;
        let child = child.spawn();
        aside()?;
        let child = child.map_err(|e| {
            failure::unavailable(
                &name,
                format!("{e}; name a program that is there and may be executed"),
            )
        })?;
        Ok(Running { name, child })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        self.child.try_wait().map_err(failure::system("waitpid"))
    }

    /// Ends the program: by SIGTERM, so that it can put its machine to rest, and then by SIGKILL.
    fn end(&mut self) {
        // SAFETY: nobody has waited for the child yet, or this does nothing.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
    }

    fn failed(&self, status: ExitStatus, cycles: u64) -> RunError {
        failure::unavailable(
            &self.name,
            format!("it ended with {status} after {cycles} cycles; what it printed may say why"),
        )
    }

    fn silent(&self, cycles: u64, patience: Duration) -> RunError {
        let seconds = patience.as_secs();
        failure::unavailable(
            &self.name,
            format!(
                "it reported no cycle for {seconds} s, and {cycles} before; it has to write them to the page of {VARIABLE} (docs/own-program.md)"
            ),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Gives the new process the ring and the CPUs of the plan. It ends when this process does.
fn prepare(descriptor: i32, cpus: &[u32]) -> std::io::Result<()> {
    // SAFETY: plain system calls on plain data.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::fcntl(descriptor, libc::F_SETFD, 0) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu as usize, &mut set));
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Channel, Event, producer_of};

    fn cycle(number: u64, release_ns: u64, start_ns: u64, end_ns: u64) -> Cycle {
        Cycle { number, release_ns, start_ns, end_ns }
    }

    /// The readings that come of these cycles, of a plan for `count`.
    fn readings(count: u64, cycles: &[Cycle]) -> Vec<wire::Reading> {
        let mut channel = Channel::with_capacity(100).unwrap();
        {
            // SAFETY: this descriptor lives longer than the output, and nobody else writes.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(channel.fd()) };
            // SAFETY: as above.
            let producer = unsafe { producer_of(fd) };
            let mut output = Output::new(producer.unwrap());
            let probe = Cycles { period: Nanos(1_000), count };
            let mut seen = Seen {
                probe: &probe,
                output: &mut output,
                origin: None,
                first: 0,
                next: 0,
                cycles: 0,
            };
            cycles.iter().for_each(|cycle| seen.take(*cycle));
            output.end();
        }
        let mut readings = Vec::new();
        channel
            .drain(|event, _| {
                if let Event::Reading(reading) = event {
                    readings.push(*reading)
                }
            })
            .unwrap();
        readings
    }

    #[test]
    fn a_cycle_is_one_sample_of_each_series_and_skipped_numbers_are_overruns() {
        let readings = readings(
            5,
            &[cycle(7, 100, 105, 125), cycle(9, 300, 330, 331), cycle(12, 600, 601, 602)],
        );
        let samples = readings.iter().filter_map(|reading| match reading {
            wire::Reading::Sample { series, number, at, latency } => {
                Some((*series, *number, at.ns(), latency.0))
            }
            wire::Reading::Loss { .. } => None,
        });
        let expected = [
            (0, 0, 0, 5),
            (1, 0, 5, 20),
            (2, 0, 0, 25),
            (0, 2, 200, 30),
            (1, 2, 230, 1),
            (2, 2, 200, 31),
        ];
        assert_eq!(samples.collect::<Vec<_>>(), expected);
        let overruns: u64 = readings
            .iter()
            .map(|reading| match reading {
                wire::Reading::Loss { series: 0, loss: Loss::Overrun, count } => *count,
                _ => 0,
            })
            .sum();
        // One between the first two, and two of the three before the last, which is beyond the plan.
        assert_eq!(overruns, 3);
    }

    #[test]
    fn a_time_that_falls_or_is_yet_to_come_and_a_number_that_was_there_are_tainted() {
        let future = now().ns() + 1_000_000_000_000;
        for (bad, tainted) in [
            (cycle(1, 200, 150, 160), [1, 0, 1]),
            (cycle(1, 200, 250, 240), [0, 1, 0]),
            (cycle(1, 200, 250, future), [1, 1, 1]),
            (cycle(0, 200, 250, 260), [1, 1, 1]),
        ] {
            let readings = readings(5, &[cycle(0, 100, 105, 125), bad]);
            let of = |wanted: u16| -> u64 {
                readings
                    .iter()
                    .map(|reading| match reading {
                        wire::Reading::Loss { series, loss: Loss::Tainted, count }
                            if *series == wanted =>
                        {
                            *count
                        }
                        _ => 0,
                    })
                    .sum()
            };
            assert_eq!([0, 1, 2].map(of), tainted, "{bad:?}");
        }
    }
}
