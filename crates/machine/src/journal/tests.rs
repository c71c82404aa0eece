// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever happens to a journal's bytes: what it says was written, or it says nothing.

use super::*;
use crate::{Notation, Spot};
use proptest::prelude::*;

/// A directory that nobody else can write, whatever the user's mask says.
fn directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(mode).tempdir().unwrap()
}

fn change(number: u64, old: &str) -> Record {
    Record::Change(Change {
        number,
        knob: "vm.stat_interval".into(),
        place: Spot::Kernel("/proc/sys/vm/stat_interval".into()),
        reads: Notation::Words,
        old: Some(old.into()),
        new: Some("120".into()),
        boot: "b".into(),
        machine: "m".into(),
    })
}

/// The records of a journal with so many changes, of which the first is settled, and their bytes.
fn written(changes: u64) -> (Vec<Record>, Vec<u8>) {
    let mut records = vec![Record::Journal { version: VERSION }];
    records.extend((1..=changes).map(|n| change(n, "1\n")));
    records.push(Record::ReadBack { number: 1, text: "119\n".into() });
    records.push(Record::Settled { number: 1 });
    let (mut last, mut bytes) = (String::new(), Vec::new());
    for record in &records {
        let line = line(&last, record);
        last = line.split(' ').next().unwrap().to_owned();
        bytes.extend(line.into_bytes());
    }
    (records, bytes)
}

proptest! {
    #[test]
    fn a_journal_that_is_cut_anywhere_gives_its_whole_records_and_no_others(
        changes in 0u64..6,
        at in 0.0f64..=1.0,
    ) {
        let (records, bytes) = written(changes);
        let cut = &bytes[..(bytes.len() as f64 * at) as usize];
        let whole = cut.iter().filter(|byte| **byte == b'\n').count();
        let read = read(cut).unwrap();
        prop_assert_eq!(&read.records[..], &records[..whole]);
        prop_assert!(read.whole <= cut.len());
    }

    #[test]
    fn a_byte_that_is_another_is_never_read_over(
        changes in 1u64..6,
        at in 0.0f64..1.0,
        flip in 1u8..=255,
    ) {
        let (_, mut bytes) = written(changes);
        let index = (bytes.len() as f64 * at) as usize;
        bytes[index] ^= flip;
        let is_damaged = matches!(read(&bytes), Err(Unusable::Damaged { .. }));
        prop_assert!(is_damaged, "byte {index}");
    }

    #[test]
    fn zeros_behind_the_last_record_are_half_a_record(zeros in 1usize..5000, half in 0usize..40) {
        let (records, mut bytes) = written(2);
        let whole = bytes.len();
        let next = line("", &change(3, "1\n"));
        bytes.extend(&next.as_bytes()[..half]);
        bytes.resize(bytes.len() + zeros, 0);
        let read = read(&bytes).unwrap();
        prop_assert_eq!(read.records, records);
        prop_assert_eq!(read.whole, whole);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        let _ = read(&bytes);
    }
}

#[test]
fn a_record_that_was_removed_moved_or_doubled_is_damage() {
    let (_, bytes) = written(3);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for order in [vec![0, 2, 3], vec![0, 2, 1, 3], vec![0, 1, 1, 2], vec![1, 2]] {
        let other: Vec<u8> = order.iter().flat_map(|n| lines[*n]).copied().collect();
        assert!(matches!(read(&other), Err(Unusable::Damaged { .. })), "{order:?}");
    }
}

#[test]
fn a_newer_journal_is_told_by_its_version_whatever_else_it_says() {
    let json = r#"{"journal":{"version":7,"compressed":true}}"#;
    let text = format!("{} {json}\n", digits("", json));
    assert_eq!(read(text.as_bytes()), Err(Unusable::Newer { version: 7 }));
    let older = r#"{"journal":{"version":0}}"#;
    let text = format!("{} {older}\n", digits("", older));
    assert_eq!(read(text.as_bytes()), Err(Unusable::Damaged { line: 1 }));
}

