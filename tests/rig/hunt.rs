// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt finds the same again, with any number of machines, and does not find less than luck.

use crate::modules::module;
use lab::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, have_kernels};
use serde_json::Value;

/// A hunt of some rounds, in a directory of its own.
fn hunt(lab: &Lab, directory: &str, budget: &str, words: &[&str]) -> Value {
    let place = lab.path().join(directory);
    let place = place.to_str().expect("the lab's path is text");
    let cell = ["--flavour", "6.12 preempt=none", "--load", "mixed", "--budget", budget];
    let rest = ["--json", "--directory", place];
    let mut found = lab.onset(&[&["hunt"], &cell[..], &rest[..], words].concat()).exits(0).json();
    assert_as_promised_by("hunt", &found);
    // What names the directory is not what was found.
    found.as_object_mut().expect("an object").remove("directory");
    for worst in found["worst"].as_array_mut().expect("finds") {
        worst.as_object_mut().expect("a find").remove("find");
    }
    found
}

fn hardirq(found: &Value) -> u64 {
    let worst = found["worst"].as_array().expect("finds");
    let own = worst.iter().find(|find| find["responder"] == "hardirq");
    own.and_then(|find| find["latency_ns"].as_u64()).expect("the handler has answered")
}

#[test]
fn a_hunt_finds_the_same_with_one_machine_and_two_and_no_less_than_as_many_triggers_at_random() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let two = hunt(&lab, "two", "10trials", &["--jobs", "2"]);
    let fired = &two["by_strategy"]["foresight"];
    assert!(fired["trials"] == 5 && fired["triggers"].as_u64() > Some(4), "{fired}");
    assert_eq!(hunt(&lab, "one", "10trials", &["--jobs", "1"]), two);
    let random = hunt(&lab, "random", "18trials", &["--jobs", "2", "--strategy", "random"]);
    assert!(random["triggers"].as_u64() >= two["triggers"].as_u64(), "{}", random["triggers"]);
    assert!(hardirq(&two) >= hardirq(&random), "{} < {}", hardirq(&two), hardirq(&random));
}

/// Hunts in an idle guest with this module of the tests.
fn hunt_with(lab: &Lab, name: &str, words: &[&str]) -> Value {
    let more = format!("{FIRST_AND_LAST}\nguest.modules = [{:?}]", module(name));
    let text = experiment(&["6.12 preempt=full"], &["idle"], 10, &more);
    let path = lab.experiment(&text);
    let found = lab.onset(&[&["hunt", &path, "--json"], words].concat()).exits(0).json();
    assert_as_promised_by("hunt", &found);
    found
}

#[test]
fn the_longest_planted_delays_are_found_and_explained_with_their_functions() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let found = hunt_with(&lab, "test_delays", &["--budget", "10trials"]);
    for (responder, cause, function, spent) in [
        ("hardirq", "irqs_off", "test_irqs_off+", 137_000_u64),
        ("task", "preempt_off", "test_preempt_off+", 223_000),
    ] {
        let worst = found["worst"].as_array().expect("finds");
        let worst = worst.iter().find(|w| w["responder"] == responder).expect("it answered");
        let is_ours = |frame: &Value| {
            frame.as_str().is_some_and(|f| f.starts_with(function) && f.ends_with("[test_delays]"))
        };
        let stack = worst["stack"].as_array().expect("a stack");
        assert!(stack.iter().any(is_ours), "{responder} was fired at {worst:#}");
        let find = worst["find"].as_str().expect("a file");
        let printed = lab.onset(&["explain", find, "--json"]).exits(0).json();
        let causes = printed["explanations"][0]["causes"].as_array().expect("causes");
        let of = causes.iter().filter(|c| c["cause"] == cause);
        let ours = of.filter(|c| c["stack"].as_array().is_some_and(|s| s.iter().any(is_ours)));
        let ns: u64 = ours.filter_map(|c| c["ns"].as_u64()).sum();
        // It was fired into at its beginning.
        assert!(ns.abs_diff(spent) <= spent / 50, "{responder}: {ns} ns of {spent}: {printed:#}");
    }
}

#[test]
fn a_guest_that_dies_under_fire_is_kept_and_dies_again() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let words = ["--budget", "34trials", "--strategy", "random"];
    let found = hunt_with(&lab, "test_panic", &words);
    let died = &found["died"][0];
    let text = died["text"].as_str().expect("its last words");
    assert!(text.contains("planted by a test"), "{text}");
    let again = lab.onset(&["run", died["experiment"].as_str().expect("a file"), "--json"]);
    let run = again.exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    // Its time of death is in it.
    assert_eq!(run.warning("guest_panicked")["text"], text);
}
