// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt finds the same again, with any number of machines, and does not find less than luck.

use lab::{Lab, assert_as_promised_by, have_kernels};
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
