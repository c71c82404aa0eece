// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs in the guest: to the instruction, the same in two runs, and a planted one by its exact length.

use crate::modules::module;
use serde_json::Value;
use testbench::{Lab, Run, assert_as_promised_by, experiment, have_kernels, those_here};

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

/// Few batches of everything, in an order in which no batch falls into other work of the kernel: such a batch may seem
/// to take less than nothing, and is then tainted.
const ALL: &str = "[cost]\ncount = 3\nrepetitions = 2\nseed = 2";

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
        // Two sleepers are woken in each, and more is done around it from row to row.
        let one = |row: &str| {
            counter(&run, &format!("insns_{row}")) / counter(&run, &format!("ops_{row}"))
        };
        let round_trip = one("futex_round_trip");
        let (handed, inherited) = (one("futex_contended"), one("futex_pi_contended"));
        assert!(round_trip < handed + 500 && handed < inherited, "{kernel}: {handed} {inherited}");
        assert!(inherited < 2 * round_trip, "{kernel}: {inherited}, and {round_trip}");
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
    // The explanations find the same difference, in the function that it was planted in.
    let planted = |run: &Run| {
        let cost = explained(&lab, run, &["--series", "null_call"])["costs"][0].clone();
        // The trampoline that leads to a kprobe is code without a function.
        assert!(unnamed(&cost, "null_call") > 0, "{cost}");
        let functions = cost["functions"].as_array().expect("a list");
        let is_planted = |share: &&Value| {
            share["function"].as_str().is_some_and(|name| name.starts_with("turn [test_cost_"))
        };
        let share = functions.iter().find(is_planted).expect("the planted function is named");
        share["insns"].as_u64().expect("a number")
    };
    assert_eq!(planted(&many) - planted(&few), PLANTED * ops);
}

