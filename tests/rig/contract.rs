// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset run --json` prints is what docs/run.schema.json promises to scripts.

use crate::modules::module;
use serde_json::Value;
use testbench::{Lab, assert_as_promised, experiment, have_kernels, is_as_promised};

#[test]
fn the_json_of_a_run_is_as_the_schema_says() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let limits = "[limits]\nhardirq.max = \"50us\"\ntask.\"p99.9\" = \"1ms\"";
    let text = experiment(&["6.12 preempt=none"], &["idle"], 50, limits);
    let printed = lab.run(&text, &[]).exits(3).json();
    assert_eq!(printed["runs"][0]["findings"].as_array().map(Vec::len), Some(2));
    let warnings = printed["runs"][0]["warnings"].as_array().expect("warnings");
    let codes: Vec<&str> = warnings.iter().filter_map(|w| w["code"].as_str()).collect();
    assert_eq!(codes, ["maximum_of_few", "too_few_samples"]);
    assert_as_promised(&printed);

    let mut altered = printed;
    altered["runs"][0]["speed"] = 1.into();
    assert!(!is_as_promised(&altered), "the schema takes anything");
}

#[test]
fn the_json_of_an_unsound_run_is_as_the_schema_says() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    for name in ["test_panic", "test_deaf"] {
        let more = format!("guest.modules = [{:?}]", module(name));
        let text = experiment(&["6.12 preempt=none"], &["idle"], 3000, &more);
        let printed = lab.run(&text, &[]).exits(3).json();
        assert_ne!(printed["runs"][0]["warnings"], Value::Array(Vec::new()));
        assert_as_promised(&printed);
    }
}

#[test]
fn the_json_of_a_probe_in_the_guest_is_as_the_schema_says() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12 preempt=none\"]\nloads = [\"idle\"]\n\
                [periodic]\nmethods = [\"nanosleep\", \"timerfd\"]\ncount = 50\n[limits]\nall.max = \"5ms\"\n\
                [guest]\nwitness = true\n";
    let finished = lab.run(text, &[]).exits(0);
    let run = finished.run();
    assert_eq!(run.responders(), ["nanosleep-1ms", "timerfd-1ms"]);
    assert_eq!((run.text("clock"), run.text("verdict")), ("virtual", "pass"));
    assert_eq!(run.0["truth"].as_array().map(Vec::len), Some(2));
    assert_as_promised(&finished.json());
    lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
}
