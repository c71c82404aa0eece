// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `cycles`: the user's own program, which sleeps and works in cycles. The program reports when each cycle was
//! due (its release), when it began and when its work was done, through a page that it shares with the probe
//! (`wire::cycles`). So the probe judges how late the program began, how long it took, and when its answer was there.
//!
//! The probe believes the program's times; it checks only that they follow each other and have passed. It does not see
//! what the program waited for. The program costs nothing for the report but writing 40 bytes to memory.

use crate::definition::{Definition, Key, Measure, Sampled, events, times};
use crate::ladder::aside;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::report::{Report, RunError};
use crate::run::{check_count, check_time};
use crate::{Output, RunningProgram, failure};
use rt::now;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use sample::{Loss, Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::cycles::{BYTES, Cycle, Cycles as Ring, VARIABLE};

/// The series, in the order of their numbers.
const SERIES: [&str; 3] = ["start", "computation", "response"];
/// How often the probe looks for new cycles.
const LOOK: Duration = Duration::from_millis(10);
/// How long the probe waits for the first cycle, and from one cycle to the next beyond the period.
const PATIENCE: Duration = Duration::from_secs(10);

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

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Stretches
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
                let running = Running::start(command, plan, &shared)?;
                let mut seen =
                    Seen { probe: self, output, origin: None, first: 0, next: 0, cycles: 0 };
                let mut report = follow(running, &mut seen, &mut ring, stop)?;
                report.add("cycles", seen.cycles);
                if let Some(origin) = seen.origin {
                    report.add("origin_ns", origin.ns());
                }
                Ok(report)
            });
            apart.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Takes cycles until there are enough, the program ends, or `stop` is set.
fn follow(
    mut running: Running,
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
        ring.take(|cycle, lost| seen.take(cycle, lost)).map_err(|_| {
            failure::unavailable(
                &running.name,
                "it counts its cycles backwards; docs/own-program.md has the layout of its page",
            )
        })?;
        if seen.cycles > before {
            last = Instant::now();
        }
        if seen.are_all() || stop.load(Ordering::Relaxed) {
            seen.drop_unseen(ring.lost());
            running.program.end();
            return Ok(Report::default());
        }
        if let Some(status) = ended {
            return match status.success() && seen.cycles > 0 {
                true => {
                    seen.drop_unseen(ring.lost());
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

    /// Takes a cycle. `lost` cycles before it were overwritten in the ring. Each of these has a number that is missing,
    /// so that only the other missing numbers are cycles that the program skipped.
    fn take(&mut self, cycle: Cycle, lost: u64) {
        if self.are_all() {
            return;
        }
        let [release, start, end] =
            [cycle.release_ns, cycle.start_ns, cycle.end_ns].map(Stamp::<Monotonic>::from_ns);
        if self.origin.is_none() {
            self.first = cycle.number.saturating_sub(lost);
        }
        let origin = *self.origin.get_or_insert(release);
        self.cycles += 1;
        let number = cycle.number.checked_sub(self.first).filter(|number| *number >= self.next);
        let Some(number) = number.filter(|_| end <= now()) else {
            // A number that was there before, or a time that is yet to come.
            self.drop_unseen(lost);
            if !self.are_all() {
                // One that was there before takes the place of no other.
                let is_new = cycle.number.checked_sub(self.first) >= Some(self.next);
                self.next += u64::from(is_new);
                self.lose(Loss::Tainted, 1);
            }
            return;
        };
        let within = number.min(self.probe.count);
        let missing = within - self.next;
        let dropped = lost.min(missing);
        self.lose(Loss::Dropped, dropped);
        self.lose(Loss::Overrun, missing - dropped);
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

    /// Counts cycles that were overwritten, and whose numbers nobody knows.
    fn drop_unseen(&mut self, lost: u64) {
        let dropped = lost.min(self.probe.count - self.next);
        self.lose(Loss::Dropped, dropped);
        self.next += dropped;
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

/// The program while it runs.
struct Running {
    name: String,
    program: RunningProgram,
}

impl Running {
    fn start(command: &[String], plan: &Plan, shared: &Shared) -> Result<Running, RunError> {
        let name = format!("cycles of {}", command[0]);
        let descriptor = shared.fd.as_raw_fd();
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).env(VARIABLE, descriptor.to_string());
        // The standard output of this process is for its own words.
        child.stdin(Stdio::null()).stdout(std::io::stderr());
        work::inherit(&mut child, vec![descriptor]);
        let remedy = "name a program that is there and may be executed";
        let program = RunningProgram::start(&mut child, plan.policy, &plan.cpus, (&name, remedy))?;
        aside()?;
        Ok(Running { name, program })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, RunError> {
        self.program.ended().map_err(failure::system("waitpid"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(number: u64, release_ns: u64, start_ns: u64, end_ns: u64) -> Cycle {
        Cycle { number, release_ns, start_ns, end_ns }
    }

    /// The readings that come of these cycles, of a plan for `count`.
    fn readings(count: u64, cycles: &[Cycle]) -> Vec<wire::Reading> {
        let none_lost: Vec<_> = cycles.iter().map(|cycle| (*cycle, 0)).collect();
        readings_with_lost(count, &none_lost)
    }

    /// The same, where so many were overwritten before each.
    fn readings_with_lost(count: u64, cycles: &[(Cycle, u64)]) -> Vec<wire::Reading> {
        crate::output::readings_of(|output| {
            let probe = Cycles { period: Nanos(1_000), count };
            let mut seen =
                Seen { probe: &probe, output, origin: None, first: 0, next: 0, cycles: 0 };
            cycles.iter().for_each(|(cycle, lost)| seen.take(*cycle, *lost));
        })
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
        // One between the first two, and two of the three before the last, which is beyond the plan.
        assert_eq!(lost(&readings, Loss::Overrun), 3);
    }

    /// How many cycles were lost so, by the losses of the first series.
    fn lost(readings: &[wire::Reading], wanted: Loss) -> u64 {
        let count = |reading: &wire::Reading| match reading {
            wire::Reading::Loss { series: 0, loss, count } if *loss == wanted => *count,
            _ => 0,
        };
        readings.iter().map(count).sum()
    }

    #[test]
    fn a_cycle_that_was_overwritten_counts_once_and_is_no_overrun() {
        let own = |number| cycle(number, 100 * number, 100 * number + 1, 100 * number + 2);
        // Of 3 to 8 two were overwritten, and the program skipped four. Of 10, 11 and 13 to 19 all were overwritten.
        let cycles = [(own(2), 0), (own(9), 2), (own(12), 2), (own(20), 7)];
        let readings = readings_with_lost(30, &cycles);
        assert_eq!((lost(&readings, Loss::Dropped), lost(&readings, Loss::Overrun)), (11, 4));
        // Before the first cycle that was seen, and beyond the plan.
        let readings = readings_with_lost(10, &[(own(5), 3), (own(900), 20)]);
        assert_eq!((lost(&readings, Loss::Dropped), lost(&readings, Loss::Overrun)), (9, 0));
        let samples = readings.iter().filter(|r| matches!(r, wire::Reading::Sample { .. })).count();
        assert_eq!(samples, SERIES.len());
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
        // The cycles after one that came twice count.
        let twice = [0, 1, 1, 2, 3].map(|n| cycle(n, 100 * (n + 1), 105 * (n + 1), 110 * (n + 1)));
        let samples = |readings: &[wire::Reading]| {
            readings.iter().filter(|r| matches!(r, wire::Reading::Sample { .. })).count()
        };
        assert_eq!(samples(&readings(4, &twice)), 4 * SERIES.len());
    }
}
