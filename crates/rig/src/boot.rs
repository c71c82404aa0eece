// SPDX-License-Identifier: GPL-2.0-or-later
//! How a guest comes to where measuring begins: it is booted and saved once, and found in the cache from then on.

use crate::collect::{MARK_MEASURING, read_words, why_it_ended};
use crate::error::At;
use crate::machine::{Generator, Origin, Plugin, Running, Stimulus};
use crate::run::{END_DEADLINE, RECORDS, wait_until_paused};
use crate::snapshot::{self, Snapshot};
use crate::{Bench, Error, Guest, Progress, Result, image, tool};
use sample::{Channel, Kind, Nanos, Record, ResponderSet, Schedule, When};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Booting to user space and setting up a load takes 10 to 30 s of wall time; a machine shared with
/// others may be several times slower.
const BOOT_DEADLINE: Duration = Duration::from_secs(300);

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
        let draft = scratch.path().join("snapshot");
        fs::create_dir(&draft).at(&draft)?;
        let image_path = draft.join("image");
        let image = image::build(&guest.kernel, &guest.contents, &image_path)?;
        let key = self.key(guest, &image);
        let place = self.cache().place("snapshots")?.join(&key);
        if let Some(snapshot) = Snapshot::open(&place, image.to_hex().as_str())? {
            return Ok((snapshot, key));
        }
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
        let mut channel = Channel::with_capacity(RECORDS)?;
        let stimulus = no_triggers();
        let plugin = Some(Plugin {
            library: &self.parts().plugin,
            stimulus: &stimulus,
            follow: None,
            channel: &channel,
        });
        let mut running =
            Running::start(&guest.machine(), Origin::Boot { image }, plugin, scratch)?;
        let mark = wait_for_mark(&mut running, &mut channel, progress)?;
        running.greet(END_DEADLINE)?;
        wait_until_paused(&mut running)?;
        progress(Progress::Saving);
        let state = draft.join("state");
        let save = |e| Error::Qemu(format!("saving the machine to {}: {e}", state.display()));
        // The stream is written at the disk's speed; by default QEMU throttles to 128 MiB/s.
        running.call(
            "migrate-set-parameters",
            json!({"max-bandwidth": 1u64 << 40}),
            END_DEADLINE,
        )?;
        running.call(
            "migrate",
            json!({"uri": format!("file:{}", state.display())}),
            END_DEADLINE,
        )?;
        loop {
            let status = running.call("query-migrate", json!({}), END_DEADLINE)?;
            match status.get("status").and_then(|s| s.as_str()) {
                Some("completed") => break,
                Some("failed" | "cancelled") => {
                    let why = status.get("error-desc").and_then(|s| s.as_str()).unwrap_or("failed");
                    return Err(save(why.to_string()));
                }
                _ => std::thread::sleep(tool::POLL),
            }
        }
        let (_, words) = read_words(&running.wire());
        check_release(guest, words.context.get("release"))?;
        let console = running.console();
        fs::write(draft.join("console"), &console).at(draft)?;
        let state_blake3 = snapshot::hash_file(&state)?;
        let [pins, control] = [mark.pins, (mark.value >> 8) as u8];
        Ok(snapshot::Record { state_blake3, pins, control, context: words.context })
    }
}

/// Nothing is triggered while booting.
fn no_triggers() -> Stimulus {
    Stimulus::Triggers(Generator {
        when: When::Planned(Schedule::Explicit(Vec::new())),
        high: Nanos(1),
        grace: Nanos(1),
        responders: ResponderSet::default(),
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
        if ended || begun.elapsed() > BOOT_DEADLINE {
            return Err(Error::Guest { phase: "booting", why: why_it_ended(running, ended) });
        }
        if tool::interrupted() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(tool::POLL);
    }
}
