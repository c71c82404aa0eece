// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes bundles of what killed commands left, by the same steps that end a run in order.
//!
//! Several commands may do so at once. Each claims partial directories by their lock, while it holds that of
//! the store; who comes later finds them locked, or gone. A command that is killed in the middle of it leaves
//! the journal as it was, for the next one.

use super::journal::Journal;
use super::manifest::{Conclusion, MANIFEST, Manifest, SCHEMA};
use super::writer::{BEGUN, Begun, BundleWriter, JOURNAL, PARTIAL, Partial, lock_root};
use super::{BundleError, CONSOLE, HISTOGRAMS, RunId, SAMPLES, SERIES, Warning};
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Makes bundles of what killed commands left in the store at `root`, and removes what nothing was measured
/// in; leaves what somebody is writing, and what an onset of another version began. Where there is nothing of
/// the kind, or no store, it only looks.
///
/// # Errors
/// [`BundleError::Io`], as in a read-only store or on a full disk; what was left is then still there.
pub fn salvage(root: &Path) -> Result<(), BundleError> {
    if partial_directories(root)?.is_empty() {
        return Ok(());
    }
    let claimed = {
        let _exclusive = lock_root(root)?;
        // Again: what was seen before may be finished meanwhile, or be somebody's who was about to lock it.
        let found = partial_directories(root)?.into_iter();
        found.filter_map(|(path, run)| Some((claim(root, path)?, run))).collect::<Vec<_>>()
    };
    claimed.into_iter().try_for_each(|(partial, run)| finish(partial, &run))
}

/// The directories that are not yet a bundle, with the runs that they are to be.
fn partial_directories(root: &Path) -> Result<Vec<(PathBuf, RunId)>, BundleError> {
    let entries = match fs::read_dir(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(BundleError::io("list", root))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(BundleError::io("list", root))?;
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PARTIAL)?.parse().ok());
        found.extend(run.map(|run| (entry.path(), run)));
    }
    Ok(found)
}

/// The directory, where no living command has it; `None` also where it is another user's, who can finish it.
fn claim(root: &Path, path: PathBuf) -> Option<Partial> {
    // Made where its writer was killed between the directory and its first file: both are made under the lock of
    // the store, which is held.
    let options = File::options().read(true).write(true).create(true).truncate(false).clone();
    let samples = options.open(path.join(SAMPLES)).ok()?;
    flock(&samples, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Its writer may have finished and renamed it before it let go of the lock.
    path.is_dir().then(|| Partial { root: root.to_owned(), path, unwanted: false, samples })
}

/// What can be done with a claimed directory.
enum Found {
    /// A run that was begun.
    Begun(Box<Begun>),
    /// A bundle that only lacks its name.
    Whole,
    /// Nothing was measured, or what was cannot be told.
    Debris,
    /// An onset of another version began it, and alone can read it.
    Foreign,
}

fn look(dir: &Path, run: &RunId) -> Result<Found, BundleError> {
    /// The one key that every schema has.
    #[derive(Deserialize)]
    struct Any {
        schema: u64,
    }
    let path = dir.join(BEGUN);
    let bytes = match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let whole = Manifest::read(dir).is_ok_and(|manifest| manifest.run == *run);
            return Ok(if whole { Found::Whole } else { Found::Debris });
        }
        read => read.map_err(BundleError::io("read", &path))?,
    };
    // What cannot be read was being written when its command was killed: nothing had been measured.
    let Ok(Any { schema }) = serde_json::from_slice(&bytes) else { return Ok(Found::Debris) };
    if schema != SCHEMA {
        return Ok(Found::Foreign);
    }
    Ok(match serde_json::from_slice::<Begun>(&bytes) {
        Ok(begun) if begun.run == *run => Found::Begun(Box::new(begun)),
        _ => Found::Debris,
    })
}

fn finish(mut partial: Partial, run: &RunId) -> Result<(), BundleError> {
    match look(&partial.path, run)? {
        Found::Foreign => Ok(()),
        Found::Whole => partial.publish(run).map(drop),
        Found::Debris => {
            partial.unwanted = true;
            Ok(())
        }
        Found::Begun(begun) => conclude(partial, *begun),
    }
}

