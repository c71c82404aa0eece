// SPDX-License-Identifier: GPL-2.0-or-later
//! The file that says which work is divided in a directory, and by which parts its shards are made. Whoever makes a
//! shard reads it first, on whatever machine: another QEMU would make another guest, silently.

use super::Shard;
use crate::Error;
use confined::Directory;
use rig::Bench;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the directory for what concerns shards, in the directory of a work.
pub const SHARDS: &str = "shards";
/// The name of the file.
pub const WORK_FILE: &str = "work.json";
const BYTES_MAX: u64 = 1 << 20;
/// How often the file is read again that another command may be writing.
const HALF_WRITTEN: u32 = 25;

/// The directory for what concerns shards, in the directory of a work.
pub fn place_of(directory: &Path) -> PathBuf {
    directory.join(SHARDS)
}

/// A name for the directory of a work, made of all that tells the work from others.
pub fn name_of(work: &str) -> String {
    blake3::hash(work.as_bytes()).to_hex()[..16].to_owned()
}

/// What the instructions of a guest depend on, besides its experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// Version and revision of onset.
    pub onset: String,
    /// The plugin, as bundles name it.
    pub plugin: String,
    /// The version of QEMU.
    pub qemu: String,
    /// The hash of each kernel's image, by the name in the cache.
    pub kernels: BTreeMap<String, String>,
}

impl Parts {
    /// Those of this machine.
    ///
    /// # Errors
    /// If the cache lacks a kernel.
    pub fn here(bench: &Bench, onset: String, kernels: &BTreeSet<&str>) -> Result<Parts, Error> {
        let cache = bench.cache().kernels()?;
        let image = |name: &&str| Ok((name.to_string(), cache.get(name)?.record.image_blake3));
        Ok(Parts {
            onset,
            plugin: crate::target::plugin_version(bench),
            qemu: bench.qemu_version().into(),
            kernels: kernels.iter().map(image).collect::<Result<_, Error>>()?,
        })
    }

    /// What is otherwise here.
    fn difference(&self, here: &Parts) -> Option<String> {
        let pairs = [
            ("onset", &self.onset, &here.onset),
            ("the plugin of onset", &self.plugin, &here.plugin),
            ("QEMU", &self.qemu, &here.qemu),
        ];
        let other = pairs.into_iter().find(|(_, then, now)| then != now);
        let other =
            other.map(|(what, then, now)| format!("{what} is {now}, and the work has {then}"));
        let kernel = |(name, then): (&String, &String)| {
            (here.kernels.get(name) != Some(then))
                .then(|| format!("the kernel {name} has another image"))
        };
        other.or_else(|| self.kernels.iter().find_map(kernel))
    }
}

/// Those of these shards whose files are not in the directory for what concerns shards. `file` is the name of a
/// shard's file.
pub fn missing(shards: &Path, all: &[Shard], file: impl Fn(Shard) -> String) -> Vec<Shard> {
    // The directory is read, and not looked for each file: so another machine's new files are seen on a file system of
    // the network.
    let there = Directory::open(shards).and_then(|open| open.names()).unwrap_or_default();
    let is_missing = |shard: &&Shard| !there.contains(&OsString::from(file(**shard)));
    all.iter().filter(is_missing).copied().collect()
}

/// The work that is divided in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkFile {
    /// The command that makes the whole, word by word, but for the directory of the work.
    pub command: Vec<String>,
    /// The option that names this directory.
    pub named_by: String,
    /// What is asked: all that its shards depend on and that their own files do not tell, by name.
    pub about: BTreeMap<String, String>,
    /// Into how many shards the work is divided.
    pub shards: u32,
    /// By what its shards are made.
    pub parts: Parts,
}

/// A file with a name that no other directory has. A machine that sees it sees this directory, and not one of its own
/// at the same place.
pub struct Sign {
    directory: Directory,
    name: String,
}

/// A number that no other call gives.
pub(super) fn number_of_its_own() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Sign {
    /// Puts one into a directory. It goes when this value does.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(directory: &Path) -> Result<Sign, Error> {
        let failed = |e| Error::File(format!("{}: {e}", directory.display()));
        let name = format!("sign.{:016x}", number_of_its_own());
        let directory = Directory::open(directory).map_err(failed)?;
        directory.write_new(&name, &[]).map_err(failed)?;
        Ok(Sign { directory, name })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that this machine sees the sign of this name in the directory.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(directory: &Path, name: &str) -> Result<(), Error> {
        let is_there = Directory::open(directory).is_ok_and(|open| open.has(name));
        is_there.then_some(()).ok_or_else(|| {
            Error::Unfit(format!(
                "{}: the directory here is another one than on the machine that asks: it is not shared with this machine",
                directory.display()
            ))
        })
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // One that stays is in nobody's way.
        let _ = self.directory.remove(&self.name);
    }
}

