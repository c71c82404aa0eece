// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests with stores that are listed, damaged, and used by several processes at once.

use super::*;
use crate::examples::{run_id, write_bundle};
use proptest::prelude::*;
use std::fs;

fn store_of(runs: u64) -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    for n in 0..runs {
        write_bundle(root.path(), &run_id(n), 2);
    }
    let store = Store::at(root.path());
    (root, store)
}

fn listed(store: &Store) -> Vec<RunId> {
    store.list().unwrap().into_iter().map(|entry| entry.run).collect()
}

#[test]
fn a_list_is_newest_first_and_the_same_without_its_index() {
    let (root, store) = store_of(4);
    let first = store.list().unwrap();
    assert_eq!(listed(&store), [3, 2, 1, 0].map(run_id));
    let headline = first[0].state.as_ref().unwrap();
    assert_eq!((headline.flavour.as_str(), headline.samples), ("6.12 preempt=none", 4));
    assert_eq!(store.list().unwrap(), first);
    assert!(root.path().join("index.sqlite").exists());
    store.forget_index().unwrap();
    assert!(!root.path().join("index.sqlite").exists());
    assert_eq!(store.list().unwrap(), first);
}

#[test]
fn a_known_manifest_is_not_read_again() {
    let (root, store) = store_of(1);
    let before = store.list().unwrap();
    // Length, inode and time stay the same, so only a reader would notice the change.
    let path = root.path().join(run_id(0).as_str()).join(MANIFEST);
    let (text, time) = (fs::read_to_string(&path).unwrap(), path.metadata().unwrap().modified());
    fs::write(&path, text.replace("preempt=none", "preempt=full")).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(time.unwrap()).unwrap();
    assert_eq!(store.list().unwrap(), before);
    store.forget_index().unwrap();
    assert_ne!(store.list().unwrap(), before);
}

#[test]
fn who_asks_again_needs_no_index_and_notices_what_has_changed() {
    let (root, store) = store_of(3);
    let before = store.list().unwrap();
    fs::remove_file(root.path().join("index.sqlite")).unwrap();
    assert_eq!(store.list().unwrap(), before);
    assert!(!root.path().join("index.sqlite").exists(), "nothing was new");
    fs::remove_dir_all(root.path().join(run_id(2).as_str())).unwrap();
    let path = root.path().join(run_id(0).as_str()).join(MANIFEST);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("preempt=none", "preempt=lazy"))
        .unwrap();
    let after = store.list().unwrap();
    assert_eq!((after.len(), &after[0]), (2, &before[1]));
    // What the hash in it does not fit is damage, which is seen at once.
    assert!(before[2].state.is_ok() && after[1].state.is_err());
    // Another process learns what changed, and reads the others itself.
    assert_eq!(Store::at(root.path()).list().unwrap(), after);
}

#[test]
fn bundles_that_come_and_go_are_noticed() {
    let (root, store) = store_of(2);
    assert_eq!(listed(&store).len(), 2);
    fs::remove_dir_all(root.path().join(run_id(0).as_str())).unwrap();
    write_bundle(root.path(), &run_id(7), 2);
    assert_eq!(listed(&store), [7, 1].map(run_id));
    assert_eq!(Index::open(&Directory::open(root.path()).unwrap()).rows().len(), 2);
}

#[test]
fn a_run_in_the_bin_is_not_listed_and_comes_back_as_it_was() {
    let (root, store) = store_of(3);
    let before = store.list().unwrap();
    store.discard(&run_id(1)).unwrap();
    assert_eq!(listed(&store), [2, 0].map(run_id));
    assert!(store.find(run_id(1).as_str()).is_err() && store.salvage().is_empty());
    assert_eq!(store.discarded().unwrap(), [before[1].clone()]);
    assert_eq!(Index::open(&Directory::open(root.path()).unwrap()).rows().len(), 2);
    store.restore(&run_id(1)).unwrap();
    assert_eq!((store.list().unwrap(), store.discarded().unwrap()), (before, Vec::new()));
    crate::Bundle::open(&root.path().join(run_id(1).as_str())).unwrap().verify().unwrap();
}

