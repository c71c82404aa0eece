// SPDX-License-Identifier: GPL-2.0-or-later
//! This machine as the target: runs the load, and the probe in a process of its own whose rings it empties.

pub mod load;
mod process;

use super::{Measured, Target};
use crate::bundle::{Machine, Warning};
use crate::experiment::{Cell, Experiment, Instrument};
use crate::failure::Failure;
use ::rig::{Observer, Parts, Progress, tool};
use agent::{Load, Word};
use probes::{Plan, RAN_ON, Report, context, validity};
use process::{Ended, Process};
use sample::{Clock, Nanos, Observation, SeriesName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a probe may take to end when asked to: a period, and the end of its reports.
const END_DEADLINE: Duration = Duration::from_secs(10);
/// How often the rings are emptied. Long, because it costs the measured machine time; the rings hold
/// more than a second's records.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// What keeps the load in its place, beside the rest of the context.
const CONFINEMENT: &str = "load_confinement";

/// This machine.
pub struct Local {
    parts: Parts,
}

impl Local {
    /// Measures with the probes and loads that the agent holds.
    pub fn new(parts: Parts) -> Local {
        Local { parts }
    }

    /// Runs the probe to its end, or until the user or the observer has enough.
    fn run(
        &self,
        plan: &Plan,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Run, Failure> {
        let mut process = Process::start(&self.parts.agent, plan)?;
        let expected = plan.duration().0 / 1_000_000;
        let begun = Instant::now();
        let mut enough = false;
        let mut asked: Option<Instant> = None;
        loop {
            let ended = process.ended()?;
            process.drain(|observation: Observation| {
                enough |= !enough && observe(observation).is_break();
            })?;
            if let Some(status) = ended {
                let dropped = process.dropped();
                let interrupted = asked.is_some();
                return Ok(Run { ended: process.words(status), dropped, interrupted });
            }
            if asked.is_none() && (enough || tool::interrupted()) {
                process.stop();
                asked = Some(Instant::now());
            }
            if asked.is_some_and(|since| since.elapsed() > END_DEADLINE) {
                let text = "the probe does not end when asked to; it was killed";
                return Err(Failure::unavailable(text));
            }
            let passed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            progress(Progress::Measuring(passed.min(expected), expected));
            std::thread::sleep(DRAIN_EVERY);
        }
    }
}

/// A probe that has ended.
struct Run {
    ended: Ended,
    dropped: u64,
    interrupted: bool,
}

impl Run {
    /// What it reports, or why it did not.
    fn report(self) -> Result<Report, Failure> {
        let Ended { words, complaints, status } = self.ended;
        let mut report = None;
        for word in words {
            match word {
                Word::Report(found) => report = Some(found),
                Word::Failed(why) => return Err(Failure::unavailable(why)),
                _ => {}
            }
        }
        let text = || format!("the probe ended without a report ({status}): {complaints}");
        report.ok_or_else(|| Failure::unavailable(text()))
    }
}

impl Target for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn clock(&self) -> Clock {
        Clock::Monotonic
    }

    fn series(&self, cell: Cell) -> (Vec<SeriesName>, Vec<Warning>) {
        (cell.instrument.series(), Vec::new())
    }

    fn measure(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Failure> {
        let Instrument::Probe(plan) = cell.instrument else {
            let text = "this machine is measured by a probe; triggers need the rig";
            return Err(Failure::usage(text));
        };
        let place = load::Place {
            measured: &plan.cpus,
            allow_measured: experiment.load.on_measured_cpus,
            disk: experiment.load.disk.as_deref(),
        };
        let mut running = load::start(cell.load, &place, &self.parts)?;
        let held = running.confinement().map(|c| (CONFINEMENT.to_owned(), c.to_string()));
        if cell.load != Load::Idle {
            progress(Progress::WarmingUp);
            sleep(experiment.warm_up)?;
        }
        let before = context::read(&plan.cpus);
        let worked = running.counters()?;
        let run = self.run(plan, observe, progress)?;
        let counters = since(running.counters()?, &worked);
        let after = context::read(&plan.cpus);
        let printed = running.stop()?.console;
        let (dropped, interrupted) = (run.dropped, run.interrupted);
        let report = run.report()?;
        let doubts = validity::check(&before, &after, &measured(plan, &report));
        let mut reported: BTreeMap<String, String> = before.into();
        reported.extend(held);
        let mut warnings: Vec<Warning> = report.doubts.into_iter().map(Warning::Probe).collect();
        warnings.extend(doubts.into_iter().map(Warning::Validity));
        if interrupted {
            warnings.push(Warning::Interrupted);
        }
        let still = |counter: &&str| counters.get(*counter).is_none_or(|n| *n == 0);
        let idle = cell.load.counters().into_iter().filter(still);
        warnings.extend(idle.map(|counter| Warning::LoadDidNoWork { counter: counter.into() }));
        if dropped > 0 {
            warnings.push(Warning::ChannelDropped { records: dropped });
        }
        Ok(Measured {
            kernel: super::kernel(None, reported),
            machine: machine(),
            versions: None,
            counters,
            probe_counters: report.counters,
            truth: None,
            dropped,
            console: (!printed.is_empty()).then_some(printed),
            warnings,
        })
    }
}

/// What was counted since `before`.
fn since(
    mut counters: BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    for (name, n) in &mut counters {
        *n = n.saturating_sub(before.get(name).copied().unwrap_or(0));
    }
    counters
}

/// Waits, unless the user has enough.
fn sleep(time: Nanos) -> Result<(), Failure> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_nanos(time.0) {
        if tool::interrupted() {
            return Err(::rig::Error::Interrupted.into());
        }
        std::thread::sleep(tool::POLL);
    }
    Ok(())
}

fn measured(plan: &Plan, report: &Report) -> validity::Measured {
    let seen = report.counters.keys().filter_map(|key| key.strip_prefix(RAN_ON)?.parse().ok());
    let seen: BTreeSet<u32> = seen.collect();
    validity::Measured {
        cpus: plan.cpus.clone(),
        // A probe that does not say where it ran raises no doubt about it.
        used: if seen.is_empty() { plan.cpus.clone() } else { seen.into_iter().collect() },
        policy: plan.policy,
        spins: plan.probe.spins(),
        pm_qos: plan.pm_qos,
        clock: Clock::Monotonic,
    }
}

fn machine() -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = rustix::system::sysinfo();
    let bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
    Machine {
        accelerator: "none".into(),
        cpu: model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.into()),
        memory_mib: u32::try_from(bytes >> 20).unwrap_or(u32::MAX),
        icount_shift: None,
        snapshot: None,
        contents_blake3: BTreeMap::new(),
    }
}
