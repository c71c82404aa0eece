// SPDX-License-Identifier: GPL-2.0-or-later
//! One cell of an experiment: boot and save once, restore, measure, collect.

use crate::console::{self, Fault};
use crate::error::At;
use crate::kernel::Kernel;
use crate::machine::{self, Channel, Generator, Machine, Origin, Running};
use crate::snapshot::{self, Snapshot};
use crate::{Cache, Contents, Error, Parts, Result, image, tool};
use agent::Word;
use sample::{Answers, Kind, Nanos, Observation, Record, ResponderSet, Schedule};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Booting to user space and setting up a load takes 10 to 30 s of wall time; a machine shared with
/// others may be several times slower.
const BOOT_DEADLINE: Duration = Duration::from_secs(300);
/// Without any record for this long, and a second more for each ten virtual milliseconds that may
/// legitimately pass between two, the machine hangs.
const STALL_DEADLINE: Duration = Duration::from_secs(120);
/// Powering off, or answering a control command.
const END_DEADLINE: Duration = Duration::from_secs(60);
/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The plugin's marks (crates/plugin/src/generator.rs).
const MARK_MEASURING: u8 = 2;

/// What there is to tell while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Putting the image together, building the driver.
    Preparing,
    /// Booting and setting up the load.
    Booting,
    /// Under load, before measuring.
    WarmingUp,
    /// Writing the machine's state.
    Saving,
    /// Reading it.
    Restoring,
    /// Triggers raised so far, of how many.
    Measuring(u64, u64),
}

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
}

impl Guest {
    /// Its machine.
    pub fn machine(&self) -> Machine {
        Machine {
            kernel: self.kernel.image(),
            parameters: self.parameters.clone(),
            memory_mib: self.memory_mib,
            shift: self.shift,
        }
    }
}

/// How measuring ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every trigger was raised, and answered or given up.
    Whole,
    /// The guest or QEMU ended first; why, as far as is known.
    Died(String),
    /// The user asked to stop.
    Interrupted,
}

/// What a run yields besides its observations.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Triggers raised.
    pub triggers: u64,
    /// Records lost between plugin and collector.
    pub dropped: u64,
    /// What the guest said of itself.
    pub context: BTreeMap<String, String>,
    /// The load's counters over the measuring phase; empty where the guest did not report.
    pub counters: BTreeMap<String, u64>,
    /// Trouble seen on the guest's console.
    pub faults: Vec<Fault>,
    /// What the guest's kernel printed, from its boot on.
    pub console: String,
    /// Whether the guest reported and ended by itself after measuring; if not, what happened instead.
    pub guest_ended: std::result::Result<(), String>,
    /// Length of the measuring phase in virtual time.
    pub measured: Nanos,
    /// The snapshot's key.
    pub snapshot: String,
    /// Wall time from starting QEMU to the first answer.
    pub first_answer: Option<Duration>,
}

/// Everything that is the same for all cells.
#[derive(Clone, Debug)]
pub struct Bench {
    cache: Cache,
    parts: Parts,
    qemu_version: String,
    plugin_blake3: String,
}

impl Bench {
    /// Looks at the host: QEMU's version, our parts.
    pub fn new(cache: Cache, parts: Parts) -> Result<Bench> {
        let qemu_version = machine::qemu_version()?;
        if !machine::is_tried(&qemu_version) {
            return Err(Error::Qemu(format!(
                "version {qemu_version} was found, whose internals the plugin does not know; install version {}: make prepare-run",
                machine::VERSION_TRIED
            )));
        }
        let plugin_blake3 = snapshot::hash_file(&parts.plugin)?;
        Ok(Bench { cache, parts, qemu_version, plugin_blake3 })
    }

    /// QEMU's version.
    pub fn qemu_version(&self) -> &str {
        &self.qemu_version
    }

    /// blake3 of the plugin.
    pub fn plugin_blake3(&self) -> &str {
        &self.plugin_blake3
    }

