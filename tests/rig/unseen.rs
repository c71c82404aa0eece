// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel that does not tell of its types (BTF) or of its stacks (ORC): what cannot be seen is said, the rest works.

use lab::{Lab, experiment, have_kernels};
use std::path::PathBuf;

/// Of a map's file (crates/vmlinux/src/map.rs): where its list of parts begins, which of them the unwind tables are and
/// which has the facts, and the bytes that are the layout in that.
const PARTS_AT: usize = 16;
const ORC: std::ops::RangeInclusive<usize> = 6..=8;
const FACTS: usize = 9;
const LAYOUT: std::ops::Range<usize> = 16..72;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    let word = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(word) as usize
}

/// The map of a kernel that is the same but for its types and unwind tables.
fn doctored(mut map: Vec<u8>) -> Vec<u8> {
    for part in ORC {
        let length = PARTS_AT + 8 * part + 4;
        map[length..length + 4].fill(0);
    }
    let place = PARTS_AT + 8 * FACTS;
    let from = u32_at(&map, place);
    let mut facts = map[from..from + LAYOUT.end].to_vec();
    facts[LAYOUT].fill(0xff);
    facts.extend_from_slice(b"tasks and preemption: no types\nstacks: no unwind table");
    let (at, length) = (map.len() as u32, facts.len() as u32);
    map[place..place + 4].copy_from_slice(&at.to_le_bytes());
    map[place + 4..place + 8].copy_from_slice(&length.to_le_bytes());
    map.extend_from_slice(&facts);
    map
}

/// The map of the one snapshot in the lab's cache.
fn map_of(lab: &Lab) -> PathBuf {
    let snapshots = lab.cache().join("snapshots");
    let maps = Lab::names(&snapshots).into_iter().map(|key| snapshots.join(key).join("map"));
    maps.into_iter().find(|map| map.is_file()).expect("a map was made")
}

#[test]
fn a_kernel_without_types_and_unwind_tables_shows_the_rest_and_says_what_is_missing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], 20, ""));
    let windows = || lab.onset(&["windows", &path, "--json"]).exits(0).json();
    let kinds = |printed: &serde_json::Value| {
        let windows = printed["windows"].as_array().expect("a list").iter();
        windows.map(|w| w["kind"].as_str().expect("a word").to_string()).collect::<Vec<_>>()
    };
    let whole = windows();
    assert!(kinds(&whole).contains(&"preempt_off".into()), "{whole:#}");
    assert_eq!(whole["cells"][0]["missing"], serde_json::json!([]));

    let map = map_of(&lab);
    let bytes = std::fs::read(&map).expect("a map");
    std::fs::write(&map, doctored(bytes)).expect("writable");
    let blind = windows();
    let missing = blind["cells"][0]["missing"].to_string();
    assert!(missing.contains("no types") && missing.contains("no unwind table"), "{missing}");
    // The preemption count cannot be found; the processor itself tells of masked interrupts.
    assert!(!kinds(&blind).contains(&"preempt_off".into()), "{blind:#}");
    assert!(kinds(&blind).contains(&"irqs_off".into()), "{blind:#}");
    let longest = |printed: &serde_json::Value| {
        let windows = printed["windows"].as_array().expect("a list").iter();
        let lengths = windows.filter(|w| w["kind"] == "irqs_off").map(|w| w["max_ns"].as_u64());
        lengths.flatten().max()
    };
    assert_eq!(longest(&blind), longest(&whole), "they are as long as before");

    let bound = lab.onset(&["bound", &path]).exits(69);
    bound.says(&["no bound for this kernel", "no types", "onset windows"]);
}
