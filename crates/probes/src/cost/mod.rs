// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `cost`: what the services of the kernel cost, by LMbench's definitions, and what programs use since then.
//!
//! A row of [`ROWS`] is one cost. The probe times batches of operations, and a sample is the time of one operation of
//! a batch. All rows are measured several times, each time in another order, so that a machine that gets slower for a
//! while shows as a spread and not as a cost. Nothing is removed: an outlier is counted, and stays in the samples.
//!
//! In the rig the witness sees where each stretch begins and ends ([`bench`]). So the instructions of a cost are
//! counted from outside, and the probe does not know of them.
//!
//! The probe measures from the calling thread, which is alone in its process: a file descriptor of a process with
//! several threads costs a reference count, which LMbench does not measure. Its memory is not locked, because locked
//! memory has no page faults.

mod bench;
mod context;
mod figure;
mod files;
mod ipc;
mod locks;
mod memory;
mod network;
mod partner;
mod place;
mod processes;
mod ring;
mod row;
mod scheduler;
mod syscalls;

pub use figure::{Figure, Figures};
pub use row::{Counts, Row, row};

use crate::async_handler::not_measured;
use crate::definition::{Definition, Key, Kind, Measure, events, times, word};
use crate::plan::Plan;
use crate::report::{Doubt, Report, RunError};
use crate::run::check_count;
use crate::threads::become_measuring;
use crate::{Output, failure, overhead};
use bench::Bench;
use figure::Tally;
use place::Place;
use row::ROWS;
use rt::Policy;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// About how long a batch takes with what belongs to it, on a machine.
const BATCH: Nanos = Nanos::from_micros(1_500);

pub(crate) const DEFINITION: Definition = Definition {
    name: "cost",
    about: "What system calls, switches, messages, files and memory cost, by LMbench's definitions",
    keys: &[
        Key::words::<Suite>("suites", "all", "Which: {}."),
        Key {
            name: "count",
            kind: Kind::Count,
            default: "11",
            help: "Number of batches of each cost in each repetition.",
        },
        Key {
            name: "repetitions",
            kind: Kind::Number(1, 100),
            default: "5",
            help: "How often all costs are measured, each time in another order.",
        },
        Key {
            name: "seed",
            kind: Kind::Number(0, u32::MAX),
            default: "1",
            help: "The seed of these orders.",
        },
    ],
    examples: [
        "onset measure cost --suite syscalls,context",
        "onset measure cost --repetitions 1 --cpus 1",
    ],
};

/// The probe's part of a plan: one series for each row of the suites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The suites whose costs are measured.
    pub suites: Vec<Suite>,
    /// The number of batches of each row in each repetition.
    pub count: u64,
    /// The number of repetitions.
    pub repetitions: u32,
    /// The seed of the order of the rows in each repetition.
    pub seed: u32,
}

/// A group of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// Calls of the kernel that move nothing.
    Syscalls,
    /// Processes and threads that begin and end.
    Processes,
    /// Switches between processes that have data.
    Context,
    /// Messages and locks between processes of one machine.
    Ipc,
    /// Files, mappings and faults.
    Files,
    /// Memory itself.
    Memory,
    /// Sockets over the loopback interface.
    Network,
    /// Switches among many ready tasks.
    Scheduler,
}

impl Suite {
    /// All of them.
    pub const ALL: [Suite; 8] = [
        Suite::Syscalls,
        Suite::Processes,
        Suite::Context,
        Suite::Ipc,
        Suite::Files,
        Suite::Memory,
        Suite::Network,
        Suite::Scheduler,
    ];
}

impl Cost {
    /// The rows of the plan's suites, in the order of the series.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().copied().flatten().filter(|row| self.suites.contains(&row.suite))
    }
}

impl Measure for Cost {
    fn series(&self, _plan: &Plan) -> Vec<String> {
        self.rows().map(|row| row.name.to_owned()).collect()
    }