    /// Our parts.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    fn key(&self, guest: &Guest, image: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        add(guest.kernel.record.image_blake3.as_bytes());
        add(blake3::hash(image).as_bytes());
        add(self.qemu_version.as_bytes());
        add(self.plugin_blake3.as_bytes());
        guest.machine().arguments().iter().for_each(|a| add(a.as_bytes()));
        hasher.finalize().to_hex()[..32].to_string()
    }

    /// The guest's snapshot and its key, made where there is none.
    pub fn snapshot(
        &self,
        guest: &Guest,
        progress: &dyn Fn(Progress),
    ) -> Result<(Snapshot, String)> {
        progress(Progress::Preparing);
        let image = image::build(&guest.kernel, &guest.contents)?;
        let key = self.key(guest, &image);
        let place = self.cache.place("snapshots")?.join(&key);
        if let Some(snapshot) = Snapshot::open(&place, blake3::hash(&image).to_hex().as_str()) {
            return Ok((snapshot, key));
        }
        let scratch = self.cache.scratch()?;
        let draft = scratch.path().join("snapshot");
        fs::create_dir(&draft).at(&draft)?;
        let image_path = draft.join("image");
        fs::write(&image_path, image).at(&image_path)?;
        let record = self.boot_and_save(guest, &image_path, &draft, scratch.path(), progress)?;
        Ok((Snapshot::publish(&draft, &place, record)?, key))
    }

    fn boot_and_save(
        &self,
        guest: &Guest,
        image: &Path,
        draft: &Path,
        scratch: &Path,
        progress: &dyn Fn(Progress),
    ) -> Result<snapshot::Record> {
        progress(Progress::Booting);
        let mut channel = Channel::new()?;
        let generator = no_triggers();
        let plugin = Some((self.parts.plugin.as_path(), &generator, &channel));
        let mut running =
            Running::start(&guest.machine(), Origin::Boot { image }, plugin, scratch)?;
        let mark = wait_for_mark(&mut running, &mut channel, progress)?;
        running.qmp.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        progress(Progress::Saving);
        let state = draft.join("state");
        let save = |e| Error::Qemu(format!("saving the machine to {}: {e}", state.display()));
        // The stream is written at the disk's speed; by default QEMU throttles to 128 MiB/s.
        running.qmp.call(
            "migrate-set-parameters",
            json!({"max-bandwidth": 1u64 << 40}),
            END_DEADLINE,
        )?;
        running.qmp.call(
            "migrate",
            json!({"uri": format!("file:{}", state.display())}),
            END_DEADLINE,
        )?;
        loop {
            let status = running.qmp.call("query-migrate", json!({}), END_DEADLINE)?;
            match status.get("status").and_then(|s| s.as_str()) {
                Some("completed") => break,
                Some("failed" | "cancelled") => {
                    let why = status.get("error-desc").and_then(|s| s.as_str()).unwrap_or("failed");
                    return Err(save(why.to_string()));
                }
                _ => std::thread::sleep(tool::POLL),
            }
        }
        let (_, context) = read_words(&running.wire());
        let console = running.console();
        fs::write(draft.join("console"), &console).at(draft)?;
        let state_blake3 = snapshot::hash_file(&state)?;
        let [pins, control] = [mark.pins, (mark.value >> 8) as u8];
        Ok(snapshot::Record { state_blake3, pins, control, context: context.context })
    }

    /// Measures, from the snapshot on: every observation goes to `observe` in the order of time.
    ///
    /// There is no way to measure in a machine that was booted for it: QEMU's code cache is then warm, and
    /// its counting of instructions differs by a few where code was changed under its feet. All runs begin
    /// alike, cold.
    pub fn measure(
        &self,
        guest: &Guest,
        generator: &Generator,
        (snapshot, key): &(Snapshot, String),
        observe: &mut dyn FnMut(Observation),
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome> {
        progress(Progress::Restoring);
        let scratch = self.cache.scratch()?;
        let collector = Collector::new(generator, Channel::new()?);
        let begun = Instant::now();
        let plugin = Some((self.parts.plugin.as_path(), generator, &collector.channel));
        let running = restore(guest, snapshot, plugin, scratch.path())?;
        let outcome = collector.collect(running, begun, observe, progress, snapshot)?;
        Ok(Outcome { snapshot: key.clone(), ..outcome })
    }

    /// Runs a guest that ends by itself from its snapshot on, without the plugin, and says how long that
    /// took in wall time: what the plugin is compared with.
    pub fn run_without_plugin(&self, guest: &Guest, snapshot: &Snapshot) -> Result<Duration> {
        let scratch = self.cache.scratch()?;
        let begun = Instant::now();
        let mut running = restore(guest, snapshot, None, scratch.path())?;
        while !running.ended()? {
            if tool::interrupted() {
                return Err(Error::Interrupted);
            }
            std::thread::sleep(tool::POLL);
        }
        Ok(begun.elapsed())
    }

    /// Where the cache is.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}

/// Starts QEMU from a snapshot and lets the guest go on.
fn restore(
    guest: &Guest,
    snapshot: &Snapshot,
    plugin: Option<(&Path, &Generator, &Channel)>,
    scratch: &Path,
) -> Result<Running> {
    let (image, state) = (snapshot.image(), snapshot.state());
    let registers = (snapshot.record.pins, snapshot.record.control);
    let origin = Origin::Restore { image: &image, state: &state, registers };
    let mut running = Running::start(&guest.machine(), origin, plugin, scratch)?;
    running.qmp.greet(END_DEADLINE)?;
    wait_until_paused(&mut running)?;
    running.qmp.call("cont", json!({}), END_DEADLINE)?;
    Ok(running)
}

/// Nothing is triggered while booting.
fn no_triggers() -> Generator {
    Generator {
        schedule: Schedule::Explicit(Vec::new()),
        high: Nanos(1),
        grace: Nanos(1),
        responders: ResponderSet::default(),
    }
}

/// Waits until the guest says that measuring begins.
fn wait_for_mark(
    running: &mut Running,
    channel: &mut Channel,
    progress: &dyn Fn(Progress),
) -> Result<Record> {
    let begun = Instant::now();
    let mut measuring = None;
    loop {
        let ended = running.ended()?;
        channel.drain(|r| {
            if r.kind == Kind::Mark && r.value as u8 == MARK_MEASURING {
                measuring = Some(*r);
            } else if r.kind == Kind::Mark {
                progress(Progress::WarmingUp);
            }
        })?;
        if let Some(mark) = measuring {
            return Ok(mark);
        }
        if ended || begun.elapsed() > BOOT_DEADLINE {
            return Err(Error::Guest { phase: "booting", why: why_it_ended(running, ended) });
        }
        if tool::interrupted() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(tool::POLL);
    }
}

/// The best explanation there is for a guest that ended or hangs.
fn why_it_ended(running: &Running, ended: bool) -> String {
    let (failure, _) = read_words(&running.wire());
    let console = running.console();
    let last = tool::last_lines(&console, 8);
    match (failure, console::faults(&console).first()) {
        (Some(reason), _) => format!("its init gave up: {reason}\n{last}"),
        (None, Some(fault)) => fault.text().to_string(),
        (None, None) if ended => {
            format!("it ended without a word; the end of its console:\n{last}")
        }
        (None, None) => format!("it hangs; the end of its console:\n{last}"),
    }
}

fn wait_until_paused(running: &mut Running) -> Result<()> {
    let begun = Instant::now();
    loop {
        let status = running.qmp.call("query-status", json!({}), END_DEADLINE);
        let status = match status {
            Ok(status) => status,
            // A refused state makes QEMU exit; its own words are better than ours.
            Err(e) => return Err(running.ended().err().unwrap_or(e)),
        };
        if status.get("status").and_then(|s| s.as_str()) == Some("paused") {
            return Ok(());
        }
        if begun.elapsed() > END_DEADLINE {
            return Err(Error::Qemu(format!("does not pause: {status}")));
        }
        std::thread::sleep(tool::POLL);
    }
}

#[derive(Default)]
struct Words {
    context: BTreeMap<String, String>,
    counters: BTreeMap<String, u64>,
}

/// What init said. Lines that are no words are passed over: a guest that died may have cut one short.
fn read_words(text: &str) -> (Option<String>, Words) {
    let mut words = Words::default();
    let mut failure = None;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Word::Context(context)) => words.context = context,
            Ok(Word::Counters(counters)) => words.counters = counters,
            Ok(Word::Failed(reason)) => failure = Some(reason),
            Err(_) => {}
        }
    }
    (failure, words)
}

