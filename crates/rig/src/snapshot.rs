// SPDX-License-Identifier: GPL-2.0-or-later
//! Saved machines: a guest under load, stopped at the instruction where measuring begins.
//!
//! A snapshot is a directory `snapshots/KEY/`. It has the machine's state (QEMU's migration stream), the image that the
//! machine was booted from, the boot's console, `snapshot.json`, and the hashes of all these. The key is a hash of
//! everything that the state depends on. So a snapshot is never stale; at worst it is unused.

use crate::cache::{self, DRAFT};
use crate::error::At;
use crate::intact::Hashes;
use crate::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many snapshots are kept. Beyond this number, those that were not used for the longest time are removed, unless
/// they are in use. A snapshot has about 100 MB.
const KEPT: usize = 32;

/// The record of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The blake3 of the state file.
    pub state_blake3: String,
    /// The level of the pins.
    pub pins: u16,
    /// The value of the port's control register.
    pub control: u8,
    /// The facts that the guest reported about itself before measuring.
    pub context: BTreeMap<String, String>,
}

/// A saved machine. As long as this lives, other commands do not remove it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    directory: PathBuf,
    pub(crate) record: Record,
    /// The file that is locked while the snapshot is in use.
    _held: Arc<fs::File>,
}

/// Opens `directory`, and locks it as one of its users.
fn hold(directory: &Path) -> Result<Arc<fs::File>> {
    let file = fs::File::open(directory).at(directory)?;
    flock(&file, FlockOperation::LockShared).map_err(std::io::Error::from).at(directory)?;
    Ok(Arc::new(file))
}

impl Snapshot {
    /// Whether a snapshot was published there. Only opening shows whether it is whole.
    pub(crate) fn is_at(directory: &Path) -> bool {
        directory.join("snapshot.json").is_file()
    }

    /// Opens `directory`, whose image has to have the hash `image_blake3`. `None` if there is no snapshot, or a damaged
    /// one. A damaged snapshot is removed, since it can be made again.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read. This says nothing about its content, so it stays.
    pub(crate) fn open(directory: &Path, image_blake3: &str) -> Result<Option<Snapshot>> {
        match Snapshot::read(directory, image_blake3) {
            Ok(Some(snapshot)) => {
                snapshot.touch();
                Ok(Some(snapshot))
            }
            Ok(None) => cache::discard(directory).map(|()| None),
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                cache::discard(directory).map(|()| None)
            }
            Err(e) => Err(e),
        }
    }

    /// Marks the snapshot as used now. The directory's time is that of the last use.
    pub(crate) fn touch(&self) {
        let now = std::time::SystemTime::now();
        let _ = fs::File::open(&self.directory).and_then(|d| d.set_modified(now));
    }

    /// Reads the snapshot. `None` if something in `directory` was changed.
    fn read(directory: &Path, image_blake3: &str) -> Result<Option<Snapshot>> {
        // The lock comes before all reading: another command may be about to remove the snapshot.
        let held = hold(directory)?;
        let Some(hashes) = Hashes::read(directory)? else { return Ok(None) };
        if !hashes.are_intact()? || hashes.of(Path::new("image")) != Some(image_blake3) {
            return Ok(None);
        }
        let path = directory.join("snapshot.json");
        let record = serde_json::from_slice::<Record>(&fs::read(&path).at(&path)?).ok();
        Ok(record.map(|record| Snapshot { directory: directory.into(), record, _held: held }))
    }

    /// The facts that the guest reported about itself before measuring.
    pub fn context(&self) -> &BTreeMap<String, String> {
        &self.record.context
    }

    /// The file with QEMU's migration stream.
    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// The file of the initramfs.
    pub(crate) fn image(&self) -> PathBuf {
        self.directory.join("image")
    }

    /// The directory of the map, which describes the code of the kernel and its modules. It is made when first needed.
    pub(crate) fn map(&self) -> PathBuf {
        self.directory.join("map")
    }

    /// The text that the kernel printed while booting.
    pub(crate) fn console(&self) -> String {
        fs::read_to_string(self.directory.join("console")).unwrap_or_default()
    }

    /// Puts a finished draft (with `state`, `image` and `console`) in its place.
    pub(crate) fn publish(draft: &Path, place: &Path, record: Record) -> Result<Snapshot> {
        let path = draft.join("snapshot.json");
        let json = serde_json::to_vec_pretty(&record).expect("a record serialises");
        fs::write(&path, json).at(&path)?;
        Hashes::write(draft, &[])?;
        match fs::rename(draft, place) {
            Ok(()) => {}
            // Another command made the same snapshot in the meantime. That one is as good as this.
            Err(_) if Snapshot::is_at(place) => {
                let _ = fs::remove_dir_all(draft);
            }
            Err(source) => return Err(source).at(place),
        }
        let held = hold(place)?;
        if let Some(snapshots) = place.parent() {
            forget_unused(snapshots);
        }
        Ok(Snapshot { directory: place.into(), record, _held: held })
    }
}

