// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs a plan in this process and keeps what it measured, and says which tests cannot run here.

#[allow(dead_code)] // Not all of what the other tests say.
#[path = "../../../../tests/testbench/notes.rs"]
pub mod notes;

use probes::{Output, Plan, Report, RunError};
use rt::Policy;
use sample::{Loss, Losses, Nanos};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use wire::{Channel, Event, Reading, producer_of};

/// Room for everything that a test measures, so that nothing is dropped.
const RECORDS: usize = 1 << 16;

/// One series as it came out.
#[derive(Debug, Default)]
pub struct Series {
    pub name: String,
    /// Number, when it was due, latency.
    pub samples: Vec<(u64, Nanos, Nanos)>,
    pub losses: Losses,
}

impl Series {
    /// Samples and losses together: what the plan's count must be.
    pub fn events(&self) -> u64 {
        self.samples.len() as u64 + self.losses.total()
    }

    pub fn latency_median(&self) -> Nanos {
        let mut latencies: Vec<_> = self.samples.iter().map(|(_, _, latency)| *latency).collect();
        latencies.sort_unstable();
        latencies[latencies.len() / 2]
    }
}

/// The plan's series in order, and the report.
pub fn measured(plan: &Plan) -> Result<(Vec<Series>, Report), RunError> {
    measured_until(plan, &AtomicBool::new(false))
}

pub fn measured_until(plan: &Plan, stop: &AtomicBool) -> Result<(Vec<Series>, Report), RunError> {
    let mut channels: Vec<Channel> =
        (0..plan.threads()).map(|_| Channel::with_capacity(RECORDS).unwrap()).collect();
    let outputs = channels
        .iter()
        .map(|channel| {
            // SAFETY: each channel has this one producer, and lives longer than the call.
            let producer = unsafe { producer_of(BorrowedFd::borrow_raw(channel.fd())) };
            Output::new(producer.unwrap())
        })
        .collect();
    let report = probes::run(plan, outputs, stop)?;
    let mut series: Vec<Series> =
        plan.series().into_iter().map(|name| Series { name, ..Series::default() }).collect();
    for channel in &mut channels {
        let mut ended = false;
        channel
            .drain(|event, gap| {
                assert!(!gap && !ended);
                match *event {
                    Event::Reading(Reading::Sample { series: of, number, at, latency }) => {
                        series[usize::from(of)].samples.push((number, Nanos(at.ns()), latency));
                    }
                    Event::Reading(Reading::Loss { series: of, loss, count }) => {
                        assert_ne!(loss, Loss::Dropped);
                        series[usize::from(of)].losses.count(loss, count);
                    }
                    _ => ended = true,
                }
            })
            .unwrap();
        assert!(ended, "an output that was not ended");
    }
    Ok((series, report))
}

/// FIFO where this user may have it, else OTHER.
pub fn policy() -> Policy {
    let fifo = Policy::Fifo(80);
    let may = std::thread::spawn(move || rt::apply(fifo)).join().unwrap();
    may.map_or(Policy::Other(0), |()| fifo)
}
