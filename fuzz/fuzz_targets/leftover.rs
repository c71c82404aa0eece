// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever a command left in a store, no command fails on it: it becomes a bundle that verifies, is set aside, is
//! removed, or stays. The input is a row of files ([`files`]); the check of each entry of the journal is made true.
#![no_main]

mod files;

use libfuzzer_sys::fuzz_target;
use bundle::{Bundle, RunId, salvage};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("room for a directory"));

/// Where nothing says of which run it is.
const NAMELESS: &str = "20261121-203911-idle-9591";

fuzz_target!(|bytes: &[u8]| {
    let (store, packed) = (PLACE.path().join("store"), PLACE.path().join("packed"));
    files::unpack(bytes, &packed);
    let _ = fs::remove_dir_all(&store);
    fs::create_dir(&store).expect("room for a directory");
    let run = run(&packed).map_or(NAMELESS.into(), |run| run.as_str().to_owned());
    let _ = check(&packed.join("journal"));
    fs::rename(&packed, store.join(format!(".partial-{run}"))).expect("beside it");
    salvage(&store).expect("the store itself is sound");
    let bundle = store.join(&run);
    if bundle.exists() && !bundle.join("series.json").is_file() {
        // It was one before, and only lacked its name.
        return;
    }
    if bundle.exists() {
        let bundle = Bundle::open(&bundle).unwrap_or_else(|e| panic!("{e}"));
        if !bundle.manifest().complete {
            bundle.verify().unwrap_or_else(|e| panic!("{e}"));
        }
    }
});

fn run(directory: &Path) -> Option<RunId> {
    let begun: Value =
        serde_json::from_slice(&fs::read(directory.join("begun.json")).ok()?).ok()?;
    begun.get("run")?.as_str()?.parse().ok()
}

/// As `check` of crates/onset/src/bundle/journal.rs has it.
fn check(journal: &Path) -> std::io::Result<()> {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = fs::read(journal)?;
    for entry in bytes.chunks_exact_mut(40).filter(|entry| entry[0] != 0) {
        let word = |at: usize| {
            u64::from_le_bytes(*entry[at..].first_chunk().expect("an entry has five words"))
        };
        let head = word(0) & u64::from(u32::MAX);
        let mixed = (1..5)
            .map(|n| word(n * 8))
            .fold(head, |mixed, word| (mixed ^ word).wrapping_mul(FACTOR).rotate_left(29));
        let check = (mixed.wrapping_mul(FACTOR) >> 32) as u32;
        entry[4..8].copy_from_slice(&check.to_le_bytes());
    }
    fs::write(journal, bytes)
}
