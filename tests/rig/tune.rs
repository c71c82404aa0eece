// SPDX-License-Identifier: GPL-2.0-or-later
//! What a knob does to a kernel, in pairs of guests.

use serde_json::Value;
use testbench::{Lab, assert_as_promised_by, have_kernels};

const PROVE: &[&str] = &[
    "tune",
    "prove",
    "--flavour",
    "6.12 preempt=none",
    "--load",
    "fork",
    "--pairs",
    "1",
    "--knob",
    "preempt=full",
    "--knob",
    "sched_proxy_exec=1",
    "--json",
];

fn costs(row: &Value) -> Vec<(f64, f64)> {
    let costs = row["costs"].as_array().expect("costs");
    let of = |cost: &Value, key: &str| cost[key].as_f64().expect("instructions");
    costs.iter().map(|cost| (of(cost, "without"), of(cost, "with"))).collect()
}

#[test]
fn each_knob_has_its_pairs_and_its_costs_and_one_that_the_kernel_lacks_is_named() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    // One pair tells nothing from chance.
    let first = lab.onset(PROVE).exits(3);
    let proof = first.json();
    assert_as_promised_by("prove", &proof);
    let rows = proof["kernels"][0]["rows"].as_array().expect("rows");
    let changes: Vec<_> = rows.iter().map(|row| row["change"].as_str().expect("a name")).collect();
    assert_eq!(changes, ["control", "preempt=full", "sched_proxy_exec=1", "together"]);
    for row in &rows[..2] {
        let latency = &row["latency"];
        let pairs = ["fell", "rose", "same"].map(|key| latency[key].as_u64().expect("a count"));
        assert_eq!(pairs.iter().sum::<u64>(), 1, "{row}");
        assert_eq!(latency["effect"]["verdict"], "cannot_tell", "{row}");
        assert_eq!(row["runs"].as_array().expect("runs").len(), 1, "{row}");
        assert!(
            row["load_time"]["ratio_median"].as_f64().is_some_and(|r| r > 0.5 && r < 2.0),
            "{row}"
        );
        assert_eq!(costs(row).len(), 3, "{row}");
    }
    // What means nothing to the kernel costs nothing: a call has as many instructions as without it.
    let (without, with) = costs(&rows[0])[0];
    assert_eq!(without, with);
    // Linux 6.12 does not know the word.
    for row in &rows[2..] {
        assert_eq!(row["latency"], Value::Null, "{row}");
        let absent = row["absent"][0].as_str().expect("a reason");
        assert!(absent.contains("sched_proxy_exec=1 (unknown)"), "{absent}");
    }
    // The guests of an earlier proof count, and say the same.
    let again = lab.onset(PROVE).exits(3).says(&["measured before"]);
    assert_eq!(again.json(), proof);
    // So they do in a proof of one knob less.
    let fewer: Vec<&str> = PROVE.iter().copied().filter(|w| *w != "sched_proxy_exec=1").collect();
    let at = fewer
        .windows(2)
        .position(|two| two == ["--knob", "--json"])
        .expect("a knob without a name");
    let fewer = [&fewer[..at], &fewer[at + 1..]].concat();
    let few = lab
        .onset(&fewer)
        .exits(3)
        .says(&["6.12 preempt=none preempt=full · fork: measured before"]);
    assert_eq!(few.json()["kernels"][0]["rows"][1], rows[1]);
}

const SCREEN: &[&str] = &[
    "tune",
    "prove",
    "--screen",
    "--flavour",
    "6.12 preempt=none",
    "--load",
    "idle",
    "--knob",
    "mitigations=off",
    "--knob",
    "vm.swappiness=10",
    "--knob",
    "sched_proxy_exec=1",
    // A knob that shortens each entry of the kernel moves this one in each pair. The latest answers of some seconds
    // are the guest's luck.
    "--goal",
    "task.p50",
    "--hunt",
    "2trials",
    "--json",
];

#[test]
fn a_knob_that_changes_nothing_is_the_same_to_the_nanosecond_and_one_that_helps_has_reasons() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    // The kernel lacks one of the knobs.
    let proof = lab.onset(SCREEN).exits(3).json();
    assert_as_promised_by("prove", &proof);
    let kernel = &proof["kernels"][0];
    let [control, shorter, same, unknown] = &kernel["rows"].as_array().expect("rows")[..] else {
        panic!("{kernel}");
    };
    assert_eq!(same["words"], "sysctl.vm.swappiness=10");
    // A word that means nothing moves the history of a guest, but not its median answers.
    for row in [control, same] {
        assert_eq!(row["quiet"]["same"], true, "{row}");
        assert!(row["quiet"]["compared"].as_u64().is_some_and(|n| n >= 5), "{row}");
        assert_eq!(row["reasons"].as_array().map(Vec::len), Some(0), "{row}");
    }
    // A word that the kernel does not know is not said to be the same, and is in no group.
    assert_eq!((&unknown["quiet"], &unknown["group"]), (&Value::Null, &Value::Null));
    let absent = unknown["absent"][0].as_str().expect("a reason");
    assert!(absent.contains("sched_proxy_exec=1 (unknown)"), "{absent}");
    // What changes nothing has no pairs of its own.
    assert_eq!((&same["latency"], &same["group"]), (&Value::Null, &Value::from(1)));
    assert_eq!(kernel["groups"][0]["change"], "vm.swappiness=10");
    // The late answers of a quiet guest depend on its history, which every word moves.
    let group = &kernel["groups"][0]["latency"]["effect"]["verdict"];
    assert!(["no_effect_seen", "cannot_tell"].map(Value::from).contains(group), "{group}");
    // Without mitigations each entry of the kernel is shorter.
    assert_eq!(shorter["quiet"]["same"], false);
    for figure in shorter["quiet"]["differ"].as_array().expect("figures") {
        assert!(figure["with_ns"].as_u64() < figure["without_ns"].as_u64(), "{figure}");
    }
    assert_eq!(shorter["latency"]["effect"]["verdict"], "helps");
    let reasons = shorter["reasons"].as_array().expect("reasons");
    assert!(!reasons.is_empty(), "{shorter}");
    let change = |reason: &Value| {
        reason["with_ns"].as_f64().expect("ns") - reason["without_ns"].as_f64().expect("ns")
    };
    let changes: Vec<f64> = reasons.iter().map(change).collect();
    assert!(changes.is_sorted_by(|a, b| a.abs() >= b.abs()), "{changes:?}");
    assert!(changes[0] < 0.0, "{reasons:?}");
    // Two hunts of one seed and budget.
    let hunted = &kernel["hunted"];
    assert_eq!(hunted["words"], "mitigations=off");
    for hunt in [&hunted["without"], &hunted["with"]] {
        assert_eq!(hunt["trials"], 2, "{hunted}");
        assert!(hunt["worst_ns"].as_u64().is_some_and(|ns| ns > 0), "{hunted}");
    }
}
