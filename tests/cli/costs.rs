// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure cost` on this machine, where the process at the other end of a message is killed.

use testbench::{Lab, Started, kill, wait_for_child_of};

/// Batches of a row: they take at least a tenth of a second.
const COUNT: u64 = 100;
/// The process of the probe, and its partners.
const AGENT: &str = "onset-agent";

#[test]
fn a_partner_that_is_killed_ends_its_cost_with_the_reason_and_the_others_are_measured() {
    let lab = Lab::bare();
    let count = COUNT.to_string();
    let words = ["measure", "cost", "--suite", "ipc", "--count", &count, "--repetitions", "1"];
    let started = Started::of(&mut lab.command(&[&words[..], &["--json"]].concat()));
    let probe = started.wait_for_child(AGENT);
    // The first three, each of another row: a killed one is the last of its row.
    for _ in 0..3 {
        let partner = wait_for_child_of(probe, AGENT);
        kill(partner);
        testbench::wait_for("its end", || (!testbench::is_there(partner)).then_some(()));
    }
    let run = started.wait().exits(3).run();
    let warnings = run.0["warnings"].as_array().expect("warnings");
    let missing: Vec<_> = warnings.iter().filter(|w| w["code"] == "not_measured").collect();
    assert_eq!(missing.len(), 3, "{warnings:?}");
    for warning in &missing {
        let reason = warning["reason"].as_str().expect("a reason");
        assert!(reason.contains("the process at the other end was killed"), "{reason}");
        let series = warning["series"].as_str().expect("a series");
        let measured = run.series(series)["count"].as_u64().expect("a count");
        assert!(measured < COUNT, "{series}: {measured}");
    }
    let names: Vec<_> = missing.iter().map(|w| w["series"].as_str().expect("a series")).collect();
    let others: Vec<_> =
        run.responders().into_iter().filter(|name| !names.contains(name)).collect();
    assert!(!others.is_empty(), "all of {names:?} are missing");
    for series in others {
        assert_eq!(run.series(series)["count"], COUNT, "{series}");
    }
}