/// Makes the bundle of a killed run, where there is at least one observation.
fn conclude(partial: Partial, begun: Begun) -> Result<(), BundleError> {
    clear(&partial)?;
    let path = partial.path.join(JOURNAL);
    let journal = File::open(&path).map_err(BundleError::io("read", &path))?;
    let mut writer = BundleWriter::over(partial, &begun, Journal::new(journal));
    if writer.replay()? == 0 {
        writer.give_up();
        return Ok(());
    }
    let mut warnings = begun.warnings;
    warnings.push(Warning::Killed);
    let conclusion = Conclusion::of(&writer.summaries(), begun.limits, warnings);
    writer.finish(begun.about, conclusion, false).map(drop)
}

/// Removes what a command wrote that was killed while it finished the bundle.
fn clear(partial: &Partial) -> Result<(), BundleError> {
    for name in [HISTOGRAMS, SERIES, CONSOLE, MANIFEST] {
        let path = partial.path.join(name);
        let removed =
            if name == HISTOGRAMS { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(BundleError::io("remove", &path))?,
        }
    }
    let emptied = partial.samples.set_len(0);
    emptied.map_err(BundleError::io("write", &partial.path.join(SAMPLES)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HARDIRQ, TASK, names, run_id, sample, write_bundle, writer};
    use super::*;
    use crate::bundle::Bundle;
    use crate::store::Store;
    use stats::Verdict;

    /// Length of an entry of the journal.
    const ENTRY: usize = 40;

    /// A store with the `n`th run as a command leaves it that is killed after answers to so many triggers.
    fn kill(root: &Path, n: u64, triggers: u64) -> PathBuf {
        let elsewhere = tempfile::tempdir().unwrap();
        let living = writer(elsewhere.path(), &run_id(n), triggers);
        let name = format!("{PARTIAL}{}", run_id(n));
        let dead = root.join(&name);
        fs::create_dir(&dead).unwrap();
        // A copy has no lock.
        for file in [SAMPLES, JOURNAL, BEGUN] {
            fs::copy(elsewhere.path().join(&name).join(file), dead.join(file)).unwrap();
        }
        drop(living);
        dead
    }

    fn open(root: &Path, n: u64) -> Bundle {
        let bundle = Bundle::open(&root.join(run_id(n).as_str())).unwrap();
        bundle.verify().unwrap();
        bundle
    }

    #[test]
    fn a_killed_run_leaves_all_that_it_had_marked_as_such() {
        let root = tempfile::tempdir().unwrap();
        kill(root.path(), 0, 500);
        salvage(root.path()).unwrap();
        assert_eq!(names(root.path()), [run_id(0).as_str()]);
        let bundle = open(root.path(), 0);
        let files = ["histograms", "manifest.json", "samples.parquet", "series.json"];
        assert_eq!(names(bundle.path()), files);
        let mut read = Vec::new();
        bundle.samples(|s| read.push(s)).unwrap();
        assert!(read.into_iter().eq((0..500).flat_map(|t| [HARDIRQ, TASK].map(|s| sample(s, t)))));
        let manifest = bundle.manifest();
        assert_eq!((manifest.complete, manifest.conclusion.verdict), (false, Verdict::Invalid));
        assert_eq!(manifest.series[1].losses.superseded, 2);
        let codes: Vec<_> = manifest.conclusion.warnings.iter().map(Warning::code).collect();
        assert_eq!(codes, ["killed", "superseded", "maximum_of_few"]);
        assert_eq!(manifest.conclusion.findings.len(), 1);
        assert_eq!((&manifest.about.kernel, manifest.about.seed), (&None, u64::MAX));
    }

    #[test]
    fn a_journal_that_is_torn_at_any_byte_is_cut_after_its_last_whole_entry() {
        let (root, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let whole = kill(source.path(), 0, 2);
        // Two answers to each of two triggers, and one entry for the superseded ones.
        for length in 0..=5 * ENTRY {
            let dead = root.path().join(whole.file_name().unwrap());
            fs::create_dir(&dead).unwrap();
            for file in [SAMPLES, JOURNAL, BEGUN] {
                fs::copy(whole.join(file), dead.join(file)).unwrap();
            }
            let journal = File::options().write(true).open(dead.join(JOURNAL)).unwrap();
            journal.set_len(length as u64).unwrap();
            salvage(root.path()).unwrap();
            let entries = (length / ENTRY) as u64;
            if entries == 0 {
                assert_eq!(names(root.path()), [""; 0], "{length}");
                continue;
            }
            let bundle = open(root.path(), 0);
            assert_eq!(bundle.manifest().samples.count, entries.min(4), "{length}");
            let superseded = bundle.manifest().series[1].losses.superseded;
            assert_eq!(superseded, if entries == 5 { 2 } else { 0 }, "{length}");
            fs::remove_dir_all(bundle.path()).unwrap();
        }
    }

    #[test]
    fn a_command_killed_while_it_ended_a_run_leaves_the_same_bundle() {
        let (root, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        kill(plain.path(), 0, 50);
        salvage(plain.path()).unwrap();
        // At each step: with ever more files of the bundle, whole or not.
        let files = [SAMPLES, HISTOGRAMS, SERIES, CONSOLE, MANIFEST];
        for step in 1..=files.len() {
            let dead = kill(root.path(), 0, 50);
            for file in &files[..step] {
                match *file {
                    HISTOGRAMS => {
                        fs::create_dir(dead.join(HISTOGRAMS)).unwrap();
                        fs::write(dead.join("histograms/task.hdr"), b"half").unwrap();
                    }
                    file => fs::write(dead.join(file), b"half").unwrap(),
                }
            }
            salvage(root.path()).unwrap();
            let (salvaged, expected) = (open(root.path(), 0), open(plain.path(), 0));
            assert_eq!(salvaged.manifest(), expected.manifest(), "{step}");
            fs::remove_dir_all(salvaged.path()).unwrap();
        }
    }

    #[test]
    fn a_bundle_that_only_lacked_its_name_is_given_it() {
        let root = tempfile::tempdir().unwrap();
        let path = write_bundle(root.path(), &run_id(0), 20);
        let dead = root.path().join(format!("{PARTIAL}{}", run_id(0)));
        fs::write(path.join(JOURNAL), b"").unwrap();
        fs::rename(path, dead).unwrap();
        salvage(root.path()).unwrap();
        assert!(open(root.path(), 0).manifest().complete);
        assert_eq!(names(root.path()), [run_id(0).as_str()]);
        assert!(!root.path().join(run_id(0).as_str()).join(JOURNAL).exists());
    }

    #[test]
    fn commands_that_salvage_at_once_do_not_meet_and_a_second_time_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let living = writer(root.path(), &run_id(100), 10);
        (0..6).for_each(|n| drop(kill(root.path(), n, 40)));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| salvage(root.path()))).collect();
            threads.into_iter().for_each(|t| t.join().unwrap().unwrap());
        });
        (0..6).for_each(|n| assert_eq!(open(root.path(), n).manifest().samples.count, 80));
        let manifest = root.path().join(run_id(0).as_str()).join(MANIFEST);
        let bytes = fs::read(&manifest).unwrap();
        salvage(root.path()).unwrap();
        assert_eq!(fs::read(&manifest).unwrap(), bytes);
        assert_eq!(names(root.path()).len(), 7);
        drop(living);
        assert_eq!(names(root.path()).len(), 6);
    }

    #[test]
    fn what_another_version_began_is_left_to_it() {
        let root = tempfile::tempdir().unwrap();
        let dead = kill(root.path(), 0, 5);
        fs::write(dead.join(BEGUN), b"{\"schema\": 9000, \"unknown\": true}").unwrap();
        salvage(root.path()).unwrap();
        assert!(dead.join(JOURNAL).exists());
    }

    #[test]
    fn a_list_shows_what_was_killed_unless_the_store_cannot_be_written() {
        let root = tempfile::tempdir().unwrap();
        write_bundle(root.path(), &run_id(0), 5);
        let dead = kill(root.path(), 1, 5);
        let listed = || Store::at(root.path()).list().unwrap();
        // Nobody can lock a directory for writing, as nobody can a file in a store that is read-only.
        fs::remove_file(root.path().join(".lock")).unwrap();
        fs::create_dir(root.path().join(".lock")).unwrap();
        assert_eq!(listed().len(), 1);
        assert!(dead.join(JOURNAL).exists());
        fs::remove_dir(root.path().join(".lock")).unwrap();
        let entries = listed();
        assert_eq!(entries[0].run, run_id(1));
        assert!(entries[0].state.as_ref().is_ok_and(|headline| !headline.complete));
    }
}
