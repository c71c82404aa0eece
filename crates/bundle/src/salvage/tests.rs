// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests with the remains of killed and failed commands, and with things that others put in their place.

use super::*;
use crate::Bundle;
use crate::examples::{HARDIRQ, TASK, names, run_id, sample, write_bundle, writer};
use crate::store::Store;
use crate::{CONSOLE, HISTOGRAMS, MANIFEST, SERIES};
use stats::Verdict;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

/// The length of an entry of the journal.
const ENTRY: usize = 40;

/// A store with the `n`th run, as a command leaves it that is killed after answers to this many triggers.
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
    // There are two answers to each of two triggers, and one entry for the superseded ones.
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
    // One case for each step: with ever more files of the bundle, whole or not.
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
        threads.into_iter().for_each(|t| assert!(t.join().unwrap().unwrap().is_empty()));
    });
    (0..6).for_each(|n| assert_eq!(open(root.path(), n).manifest().samples.count, 80));
    let manifest = root.path().join(run_id(0).as_str()).join(MANIFEST);
    let bytes = fs::read(&manifest).unwrap();
    salvage(root.path()).unwrap();
    assert_eq!(fs::read(&manifest).unwrap(), bytes);
    assert_eq!(names(root.path()).len(), 7);
    drop(living);
    assert_eq!(names(root.path()).len(), 7);
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
    let listed = || {
        let store = Store::at(root.path());
        store.salvage();
        store.list().unwrap()
    };
    // Nobody can open a directory for writing to lock it, just as nobody can lock a file in a read-only store.
    fs::remove_file(root.path().join(".lock")).unwrap();
    fs::create_dir(root.path().join(".lock")).unwrap();
    assert_eq!(listed().len(), 1);
    assert!(dead.join(JOURNAL).exists());
    fs::remove_dir(root.path().join(".lock")).unwrap();
    let entries = listed();
    assert_eq!(entries[0].run, run_id(1));
    assert!(entries[0].state.as_ref().is_ok_and(|headline| !headline.complete));
}

/// The one directory that could not become a bundle.
fn left(root: &Path) -> Left {
    let mut left = salvage(root).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    left.remove(0)
}

#[test]
fn a_writer_that_fails_leaves_every_journaled_sample_to_the_next_command() {
    let root = tempfile::tempdir().unwrap();
    let failing = writer(root.path(), &run_id(0), 500);
    assert_eq!(failing.kept(), Some(root.path().join(format!("{PARTIAL}{}", run_id(0)))));
    // As at an error of any kind, the writer never came to its end.
    drop(failing);
    assert!(salvage(root.path()).unwrap().is_empty());
    assert_eq!(open(root.path(), 0).manifest().samples.count, 1_000);
}

#[test]
fn a_program_that_was_just_started_holds_no_run_back() {
    let root = tempfile::tempdir().unwrap();
    let failing = writer(root.path(), &run_id(0), 500);
    // A program has this copy of the file until it begins.
    let _inherited = failing.partial.samples.try_clone().unwrap();
    drop(failing);
    assert!(salvage(root.path()).unwrap().is_empty());
    assert_eq!(open(root.path(), 0).manifest().samples.count, 1_000);
}

#[test]
fn a_bundle_that_cannot_be_written_is_written_by_the_next_command() {
    let root = tempfile::tempdir().unwrap();
    let failing = writer(root.path(), &run_id(0), 50);
    let conclusion = crate::examples::conclusion(&failing);
    // The final name is taken, so writing succeeds and only renaming fails.
    let place = root.path().join(run_id(0).as_str());
    fs::create_dir(&place).unwrap();
    fs::write(place.join("something"), b"else").unwrap();
    let failed = failing.finish(crate::examples::about(), conclusion, true);
    assert!(matches!(failed, Err(BundleError::Exists { .. })), "{failed:?}");
    fs::remove_dir_all(&place).unwrap();
    assert!(salvage(root.path()).unwrap().is_empty());
    let bundle = open(root.path(), 0);
    assert_eq!((bundle.manifest().complete, bundle.manifest().samples.count), (true, 100));
}

