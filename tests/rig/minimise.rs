// SPDX-License-Identifier: GPL-2.0-or-later
//! A latency of a run does not need all of the triggers before it, nor all that kept the guest busy.

use crate::modules::module;
use serde_json::Value;
use testbench::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, have_kernels};

#[test]
fn a_latency_with_superfluous_triggers_becomes_a_find_with_fewer_that_replays_identical() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&["6.12 preempt=full"], &["idle"], 60, FIRST_AND_LAST);
    let run = lab.run(&text, &[]).exits(3).run().text("run").to_string();
    let words = ["minimise", &run, "--responder", "task", "--sample", "50", "-o", "small.json"];
    let words = [&words[..], &["--json"]].concat();
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("minimise", &printed);
    assert_eq!((&printed["minimal"], &printed["replayed"]), (&true.into(), &true.into()));
    let [before, after] = [&printed["before"], &printed["after"]];
    let number = |size: &Value, key: &str| size[key].as_u64().expect("a number");
    assert!(number(before, "triggers") > number(after, "triggers"), "{printed:#}");
    let enough = number(before, "latency_ns") * 99;
    assert!(number(after, "latency_ns") * 100 >= enough, "{printed:#}");

    let text = std::fs::read_to_string(lab.path().join("small.json")).expect("written");
    let find: Value = serde_json::from_str(&text).expect("JSON");
    let times = find["times_ns"].as_array().expect("a list").len() as u64;
    assert_eq!((times, &find["answer"]["responder"]), (number(after, "triggers"), &"task".into()));
    let replayed = lab.onset(&["replay", "small.json", "--times", "2", "--json"]).exits(0).json();
    assert_eq!(replayed["identical_times"], 2, "{replayed:#}");
    assert_eq!(replayed["latency_ns"], after["latency_ns"], "{replayed:#}");

    // What is minimal stays as it is.
    let again = lab.onset(&["minimise", "small.json", "--json"]).exits(0).json();
    assert_eq!((&again["before"], &again["after"]), (after, after), "{again:#}");
    assert_eq!(again["find"], "small.min.json");

    // A find that says another latency than it has is not searched in.
    let mut wrong = find;
    wrong["answer"]["latency_ns"] = 1.into();
    lab.write("wrong.json", &wrong.to_string());
    let finished = lab.onset(&["minimise", "wrong.json"]).exits(1);
    finished.says(&["should take 1 ns", "onset replay"]);
    assert!(!lab.path().join("wrong.min.json").exists());
}

#[test]
fn load_that_a_latency_does_not_need_is_left_out() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let more = format!("{FIRST_AND_LAST}\nguest.modules = [{:?}]", module("test_delays"));
    let text = experiment(&["6.12 preempt=full"], &["fork"], 20, &more);
    let run = lab.run(&text, &[]).exits(3).run().text("run").to_string();
    // Any answer of a guest that forks: the module delays some longer, whatever else the guest does.
    let words = ["minimise", &run, "--responder", "task", "--sample", "3", "-o", "less.json"];
    let words = [&words[..], &["--load", "--budget", "10trials", "--json"]].concat();
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("minimise", &printed);
    let [before, after] = [&printed["before"], &printed["after"]];
    assert_eq!((&before["load"], &after["load"]), (&"fork".into(), &"idle".into()));
    let latency = |size: &Value| size["latency_ns"].as_u64().expect("a number");
    assert!(latency(after) * 100 >= latency(before) * 99, "{printed:#}");
    assert_eq!((&printed["minimal"], &printed["replayed"]), (&true.into(), &true.into()));
    let text = std::fs::read_to_string(lab.path().join("less.json")).expect("written");
    let find: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(find["load"], "idle");
    let replayed = lab.onset(&["replay", "less.json", "--json"]).exits(0).json();
    assert_eq!(replayed["latency_ns"], after["latency_ns"], "{replayed:#}");
}