#[test]
fn a_torn_end_is_cut_off_and_what_is_added_then_is_read() {
    let root = directory();
    let (records, mut bytes) = written(2);
    bytes.extend(b"0123456789abcdef {\"cha");
    std::fs::write(root.path().join(NAME), &bytes).unwrap();
    let mut journal = Journal::open(root.path()).unwrap();
    assert_eq!((journal.torn(), journal.records().len()), (22, records.len()));
    journal.add(change(3, "é\u{1}\n")).unwrap();
    drop(journal);
    let read = Journal::look(root.path()).unwrap().unwrap();
    assert_eq!(read.records.last(), Some(&change(3, "é\u{1}\n")));
}

#[test]
fn nothing_follows_half_a_record_that_could_not_be_cut_off() {
    let root = directory();
    let mut journal = Journal::open(root.path()).unwrap();
    journal.add(change(1, "1\n")).unwrap();
    // This device takes no byte, and cannot be cut.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut file = journal.file.replace(full).unwrap();
    let first = journal.add(change(2, "1\n")).unwrap_err().to_string();
    assert!(first.contains("free some space"), "{first}");
    file.write_all(b"0123456789abcdef {\"cha").unwrap();
    journal.file = Some(file);
    // There is space again.
    for _ in 0..2 {
        let later = journal.add(change(2, "1\n")).unwrap_err().to_string();
        assert!(later.contains("half a record") && later.contains("free some space"), "{later}");
    }
    drop(journal);
    let mut journal = Journal::open(root.path()).unwrap();
    assert_eq!((journal.torn(), journal.records().len()), (22, 2));
    journal.add(change(2, "1\n")).unwrap();
}

#[test]
fn a_journal_has_one_user_and_the_second_one_learns_who_it_is() {
    let root = directory();
    let journal = Journal::open(root.path()).unwrap();
    let busy = Journal::open(root.path()).unwrap_err().to_string();
    assert!(busy.contains(&format!("process {}", std::process::id())), "{busy}");
    drop(journal);
    Journal::open(root.path()).unwrap();
}

#[test]
fn a_journal_is_made_with_its_directories_and_closed_by_its_name() {
    let root = directory();
    let place = root.path().join("a/b");
    let mut journal = Journal::open(&place).unwrap();
    assert!(Journal::look(&place).unwrap().is_none());
    journal.add(change(1, "1\n")).unwrap();
    journal.close().unwrap();
    assert!(Journal::look(&place).unwrap().is_none());
    assert!(place.join(CLOSED).exists());
}

#[test]
fn damage_in_the_middle_is_refused_with_its_line_and_a_remedy() {
    let root = directory();
    let (_, mut bytes) = written(3);
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
    bytes[second] ^= 1;
    std::fs::write(root.path().join(NAME), &bytes).unwrap();
    let why = Journal::open(root.path()).unwrap_err().to_string();
    for words in ["line 2 is damaged", "by hand", "move the file away"] {
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(std::fs::read(root.path().join(NAME)).unwrap(), bytes);
}

#[test]
fn nobody_else_may_read_a_journal_also_one_of_an_older_onset() {
    use std::os::unix::fs::PermissionsExt;
    let root = directory();
    let place = root.path().join("a/journal");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut journal = Journal::open(&place).unwrap();
    journal.add(change(1, "1\n")).unwrap();
    assert_eq!([NAME, LOCK].map(|name| mode(&place.join(name))), [0o600, 0o600]);
    assert_eq!(mode(&place), 0o700);
    journal.close().unwrap();
    std::fs::copy(place.join(CLOSED), place.join(NAME)).unwrap();
    for name in [NAME, CLOSED] {
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(place.join(name), open).unwrap();
    }
    drop(Journal::open(&place).unwrap());
    assert_eq!([NAME, CLOSED].map(|name| mode(&place.join(name))), [0o600, 0o600]);
}
