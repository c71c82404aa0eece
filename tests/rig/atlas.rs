// SPDX-License-Identifier: GPL-2.0-or-later
//! Atlases: the longest stretches under stressors of stress-ng.

use serde_json::Value;
use std::fs;
use std::path::Path;
use testbench::{Lab, Started, assert_as_promised_by, have_kernels};

const STRESSORS: [&str; 3] = ["brk", "fork", "pipe"];

/// The words of an atlas of these stressors in this directory.
fn words<'a>(directory: &'a str, stressors: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let atlas = ["atlas", "--flavour", "6.12 preempt=none", "--duration", "60ms", "--json"];
    let stressors = stressors.iter().flat_map(|name| ["--stressor", name]);
    atlas.into_iter().chain(["--output", directory]).chain(stressors).chain(more.to_vec()).collect()
}

/// The files of an atlas by name, with their bytes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let stressors = directory.join("stressors");
    let names = Lab::names(&stressors).into_iter().map(|name| format!("stressors/{name}"));
    let top = ["about.json", "atlas.json"].map(String::from);
    let read = |name: String| (fs::read(directory.join(&name)).expect("a file"), name);
    top.into_iter().chain(names).map(read).map(|(bytes, name)| (name, bytes)).collect()
}

fn names<'a>(atlas: &'a Value, list: &str) -> Vec<&'a str> {
    let all = atlas[list].as_array().expect("a list");
    all.iter().map(|one| one["stressor"].as_str().expect("a name")).collect()
}

#[test]
fn the_same_stressors_make_the_same_atlas_to_the_byte_and_each_place_has_its_stacks() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let one = lab.onset(&words("one", &STRESSORS, &["--jobs", "1"])).exits(0);
    let atlas = one.json();
    assert_as_promised_by("atlas", &atlas);
    assert_eq!(names(&atlas, "worked"), STRESSORS);
    for worker in atlas["worked"].as_array().expect("a list") {
        assert!(worker["ops"].as_u64().expect("counted") > 0, "{worker:#}");
        assert_eq!(worker["losses"]["dropped"], 0);
    }
    for kind in ["irqs_off", "preempt_off", "unscheduled"] {
        let places = atlas["places"].as_array().expect("a list").iter();
        let places: Vec<&Value> = places.filter(|place| place["kind"] == kind).collect();
        assert!(!places.is_empty(), "{kind}");
        let lengths: Vec<u64> =
            places.iter().map(|p| p["ns"].as_u64().expect("a length")).collect();
        assert!(lengths.is_sorted_by(|a, b| a >= b), "{kind}: {lengths:?}");
        for place in places {
            let stacks = match kind {
                "unscheduled" => &["closed_by"][..],
                _ => &["opened_by", "closed_by"],
            };
            for stack in stacks {
                assert!(place[stack][0].as_str().is_some_and(|f| f.contains('+')), "{place:#}");
            }
            assert!(STRESSORS.contains(&place["stressor"].as_str().expect("a name")));
        }
    }
    // In another order, and at once.
    let reversed = ["pipe", "fork", "brk"];
    let other = lab.onset(&words("other", &reversed, &["--jobs", "2"])).exits(0);
    assert_eq!(one.stdout, other.stdout);
    assert!(files(&lab.path().join("one")) == files(&lab.path().join("other")));
    // Another seed has another history.
    let seed = lab.onset(&words("seed", &["pipe"], &["--seed", "2"])).exits(0).json();
    let longest = |atlas: &Value| atlas["worked"].as_array().expect("a list").last().cloned();
    assert_ne!(longest(&seed), longest(&atlas));
}

#[test]
fn a_stressor_that_cannot_work_is_named_with_its_reason_and_the_others_go_on() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let stressors = ["watchdog", "pipe", "softlockup", "rtc"];
    let atlas = lab.onset(&words("atlas", &stressors, &[])).exits(0).json();
    assert_as_promised_by("atlas", &atlas);
    assert_eq!(names(&atlas, "worked"), ["pipe"]);
    assert_eq!(names(&atlas, "refused"), ["rtc", "watchdog"]);
    let why = atlas["refused"][1]["why"].as_str().expect("a reason");
    assert!(why.contains("may hang or reboot the machine"), "{why}");
    assert_eq!(names(&atlas, "left_out"), ["softlockup"]);
}

#[test]
fn an_atlas_that_was_killed_or_interrupted_goes_on_to_the_same_end() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let whole = lab.onset(&words("whole", &STRESSORS, &[])).exits(0).stdout;
    for (name, signal, status) in
        [("killed", libc::SIGKILL, None), ("interrupted", libc::SIGINT, Some(130))]
    {
        let words = words(name, &STRESSORS, &["--jobs", "1"]);
        let mut started = Started::of(&mut lab.command(&words));
        started.wait_until_it_says("[1/3] brk: ");
        started.signal(signal);
        assert_eq!(started.wait().status, status, "{name}");
        let directory = lab.path().join(name);
        let done = Lab::names(&directory.join("stressors"));
        assert!((1..3).contains(&done.len()), "{name}: {done:?}");
        let resumed = lab.onset(&words).exits(0);
        assert!(resumed.stderr.contains(&format!("{} of 3 stressors are done", done.len())));
        assert!(!resumed.stderr.contains("] brk: "), "{}", resumed.stderr);
        assert_eq!(resumed.stdout, whole, "{name}");
    }
    let other = words("killed", &["fork"], &["--seed", "2"]);
    lab.onset(&other).exits(2).says(&["is of another atlas", "--output"]);
}