fn forget_unused(snapshots: &Path) {
    let _ = cache::sweep(snapshots, DRAFT);
    let entries = fs::read_dir(snapshots).into_iter().flatten().flatten();
    let mut dated: Vec<_> = entries
        .filter(|e| Snapshot::is_at(&e.path()))
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    dated.sort();
    for (_, path) in dated.iter().rev().skip(KEPT) {
        let Ok(unused) = fs::File::open(path) else { continue };
        if flock(&unused, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = cache::discard(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intact::hash_file;

    fn saved(root: &Path, name: &str) -> PathBuf {
        let draft = root.join(format!(".{name}"));
        fs::create_dir_all(&draft).unwrap();
        for file in ["state", "image", "console"] {
            fs::write(draft.join(file), file).unwrap();
        }
        let record = Record {
            state_blake3: hash_file(&draft.join("state")).unwrap(),
            pins: 3,
            control: 16,
            context: BTreeMap::new(),
        };
        Snapshot::publish(&draft, &root.join(name), record).unwrap();
        root.join(name)
    }

    fn open(place: &Path) -> Option<Snapshot> {
        Snapshot::open(place, blake3::hash(b"image").to_hex().as_str()).unwrap()
    }

    #[test]
    fn a_snapshot_opens_again_with_its_registers() {
        let root = tempfile::tempdir().unwrap();
        let place = saved(root.path(), "a");
        let record = open(&place).unwrap().record;
        assert_eq!((record.pins, record.control), (3, 16));
    }

    #[test]
    fn a_truncated_file_is_no_snapshot_and_makes_room_for_a_new_one() {
        let root = tempfile::tempdir().unwrap();
        let place = saved(root.path(), "a");
        for file in ["state", "image"] {
            fs::write(place.join(file), &file[..2]).unwrap();
            assert!(open(&place).is_none(), "{file}");
            assert!(!place.exists());
            saved(root.path(), "a");
            assert!(open(&place).is_some());
        }
    }

    #[test]
    fn a_directory_of_which_a_file_is_gone_makes_room_for_a_new_one() {
        let root = tempfile::tempdir().unwrap();
        for file in ["snapshot.json", "state", "image"] {
            let place = saved(root.path(), "a");
            fs::remove_file(place.join(file)).unwrap();
            assert!(open(&place).is_none(), "{file}");
            assert!(!place.exists());
            assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_snapshot_that_cannot_be_read_stays() {
        let root = tempfile::tempdir().unwrap();
        let place = saved(root.path(), "a");
        // Reading a directory fails for everybody, even for root, and tells nothing of the file that was there.
        for file in ["snapshot.json", "state"] {
            fs::rename(place.join(file), root.path().join("aside")).unwrap();
            fs::create_dir(place.join(file)).unwrap();
            let e = Snapshot::open(&place, "").unwrap_err().to_string();
            assert!(e.contains(file), "{e}");
            fs::remove_dir(place.join(file)).unwrap();
            fs::rename(root.path().join("aside"), place.join(file)).unwrap();
            assert!(open(&place).is_some());
        }
    }

    #[test]
    fn what_killed_commands_left_of_snapshots_is_swept_up() {
        let root = tempfile::tempdir().unwrap();
        let grave = root.path().join(format!("{DRAFT}4194999-x"));
        fs::create_dir_all(grave.join("old")).unwrap();
        saved(root.path(), "a");
        assert!(!grave.exists());
    }

    #[test]
    fn torn_metadata_is_no_snapshot() {
        let root = tempfile::tempdir().unwrap();
        let place = saved(root.path(), "a");
        fs::write(place.join("snapshot.json"), "{\"pins\":").unwrap();
        assert!(open(&place).is_none());
    }

    #[test]
    fn the_second_of_two_makers_finds_the_first_ones_work() {
        let root = tempfile::tempdir().unwrap();
        let place = saved(root.path(), "a");
        saved(root.path(), "a");
        assert!(open(&place).is_some());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_that_is_in_use_stays_however_long_ago_it_was_opened() {
        let root = tempfile::tempdir().unwrap();
        let fill = |from: u64| {
            for n in from..from + KEPT as u64 {
                let place = saved(root.path(), &format!("s{n}"));
                let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n);
                fs::File::open(&place).unwrap().set_modified(later).unwrap();
            }
        };
        fill(0);
        let in_use = open(&root.path().join("s0")).unwrap();
        let beginning = std::time::SystemTime::UNIX_EPOCH;
        fs::File::open(root.path().join("s0")).unwrap().set_modified(beginning).unwrap();
        fill(1000);
        assert!(root.path().join("s0").exists());
        assert!(!root.path().join("s1").exists());
        drop(in_use);
        saved(root.path(), "last");
        assert!(!root.path().join("s0").exists());
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let root = tempfile::tempdir().unwrap();
        for n in 0..KEPT + 2 {
            let place = saved(root.path(), &format!("s{n}"));
            let long_ago =
                std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n as u64);
            fs::File::open(&place).unwrap().set_modified(long_ago).unwrap();
        }
        saved(root.path(), "last");
        assert!(!root.path().join("s0").exists());
        assert!(root.path().join("last").exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), KEPT);
    }
}
