// SPDX-License-Identifier: GPL-2.0-or-later
//! Brings a guest to the instant at which measuring begins. The guest is booted, may be let run for a while in a few
//! stages, and is saved once. From then on the guest is found in the cache.

use crate::collect::{read_words, why_it_ended, why_it_stands_still};
use crate::error::At;
use crate::intact;
use crate::machine::{Emulator, Generator, Origin, Plugin, Running, Stimulus};
use crate::run::{END_DEADLINE, Ending, Outcome, RECORDS, wait_until_paused};
use crate::snapshot::{self, Snapshot};
use crate::{Bench, Error, Following, Guest, Result, Seer, Witness, console, image};
use sample::{Nanos, ResponderSet, Schedule, When};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::{Channel, Event, Mark, Plan};
use work::Progress;

/// The longest wait for the boot. Booting to user space and setting up a load takes 10 to 30 s of wall time without an
/// event. A machine that is shared with others may be several times slower.
const BOOT_DEADLINE: Duration = Duration::from_secs(300);
/// The longest wait for a virtual second. On a shared machine a virtual second under load takes about 10 s of wall
/// time.
const SLOWEST: Duration = Duration::from_secs(100);
/// How long after its warm-up a guest that is let run on is saved for the first time. It is saved again after twice,
/// four, eight … times this long. So a saved guest is never far from another later time, and the guest always gets
/// there by the same way.
pub const FIRST_STAGE: Nanos = Nanos::from_millis(200);

/// The stage from which a guest is let run to this time after its warm-up: the last stage before it, or the end of the
/// warm-up. `None` for the end of the warm-up itself.
pub fn stage_before(after: Nanos) -> Option<Nanos> {
    let stages = after.checked_sub(Nanos(1))? / FIRST_STAGE;
    Some(stages.checked_ilog2().map_or(Nanos(0), |doublings| FIRST_STAGE << doublings))
}

