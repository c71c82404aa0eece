// SPDX-License-Identifier: GPL-2.0-or-later
//! The virtual target: translates an experiment into the rig's terms and its outcome into warnings.

use super::{Measured, Target, line};
use crate::bundle::{Machine, Warning};
use crate::edges::{self, Seen};
use crate::experiment::{Cell, Experiment, Flavour, Generator, Instrument, Load};
use crate::failure::Failure;
use crate::truth::{self, Truth};
use crate::visible::tell;
use ::rig::{
    Bench, Contents, Ending, Fault, Guest, Observer, Outcome, ProbeRun, Progress, Stimulus,
};
use probes::context::{hz, keys};
use probes::{Doubt, Plan, Probe, validity};
use sample::{
    Clock, Monotonic, Nanos, Observation, Responder, ResponderSet, Sample, SeriesName, Stamp, When,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Memory of a guest whose experiment says nothing: what the largest load needs without paging.
const MEMORY_MIB: u32 = 256;
/// The compiler's own size comes on top.
const MEMORY_MIB_COMPILE: u32 = 512;
/// Interrupt of the device that disturbs (crates/plugin/src/disturbance.rs).
const DISTURBANCE_IRQ: u8 = 5;
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
    /// A kernel that is not in the cache, with those that are; a program that this machine lacks, with its package.
    pub fn new(bench: Bench, experiment: &Experiment) -> Result<Rig, Failure> {
        let cache = bench.cache().kernels()?.announcing(|what| tell!("{what}"));
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

    /// The responders of the generator that the flavour's kernel has.
    fn available(&self, generator: &Generator, flavour: &Flavour) -> ResponderSet {
        let has_bh_work = version(&self.kernel(flavour).record.release) >= BH_WORK_SINCE;
        let asked = generator.responders.iter();
        asked.filter(|r| *r != Responder::BhWork || has_bh_work).collect()
    }

    /// The guest of a cell.
    pub fn guest(&self, experiment: &Experiment, cell: Cell) -> Guest {
        let asked = &experiment.guest;
        let (driver, task) = self.driver(cell);
        let own = match cell.instrument {
            Instrument::Generator(_) => &[][..],
            Instrument::Probe(plan) => plan.probe.programs(),
        };
        let programs = asked.programs.iter().map(|p| p.to_string_lossy().into_owned());
        let memory = if cell.load == Load::Compile { MEMORY_MIB_COMPILE } else { MEMORY_MIB };
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
                let responders = self.available(generator, cell.flavour);
                let names: Vec<&str> = responders.iter().map(Responder::name).collect();
                let threaded = if generator.driver.threaded { " threaded=1" } else { "" };
                // Also where nothing disturbs: it then costs nothing, and one snapshot serves both.
                let parameters = format!(
                    "responders={} disturbance_irq={DISTURBANCE_IRQ}{threaded}",
                    names.join(",")
                );
                (Some(parameters), responders.contains(Responder::Task))
            }
            // The driver triggers itself, and the probe is its task.
            Instrument::Probe(Plan { probe: Probe::Ladder(ladder), .. }) => {
                let period_ns = ladder.period.0;
                (Some(format!("trigger=timer period_ns={period_ns}")), false)
            }
            Instrument::Probe(_) => (None, false),
        }
    }

    /// What is done to the guest of a cell.
    pub fn stimulus(&self, experiment: &Experiment, cell: Cell) -> Stimulus {
        match cell.instrument {
            Instrument::Generator(generator) => {
                let trigger = generator.trigger.clone();
                Stimulus::Triggers(::rig::Generator {
                    when: When::Planned(trigger.schedule),
                    high: trigger.high,
                    grace: trigger.grace,
                    responders: self.available(generator, cell.flavour),
                    disturbances: trigger.disturbances,
                })
            }
            Instrument::Probe(plan) => Stimulus::Probe(ProbeRun {
                plan: serde_json::to_vec(plan).expect("plain data"),
                expected: plan.duration(),
                witness: experiment.guest.witness,
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
        let has = self.available(generator, cell.flavour);
        let lacks = generator.responders.iter().filter(|r| !has.contains(*r));
        let release = &self.kernel(cell.flavour).record.release;
        let missing = lacks.map(|responder| Warning::ResponderMissing {
            responder: responder.into(),
            release: release.clone(),
        });
        (has.iter().map(SeriesName::from).collect(), missing.collect())
    }

    fn measure(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Failure> {
        let Instrument::Probe(plan) = cell.instrument else {
            return self.measure_part(experiment, cell, observe, progress);
        };
        let Some(parts) = line::parts(plan, experiment.seed) else {
            return self.measure_part(experiment, cell, observe, progress);
        };
        let (mut whole, mut mean) = (None::<Measured>, line::Mean::default());
        for part in &parts {
            let cell = Cell { instrument: &part.instrument, ..cell };
            let is_line = matches!(part.instrument, Instrument::Generator(_));
            let mut place = |observation| {
                let observation = part.placed(observation);
                if is_line {
                    mean.add(&observation);
                }
                observe(observation)
            };
            let measured = self.measure_part(experiment, cell, &mut place, progress)?;
            let ended = measured.warnings.iter().any(|w| matches!(w, Warning::Interrupted));
            whole = Some(match whole {
                None => measured,
                Some(before) => before.joined(measured),
            });
            if ended {
                break;
            }
        }
        let mut whole = whole.expect("an instrument has a part");
        mean.enter(plan, &mut whole.probe_counters);
        Ok(whole)
    }
}

impl Rig {
    /// Measures what one guest measures.
    fn measure_part(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Failure> {
        let guest = self.guest(experiment, cell);
        let stimulus = self.stimulus(experiment, cell);
        let snapshot = self.bench.snapshot(&guest, progress)?;
        let width = width(cell);
        let (mut judged, mut pulses) = (Vec::new(), Vec::new());
        let mut take = |observation| {
            if width.is_some() {
                pulses.push(observation);
                return ControlFlow::Continue(());
            }
            if let (true, Observation::Sample(sample)) = (experiment.guest.witness, &observation) {
                judged.push(*sample);
            }
            observe(observation)
        };
        let outcome =
            self.bench.measure(&guest, &stimulus, &snapshot, &mut take, None, progress)?;
        let truth = match width {
            Some(width) => {
                let Seen { observations, truths } = seen(cell, width, &pulses, &outcome);
                // Whoever breaks says why himself.
                let _ = observations.into_iter().try_for_each(observe);
                Some(truths)
            }
            None => experiment.guest.witness.then(|| truth(cell, &judged, &outcome)),
        };
        Ok(Measured {
            kernel: super::kernel(Some(&cell.flavour.kernel), context(&guest.kernel, &outcome)),
            machine: Machine {
                accelerator: "tcg".into(),
                cpu: ::rig::CPU.into(),
                memory_mib: guest.memory_mib,
                icount_shift: Some(guest.shift),
                snapshot: Some(outcome.snapshot.clone()),
                contents_blake3: super::contents(&guest),
            },
            versions: Some((self.bench.qemu_version().to_string(), plugin_version(&self.bench))),
            dropped: outcome.dropped,
            warnings: doubts(self.bench.qemu_version(), &outcome, cell.flavour, cell.load),
            counters: outcome.counters,
            probe_counters: outcome.report.map_or_else(BTreeMap::new, |r| r.counters),
            truth,
            console: Some(outcome.console),
        })
    }
}

/// The plugin as bundles name it: the version of onset, and the beginning of the file's hash.
pub fn plugin_version(bench: &Bench) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), &bench.plugin_blake3()[..16])
}

/// What the guest said of itself, and what the package of its kernel says where it could not: there is no `/boot` in it.
fn context(kernel: &::rig::Kernel, outcome: &Outcome) -> BTreeMap<String, String> {
    let mut context = outcome.context.clone();
    if !context.contains_key(keys::HZ) {
        let hz = kernel.configuration().as_deref().and_then(hz);
        context.extend(hz.map(|hz| (keys::HZ.to_owned(), hz.to_string())));
    }
    context
}

/// How true a probe's samples are, by what the witness saw.
fn truth(cell: Cell, samples: &[Sample], outcome: &Outcome) -> Vec<Truth> {
    let Instrument::Probe(plan) = cell.instrument else { return Vec::new() };
    truth::judge(plan, &cell.instrument.series(), samples, origin(outcome), &outcome.witness)
}

/// The length of the pulses that the port sees, where the instrument makes such.
fn width(cell: Cell) -> Option<Nanos> {
    match cell.instrument {
        Instrument::Probe(plan) => edges::width(&plan.probe),
        Instrument::Generator(_) => None,
    }
}

/// The pulses as the port saw them.
fn seen(cell: Cell, width: Nanos, reported: &[Observation], outcome: &Outcome) -> Seen {
    edges::judge(&cell.instrument.series(), width, reported, origin(outcome), &outcome.witness)
}

/// From when a probe's times count, by the guest's clock; absent where it did not say.
fn origin(outcome: &Outcome) -> Option<Stamp<Monotonic>> {
    let counters = &outcome.report.as_ref()?.counters;
    counters.get("origin_ns").map(|ns| Stamp::from_ns(*ns))
}

/// Major and minor number of a release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Every doubt that the rig's outcome raises.
fn doubts(qemu: &str, outcome: &Outcome, flavour: &Flavour, load: Load) -> Vec<Warning> {
    let refused = validity::boot(&flavour.parameters, &outcome.context.clone().into());
    let mut warnings: Vec<Warning> = refused.into_iter().map(Warning::Validity).collect();
    if !::rig::is_tried(qemu) {
        warnings.push(Warning::QemuUntried { version: qemu.to_owned() });
    }
    match &outcome.ending {
        Ending::Whole => {}
        Ending::Died(why) | Ending::Failed(why) => {
            warnings.push(Warning::MachineDied { text: why.clone() })
        }
        Ending::Interrupted => warnings.push(Warning::Interrupted),
    }
    warnings.extend(outcome.faults.iter().map(|fault| match fault.clone() {
        Fault::Panic(text) => Warning::GuestPanicked { text },
        Fault::Oops(text) => Warning::GuestOops { text },
        Fault::Lockup(text) => Warning::GuestLockup { text },
        Fault::OutOfMemory(text) => Warning::GuestOutOfMemory { text },
        Fault::Warning(text) => Warning::GuestWarned { text },
    }));
    // The guest's counter is made of virtual time, whatever the processor model says of it.
    let said = outcome.report.iter().flat_map(|report| &report.doubts);
    let said = said.filter(|doubt| **doubt != Doubt::TscNotInvariant);
    warnings.extend(said.cloned().map(Warning::Probe));
    if outcome.dropped > 0 {
        warnings.push(Warning::ChannelDropped { records: outcome.dropped });
    }
    if outcome.ending == Ending::Whole {
        if let Err(text) = outcome.guest_ended.clone() {
            warnings.push(Warning::GuestDidNotEnd { text });
        }
        let still = |c: &&str| outcome.counters.get(*c).is_none_or(|n| *n == 0);
        let idle = load.counters().into_iter().filter(still);
        warnings.extend(idle.map(|counter| Warning::LoadDidNoWork { counter: counter.into() }));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            ending: Ending::Whole,
            dropped: 0,
            report: None,
            witness: ::rig::Witness::default(),
            context: BTreeMap::new(),
            counters: BTreeMap::new(),
            faults: Vec::new(),
            console: String::new(),
            restored_at: 0,
            guest_ended: Ok(()),
            snapshot: "key".into(),
            first_answer: None,
        }
    }

    fn codes(outcome: &Outcome, load: Load) -> Vec<&'static str> {
        let flavour = flavour("6.12");
        doubts("10.0.2 (Debian)", outcome, &flavour, load).iter().map(Warning::code).collect()
    }

    fn flavour(text: &str) -> Flavour {
        text.parse().expect("a flavour")
    }

    #[test]
    fn a_sound_idle_run_raises_no_doubt() {
        assert!(codes(&outcome(), Load::Idle).is_empty());
    }

    #[test]
    fn a_qemu_that_onset_was_not_tried_with_is_doubted_by_name_and_the_run_stands() {
        let warnings = doubts("11.0.2 (Ubuntu)", &outcome(), &flavour("6.12"), Load::Idle);
        let version = "11.0.2 (Ubuntu)".to_owned();
        assert_eq!(warnings, [Warning::QemuUntried { version }]);
        assert!(!warnings[0].invalidates());
        assert!(doubts("11.1.3 (Debian)", &outcome(), &flavour("6.12"), Load::Idle).is_empty());
    }

    #[test]
    fn a_load_whose_counters_stand_still_is_doubted() {
        let mut o = outcome();
        o.counters = BTreeMap::from([("disk.dd".into(), 3), ("disk.sync".into(), 0)]);
        assert_eq!(codes(&o, Load::Disk), ["load_did_no_work"]);
    }

    #[test]
    fn what_a_probe_doubts_is_doubted_but_for_the_counter_that_virtual_time_drives() {
        let mut o = outcome();
        let doubts = vec![Doubt::TscNotInvariant, Doubt::PageFaults { faults: 1 }];
        o.report = Some(probes::Report { counters: BTreeMap::new(), doubts });
        assert_eq!(codes(&o, Load::Idle), ["page_faults"]);
    }

    #[test]
    fn a_guest_that_does_not_run_what_its_flavour_says_makes_the_run_unsound_with_a_remedy() {
        let mut o = outcome();
        let said = [(keys::PREEMPTION_MODE, "voluntary"), (keys::BOOT_WORDS_UNKNOWN, "nosuch")];
        o.context = said.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let warnings =
            doubts("10.0.2 (Debian)", &o, &flavour("6.12 preempt=fulll nosuch"), Load::Idle);
        let codes: Vec<&str> = warnings.iter().map(Warning::code).collect();
        assert_eq!(codes, ["preemption_differs", "boot_words_refused"]);
        assert!(warnings.iter().all(Warning::invalidates));
        assert!(warnings[0].symptom().contains("preempt=fulll was asked for"));
        assert!(warnings[0].action().contains("a mode that the kernel can be told"));
    }

    #[test]
    fn a_guest_that_panics_makes_the_run_unsound_with_its_text() {
        let mut o = outcome();
        o.faults = vec![Fault::Panic("Kernel panic - not syncing".into())];
        let warnings = doubts("10.0.2 (Debian)", &o, &flavour("6.12"), Load::Idle);
        assert!(warnings[0].invalidates());
        assert!(warnings[0].symptom().contains("not syncing"));
    }

    #[test]
    fn an_early_end_is_not_also_a_guest_that_did_not_end() {
        let mut o = outcome();
        (o.ending, o.guest_ended) = (Ending::Died("killed".into()), Err("killed".into()));
        assert_eq!(codes(&o, Load::Mixed), ["machine_died"]);
    }

    #[test]
    fn a_release_is_compared_by_number_not_by_text() {
        assert!(version("6.12.57+deb13-amd64") >= BH_WORK_SINCE);
        assert!(version("6.1.0-40-amd64") < BH_WORK_SINCE);
        assert!(version("7.0.1") >= BH_WORK_SINCE);
    }
}
