// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel that does not tell of its types (BTF) or of its stacks (ORC): what cannot be seen is said, the rest works.

use serde_json::Value;
use std::path::PathBuf;
use testbench::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, have_kernels};

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
    let maps = Lab::names(&snapshots).into_iter().map(|key| snapshots.join(key).join("map/map"));
    maps.into_iter().find(|map| map.is_file()).expect("a map was made")
}

#[test]
fn a_kernel_without_types_and_unwind_tables_shows_the_rest_and_says_what_is_missing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let text = experiment(&["6.12 preempt=none"], &["idle"], 20, FIRST_AND_LAST);
    let path = lab.experiment(&text);
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
    testbench::write_hashes(map.parent().expect("a directory"));
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
    latencies_are_cut_as_far_as_they_are_seen(&lab, &text);
    a_hunt_does_without(&lab, &path);
}

fn says_what_is_missing(printed: &Value) {
    let missing = printed["missing"].to_string();
    assert!(missing.contains("no types") && missing.contains("no unwind table"), "{missing}");
}

fn sum(of: &Value, key: &str) -> u64 {
    let list = of.as_array().expect("a list").iter();
    list.map(|item| item[key].as_u64().expect("a number")).sum()
}

/// Who ran and who was woken is not known: that time is unexplained, and all of it is there.
fn latencies_are_cut_as_far_as_they_are_seen(lab: &Lab, text: &str) {
    let run = lab.run(text, &[]).exits(3).run().text("run").to_string();
    let explained = lab.onset(&["explain", &run, "--worst", "40", "--json"]).exits(0).json();
    assert_as_promised_by("explain", &explained);
    says_what_is_missing(&explained);
    let explanations = explained["explanations"].as_array().expect("a list");
    assert_eq!(explanations.len(), 40);
    for explanation in explanations {
        assert_eq!(Value::from(sum(&explanation["parts"], "ns")), explanation["latency_ns"]);
    }
    let blamed = lab.onset(&["blame", &run, "--above", "all", "--json"]).exits(0).json();
    assert_as_promised_by("blame", &blamed);
    says_what_is_missing(&blamed);
    for ledger in blamed["ledgers"].as_array().expect("a list") {
        assert_eq!(Value::from(sum(&ledger["rows"], "total_ns")), ledger["total_ns"]);
    }
    let replayed = lab.onset(&["replay", &run, "--trace", "t.pftrace", "--json"]).exits(0);
    let replayed = replayed.says(&["not seen in this kernel"]).json();
    assert_eq!(replayed["identical"], true);
    assert!(lab.path().join("t.pftrace").metadata().expect("written").len() > 1_000);
    // A bound is neither shown nor held against anything.
    lab.onset(&["report", &run, "--inside", "-o", "r.html"]).exits(0);
    let page = std::fs::read_to_string(lab.path().join("r.html")).expect("a page");
    assert!(page.contains("\"bound\":null") && page.contains("no unwind table"));
}

/// What interrupts are masked is seen: a hunt can fire into that, but not into one stretch inside another.
fn a_hunt_does_without(lab: &Lab, path: &str) {
    let words = ["hunt", path, "--budget", "10trials", "--directory", "hunt", "--json"];
    let hunted = lab.onset(&words).exits(0);
    let found = hunted.json();
    hunted.says(&["not seen in this kernel", "no types", "no unwind table"]);
    assert_as_promised_by("hunt", &found);
    let finds = found["worst"].as_array().expect("finds");
    assert!(finds.iter().any(|find| find["responder"] == "task"), "{found:#}");
    let find = finds[0]["find"].as_str().expect("a file");
    let replayed = lab.onset(&["replay", find, "--json"]).exits(0).json();
    assert_eq!(replayed["latency_ns"], finds[0]["latency_ns"]);
}