impl Bench {
    fn key(&self, guest: &Guest, image: &blake3::Hash) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        add(guest.kernel.record.image_blake3.as_bytes());
        add(image.as_bytes());
        add(self.qemu_version().as_bytes());
        add(self.plugin_blake3().as_bytes());
        guest.machine().arguments().iter().for_each(|a| add(a.as_bytes()));
        hasher.finalize().to_hex()[..32].to_string()
    }

    /// The guest's snapshot and its key. If there is no snapshot, the function makes one.
    pub fn snapshot(
        &self,
        guest: &Guest,
        progress: &dyn Fn(Progress),
    ) -> Result<(Snapshot, String)> {
        progress(Progress::Preparing);
        let scratch = self.cache().scratch()?;
        let path = scratch.path().join("image");
        let image = image::build(&guest.kernel, &guest.contents, &path)?;
        let booted = self.key(guest, &image);
        let image = (path.as_path(), image.to_hex().to_string());
        let making =
            Making { bench: self, guest, image, booted, scratch: scratch.path(), progress };
        let key = making.key(guest.begin_after);
        Ok((making.snapshot(guest.begin_after, &key)?, key))
    }

    /// Boots `image` up to the end of the warm-up, and saves the machine to `draft`.
    fn boot(
        &self,
        guest: &Guest,
        image: &Path,
        draft: &Path,
        scratch: &Path,
        progress: &dyn Fn(Progress),
    ) -> Result<snapshot::Record> {
        progress(Progress::Booting);
        let stimulus = no_triggers();
        let mut channel = Channel::with_capacity(RECORDS)?;
        let plugin = Some(self.plugin(&stimulus, None, &channel));
        let mut running = Running::start(
            self.emulator(),
            &guest.machine(),
            Origin::Boot { image },
            plugin,
            scratch,
        )?;
        let mut reach = |event: &Event| match *event {
            Event::Mark { mark: Mark::Measuring, level, control, .. } => Some((level, control)),
            Event::Mark { .. } => {
                progress(Progress::WarmingUp);
                None
            }
            _ => None,
        };
        let phase = ("booting", BOOT_DEADLINE);
        let registers = wait_until(&mut reach, &mut running, &mut channel, phase)?;
        running.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        let (_, words) = read_words(&running.wire());
        check_release(guest, words.context.get("release"))?;
        save(&mut running, registers, (String::new(), words.context), draft, progress)
    }

    /// Lets a saved guest run for `time`, and saves the machine to `draft`.
    fn advance(
        &self,
        guest: &Guest,
        (from, time): (&Snapshot, Nanos),
        draft: &Path,
        scratch: &Path,
        progress: &dyn Fn(Progress),
    ) -> Result<snapshot::Record> {
        let stimulus = no_triggers();
        let mut channel = Channel::with_capacity(RECORDS)?;
        let plugin = self.plugin(&stimulus, None, &channel);
        let mut running = start_from(self.emulator(), guest, (from, time), plugin, scratch)?;
        progress(Progress::WarmingUp);
        let registers = wait_for_end(&mut running, &mut channel, time, &mut |_| ())?;
        save_after(from, &mut running, registers, draft, progress)
    }

    /// Lets a saved guest run for `time` while it is followed, and saves it there. The result is that of
    /// [`Bench::snapshot`] for a guest that begins this much later. So the way to a stage need not be run a second
    /// time. `generator` says what the follower looks for. Nothing is triggered. A guest that dies on the way is not
    /// saved.
    ///
    /// # Errors
    /// The errors of restoring and saving, and an interruption.
    ///
    /// # Panics
    /// If the way to this time does not begin at the guest ([`stage_before`]).
    pub fn advance_followed(
        &self,
        guest: &Guest,
        pair: &(Snapshot, String),
        time: Nanos,
        (generator, following): (Generator, Following<'_>),
    ) -> Result<Outcome> {
        let (from, _) = pair;
        let after = guest.begin_after + time;
        assert_eq!(stage_before(after), Some(guest.begin_after), "the way to {after}");
        let scratch = self.cache().scratch()?;
        let stimulus = Stimulus::Triggers(generator);
        let mut channel = Channel::with_capacity(RECORDS)?;
        let plugin = self.plugin(&stimulus, Some(&following.follow.plan), &channel);
        let mut running = start_from(self.emulator(), guest, (from, time), plugin, scratch.path())?;
        let way = Advanced { from: pair, guest, time, scratch: scratch.path() };
        let died = match wait_for_end(&mut running, &mut channel, time, following.see) {
            Ok(registers) => {
                self.keep_stage(&way, &mut running, registers)?;
                None
            }
            Err(Error::Guest { why, .. }) => Some(why),
            Err(e) => return Err(e),
        };
        Ok(way.outcome(running.console(), &channel, died))
    }

    /// Saves a machine that has gone this way and is to pause, if the way begins at a stage and nobody was here before.
    ///
    /// # Errors
    /// The errors of saving, and an interruption.
    pub(crate) fn keep_stage(
        &self,
        way: &Advanced<'_>,
        running: &mut Running,
        registers: Registers,
    ) -> Result<()> {
        let Advanced { from: (from, key), guest, time, scratch } = way;
        let place = self.cache().place("snapshots")?.join(key_after(key, *time));
        let end = guest.begin_after + *time;
        let leads = stage_before(end) == Some(guest.begin_after);
        // The last scout of a hunt ends between two stages.
        let is_stage = stage_before(end + Nanos(1)) == Some(end);
        if !leads || !is_stage || Snapshot::is_at(&place) {
            return Ok(());
        }
        let draft = draft(scratch, "draft", &from.image())?;
        let record = save_after(from, running, registers, &draft, &|_| ())?;
        Snapshot::publish(&draft, &place, record).map(drop)
    }

    fn plugin<'a>(
        &'a self,
        stimulus: &'a Stimulus,
        follow: Option<&'a Plan>,
        channel: &'a Channel,
    ) -> Plugin<'a> {
        let library = &self.parts().plugin;
        Plugin { library, stimulus, follow, channel, commands: None, walk: None }
    }
}

/// The way on which a saved guest was let run, without triggers.
pub(crate) struct Advanced<'a> {
    /// The saved guest, with its key.
    pub(crate) from: &'a (Snapshot, String),
    pub(crate) guest: &'a Guest,
    /// How long the way is.
    pub(crate) time: Nanos,
    pub(crate) scratch: &'a Path,
}

