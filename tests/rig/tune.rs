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
    "vm.stat_interval=120",
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
    let knobs =
        ["control", "preempt=full", "vm.stat_interval=120", "sched_proxy_exec=1", "together"];
    assert_eq!(changes, knobs);
    assert_eq!(rows[2]["words"], "sysctl.vm.stat_interval=120");
    for row in &rows[..3] {
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
    for row in &rows[3..] {
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
