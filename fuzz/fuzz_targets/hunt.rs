// SPDX-License-Identifier: GPL-2.0-or-later
//! Any directory of a hunt is read or refused, and what was read can be drawn. The input is the journal of its trials
//! and, behind a NUL character, its conclusion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use bundle::{Tool, UtcTime};
use lab::hunting::{CONCLUSION, JOURNAL, PastHunt};
use view::report::{Hunted, Material, page};
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("room for a directory"));

fuzz_target!(|bytes: &[u8]| {
    let directory = PLACE.path().to_owned();
    let (journal, conclusion) = match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
        None => (bytes, None),
    };
    fs::write(directory.join(JOURNAL), journal).expect("room for a file");
    let _ = match conclusion {
        Some(conclusion) => fs::write(directory.join(CONCLUSION), conclusion),
        None => fs::remove_file(directory.join(CONCLUSION)),
    };
    let Ok(kept) = PastHunt::read(&directory, &|_| ()) else { return };
    let shares = [kept.known.by_guest().len(), kept.known.by_strategy().len()];
    assert!(shares.iter().all(|share| *share as u64 <= kept.known.trials));
    for guest in 0..kept.about.guests.len() {
        let _ = kept.about.guest(guest);
    }
    let hunted = Hunted { directory, kept, finds: BTreeMap::new(), explained: BTreeMap::new() };
    let created: UtcTime = "2026-11-21T20:39:11Z".parse().expect("a time");
    let tool = Tool { version: "0.1.0".into(), revision: "unknown".into() };
    let insides = BTreeMap::new();
    let material = Material { bundles: &[], insides: &insides, hunts: &[hunted] };
    let _ = page(&PLACE.path().join("x.html"), "__ONSET_REPORT__", &material, (created, &tool));
});