impl Advanced<'_> {
    /// The outcome of a run of this way, if the guest's kernel has printed `said`. `died` says why the guest ended, if
    /// it did.
    pub(crate) fn outcome(&self, said: String, channel: &Channel, died: Option<String>) -> Outcome {
        let (from, key) = self.from;
        let before = from.console();
        let restored_at = before.len();
        let console = before + &said;
        Outcome {
            ending: died.map_or(Ending::Whole, Ending::Died),
            dropped: channel.dropped(),
            report: None,
            worked: None,
            witness: Witness::default(),
            context: from.record.context.clone(),
            counters: BTreeMap::new(),
            faults: console::faults(&console),
            console,
            restored_at,
            guest_ended: Ok(()),
            snapshot: key.clone(),
            first_answer: None,
        }
    }
}

/// The snapshots of one guest that somebody asks for.
struct Making<'a> {
    bench: &'a Bench,
    guest: &'a Guest,
    /// The image, with its hash.
    image: (&'a Path, String),
    /// The key of the snapshot at the end of the warm-up.
    booted: String,
    scratch: &'a Path,
    progress: &'a dyn Fn(Progress),
}

impl Making<'_> {
    /// The key of the snapshot at `after` the warm-up. It depends on the snapshots on the way.
    fn key(&self, after: Nanos) -> String {
        let Some(from) = stage_before(after) else { return self.booted.clone() };
        key_after(&self.key(from), after - from)
    }

    /// The snapshot at `after` the warm-up. If it is missing, the function makes it, and the missing ones on the way.
    fn snapshot(&self, after: Nanos, key: &str) -> Result<Snapshot> {
        let (image, hash) = &self.image;
        let place = self.bench.cache().place("snapshots")?.join(key);
        if let Some(snapshot) = Snapshot::open(&place, hash)? {
            return Ok(snapshot);
        }
        let draft = draft(self.scratch, key, image)?;
        let (guest, scratch, progress) = (self.guest, self.scratch, self.progress);
        let record = match stage_before(after) {
            None => self.bench.boot(guest, image, &draft, scratch, progress)?,
            Some(from) => {
                let before = self.snapshot(from, &self.key(from))?;
                let on = (&before, after - from);
                self.bench.advance(guest, on, &draft, scratch, progress)?
            }
        };
        Snapshot::publish(&draft, &place, record)
    }
}

/// Makes a directory for a snapshot of a guest with this image.
fn draft(scratch: &Path, name: &str, image: &Path) -> Result<PathBuf> {
    let draft = scratch.join(name);
    fs::create_dir(&draft).at(&draft)?;
    fs::hard_link(image, draft.join("image")).at(&draft)?;
    Ok(draft)
}

/// The key of the snapshot that is made of another one by letting it run for `time`.
pub fn key_after(key: &str, time: Nanos) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes()).update(&time.0.to_le_bytes());
    hasher.finalize().to_hex()[..32].to_string()
}

/// Lets a saved guest run on. It will stop after `time`.
fn start_from(
    emulator: &Emulator,
    guest: &Guest,
    (from, time): (&Snapshot, Nanos),
    plugin: Plugin<'_>,
    scratch: &Path,
) -> Result<Running> {
    let origin = Origin::Restore {
        image: &from.image(),
        state: &from.state(),
        registers: (from.record.pins, from.record.control),
        advance: Some(time),
    };
    let mut running = Running::start(emulator, &guest.machine(), origin, Some(plugin), scratch)?;
    running.greet(END_DEADLINE)?;
    wait_until_paused(&mut running)?;
    running.call("cont", json!({}), END_DEADLINE)?;
    Ok(running)
}

/// The level of the pins, and the value of the control register.
pub(crate) type Registers = (u16, u8);

/// Saves a machine that was let run on from a saved one.
fn save_after(
    from: &Snapshot,
    running: &mut Running,
    registers: Registers,
    draft: &Path,
    progress: &dyn Fn(Progress),
) -> Result<snapshot::Record> {
    wait_until_paused(running)?;
    let before = (from.console(), from.record.context.clone());
    save(running, registers, before, draft, progress)
}

/// Saves a paused machine to `draft`. The console's text is `console` and then what the machine printed.
fn save(
    running: &mut Running,
    (pins, control): Registers,
    (console, context): (String, BTreeMap<String, String>),
    draft: &Path,
    progress: &dyn Fn(Progress),
) -> Result<snapshot::Record> {
    progress(Progress::Saving);
    let state_blake3 = save_state(running, &draft.join("state"))?;
    fs::write(draft.join("console"), console + &running.console()).at(draft)?;
    Ok(snapshot::Record { state_blake3, pins, control, context })
}

