// SPDX-License-Identifier: GPL-2.0-or-later
//! One cell of an experiment: restore its guest, measure, collect.

use crate::collect::Seer;
use crate::console::{self, Fault};
use crate::kernel::Kernel;
use crate::machine::{Emulator, Machine, Origin, Plugin, Running, Stimulus};
use crate::snapshot::Snapshot;
use crate::{Cache, Contents, Error, Follow, Parts, Result, Witness, intact};
use agent::Load;
use sample::{Nanos, Observer};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use work::Progress;

/// Events that fit into a machine's channel: 8 MiB. The guest makes at most a few hundred thousand a second
/// of wall time, so the collector may be kept from running for seconds before one is dropped.
pub(crate) const RECORDS: usize = 1 << 18;
/// Powering off, answering a control command, or ending an interrupted probe and handing over its records.
pub(crate) const END_DEADLINE: Duration = Duration::from_secs(60);

/// The guest of a cell.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its kernel.
    pub kernel: Kernel,
    /// Words for the kernel's command line.
    pub parameters: Vec<String>,
    /// What is in its image.
    pub contents: Contents,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual nanoseconds per instruction, as a power of two.
    pub shift: u8,
    /// Of the random numbers that its kernel begins with: another seed is another history of the same guest.
    pub seed: u32,
    /// How long after the warm-up measuring begins. Where it is not 0 the guest is let run from the warm-up's end, by
    /// way of the stages ([`crate::stage_before`]), saved once more, and measured from there.
    pub begin_after: Nanos,
}

impl Guest {
    /// A guest with nothing but a load, which is warmed up for 200 ms: 256 MiB, an instruction a nanosecond, the
    /// kernel's own parameters, no driver and no `task` responder.
    ///
    /// # Errors
    /// A kernel that is not in the cache.
    pub fn plain(bench: &Bench, kernel: &str, load: Load) -> Result<Guest> {
        Ok(Guest {
            kernel: bench.cache().kernels()?.get(kernel)?,
            parameters: Vec::new(),
            contents: Contents {
                agent: bench.parts().agent.clone(),
                load,
                driver: None,
                task: false,
                warm_up_ns: 200_000_000,
                ends_after_ns: None,
                modules: Vec::new(),
                programs: Vec::new(),
                files: Vec::new(),
            },
            memory_mib: 256,
            shift: 0,
            seed: 1,
            begin_after: Nanos(0),
        })
    }

    /// Its machine.
    pub fn machine(&self) -> Machine {
        Machine {
            kernel: self.kernel.image(),
            parameters: self.parameters.clone(),
            memory_mib: self.memory_mib,
            shift: self.shift,
            seed: self.seed,
        }
    }
}

/// How measuring ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every trigger was raised, and answered or given up; the probe ended.
    Whole,
    /// The guest ended first, by what it did itself; why, as far as is known.
    Died(String),
    /// The machine failed first, which says nothing of the guest: QEMU was killed, or ended with an error of its own,
    /// or no record came for minutes of wall time. Why.
    Failed(String),
    /// The user asked to stop.
    Interrupted,
}

/// What a run yields besides its observations.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Records lost between plugin and collector, or between a probe and init.
    pub dropped: u64,
    /// What a probe said of its own run.
    pub report: Option<probes::Report>,
    /// What was seen of a probe from outside.
    pub witness: Witness,
    /// What the guest said of itself.
    pub context: BTreeMap<String, String>,
    /// The load's counters over the measuring phase; empty where the guest did not report.
    pub counters: BTreeMap<String, u64>,
    /// Trouble seen on the guest's console, from its boot on.
    pub faults: Vec<Fault>,
    /// What the guest's kernel printed, from its boot on.
    pub console: String,
    /// How many bytes of that it had printed before it was restored.
    pub restored_at: usize,
    /// Whether the guest reported and ended by itself after measuring; if not, what happened instead.
    pub guest_ended: std::result::Result<(), String>,
    /// The snapshot's key.
    pub snapshot: String,
    /// Wall time from starting QEMU to the first answer.
    pub first_answer: Option<Duration>,
}

impl Outcome {
    /// What the guest's kernel printed since it was restored.
    pub fn said(&self) -> &str {
        self.console.get(self.restored_at..).unwrap_or_default()
    }

    /// Trouble seen in that.
    pub fn faults_since(&self) -> Vec<Fault> {
        console::faults(self.said())
    }
}

