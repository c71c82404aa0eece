// SPDX-License-Identifier: GPL-2.0-or-later
//! Probes in the guest judged by what the rig sees from outside.

use serde_json::Value;
use std::path::Path;
use testbench::{Lab, assert_as_promised, have_kernels};

const HEAD: &str = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12 preempt=none\"]\nloads = [\"idle\"]\n\
                    warm_up = \"200ms\"\nguest.witness = true\n";

/// What was found of each series: name, mean error in ns, instructions a sample.
fn judged(printed: &Value) -> Vec<(String, f64, u64)> {
    let runs = printed["runs"].as_array().expect("runs");
    let truths = runs.iter().flat_map(|run| run["truth"].as_array().expect("a judged run"));
    let one = |truth: &Value| {
        assert_eq!(truth["matched"], truth["samples"], "{truth}");
        let name = truth["series"].as_str().expect("a name").to_owned();
        let mean = truth["error"]["mean_ns"].as_f64().expect("a mean");
        (name, mean, truth["own_insns"].as_u64().expect("instructions"))
    };
    truths.map(one).collect()
}

#[test]
fn every_way_of_sleeping_is_judged_and_says_little_more_than_was() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = format!(
        "{HEAD}[periodic]\nmethods = [\"nanosleep\", \"clock_nanosleep\", \"timerfd\", \"posix_timer\", \
         \"itimer\", \"deadline\", \"precise\"]\ncount = 200\n"
    );
    let printed = lab.run(&text, &[]).exits(3).json();
    assert_as_promised(&printed);
    let judged = judged(&printed);
    assert_eq!(judged.len(), 7);
    for (name, mean, own) in judged {
        // From waking to reading the clock are some dozen instructions, and none of them can be missing.
        assert!((0.0..300.0).contains(&mean) && own > 50, "{name}: {mean} ns, {own} instructions");
    }
}

#[test]
fn our_probe_is_at_least_as_true_as_cyclictest_in_every_method_that_they_share() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    if !Path::new("/usr/bin/cyclictest").exists() {
        return testbench::skip("no cyclictest; install it: apt-get install rt-tests");
    }
    let lab = Lab::new();
    let methods = "methods = [\"nanosleep\", \"clock_nanosleep\", \"posix_timer\"]\ncount = 200\n";
    let text = format!("{HEAD}[periodic]\n{methods}[cyclictest]\n{methods}");
    let judged = judged(&lab.run(&text, &[]).exits(3).json());
    let (ours, theirs) = judged.split_at(3);
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(format!("cyclictest-{}", ours.0), theirs.0);
        // The readings of the guest's clock may differ by one or two ns between the two guests.
        assert!(ours.1 <= theirs.1 + 2.0 && ours.2 <= theirs.2, "{ours:?} {theirs:?}");
    }
}

#[test]
fn pulses_are_measured_by_the_edges_at_the_port_and_judge_what_the_probe_says_of_them() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let head = HEAD.replace("guest.witness = true\n", "");
    for method in ["clock_nanosleep", "precise"] {
        let text = format!(
            "{head}[toggle]\nmethod = \"{method}\"\nline = \"parport:0x378\"\ncount = 300\n"
        );
        let first = lab.run(&text, &[]).exits(3).run();
        for series in ["rise", "fall", "width"] {
            let summary = first.series(series);
            assert_eq!(summary["count"], 300, "{summary}");
            let losses = summary["losses"].as_object().expect("losses");
            assert!(losses.values().all(|n| *n == 0), "{summary}");
        }
        let [rise, fall, width] = first.0["truth"].as_array().expect("judged").as_slice() else {
            panic!("{:#}", first.0["truth"]);
        };
        for edge in [rise, fall] {
            assert_eq!(edge["matched"], 300, "{edge}");
            // It reads the clock after the write, and what both are off alike is not known to 40 ns.
            let (least, most) = (&edge["error"]["min_ns"], &edge["error"]["max_ns"]);
            let (least, most) = (least.as_i64().expect("ns"), most.as_i64().expect("ns"));
            assert!(least > -100 && most < 200 && most - least <= 2, "{method}: {edge}");
        }
        let width = &width["error"];
        assert!(
            width["min_ns"].as_i64() >= Some(-2) && width["max_ns"].as_i64() <= Some(2),
            "{width}"
        );
        let again = lab.run(&text, &[]).exits(3).run();
        assert_eq!(again.0["samples_blake3"], first.0["samples_blake3"]);
    }
}