/// Takes the records of one machine and turns them into observations.
struct Collector {
    channel: Channel,
    responders: ResponderSet,
    total: u64,
    stall_deadline: Duration,
    answers: Option<Answers>,
    triggers: u64,
    first_ns: u64,
    last_ns: u64,
    whole: bool,
    first_answer: Option<Duration>,
}

impl Collector {
    fn new(generator: &Generator, channel: Channel) -> Collector {
        let longest_gap = generator.schedule.longest_gap();
        let virtual_ms = longest_gap.0.max(generator.grace.0) / 1_000_000;
        Collector {
            channel,
            responders: generator.responders,
            total: generator.schedule.count(),
            stall_deadline: STALL_DEADLINE + Duration::from_secs(virtual_ms / 10),
            answers: None,
            triggers: 0,
            first_ns: 0,
            last_ns: 0,
            whole: false,
            first_answer: None,
        }
    }

    fn collect(
        mut self,
        mut running: Running,
        begun: Instant,
        observe: &mut dyn FnMut(Observation),
        progress: &dyn Fn(Progress),
        snapshot: &Snapshot,
    ) -> Result<Outcome> {
        let (mut heard, mut told) = (Instant::now(), Instant::now());
        let mut ended = Ok(false);
        let ending = loop {
            // Asked before draining: what the machine wrote before it ended is then in the channel.
            ended = if matches!(ended, Ok(false)) { running.ended() } else { ended };
            let received = self.drain(begun, observe)?;
            if self.whole {
                break Ending::Whole;
            }
            match &ended {
                Ok(false) => {}
                Ok(true) => break Ending::Died(why_it_ended(&running, true)),
                Err(e) => break Ending::Died(e.to_string()),
            }
            if tool::interrupted() {
                break Ending::Interrupted;
            }
            if received > 0 {
                heard = Instant::now();
            } else if heard.elapsed() > self.stall_deadline {
                break Ending::Died(why_it_ended(&running, false));
            }
            if told.elapsed() > PROGRESS_EVERY && self.answers.is_some() {
                told = Instant::now();
                progress(Progress::Measuring(self.triggers, self.total));
            }
            std::thread::sleep(tool::POLL);
        };
        if let Some(answers) = self.answers.take() {
            answers.finish(observe);
        }
        let mut guest_ended = wait_for_end(&mut running, &ending);
        let (failure, words) = read_words(&running.wire());
        if let Some(reason) = failure {
            guest_ended = Err(format!("its init gave up: {reason}"));
        }
        let console = snapshot.console() + &running.console();
        Ok(Outcome {
            ending,
            triggers: self.triggers,
            dropped: self.channel.dropped(),
            context: snapshot.record.context.clone(),
            counters: words.counters,
            faults: console::faults(&console),
            console,
            guest_ended,
            measured: Nanos(self.last_ns - self.first_ns),
            snapshot: String::new(),
            first_answer: self.first_answer,
        })
    }

