// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs one cell of an experiment: restores its guest, measures, and collects.

use crate::collect::Seer;
use crate::console::{self, Fault};
use crate::kernel::Kernel;
use crate::machine::{Emulator, Machine, Origin, Plugin, Running, Stimulus};
use crate::snapshot::Snapshot;
use crate::{Cache, Contents, Error, Follow, Parts, Result, Witness, intact};
use agent::{Load, Worked};
use sample::{Nanos, Observer};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use work::Progress;

/// The events that fit into a machine's channel, which has 8 MiB. The guest makes at most a few hundred thousand in a
/// second of wall time. So the collector may be stopped for seconds before an event is dropped.
pub(crate) const RECORDS: usize = 1 << 18;
/// The longest time for powering off, for answering a control command, or for ending an interrupted probe and handing
/// over its records.
pub(crate) const END_DEADLINE: Duration = Duration::from_secs(60);

/// The guest of a cell.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The words for the kernel's command line.
    pub parameters: Vec<String>,
    /// The contents of the guest's image.
    pub contents: Contents,
    /// The memory in MiB.
    pub memory_mib: u32,
    /// The virtual nanoseconds for each instruction, as a power of two.
    pub shift: u8,
    /// The seed of the random numbers with which the kernel begins. Another seed gives another history of the same
    /// guest.
    pub seed: u32,
    /// How long after the warm-up measuring begins. If this is not 0, the guest runs on from the end of the warm-up, by
    /// way of the stages ([`crate::stage_before`]). It is saved once more, and measured from there.
    pub begin_after: Nanos,
}

impl Guest {
    /// A guest with nothing but a load, and with a warm-up of 200 ms. It has 256 MiB, an instruction a nanosecond, the
    /// kernel's own parameters, no driver and no `task` responder.
    ///
    /// # Errors
    /// If the kernel is not in the cache.
    pub fn plain(bench: &Bench, kernel: &str, load: Load) -> Result<Guest> {
        Ok(Guest {
            kernel: bench.cache().kernels()?.get(kernel)?,
            parameters: Vec::new(),
            contents: Contents {
                agent: bench.parts().agent.clone(),
                load,
                driver: None,
                task: None,
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

    /// The guest's machine.
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

/// The way in which measuring ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every trigger was raised, and answered or given up. Or the probe ended.
    Whole,
    /// The guest ended first, by its own doing. The text is the reason, as far as onset knows.
    Died(String),
    /// The machine failed first, which says nothing of the guest: QEMU was killed, or ended with an error of its own,
    /// or no record came for minutes of wall time. The text is the reason.
    Failed(String),
    /// The user asked to stop.
    Interrupted,
}

/// The results of a run besides its observations.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How measuring ended.
    pub ending: Ending,
    /// The records that were lost between plugin and collector, or between a probe and init.
    pub dropped: u64,
    /// The probe's report on its own run.
    pub report: Option<probes::Report>,
    /// What became of the work that the guest was to do.
    pub worked: Option<Worked>,
    /// What was seen of a probe from outside.
    pub witness: Witness,
    /// The facts that the guest reported about itself.
    pub context: BTreeMap<String, String>,
    /// The load's counters over the measuring phase. Empty if the guest did not report.
    pub counters: BTreeMap<String, u64>,
    /// The faults on the guest's console, from its boot on.
    pub faults: Vec<Fault>,
    /// The text that the guest's kernel printed, from its boot on.
    pub console: String,
    /// The number of bytes of that text that were printed before the guest was restored.
    pub restored_at: usize,
    /// Whether the guest reported and ended by itself after measuring. The error says what happened instead.
    pub guest_ended: std::result::Result<(), String>,
    /// The key of the snapshot.
    pub snapshot: String,
    /// The wall time from the start of QEMU to the first answer.
    pub first_answer: Option<Duration>,
}

impl Outcome {
    /// The text that the guest's kernel printed since it was restored.
    pub fn said(&self) -> &str {
        self.console.get(self.restored_at..).unwrap_or_default()
    }

    /// The faults in that text.
    pub fn faults_since(&self) -> Vec<Fault> {
        console::faults(self.said())
    }
}

/// What to follow in the guest's kernel, and who takes what was seen.
pub struct Following<'a> {
    /// The places to follow.
    pub follow: &'a Follow,
    /// Takes the events of the follower.
    pub see: &'a mut Seer<'a>,
}

/// The parts that are the same for all cells.
#[derive(Clone, Debug)]
pub struct Bench {
    cache: Cache,
    parts: Parts,
    emulator: Emulator,
    plugin_blake3: String,
}

impl Bench {
    /// Looks at the host: at QEMU and our parts, and at whether they work together.
    ///
    /// # Errors
    /// If there is no QEMU, if the plugin refuses it, or if there is no plugin.
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

    /// The blake3 of the plugin.
    pub fn plugin_blake3(&self) -> &str {
        &self.plugin_blake3
    }

    /// Our own parts.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Measures from the snapshot on. Every observation goes to `observe`. If `observe` breaks, the run counts as
    /// interrupted. Observations of triggers come in the order of time while the run goes on. Those of a probe come
    /// after it has ended, thread by thread in the order of the probe's outputs.
    ///
    /// A run cannot measure in a machine that was booted for it, which differs by some nanoseconds in 300 ms. The
    /// reason is not known. All runs begin in the same way, from a restored machine.
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

    /// Runs a guest that ends by itself from its snapshot on, without the plugin. Returns the wall time that this took,
    /// for comparison with the plugin.
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

    /// Starts QEMU from a snapshot, and lets the guest go on.
    pub(crate) fn restore(
        &self,
        guest: &Guest,
        snapshot: &Snapshot,
        plugin: Option<Plugin<'_>>,
        scratch: &Path,
    ) -> Result<Running> {
        let is_commanded =
            plugin.is_some_and(|plugin| plugin.commands.is_some() || plugin.walk.is_some());
        let mut running = self.restore_paused(guest, snapshot, plugin, scratch)?;
        if is_commanded {
            // QEMU does not answer before the first command or request: when it would go on, it waits for that.
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

    /// The cache.
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
