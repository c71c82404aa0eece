// SPDX-License-Identifier: GPL-2.0-or-later
//! How a guest comes to where measuring begins: it is booted, perhaps let run for a while, by way of a few stages, and
//! saved, once; from then on it is found in the cache.

use crate::collect::{MARK_MEASURING, read_words, why_it_ended};
use crate::error::At;
use crate::machine::{Generator, Origin, Plugin, Running, Stimulus};
use crate::run::{END_DEADLINE, RECORDS, wait_until_paused};
use crate::snapshot::{self, Snapshot};
use crate::{Bench, Error, Guest, Progress, Result, image, tool};
use sample::{Channel, Kind, Nanos, Record, ResponderSet, Schedule, When};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Booting to user space and setting up a load takes 10 to 30 s of wall time; a machine shared with
/// others may be several times slower.
const BOOT_DEADLINE: Duration = Duration::from_secs(300);
/// A virtual second under load takes about 10 s of wall time, on such a machine.
const SLOWEST: Duration = Duration::from_secs(100);
const NS_PER_S: u64 = 1_000_000_000;
/// So long after its warm-up a guest that is let run on is saved on its way for the first time, then twice, four, eight … times as
/// long after it: another later time is never far then, and always reached by the same way.
pub const FIRST_STAGE: Nanos = Nanos::from_millis(800);

/// From where a guest is let run to this time after its warm-up: the last stage before it, or the warm-up's end; `None`
/// for that.
pub fn stage_before(after: Nanos) -> Option<Nanos> {
    let stages = after.0.checked_sub(1)? / FIRST_STAGE.0;
    Some(stages.checked_ilog2().map_or(Nanos(0), |doublings| Nanos(FIRST_STAGE.0 << doublings)))
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

    /// The guest's snapshot and its key, made where there is none.
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

    /// Boots `image` up to where the warm-up ends, and saves the machine to `draft`.
    fn boot(
        &self,
        guest: &Guest,
        image: &Path,
        draft: &Path,
        scratch: &Path,
        progress: &dyn Fn(Progress),
    ) -> Result<snapshot::Record> {
        progress(Progress::Booting);
        let mut channel = Channel::with_capacity(RECORDS)?;
        let origin = Origin::Boot { image };
        let mut running = self.start_untriggered(guest, origin, &channel, scratch)?;
        let mark = wait_for_mark(&mut running, &mut channel, ("booting", BOOT_DEADLINE), progress)?;
        running.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        let (_, words) = read_words(&running.wire());
        check_release(guest, words.context.get("release"))?;
        save(&mut running, &mark, (String::new(), words.context), draft, progress)
    }

    /// Lets a saved guest run for so long, and saves the machine to `draft`.
    fn advance(
        &self,
        guest: &Guest,
        (from, time): (&Snapshot, Nanos),
        draft: &Path,
        scratch: &Path,
        progress: &dyn Fn(Progress),
    ) -> Result<snapshot::Record> {
        progress(Progress::WarmingUp);
        let mut channel = Channel::with_capacity(RECORDS)?;
        let origin = Origin::Restore {
            image: &from.image(),
            state: &from.state(),
            registers: (from.record.pins, from.record.control),
            advance: Some(time),
        };
        let mut running = self.start_untriggered(guest, origin, &channel, scratch)?;
        running.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        running.call("cont", json!({}), END_DEADLINE)?;
        let slowest = SLOWEST * u32::try_from(time.0 / NS_PER_S).unwrap_or(u32::MAX);
        let phase = ("being advanced", BOOT_DEADLINE.saturating_add(slowest));
        let mark = wait_for_mark(&mut running, &mut channel, phase, progress)?;
        wait_until_paused(&mut running)?;
        let before = (from.console(), from.record.context.clone());
        save(&mut running, &mark, before, draft, progress)
    }

    fn start_untriggered(
        &self,
        guest: &Guest,
        origin: Origin,
        channel: &Channel,
        scratch: &Path,
    ) -> Result<Running> {
        let stimulus = no_triggers();
        let library = &self.parts().plugin;
        let plugin = Plugin { library, stimulus: &stimulus, follow: None, channel };
        Running::start(&guest.machine(), origin, Some(plugin), scratch)
    }
}

/// The snapshots of a guest that are being asked for.
struct Making<'a> {
    bench: &'a Bench,
    guest: &'a Guest,
    /// With its hash.
    image: (&'a Path, String),
    /// Key of the snapshot at the warm-up's end.
    booted: String,
    scratch: &'a Path,
    progress: &'a dyn Fn(Progress),
}