#[test]
fn a_leftover_whose_finished_twin_exists_is_set_aside_and_stops_nobody() {
    let root = tempfile::tempdir().unwrap();
    write_bundle(root.path(), &run_id(0), 5);
    let before = fs::read(root.path().join(run_id(0).as_str()).join(MANIFEST)).unwrap();
    for further in ["", ".2"] {
        kill(root.path(), 0, 9);
        let left = left(root.path());
        let aside = root.path().join(format!("{ASIDE}{}{further}", run_id(0)));
        assert_eq!((left.is_aside, &left.place), (true, &aside), "{left}");
        assert!(left.to_string().contains("exists already"), "{left}");
        // All measurements are still there.
        assert!(aside.join(JOURNAL).exists() || aside.join(SAMPLES).exists());
    }
    assert!(salvage(root.path()).unwrap().is_empty());
    assert_eq!(fs::read(root.path().join(run_id(0).as_str()).join(MANIFEST)).unwrap(), before);
    write_bundle(root.path(), &run_id(1), 5);
}

#[test]
fn a_beginning_that_no_onset_wrote_is_set_aside() {
    let root = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..70_000).map(|n| format!("\"s{n}\"")).collect();
    let many = many.join(",");
    for (n, responders) in [(0, "\"task\",\"task\""), (1, &many), (2, "7")] {
        let dead = kill(root.path(), n, 5);
        let text = fs::read_to_string(dead.join(BEGUN)).unwrap();
        let mut begun: serde_json::Value = serde_json::from_str(&text).unwrap();
        begun["responders"] = serde_json::from_str(&format!("[{responders}]")).unwrap();
        fs::write(dead.join(BEGUN), begun.to_string()).unwrap();
        let left = left(root.path());
        assert!(left.is_aside && left.place.join(JOURNAL).exists(), "{left}");
        write_bundle(root.path(), &run_id(n), 5);
    }
}

#[test]
fn a_foreign_leftover_cannot_make_onset_change_a_file_elsewhere() {
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, b"precious").unwrap();
    let outside = elsewhere.path().join("directory");
    for name in [SAMPLES, JOURNAL, BEGUN, HISTOGRAMS, SERIES, MANIFEST] {
        for hard in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let dead = kill(root.path(), 0, 50);
            let _ = fs::remove_file(dead.join(name));
            match (hard, name) {
                (true, _) => fs::hard_link(&victim, dead.join(name)).unwrap(),
                (false, _) => symlink(&victim, dead.join(name)).unwrap(),
            }
            let left = salvage(root.path()).unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"precious", "{name} {left:?}");
            // A directory like this does not stop a run, either.
            write_bundle(root.path(), &run_id(1), 5);
        }
    }
    // A link in place of the whole directory, and in place of the store's lock.
    fs::rename(kill(elsewhere.path(), 0, 5), &outside).unwrap();
    let root = tempfile::tempdir().unwrap();
    symlink(&outside, root.path().join(format!("{PARTIAL}{}", run_id(0)))).unwrap();
    symlink(&victim, root.path().join(".lock")).unwrap();
    let _ = salvage(root.path());
    assert_eq!(names(&outside), [BEGUN, JOURNAL, SAMPLES]);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn a_pipe_in_a_leftover_is_not_waited_for() {
    for name in [SAMPLES, JOURNAL, BEGUN] {
        let root = tempfile::tempdir().unwrap();
        let dead = kill(root.path(), 0, 5);
        fs::remove_file(dead.join(name)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(dead.join(name)).status();
        assert!(made.unwrap().success());
        let _ = salvage(root.path());
        write_bundle(root.path(), &run_id(1), 5);
    }
}
