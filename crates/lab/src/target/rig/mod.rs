// SPDX-License-Identifier: GPL-2.0-or-later
//! The virtual target. It translates an experiment into the rig's terms (here), measures it (`session.rs`), and
//! translates the outcome into warnings (`outcome.rs`).

mod line;
mod outcome;
mod session;

use self::session::{InGuest, InGuests};
use super::{Lead, Parts, Session, Target, refuse_commands};
use crate::Error;
use ::rig::{Bench, Contents, Guest, ProbeRun, Stimulus};
use bundle::Warning;
use experiment::{Cell, Experiment, Flavour, Instrument, Load, Wiring};
use probes::{Plan, Probe};
use sample::{Clock, Responder, ResponderSet, SeriesName, When};
use std::collections::BTreeMap;
use wire::ports::{CHIP, CHIP_TRIGGER, DISTURBANCE_IRQ};
use work::Progress;

/// The memory of a guest whose experiment does not set it: as much as the largest load needs without paging.
const MEMORY_MIB: u32 = 256;
/// The same for the compiler, whose own size comes on top.
const MEMORY_MIB_COMPILE: u32 = 512;
/// The first kernel with bottom-half workqueues (commit 4cb1ef64609f, "workqueue: Implement BH workqueues").
const BH_WORK_SINCE: (u32, u32) = (6, 9);

/// The rig, with the kernels of an experiment.
pub struct Rig {
    bench: Bench,
    kernels: BTreeMap<String, ::rig::Kernel>,
}

impl Rig {
    /// The rig itself.
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// Finds every kernel of the experiment, and the programs of its loads.
    ///
    /// # Errors
    /// If a kernel is not in the cache, with those that are. If this machine lacks a program, with the program's
    /// package.
    pub fn new(bench: Bench, experiment: &Experiment) -> Result<Rig, Error> {
        let cache = bench.cache().kernels()?;
        let mut kernels = BTreeMap::new();
        for flavour in &experiment.flavours {
            kernels.insert(flavour.kernel.clone(), cache.get(&flavour.kernel)?);
        }
        experiment.loads.iter().try_for_each(|load| ::rig::check_programs(*load))?;
        Ok(Rig { bench, kernels })
    }

    fn kernel(&self, flavour: &Flavour) -> &::rig::Kernel {
        self.kernels.get(&flavour.kernel).expect("found in Rig::new")
    }

    /// Those of the responders that the flavour's kernel has.
    fn available(&self, asked: ResponderSet, flavour: &Flavour) -> ResponderSet {
        let has_bh_work = version(&self.kernel(flavour).record.release) >= BH_WORK_SINCE;
        asked.iter().filter(|r| *r != Responder::BhWork || has_bh_work).collect()
    }

    /// The guest of a cell.
    pub fn guest(&self, experiment: &Experiment, cell: Cell) -> Guest {
        let asked = &experiment.guest;
        let (driver, has_task) = self.driver(cell);
        let own_task =
            experiment.program.as_ref().map(|p| agent::TaskProcess::Program(p.guest_command()));
        let task = has_task.then(|| own_task.unwrap_or(agent::TaskProcess::Agent));
        let own = match cell.instrument {
            Instrument::Generator(_) => &[][..],
            Instrument::Probe(plan) => plan.probe.programs(),
        };
        let own_program = experiment.program.iter().map(|program| &program.path);
        let programs =
            asked.programs.iter().chain(own_program).map(|p| p.to_string_lossy().into_owned());
        let memory = if cell.load.parts().contains(&Load::Compile) {
            MEMORY_MIB_COMPILE
        } else {
            MEMORY_MIB
        };
        Guest {
            kernel: self.kernel(cell.flavour).clone(),
            parameters: cell.flavour.parameters.clone(),
            contents: Contents {
                agent: self.bench.parts().agent.clone(),
                load: cell.load,
                driver,
                task,
                warm_up_ns: experiment.warm_up.0,
                ends_after_ns: None,
                modules: asked.modules.clone(),
                programs: programs.chain(own.iter().map(|p| p.to_string())).collect(),
                files: asked
                    .files
                    .iter()
                    .map(|f| (f.host.clone(), f.guest.to_string_lossy().into_owned()))
                    .collect(),
            },
            memory_mib: asked.memory.map_or(memory, |m| m.0),
            shift: asked.shift,
            seed: asked.seed,
            begin_after: asked.begin_after,
        }
    }