impl Making<'_> {
    /// The key of the snapshot so long after the warm-up: it depends on those that it is made by way of.
    fn key(&self, after: Nanos) -> String {
        let Some(from) = stage_before(after) else { return self.booted.clone() };
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.key(from).as_bytes()).update(&(after.0 - from.0).to_le_bytes());
        hasher.finalize().to_hex()[..32].to_string()
    }

    /// The snapshot so long after the warm-up, and before it those that it is made by way of, where they are not there.
    fn snapshot(&self, after: Nanos, key: &str) -> Result<Snapshot> {
        let (image, hash) = &self.image;
        let place = self.bench.cache().place("snapshots")?.join(key);
        if let Some(snapshot) = Snapshot::open(&place, hash)? {
            return Ok(snapshot);
        }
        let draft = self.scratch.join(key);
        fs::create_dir(&draft).at(&draft)?;
        fs::hard_link(image, draft.join("image")).at(&draft)?;
        let (guest, scratch, progress) = (self.guest, self.scratch, self.progress);
        let record = match stage_before(after) {
            None => self.bench.boot(guest, image, &draft, scratch, progress)?,
            Some(from) => {
                let before = self.snapshot(from, &self.key(from))?;
                let on = (&before, Nanos(after.0 - from.0));
                self.bench.advance(guest, on, &draft, scratch, progress)?
            }
        };
        Snapshot::publish(&draft, &place, record)
    }
}

/// Saves a paused machine, and what it printed after `console`, to `draft`.
fn save(
    running: &mut Running,
    mark: &Record,
    (console, context): (String, BTreeMap<String, String>),
    draft: &Path,
    progress: &dyn Fn(Progress),
) -> Result<snapshot::Record> {
    progress(Progress::Saving);
    let state_blake3 = save_state(running, &draft.join("state"))?;
    fs::write(draft.join("console"), console + &running.console()).at(draft)?;
    let [pins, control] = [mark.pins, (mark.value >> 8) as u8];
    Ok(snapshot::Record { state_blake3, pins, control, context })
}

/// Writes the migration stream of a paused machine to `state`; the blake3 of that file.
fn save_state(running: &mut Running, state: &Path) -> Result<String> {
    // The stream is written at the disk's speed; by default QEMU throttles to 128 MiB/s.
    let unthrottled = json!({"max-bandwidth": 1u64 << 40});
    running.call("migrate-set-parameters", unthrottled, END_DEADLINE)?;
    let to = json!({"uri": format!("file:{}", state.display())});
    running.call("migrate", to, END_DEADLINE)?;
    loop {
        let status = running.call("query-migrate", json!({}), END_DEADLINE)?;
        match status.get("status").and_then(|s| s.as_str()) {
            Some("completed") => return snapshot::hash_file(state),
            Some("failed" | "cancelled") => {
                let why = status.get("error-desc").and_then(|s| s.as_str()).unwrap_or("failed");
                let state = state.display();
                return Err(Error::Qemu(format!("saving the machine to {state}: {why}")));
            }
            _ => std::thread::sleep(tool::POLL),
        }
    }
}

/// Nothing is triggered while booting.
fn no_triggers() -> Stimulus {
    Stimulus::Triggers(Generator {
        when: When::Planned(Schedule::Explicit(Vec::new())),
        high: Nanos(1),
        grace: Nanos(1),
        responders: ResponderSet::default(),
        disturbances: Vec::new(),
    })
}

/// What runs must be what was recorded, or every file of the run would name another kernel.
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

/// Waits until the machine is where measuring begins.
fn wait_for_mark(
    running: &mut Running,
    channel: &mut Channel,
    (phase, deadline): (&'static str, Duration),
    progress: &dyn Fn(Progress),
) -> Result<Record> {
    let begun = Instant::now();
    let mut measuring = None;
    loop {
        let ended = running.ended()?;
        channel.drain(|r, _| {
            if r.kind == Kind::Mark && r.value as u8 == MARK_MEASURING {
                measuring = Some(*r);
            } else if r.kind == Kind::Mark {
                progress(Progress::WarmingUp);
            }
        })?;
        if let Some(mark) = measuring {
            return Ok(mark);
        }
        if ended || begun.elapsed() > deadline {
            return Err(Error::Guest { phase, why: why_it_ended(running, ended) });
        }
        if tool::interrupted() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(tool::POLL);
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
            (800, Some(0)),
            (801, Some(800)),
            (1_600, Some(800)),
            (3_100, Some(1_600)),
            (8_200, Some(6_400)),
        ];
        for (after, from) in ways {
            assert_eq!(stage_before(ms(after)), from.map(ms), "{after} ms");
        }
    }
}
