// SPDX-License-Identifier: GPL-2.0-or-later
//! A search for loads finds the same again, its finds come out again with the load under which they came, and the loads
//! of one search begin another.

use serde_json::Value;
use testbench::{Lab, Started, assert_as_promised_by, have_kernels};

const STRESSORS: [&str; 6] = ["--stressor", "brk", "--stressor", "pipe", "--stressor", "fork"];

fn words<'a>(directory: &'a str, loads: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let breed = ["breed", "--flavour", "6.12 preempt=none", "--directory", directory, "--json"];
    [&breed[..], &["--loads", loads], &STRESSORS, more].concat()
}

fn worst<'a>(bred: &'a Value, responder: &str) -> &'a Value {
    let all = bred["worst"].as_array().expect("a list");
    all.iter().find(|find| find["responder"] == responder).expect("a find")
}

/// Without the paths.
fn nameless(mut bred: Value) -> Value {
    bred.as_object_mut().expect("an object").remove("directory");
    for find in bred["worst"].as_array_mut().expect("a list") {
        find.as_object_mut().expect("an object").remove("find");
    }
    bred
}

#[test]
fn a_seed_breeds_the_same_and_each_find_comes_out_again_under_its_load() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let bred = lab.onset(&words("one", "9", &["--jobs", "2"])).exits(0).json();
    assert_as_promised_by("breed", &bred);
    assert_eq!((bred["loads"].as_u64(), bred["died"].as_array().map(Vec::len)), (Some(9), Some(0)));
    assert!(bred["trials"].as_u64() > Some(10) && bred["stacks"].as_u64() > Some(5), "{bred:#}");
    for responder in ["hardirq", "task"] {
        let worst = worst(&bred, responder);
        let stressor = worst["genes"][0]["stressor"].as_str().expect("a name");
        assert!(["brk", "pipe", "fork"].contains(&stressor), "{worst:#}");
        assert!(!worst["causes"].as_array().expect("a list").is_empty(), "{worst:#}");
        let find = worst["find"].as_str().expect("a file");
        let replayed = lab.onset(&["replay", find, "--times", "2", "--json"]).exits(0).json();
        assert_eq!(replayed["identical_times"], 2, "{replayed:#}");
        assert_eq!(replayed["latency_ns"], worst["latency_ns"]);
    }
    // The load is a part of the find: without it the answer is another.
    let find = lab.path().join(worst(&bred, "task")["find"].as_str().expect("a file"));
    let text = std::fs::read_to_string(find).expect("written");
    let mut idle: Value = serde_json::from_str(&text).expect("JSON");
    assert!(idle["work"].as_str().expect("a script").contains("stress-ng"));
    idle.as_object_mut().expect("an object").remove("work");
    lab.write("idle.find.json", &idle.to_string());
    lab.onset(&["replay", "idle.find.json"]).exits(1);

    // Killed within a round, gone on with by one worker, and the same. The ninth load has a parent.
    let mut killed = Started::of(&mut lab.command(&words("two", "9", &["--jobs", "1"])));
    killed.wait_until_it_says("load 0:");
    killed.signal(libc::SIGKILL);
    killed.wait();
    let again = lab.onset(&words("two", "9", &["--jobs", "1"])).exits(0).json();
    assert_eq!(nameless(again), nameless(bred));
    lab.onset(&words("two", "9", &["--seed", "2"])).exits(2).says(&["its seed is 1"]);
}

#[test]
fn the_loads_of_one_search_begin_another() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    lab.onset(&words("old", "1", &[])).exits(0);
    let genome = |directory: &str| -> Value {
        let path = lab.path().join(directory).join("genomes/000000.json");
        let text = std::fs::read_to_string(path).expect("a genome");
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        kept["lived"]["genome"].clone()
    };
    lab.onset(&words("new", "1", &["--seed", "7", "--corpus", "old"])).exits(0);
    assert_eq!(genome("new"), genome("old"));
    lab.onset(&words("other", "1", &["--seed", "7"])).exits(0);
    assert_ne!(genome("other"), genome("old"));
    // A fork that ever went another way would be told each time, and no more would be made.
    let path = lab.path().join("old/genomes/000000.json");
    let text = std::fs::read_to_string(&path).expect("a genome");
    let mut kept: Value = serde_json::from_str(&text).expect("JSON");
    kept["forked_otherwise"] = true.into();
    std::fs::write(&path, kept.to_string()).expect("writable");
    let again = lab.onset(&words("old", "2", &[])).exits(3);
    again.says(&["load 0: ", "came out otherwise in a fork", "onset replay FIND"]);
    lab.onset(&words("none", "1", &["--corpus", "."])).exits(2).says(&["has no genomes"]);
    lab.onset(&words("none", "1", &["--stressor", "pip"])).exits(2).says(&["did you mean"]);
}