    /// The driver's parameters, and whether init runs the `task` responder.
    fn driver(&self, cell: Cell) -> (Option<String>, bool) {
        match cell.instrument {
            Instrument::Generator(generator) => {
                let responders = self.available(generator.responders, cell.flavour);
                let threaded = if generator.driver.threaded { " threaded=1" } else { "" };
                let lines = match generator.driver.wiring {
                    Wiring::Port => String::new(),
                    Wiring::Gpio => lines(responders),
                };
                // The driver gets this also if nothing disturbs: it costs nothing then, and one snapshot serves both.
                let parameters = format!(
                    "responders={} disturbance_irq={DISTURBANCE_IRQ}{threaded}{lines}",
                    names(responders)
                );
                (Some(parameters), responders.contains(Responder::Task))
            }
            // The driver triggers itself, and the probe is its task.
            Instrument::Probe(Plan { probe: Probe::Ladder(ladder), .. }) => {
                let period_ns = ladder.period.0;
                let names = names(self.available(ladder.responders(), cell.flavour));
                (Some(format!("trigger=timer period_ns={period_ns} responders={names}")), false)
            }
            Instrument::Probe(_) => (None, false),
        }
    }

    /// Whether several guests measure the cell, one after the other.
    pub fn measures_in_parts(&self, experiment: &Experiment, cell: Cell) -> bool {
        match cell.instrument {
            Instrument::Probe(plan) => line::parts(plan, experiment.seed).is_some(),
            Instrument::Generator(_) => false,
        }
    }

    /// The stimulus for the guest of a cell.
    pub fn stimulus(&self, experiment: &Experiment, cell: Cell) -> Stimulus {
        match cell.instrument {
            Instrument::Generator(generator) => {
                let trigger = generator.trigger.clone();
                Stimulus::Triggers(::rig::Generator {
                    when: When::Planned(trigger.schedule),
                    high: trigger.high,
                    grace: trigger.grace,
                    responders: self.available(generator.responders, cell.flavour),
                    disturbances: trigger.disturbances,
                    work: None,
                })
            }
            Instrument::Probe(plan) => Stimulus::Probe(ProbeRun {
                plan: serde_json::to_vec(&in_guest(plan, experiment)).expect("plain data"),
                expected: plan.duration(),
                // The witness counts the instructions of costs.
                witness: experiment.guest.witness || matches!(plan.probe, Probe::Cost(_)),
                functions: None,
            }),
        }
    }
}

impl Target for Rig {
    fn name(&self) -> &'static str {
        "rig"
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn series(&self, cell: Cell) -> (Vec<SeriesName>, Vec<Warning>) {
        let Instrument::Generator(generator) = cell.instrument else {
            return (cell.instrument.series(), Vec::new());
        };
        let has = self.available(generator.responders, cell.flavour);
        let lacks = generator.responders.iter().filter(|r| !has.contains(*r));
        let release = &self.kernel(cell.flavour).record.release;
        let missing = lacks.map(|responder| Warning::ResponderMissing {
            responder: responder.into(),
            release: release.clone(),
        });
        (has.iter().map(SeriesName::from).collect(), missing.collect())
    }

    fn parts(&self, experiment: &Experiment, cell: Cell) -> Option<Parts> {
        Some(Parts {
            contents_blake3: super::contents(&self.guest(experiment, cell)),
            versions: Some(versions(&self.bench)),
        })
    }

    fn begin<'a>(
        &'a self,
        experiment: &'a Experiment,
        cell: Cell<'a>,
        lead: Lead,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Box<dyn Session + 'a>, Error> {
        if let Instrument::Probe(plan) = cell.instrument
            && let Some(parts) = line::parts(plan, experiment.seed)
        {
            refuse_commands(lead)?;
            return Ok(Box::new(InGuests::begin(self, experiment, cell, (plan, parts), progress)?));
        }
        let instrument = cell.instrument.clone();
        Ok(Box::new(InGuest::begin(self, experiment, cell, instrument, lead, progress)?))
    }
}

/// The driver's parameters that name the lines of the rig's chip: each responder has the line of its pin.
fn lines(responders: ResponderSet) -> String {
    let answers: Vec<String> = responders.iter().map(|r| r.pin().to_string()).collect();
    format!(
        " trigger=gpio chip={CHIP} trigger_line={CHIP_TRIGGER} answer_lines={}",
        answers.join(",")
    )
}

/// As the driver's parameter has them.
fn names(responders: ResponderSet) -> String {
    responders.iter().map(Responder::name).collect::<Vec<_>>().join(",")
}

/// The plan as the guest runs it: the user's program has another path there.
fn in_guest(plan: &Plan, experiment: &Experiment) -> Plan {
    let program = experiment.program.as_ref().filter(|_| plan.program.is_some());
    Plan { program: program.map(experiment::Program::guest_command), ..plan.clone() }
}

/// The versions of QEMU and of the plugin in bundles.
fn versions(bench: &Bench) -> (String, String) {
    (bench.qemu_version().to_string(), plugin_version(bench))
}

/// The plugin's version in bundles: the version of onset, and the beginning of the file's hash.
pub fn plugin_version(bench: &Bench) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), &bench.plugin_blake3()[..16])
}

/// The major and the minor number of a release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_compared_by_number_not_by_text() {
        assert!(version("6.12.57+deb13-amd64") >= BH_WORK_SINCE);
        assert!(version("6.1.0-40-amd64") < BH_WORK_SINCE);
        assert!(version("7.0.1") >= BH_WORK_SINCE);
    }
}
