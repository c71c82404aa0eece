// SPDX-License-Identifier: GPL-2.0-or-later
//! This machine as the target. It runs the load, and the probe in a process of its own whose rings it empties.

mod energy;
pub mod load;
mod process;

use super::{Command, Lead, Measured, Parts, Session, Step, Target, refuse_commands};
use crate::Error;
use agent::{Load, Word};
use bundle::{Machine, Warning};
use experiment::{Cell, Experiment, Instrument};
use probes::context::Context;
use probes::{Plan, RAN_ON, Report, context, validity};
use process::{Ended, Process};
use sample::{Clock, Nanos, Observer, SeriesName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use work::Progress;

/// How long a probe may take to end when asked: a period, and the end of its reports.
const END_DEADLINE: Duration = Duration::from_secs(10);
/// How often the rings are emptied. It is seldom, because emptying costs the measured machine time. The rings hold more
/// than a second's records.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// The key for what keeps the load in its place, beside the rest of the context.
const CONFINEMENT: &str = "load_confinement";

/// This machine.
pub struct Local {
    agent: PathBuf,
}

impl Local {
    /// A target that measures with the agent's probes and loads.
    pub fn new(agent: PathBuf) -> Local {
        Local { agent }
    }
}

/// The probe's report, or the reason why it gave none.
fn report(Ended { words, complaints, status }: Ended) -> Result<Report, Error> {
    let mut report = None;
    for word in words {
        match word {
            Word::Report(found) => report = Some(found),
            Word::Failed(why) => return Err(Error::Probe(why)),
            _ => {}
        }
    }
    let text = || format!("the probe ended without a report ({status}): {complaints}");
    report.ok_or_else(|| Error::Probe(text()))
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

    fn parts(&self, _experiment: &Experiment, _cell: Cell) -> Option<Parts> {
        None
    }

    fn begin<'a>(
        &'a self,
        experiment: &'a Experiment,
        cell: Cell<'a>,
        lead: Lead,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Box<dyn Session + 'a>, Error> {
        let Instrument::Probe(plan) = cell.instrument else {
            let text = "this machine is measured by a probe; triggers need the rig";
            return Err(Error::Instrument(text.into()));
        };
        refuse_commands(lead)?;
        let place = load::Place {
            measured: &plan.cpus,
            allow_measured: experiment.load.on_measured_cpus,
            disk: experiment.load.disk.as_deref(),
        };
        let mut running = load::start(cell.load, &place, &self.agent)?;
        let held = running.confinement().map(|c| (CONFINEMENT.to_owned(), c.to_string()));
        if cell.load != Load::Idle {
            progress(Progress::WarmingUp);
            sleep(experiment.warm_up)?;
        }
        let before = context::read(&plan.cpus);
        let worked = counters(&mut running)?;
        Ok(Box::new(OfProbe {
            plan,
            load: cell.load,
            held,
            before,
            worked,
            running,
            process: Process::start(&self.agent, plan)?,
            begun: Instant::now(),
            asked: None,
            ended: None,
        }))
    }
}

/// A session with a probe that measures this machine, beside a load.
struct OfProbe<'a> {
    plan: &'a Plan,
    load: Load,
    /// What keeps the load in its place.
    held: Option<(String, String)>,
    /// The context before measuring. Below, what the load had done before.
    before: Context,
    worked: BTreeMap<String, u64>,
    running: load::Running,
    process: Process,
    begun: Instant,
    /// Since when the probe has been asked to end.
    asked: Option<Instant>,
    /// How the probe ended.
    ended: Option<ExitStatus>,
}

impl OfProbe<'_> {
    fn ask_to_end(&mut self) {
        if self.asked.is_none() {
            self.process.stop();
            self.asked = Some(Instant::now());
        }
    }
}

impl Session for OfProbe<'_> {
    fn step(&mut self, observe: &mut Observer) -> Result<Step, Error> {
        if self.ended.is_some() {
            return Ok(Step::Ended);
        }
        // This comes before draining: everything that the probe wrote before it ended is then in its rings.
        self.ended = self.process.ended()?;
        let mut enough = false;
        self.process.drain(|observation| enough |= !enough && observe(observation).is_break())?;
        if self.ended.is_some() {
            return Ok(Step::Ended);
        }
        if enough {
            self.ask_to_end();
        }
        if self.asked.is_some_and(|since| since.elapsed() > END_DEADLINE) {
            let text = "the probe does not end when asked to; it was killed";
            return Err(Error::Probe(text.into()));
        }
        std::thread::sleep(DRAIN_EVERY);
        let expected = self.plan.duration().as_millis();
        let passed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Step::GoesOn { done: passed.min(expected), of: expected })
    }

    fn command(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::End => self.ask_to_end(),
            Command::Trigger { .. } | Command::Run { .. } => refuse_commands(Lead::Commands)?,
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, observe: &mut Observer) -> Result<Measured, Error> {
        let status = loop {
            match self.ended {
                Some(status) => break status,
                None => self.ask_to_end(),
            }
            self.step(observe)?;
        };
        let OfProbe { plan, load, held, before, worked, mut running, process, asked, .. } = *self;
        let counters = since(counters(&mut running)?, &worked);
        let after = context::read(&plan.cpus);
        let printed = running.stop()?.console;
        let dropped = process.dropped();
        let report = report(process.words(status))?;
        let doubts = validity::check(&before, &after, &measured(plan, &report));
        let mut reported: BTreeMap<String, String> = before.into();
        reported.extend(held);
        let mut warnings: Vec<Warning> = report.doubts.into_iter().map(Warning::Probe).collect();
        warnings.extend(doubts.into_iter().map(Warning::Validity));
        if asked.is_some() {
            warnings.push(Warning::Interrupted);
        }
        let still = |counter: &&str| counters.get(*counter).is_none_or(|n| *n == 0);
        let idle = load.counters().into_iter().filter(still);
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

/// What the load has done; how often the machine has changed tasks since its boot, under the guest's name for it; and
/// the energy that its processors have taken, where root can read that.
fn counters(running: &mut load::Running) -> Result<BTreeMap<String, u64>, Error> {
    let mut counters = running.counters()?;
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let switches = stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.parse().ok());
    counters.extend(switches.map(|n| ("kernel.context_switches".to_owned(), n)));
    let energy = energy::of_packages(Path::new(energy::ZONES));
    counters.extend(energy.map(|n| (energy::COUNTER.to_owned(), n)));
    Ok(counters)
}

/// The counts since `before`.
fn since(
    mut counters: BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    for (name, n) in &mut counters {
        *n = n.saturating_sub(before.get(name).copied().unwrap_or(0));
    }
    counters
}

/// Waits, unless the user asks to stop.
fn sleep(time: Nanos) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_nanos(time.0) {
        if work::is_cancelled() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(work::POLL);
    }
    Ok(())
}

fn measured(plan: &Plan, report: &Report) -> validity::Measured {
    let seen = report.counters.keys().filter_map(|key| key.strip_prefix(RAN_ON)?.parse().ok());
    let seen: BTreeSet<u32> = seen.collect();
    validity::Measured {
        cpus: plan.cpus.clone(),
        // A probe that does not say where it ran raises no doubt about this.
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