#[test]
fn two_kernels_are_compared_by_what_they_get_and_what_they_pay() {
    if !have_kernels(&["6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[cost]\nsuites = [\"syscalls\", \"context\"]\ncount = 1\nrepetitions = 1";
    let paid = ["6.12 preempt=none", "6.12-rt"].map(|flavour| costs(&lab, flavour, asked));
    let flavours = ["6.12 preempt=none", "6.12-rt"];
    let path = lab.experiment(&experiment(&flavours, &["mixed"], 300, ""));
    let got = lab.onset(&["run", &path, "--json"]).exits(3).runs();
    let names = |runs: &[Run]| [runs[0].text("run").to_owned(), runs[1].text("run").to_owned()];
    let (paid_names, got_names) = (names(&paid), names(&got));
    for pair in [&paid_names, &got_names] {
        let compared = lab.onset(&["compare", &pair[0], &pair[1], "--json"]).exits(0).json();
        assert_as_promised_by("compare", &compared);
        let prices = &compared["prices"];
        assert_eq!(prices["unit"], "instructions");
        let kernels = prices["kernels"].as_array().expect("two kernels");
        assert_eq!(kernels.len(), 2, "{prices}");
        for (n, kernel) in kernels.iter().enumerate() {
            assert_eq!(kernel["flavour"], flavours[n]);
            assert_eq!(kernel["worst_ns"], got[n].max("task"), "{kernel}");
            assert_eq!(kernel["cost_run"], paid_names[n].as_str());
            assert_eq!(kernel["latency_run"], got_names[n].as_str());
        }
        // RT answers earlier and opens a file more slowly: none of both beats the other.
        assert!(kernels.iter().all(|kernel| kernel["on_front"] == true), "{prices}");
        let is_of_costs = std::ptr::eq(pair, &paid_names);
        assert_eq!(compared["costs"].as_array().map(Vec::is_empty), Some(!is_of_costs));
        let text = lab.onset(&["compare", &pair[0], &pair[1]]).exits(0).stdout;
        assert!(text.contains("longest answer of task"), "{text}");
    }
    let compared = lab.onset(&["compare", &paid_names[0], &paid_names[1], "--json"]).json();
    let costs = compared["costs"].as_array().expect("a list");
    let opened = costs.iter().find(|cost| cost["cost"] == "open_close").expect("it was measured");
    assert_eq!(opened["is_better"], false, "{opened}");
    for (n, run) in paid.iter().enumerate() {
        let ops = counter(run, "ops_open_close") as f64;
        assert_eq!(opened["insns"][n], counter(run, "insns_open_close") as f64 / ops);
    }
}

/// What `onset explain` prints of a run.
fn explained(lab: &Lab, run: &Run, more: &[&str]) -> Value {
    let words = [&["explain", run.text("run"), "--json"], more].concat();
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("explain-costs", &printed);
    printed
}

#[test]
fn what_cannot_be_asked_of_a_cost_is_refused_with_what_can() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[cost]\nsuites = [\"syscalls\"]\ncount = 1\nrepetitions = 1";
    let run = costs(&lab, "6.12", asked);
    let run = run.text("run");
    let batch = lab.onset(&["explain", run, "--worst", "1"]).exits(2);
    batch.says(&["leave --sample and --worst out", "--series"]);
    let unknown = lab.onset(&["explain", run, "--series", "openat"]).exits(2);
    unknown.says(&["has no series openat", "open_close"]);
    let path = lab.experiment(&experiment(&["6.12"], &["idle"], 3, ""));
    let other = lab.onset(&["run", &path, "--json"]).exits(3).run();
    for pair in [[run, other.text("run")], [other.text("run"), run]] {
        let refused = lab.onset(&["explain", pair[0], "--against", pair[1]]).exits(2);
        refused.says(&[other.text("run"), "did not measure costs", "onset compare"]);
    }
}

/// The instructions that have no name. Checks that all together are those of the cost.
fn unnamed(cost: &Value, what: &str) -> i64 {
    let number = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{what}: {cost}"));
    let functions = cost["functions"].as_array().expect("a list").iter();
    let named: i64 = functions.map(|share| number(&share["insns"])).sum();
    let (unnamed, whole) = (number(&cost["unnamed_insns"]), number(&cost["insns"]));
    assert_eq!(named + number(&cost["programs_insns"]) + unnamed, whole, "{what}");
    unnamed
}

#[test]
fn every_instruction_of_a_cost_is_of_a_function_and_two_explanations_are_the_same_bytes() {
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let lab = Lab::new();
        let run = costs(&lab, kernel, "[cost]\ncount = 1\nrepetitions = 1");
        let explained = explained(&lab, &run, &[]);
        let costs = explained["costs"].as_array().expect("a list");
        // A batch of which more is taken away than counts has no figure: an interrupt can come there.
        let figures = counters(&run).as_object().expect("counters").clone();
        let figures = figures.keys().filter(|name| name.starts_with("insns_")).count();
        assert!(figures > 70 && costs.len() == figures, "{kernel}: {} of {figures}", costs.len());
        for cost in costs {
            let series = cost["series"].as_str().expect("a name");
            assert_eq!(cost["insns"], counter(&run, &format!("insns_{series}")), "{kernel}");
            assert_eq!(unnamed(cost, series), 0, "{kernel}: {series}");
        }
        assert_eq!(self::explained(&lab, &run, &[]), explained, "{kernel}");
    }
}

#[test]
fn a_switch_under_fifo_costs_the_same_among_two_tasks_and_among_a_thousand() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[cost]\nsuites = [\"scheduler\"]\ncount = 3\nrepetitions = 1";
    let run = costs(&lab, "6.12", asked);
    assert!(!run.codes().contains(&"not_measured"), "{}", run.0);
    let of = |row: &str| {
        let [insns, ops] =
            ["least_insns", "ops"].map(|what| counter(&run, &format!("{what}_{row}")));
        insns as f64 / ops as f64
    };
    // The kernel keeps a list for each priority, and a bit for each list that is not empty. So the ready tasks make no
    // difference; a batch that missed a switch, or in which others ran, would.
    let (few, many) = (of("switch_fifo_2"), of("switch_fifo_1000"));
    assert!((many / few - 1.0).abs() < 0.01, "{few} and {many}");
    // A yield with nobody else ready does not switch.
    let alone = costs(&lab, "6.12", "[cost]\nsuites = [\"syscalls\"]\ncount = 3\nrepetitions = 1");
    let [insns, ops] = ["least_insns", "ops"].map(|w| counter(&alone, &format!("{w}_sched_yield")));
    assert!(few > insns as f64 / ops as f64, "{few}");
}