/// Writes the migration stream of a paused machine to `state`. Returns the blake3 of that file.
fn save_state(running: &mut Running, state: &Path) -> Result<String> {
    // QEMU writes the stream at the disk's speed. By default QEMU throttles it to 128 MiB/s.
    let unthrottled = json!({"max-bandwidth": 1u64 << 40});
    running.call("migrate-set-parameters", unthrottled, END_DEADLINE)?;
    let to = json!({"uri": format!("file:{}", state.display())});
    running.call("migrate", to, END_DEADLINE)?;
    loop {
        let status = running.call("query-migrate", json!({}), END_DEADLINE)?;
        match status.get("status").and_then(|s| s.as_str()) {
            Some("completed") => return intact::hash_file(state),
            Some("failed" | "cancelled") => {
                let why = status.get("error-desc").and_then(|s| s.as_str()).unwrap_or("failed");
                let state = state.display();
                return Err(Error::Qemu(format!("saving the machine to {state}: {why}")));
            }
            _ => std::thread::sleep(work::POLL),
        }
    }
}

/// The stimulus while booting: nothing is triggered.
fn no_triggers() -> Stimulus {
    Stimulus::Triggers(Generator {
        when: When::Planned(Schedule::Explicit(Vec::new())),
        high: Nanos(1),
        grace: Nanos(1),
        responders: ResponderSet::default(),
        disturbances: Vec::new(),
        work: None,
    })
}

/// Checks that the kernel that runs is the recorded one. Otherwise every file of the run would name another kernel.
fn check_release(guest: &Guest, running: Option<&String>) -> Result<()> {
    let recorded = &guest.kernel.record.release;
    if running == Some(recorded) {
        return Ok(());
    }
    let running = running.map_or("nothing", |r| r);
    let why = format!(
        "it is recorded as release {recorded}, but calls itself {running}; add it again with the modules of that release"
    );
    Err(Error::Kernel { name: guest.kernel.record.name.clone(), why })
}

/// Waits until a machine has run for the wanted time. `see` takes what a follower reports.
pub(crate) fn wait_for_end(
    running: &mut Running,
    channel: &mut Channel,
    time: Nanos,
    see: &mut Seer<'_>,
) -> Result<Registers> {
    let slowest = SLOWEST * u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let phase = ("being advanced", BOOT_DEADLINE.saturating_add(slowest));
    let mut reach = |event: &Event| {
        see(event);
        match *event {
            Event::End { level, control, .. } => Some((level, control)),
            _ => None,
        }
    };
    wait_until(&mut reach, running, channel, phase)
}

/// Takes a machine's events until `reach` says that the machine is there, and with which registers.
///
/// # Errors
/// [`Error::Guest`] if the guest ended before. [`Error::Stalled`] if no event came for `deadline`, which is wall time
/// and says nothing of the guest.
fn wait_until(
    reach: &mut dyn FnMut(&Event) -> Option<Registers>,
    running: &mut Running,
    channel: &mut Channel,
    (phase, deadline): (&'static str, Duration),
) -> Result<Registers> {
    let mut heard = Instant::now();
    let mut reached = None;
    loop {
        let ended = running.ended()?;
        let received = channel.drain(|event, _| reached = reach(event).or(reached))?;
        if let Some(registers) = reached {
            return Ok(registers);
        }
        if ended {
            return Err(Error::Guest { phase, why: why_it_ended(running) });
        }
        if received > 0 {
            heard = Instant::now();
        } else if heard.elapsed() > deadline {
            return Err(Error::Stalled { phase, why: why_it_stands_still(running, deadline) });
        }
        if work::is_cancelled() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(work::POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_time_is_reached_from_the_last_stage_before_it() {
        let ms = Nanos::from_millis;
        let ways = [
            (0, None),
            (1, Some(0)),
            (200, Some(0)),
            (201, Some(200)),
            (400, Some(200)),
            (900, Some(800)),
            (8_200, Some(6_400)),
        ];
        for (after, from) in ways {
            assert_eq!(stage_before(ms(after)), from.map(ms), "{after} ms");
        }
    }
}