impl WorkFile {
    /// Reads the file of this directory.
    ///
    /// # Errors
    /// If there is none, or if it is damaged.
    pub fn read(directory: &Path) -> Result<WorkFile, Error> {
        let path = directory.join(WORK_FILE);
        let bytes = Directory::open(directory).and_then(|open| open.read(WORK_FILE, BYTES_MAX));
        let bytes = bytes.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::Unfit(format!(
                "{} is not here: the directory is not shared with this machine, or no work is divided in it",
                path.display()
            )),
            _ => Error::File(format!("{}: {e}", path.display())),
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|e| Error::File(format!("{}: {e}; remove it", path.display())))
    }

    /// Writes the file into this directory, or checks that the file there is of this work. Returns whether it was
    /// written.
    ///
    /// # Errors
    /// If the file there is of another work, of one that is divided otherwise, or of one that is made by other parts.
    /// If it cannot be written.
    pub fn agree(&self, directory: &Path) -> Result<bool, Error> {
        let failed = |e| Error::File(format!("{}: {e}", directory.display()));
        std::fs::create_dir_all(directory).map_err(failed)?;
        let text = serde_json::to_string_pretty(self).expect("plain data") + "\n";
        let open = Directory::open(directory).map_err(failed)?;
        // Several commands may begin at once. The first one writes the file, and the others read it.
        match open.write_new(WORK_FILE, text.as_bytes()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => {
                // Half a file would refuse everybody.
                WorkFile::withdraw(directory);
                return Err(failed(e));
            }
            Ok(()) => return Ok(true),
        }
        let mut there = WorkFile::read(directory);
        for _ in 0..HALF_WRITTEN {
            if there.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            there = WorkFile::read(directory);
        }
        let there = there?;
        let other = self.about.iter().find_map(|(name, asked)| match there.about.get(name) {
            Some(known) if known == asked => None,
            // A whole text, as that of an experiment, would fill the screen.
            Some(known) if [known, asked].iter().all(|text| !text.contains('\n')) => {
                Some(format!("the {name} of the work there is {known}, not {asked}"))
            }
            _ => Some(format!("the {name} of the work there is another")),
        });
        if let Some(why) = other {
            return Err(refusal(directory, &why));
        }
        there.check(directory, self.shards, &self.parts).map(|()| false)
    }

    /// Takes the file away again, and the directory if it has nothing else: nobody makes shards of this work yet.
    pub fn withdraw(directory: &Path) {
        // What stays says the same to the next command.
        let _ = Directory::open(directory).and_then(|open| open.remove(WORK_FILE));
        let _ = std::fs::remove_dir(directory);
    }

    /// Checks that this machine makes the work's shards as the others do.
    ///
    /// # Errors
    /// Names what differs.
    pub fn check(&self, directory: &Path, shards: u32, here: &Parts) -> Result<(), Error> {
        let refused = |why: String| Err(refusal(directory, &why));
        if self.shards != shards {
            return refused(format!(
                "the work is divided into {} shards, not {shards}",
                self.shards
            ));
        }
        self.parts.difference(here).map_or(Ok(()), refused)
    }
}

fn refusal(directory: &Path, why: &str) -> Error {
    let directory = directory.display();
    Error::MadeOtherwise(format!("{directory}: {why}; choose another directory, or work as there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> WorkFile {
        let kernels = [("6.12".to_string(), "aa".to_string())].into();
        let parts = Parts { onset: "1".into(), plugin: "p".into(), qemu: "10".into(), kernels };
        let about = [("seed".to_string(), "1".to_string()), ("text".into(), "a\nb".into())].into();
        let (command, named_by) = (vec!["onset".into()], "--directory".into());
        WorkFile { command, named_by, about, shards: 4, parts }
    }

    #[test]
    fn a_work_is_shared_by_machines_that_have_the_same_parts_and_divide_it_alike() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        let missing = WorkFile::read(&directory).unwrap_err().to_string();
        assert!(missing.contains("not shared with this machine"), "{missing}");
        work().agree(&directory).unwrap();
        work().agree(&directory).unwrap();
        assert_eq!(WorkFile::read(&directory).unwrap(), work());
        let refused = |change: fn(&mut WorkFile)| {
            let mut other = work();
            change(&mut other);
            other.agree(&directory).unwrap_err().to_string()
        };
        for (why, said) in [
            (
                refused(|w| drop(w.about.insert("seed".into(), "2".into()))),
                "seed of the work there is 1, not 2",
            ),
            (
                refused(|w| drop(w.about.insert("text".into(), "c".into()))),
                "the text of the work there is another",
            ),
            (
                refused(|w| drop(w.about.insert("find".into(), "c".into()))),
                "the find of the work there is another",
            ),
            (refused(|w| w.shards = 5), "divided into 4 shards, not 5"),
            (refused(|w| w.parts.onset = "2".into()), "onset is 2, and the work has 1"),
            (refused(|w| w.parts.plugin = "q".into()), "the plugin of onset is q"),
            (refused(|w| w.parts.qemu = "11".into()), "QEMU is 11, and the work has 10"),
            (refused(|w| w.parts.kernels.clear()), "the kernel 6.12 has another image"),
        ] {
            assert!(why.contains(said), "{why}");
        }
        let sign = Sign::put(&directory).unwrap();
        Sign::check(&directory, sign.name()).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        work().agree(elsewhere.path()).unwrap();
        let other = Sign::check(elsewhere.path(), sign.name()).unwrap_err().to_string();
        assert!(other.contains("it is not shared with this machine"), "{other}");
        let name = sign.name().to_owned();
        drop(sign);
        assert!(Sign::check(&directory, &name).is_err(), "it is gone");
        std::fs::write(directory.join(WORK_FILE), "x").unwrap();
        assert!(work().agree(&directory).unwrap_err().to_string().contains("remove it"));
    }
}