/// What is to be followed of the guest's kernel, and who takes what was seen.
pub struct Following<'a> {
    /// The places.
    pub follow: &'a Follow,
    /// Takes the events.
    pub see: &'a mut Seer<'a>,
}

/// Everything that is the same for all cells.
#[derive(Clone, Debug)]
pub struct Bench {
    cache: Cache,
    parts: Parts,
    emulator: Emulator,
    plugin_blake3: String,
}

impl Bench {
    /// Looks at the host: QEMU, our parts, and whether they get on with each other.
    ///
    /// # Errors
    /// No QEMU, or one that the plugin refuses; no plugin.
    pub fn new(cache: Cache, parts: Parts) -> Result<Bench> {
        let plugin_blake3 = intact::hash_file(&parts.plugin)?;
        let emulator = Emulator::find()?.tried_with(&parts.plugin)?;
        Ok(Bench { cache, parts, emulator, plugin_blake3 })
    }

    /// QEMU's version.
    pub fn qemu_version(&self) -> &str {
        self.emulator.version()
    }

    /// QEMU.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// blake3 of the plugin.
    pub fn plugin_blake3(&self) -> &str {
        &self.plugin_blake3
    }

    /// Our parts.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Measures, from the snapshot on: every observation goes to `observe`; where that breaks, the run is as if
    /// interrupted. Those of triggers come in the order of time, while it goes on; those of a probe after it has ended,
    /// thread by thread in the order of the probe's outputs.
    ///
    /// There is no way to measure in a machine that was booted for it: QEMU's code cache is then warm, and
    /// its counting of instructions differs by a few where code was changed under its feet. All runs begin
    /// alike, cold.
    pub fn measure(
        &self,
        guest: &Guest,
        stimulus: &Stimulus,
        snapshot: &(Snapshot, String),
        observe: &mut Observer,
        following: Option<Following<'_>>,
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome> {
        progress(Progress::Restoring);
        let (follow, see) = following.map(|f| (f.follow, f.see)).unzip();
        let mut session = self.begin(guest, stimulus, snapshot, follow)?;
        session.run(observe, see, progress)?;
        session.finish(observe)
    }

    /// Runs a guest that ends by itself from its snapshot on, without the plugin, and says how long that
    /// took in wall time: what the plugin is compared with.
    pub fn run_without_plugin(&self, guest: &Guest, snapshot: &Snapshot) -> Result<Duration> {
        let scratch = self.cache.scratch()?;
        let begun = Instant::now();
        let mut running = self.restore(guest, snapshot, None, scratch.path())?;
        while !running.ended()? {
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            std::thread::sleep(work::POLL);
        }
        Ok(begun.elapsed())
    }

    /// Starts QEMU from a snapshot and lets the guest go on.
    pub(crate) fn restore(
        &self,
        guest: &Guest,
        snapshot: &Snapshot,
        plugin: Option<Plugin<'_>>,
        scratch: &Path,
    ) -> Result<Running> {
        let is_commanded = plugin.is_some_and(|plugin| plugin.commands.is_some());
        let mut running = self.restore_paused(guest, snapshot, plugin, scratch)?;
        if is_commanded {
            // QEMU answers only after the first command: it waits for that where it would go on.
            running.go_on()?;
        } else {
            running.call("cont", json!({}), END_DEADLINE)?;
        }
        Ok(running)
    }

    /// Starts QEMU from a snapshot, and leaves the guest paused.
    pub(crate) fn restore_paused(
        &self,
        guest: &Guest,
        snapshot: &Snapshot,
        plugin: Option<Plugin<'_>>,
        scratch: &Path,
    ) -> Result<Running> {
        snapshot.touch();
        let (image, state) = (snapshot.image(), snapshot.state());
        let registers = (snapshot.record.pins, snapshot.record.control);
        let origin = Origin::Restore { image: &image, state: &state, registers, advance: None };
        let mut running =
            Running::start(self.emulator(), &guest.machine(), origin, plugin, scratch)?;
        running.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        Ok(running)
    }

    /// Where the cache is.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}

pub(crate) fn wait_until_paused(running: &mut Running) -> Result<()> {
    let begun = Instant::now();
    loop {
        let status = running.call("query-status", json!({}), END_DEADLINE)?;
        if status.get("status").and_then(|s| s.as_str()) == Some("paused") {
            return Ok(());
        }
        if begun.elapsed() > END_DEADLINE {
            return Err(Error::Qemu(format!("does not pause: {status}")));
        }
        std::thread::sleep(work::POLL);
    }
}
