// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs in the guest: to the instruction, the same in two runs, and a planted one by its exact length.

use crate::modules::module;
use serde_json::Value;
use testbench::{Lab, Run, have_kernels};

/// Measures costs in a guest at rest.
fn costs(lab: &Lab, flavour: &str, more: &str) -> Run {
    let head = format!(
        "title = \"t\"\ntarget = \"rig\"\nflavours = [\"{flavour}\"]\nloads = [\"idle\"]\n"
    );
    let path = lab.experiment(&format!("{head}{more}\n"));
    lab.onset(&["run", &path, "--json"]).exits(3).run()
}

fn counters(run: &Run) -> Value {
    run.file("manifest.json")["about"]["probe_counters"].clone()
}

fn counter(run: &Run, name: &str) -> u64 {
    let counters = counters(run);
    counters[name].as_u64().unwrap_or_else(|| panic!("no {name}: {counters}"))
}

/// Few batches of everything.
const ALL: &str = "[cost]\ncount = 3\nrepetitions = 2";

#[test]
fn every_row_is_measured_in_the_guest_and_two_runs_give_the_same_to_the_instruction() {
    for kernel in ["6.12", "6.12-rt"] {
        if !have_kernels(&[kernel]) {
            continue;
        }
        let lab = Lab::new();
        let run = costs(&lab, kernel, ALL);
        assert!(!run.codes().contains(&"not_measured"), "{}", run.0);
        let rows = run.responders();
        assert!(rows.len() > 60, "{rows:?}");
        for row in &rows {
            assert_eq!(run.series(row)["count"], 6, "{kernel}: {row}");
            assert!(counter(&run, &format!("insns_{row}")) > 0, "{kernel}: {row}");
            let ops = counter(&run, &format!("ops_{row}"));
            assert!(ops > 0 && counter(&run, &format!("virtual_ns_{row}")) > 0, "{kernel}: {row}");
        }
        let again = costs(&lab, kernel, ALL);
        assert_eq!(again.text("samples_blake3"), run.text("samples_blake3"), "{kernel}");
        assert_eq!(counters(&again), counters(&run), "{kernel}");
    }
}

#[test]
fn instructions_and_virtual_time_are_one_number_where_nobody_idles() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[guest]\nshift = 2\n[cost]\nsuites = [\"syscalls\"]\ncount = 3\nrepetitions = 1";
    let run = costs(&lab, "6.12", asked);
    for row in run.responders() {
        let [insns, ns] =
            ["insns", "virtual_ns"].map(|what| counter(&run, &format!("{what}_{row}")));
        assert_eq!(ns, insns << 2, "{row}");
    }
}

#[test]
fn a_longer_system_call_costs_as_much_more_as_was_planted_and_no_other_does() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    /// More turns of the loop, and the instructions of each.
    const PLANTED: u64 = (600 - 100) * 2;
    let lab = Lab::new();
    let of = |name: &str| {
        let guest = format!("[guest]\nmodules = [{:?}]\n", module(name));
        let asked = "[cost]\nsuites = [\"syscalls\"]\ncount = 5\nrepetitions = 1";
        costs(&lab, "6.12", &format!("{guest}{asked}"))
    };
    let (few, many) = (of("test_cost_few"), of("test_cost_many"));
    let least = |run: &Run, row: &str| counter(run, &format!("least_insns_{row}"));
    let ops = counter(&few, "ops_null_call");
    // Batches without an interrupt are alike; the least ones are.
    assert_eq!(least(&many, "null_call") - least(&few, "null_call"), PLANTED * ops);
    assert_eq!(least(&many, "null_read"), least(&few, "null_read"));
}