#[test]
fn the_bin_takes_nothing_twice_follows_no_link_and_says_what_is_not_there() {
    let (root, store) = store_of(1);
    assert!(store.restore(&run_id(0)).is_err() && store.discard(&run_id(9)).is_err());
    store.discard(&run_id(0)).unwrap();
    write_bundle(root.path(), &run_id(0), 3);
    assert!(store.discard(&run_id(0)).unwrap_err().to_string().contains("cannot move"));
    assert!(store.restore(&run_id(0)).is_err());
    assert_eq!(store.list().unwrap()[0].state.as_ref().unwrap().samples, 6);
    assert_eq!(store.discarded().unwrap()[0].state.as_ref().unwrap().samples, 4);
    // A bin that leads elsewhere is none.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(root.path().join(".bin"), elsewhere.path().join("old")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), root.path().join(".bin")).unwrap();
    assert!(store.discard(&run_id(0)).is_err() && store.discarded().is_err());
    assert_eq!(listed(&store), [run_id(0)]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_damaged_bundle_is_listed_as_such_and_noticed_again_when_mended() {
    let (root, store) = store_of(2);
    let sound = store.list().unwrap();
    let path = root.path().join(run_id(1).as_str()).join(MANIFEST);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = store.list().unwrap();
    let why = damaged[0].state.as_ref().unwrap_err();
    assert!(why.contains("manifest.json is damaged") && why.contains("restore"), "{why}");
    assert_eq!(damaged[1], sound[1]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(store.list().unwrap(), sound);
}

#[test]
fn a_bundle_under_another_name_is_not_taken_for_that_run() {
    let (root, store) = store_of(1);
    let dir = |n| root.path().join(run_id(n).as_str());
    fs::rename(dir(0), dir(1)).unwrap();
    let why = store.list().unwrap()[0].state.clone().unwrap_err();
    assert!(why.contains(run_id(0).as_str()), "{why}");
}

#[test]
fn debris_and_strangers_are_not_listed() {
    let (root, store) = store_of(1);
    for name in [".partial-20261121-000000-ladder-beef", "notes", "20261121-000000-Ladder-beef"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    assert_eq!(listed(&store), [run_id(0)]);
}

#[test]
fn a_run_is_found_by_the_beginning_of_its_name() {
    let (root, store) = store_of(3);
    let path = |n| root.path().join(run_id(n).as_str());
    assert_eq!(store.find("latest").unwrap(), path(2));
    assert_eq!(store.find("20261121-000001").unwrap(), path(1));
    assert_eq!(store.find(run_id(0).as_str()).unwrap(), path(0));
    let ambiguous = store.find("2026").unwrap_err().to_string();
    assert!(ambiguous.starts_with("3 runs begin with \"2026\""), "{ambiguous}");
    assert!((0..3).all(|n| ambiguous.contains(run_id(n).as_str())), "{ambiguous}");
    let unknown = store.find("2025").unwrap_err().to_string();
    assert!(unknown.contains("no run") && unknown.contains(run_id(2).as_str()), "{unknown}");
}

#[test]
fn an_empty_store_says_how_to_fill_it() {
    let (_root, store) = store_of(0);
    assert!(store.list().unwrap().is_empty());
    assert!(store.find("latest").unwrap_err().to_string().contains("onset run"));
}

#[test]
fn a_store_that_is_not_there_is_empty_and_reading_does_not_make_it() {
    let parent = tempfile::tempdir().unwrap();
    let store = Store::at(&parent.path().join("runs"));
    assert!(store.list().unwrap().is_empty());
    let error = store.find("latest").unwrap_err().to_string();
    assert!(error.contains("no runs in") && error.contains("onset run"), "{error}");
    assert!(!store.root().exists());
}

#[test]
fn a_store_that_is_no_directory_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Store::at(file.path()).list().unwrap_err().to_string();
    assert!(error.contains(&*file.path().to_string_lossy()), "{error}");
}

#[test]
fn a_store_without_a_usable_index_is_still_listed() {
    let (root, store) = store_of(2);
    // A directory in place of the index can be neither opened nor replaced. A read-only store behaves in the same way.
    fs::create_dir(root.path().join("index.sqlite")).unwrap();
    assert_eq!(listed(&store), [1, 0].map(run_id));
}

#[test]
fn writers_and_readers_at_once_see_whole_bundles_only() {
    let (root, store) = store_of(1);
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let root = root.path();
            scope.spawn(move || {
                for n in 0..15 {
                    write_bundle(root, &run_id(100 + writer * 100 + n), 20);
                }
            });
        }
        for _ in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..30 {
                    let entries = store.list().unwrap();
                    assert!(entries.iter().all(|entry| entry.state.is_ok()), "{entries:?}");
                }
            });
        }
    });
    let all = store.list().unwrap();
    assert_eq!(all.len(), 31);
    store.forget_index().unwrap();
    assert_eq!(store.list().unwrap(), all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_corrupt_index_changes_nothing(
        place in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 1..200),
        cut in any::<bool>(),
    ) {
        let (root, store) = store_of(2);
        let expected = store.list().unwrap();
        let path = root.path().join("index.sqlite");
        let mut bytes = fs::read(&path).unwrap();
        let at = place.index(bytes.len());
        bytes.truncate(if cut { at } else { bytes.len() });
        let end = (at + noise.len()).min(bytes.len());
        bytes.splice(at.min(end)..end, noise);
        fs::write(&path, bytes).unwrap();
        prop_assert_eq!(&store.list().unwrap(), &expected);
        prop_assert_eq!(&store.list().unwrap(), &expected);
    }
}