    fn drain(&mut self, begun: Instant, observe: &mut dyn FnMut(Observation)) -> Result<u64> {
        let Collector { channel, responders, answers, triggers, whole, .. } = self;
        let (first_ns, last_ns, first_answer) =
            (&mut self.first_ns, &mut self.last_ns, &mut self.first_answer);
        channel.drain(|record| match record.kind {
            Kind::Mark if record.value as u8 == MARK_MEASURING => {
                *first_ns = record.at.ns();
                *last_ns = record.at.ns();
                *answers = Some(Answers::new(*responders, record.at, record.pins));
            }
            Kind::Mark => {}
            kind => {
                *last_ns = record.at.ns();
                *whole |= kind == Kind::End;
                *triggers += u64::from(kind == Kind::Trigger);
                if kind == Kind::Pins && first_answer.is_none() {
                    *first_answer = Some(begun.elapsed());
                }
                if let Some(answers) = answers {
                    answers.observe(record, &mut *observe);
                }
            }
        })
    }
}

/// Waits for the guest to report and end. A guest that does not is killed when `running` is dropped.
fn wait_for_end(running: &mut Running, ending: &Ending) -> std::result::Result<(), String> {
    if *ending != Ending::Whole {
        return Err("measuring was not whole".into());
    }
    let begun = Instant::now();
    while begun.elapsed() < END_DEADLINE && !tool::interrupted() {
        match running.ended() {
            Ok(true) => return Ok(()),
            Ok(false) => std::thread::sleep(tool::POLL),
            Err(e) => return Err(e.to_string()),
        }
    }
    Err(format!("it still ran after {} s", begun.elapsed().as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_guests_words_are_understood_and_a_torn_one_is_passed_over() {
        let text = "{\"context\":{\"release\":\"6.12\"}}\n{\"counters\":{\"a\":3}}\n{\"coun";
        let (failure, words) = read_words(text);
        assert_eq!(failure, None);
        assert_eq!(words.context["release"], "6.12");
        assert_eq!(words.counters["a"], 3);
        let (failure, _) = read_words("{\"failed\":\"no disk\"}\n");
        assert_eq!(failure.as_deref(), Some("no disk"));
    }

    proptest! {
        #[test]
        fn whatever_the_guest_says_is_read(text in "\\PC*") {
            let _ = read_words(&text);
        }
    }
}