    fn duration(&self) -> Nanos {
        times(BATCH, self.count + 1, self.rows().count() * self.repetitions as usize)
    }

    fn events(&self) -> u64 {
        events(self.count, self.rows().count() * self.repetitions as usize)
    }

    fn spins(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [&'static str] {
        match self.suites.contains(&Suite::Processes) {
            true => &processes::PROGRAMS,
            false => &[],
        }
    }

    /// A cost is that of a usual task. A real-time one would be throttled where it never sleeps.
    fn policy(&self) -> Policy {
        Policy::Other(0)
    }

    fn locks_memory(&self) -> bool {
        false
    }

    /// Measures in the calling thread. A row that cannot be measured here becomes a doubt, and the others go on.
    ///
    /// # Errors
    /// A refused policy or CPU, or a place for files that cannot be made.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_count(self.count)?;
        let cpu = *plan.cpus.first().ok_or_else(|| failure::plan("cpus", "none; name one"))?;
        become_measuring(plan.policy, Some(cpu))?;
        let place = Place::make(self.seed)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let mut bench = Bench::new(&mut outputs[0]);
        let rows: Vec<&'static Row> = self.rows().collect();
        let mut tallies: Vec<Tally> = rows.iter().map(|_| Tally::of(self)).collect();
        let mut missing: Vec<Option<io::Error>> = rows.iter().map(|_| None).collect();
        for repetition in 0..self.repetitions {
            for index in order(rows.len(), self.seed, repetition) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if missing[index].is_none() {
                    let part = Part { row: rows[index], series: index as u16, repetition };
                    let tally = &mut tallies[index];
                    missing[index] = self.measure(part, &place, &mut bench, tally, stop);
                }
            }
        }
        for ((row, tally), missing) in rows.iter().zip(&tallies).zip(missing) {
            tally.enter(row, &mut report.counters);
            if let Some(e) = missing {
                not_measured(&mut report, row.name.to_owned(), row.why(&e));
            }
        }
        let unstable: Vec<String> = rows
            .iter()
            .zip(&tallies)
            .filter_map(|(row, tally)| Some(format!("{} ({} %)", row.name, tally.unstable()?)))
            .collect();
        if !unstable.is_empty() {
            report.doubts.push(Doubt::NotStable { spreads: unstable });
        }
        Ok(report)
    }
}

/// A row in one repetition.
struct Part {
    row: &'static Row,
    series: u16,
    repetition: u32,
}

impl Cost {
    /// Measures the batches of one row. Returns why they could not be measured.
    fn measure(
        &self,
        Part { row, series, repetition }: Part,
        place: &Place,
        bench: &mut Bench,
        tally: &mut Tally,
        stop: &AtomicBool,
    ) -> Option<io::Error> {
        let first = u64::from(repetition) * self.count;
        let mut batches = Vec::with_capacity(usize::try_from(self.count).unwrap_or(0).min(1 << 16));
        // A partner may have ended while the row before was cleared away, since its messages ended.
        partner::forget();
        let measured = (row.make)(place).and_then(|mut work| {
            let mut all = || {
                bench.warm_up(row, &mut *work)?;
                for number in first..first + self.count {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let batch = bench.batch(row, (series, number), &mut *work)?;
                    partner::check()?;
                    batches.push(batch);
                }
                Ok(())
            };
            // A call that was interrupted because a partner ended has another error.
            all().map_err(|e| partner::check().err().unwrap_or(e))
        });
        tally.add(repetition, bench.record(row, series, &batches));
        measured.err()
    }
}

/// The rows in the order of one repetition.
fn order(rows: usize, seed: u32, repetition: u32) -> Vec<usize> {
    place::shuffled(rows, &mut (u64::from(seed) << 32 | u64::from(repetition)))
}

/// The suite's word in files.
impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&word(self))
    }
}

#[cfg(test)]
mod tests;
