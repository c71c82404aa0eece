// SPDX-License-Identifier: GPL-2.0-or-later
//! Windows that a module plants are found: their function, their module, their length.

use crate::modules::module_for;
use serde_json::Value;
use testbench::{Lab, assert_as_promised_by, experiment, figure, those_here};

/// What a function of test_delays.c plants.
struct Planted {
    function: &'static str,
    /// Instructions that it spends.
    spent: u64,
    /// As which windows.
    kind: &'static str,
    /// Whether it ran inside a window that an entry opened, whose own stack does not have it.
    inside: bool,
}

const fn opens(function: &'static str, spent: u64, kind: &'static str) -> Planted {
    Planted { function, spent, kind, inside: false }
}

const fn runs_inside(function: &'static str, spent: u64, kind: &'static str) -> Planted {
    Planted { function, spent, kind, inside: true }
}

const PLANTED: [Planted; 6] = [
    opens("test_irqs_off", 137_000, "irqs_off"),
    opens("test_preempt_off", 223_000, "preempt_off"),
    opens("test_raw_spinlock", 61_000, "irqs_off"),
    opens("test_bh_off", 91_000, "preempt_off"),
    runs_inside("test_softirq", 173_000, "preempt_off"),
    runs_inside("test_hardirq", 113_000, "irqs_off"),
];
/// With PREEMPT_RT, bottom halves are disabled and served by tasks that can be preempted.
const PLANTED_RT: [Planted; 6] = [
    opens("test_irqs_off", 137_000, "irqs_off"),
    opens("test_preempt_off", 223_000, "preempt_off"),
    opens("test_raw_spinlock", 61_000, "irqs_off"),
    opens("test_bh_off", 91_000, "bh_off"),
    runs_inside("test_softirq", 173_000, "migration_off"),
    runs_inside("test_hardirq", 113_000, "irqs_off"),
];

/// The function of the module that stands first in the window's stack of this key.
fn ours<'a>(window: &'a Value, key: &str) -> Option<&'a str> {
    let frames = window[key].as_array()?.iter().filter_map(Value::as_str);
    let frame = frames.into_iter().find(|frame| frame.ends_with("[test_delays]"))?;
    frame.split('+').next()
}

/// Whether `length` is `spent` to within 2 %, or 200 for what is around it.
fn is_about(length: u64, spent: u64) -> bool {
    length.abs_diff(spent) <= (spent / 50).max(200)
}

fn number(window: &Value, key: &str) -> u64 {
    window[key].as_u64().expect("a number")
}

/// What of the windows' time, all of it or that of the longest, was the opener's own, and softirqs that it serves.
fn own(window: &Value, whole: &str, prefix: &str) -> u64 {
    let others = ["hardirq_ns", "other_tasks_ns"];
    let others = others.map(|part| number(window, &format!("{prefix}{part}")));
    number(window, whole) - others.iter().sum::<u64>()
}

fn longest(window: &Value) -> u64 {
    own(window, "max_ns", "max_")
}

/// Of its kind, one row names the function, and is as long.
fn assert_found(kernel: &str, windows: &[Value], planted: &Planted) {
    let Planted { function, spent, kind, inside } = *planted;
    let key = if inside { "inside" } else { "stack" };
    // Interrupts that were held back until its end open short windows below the same function.
    let is = |w: &&Value| {
        w["kind"] == kind && number(w, "max_insns") > spent / 2 && ours(w, key) == Some(function)
    };
    let found: Vec<&Value> = windows.iter().filter(is).collect();
    let [row] = found[..] else { panic!("{kind} of {function} in {windows:#?}") };
    // A task that lets bottom halves run again serves those that came meanwhile.
    let softirqs = |prefix: &str| {
        if inside { 0 } else { number(row, &format!("{prefix}softirq_ns")) }
    };
    let mean = (own(row, "total_ns", "") - softirqs("")) / number(row, "count");
    let longest = longest(row) - softirqs("max_");
    for (of, length) in [("mean", mean), ("longest", longest)] {
        figure(&format!("{kernel}, {kind} of {function}, the {of}, ns"), spent, length);
        assert!(is_about(length, spent), "{kind} of {function}, {of}: {length} ns: {row:#?}");
    }
    // Once in each round of 40 ms, which takes longer by up to a tick for each time that the module sleeps. One round
    // may have begun before, or end after.
    let rounds = SPAN_MS / (40 + 6 * 4) - 1..=SPAN_MS / 40 + 1;
    assert!(rounds.contains(&number(row, "count")), "{row:#?}");
    // It is where the time went, whoever opened the window.
    assert_eq!(ours(row, "inside"), Some(function), "{row:#?}");
}

/// A sixth of the shortest that is planted.
const SHORT: u64 = 10_000;

/// How long the guest is watched.
const SPAN_MS: u64 = 300;

/// The windows of an idle guest, with this further line in its experiment.
fn windows(kernel: &str, more: &str) -> Vec<Value> {
    let lab = Lab::new();
    // Other tasklets would be served in the same windows on PREEMPT_RT.
    let more = format!("responders = [\"hardirq\", \"task\"]\n{more}");
    let path = lab.experiment(&experiment(&[kernel], &["idle"], SPAN_MS, &more));
    let printed = lab.onset(&["windows", &path, "--top", "400", "--json"]).exits(0).json();
    assert_as_promised_by("windows", &printed);
    assert_eq!(printed["cells"][0]["missing"], Value::Array(Vec::new()), "{kernel}");
    printed["windows"].as_array().expect("a list").clone()
}

#[test]
fn planted_delays_are_found_with_their_function_module_and_length_and_none_is_invented() {
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let planted = if kernel.ends_with("-rt") { &PLANTED_RT } else { &PLANTED };
        let with =
            windows(kernel, &format!("guest.modules = [{:?}]", module_for(kernel, "test_delays")));
        planted.iter().for_each(|planted| assert_found(kernel, &with, planted));
        // Nothing else is twice as long as what the same guest does without the module, whose tasks the scheduler has,
        // too; of what takes some thousand instructions there is more in one guest than in the other.
        let without = windows(kernel, "");
        for kind in ["irqs_off", "preempt_off", "bh_off", "migration_off"] {
            let of_kind = |w: &&Value| w["kind"] == kind;
            let kernels_own = without.iter().filter(of_kind).map(longest).max().unwrap_or(0);
            for window in
                with.iter().filter(of_kind).filter(|w| longest(w) > (2 * kernels_own).max(SHORT))
            {
                // At the end of a window of PREEMPT_RT the task may move to where it may run again: then the last look
                // is below the module's thread, and the stack that opened the window names the function.
                let functions = [ours(window, "inside"), ours(window, "stack")];
                let is_of = |planted: &&Planted| functions.contains(&Some(planted.function));
                let planted = planted.iter().find(is_of);
                let planted = planted.unwrap_or_else(|| panic!("{kernel}: {window:#?}"));
                let most = planted.spent + planted.spent / 50 + kernels_own;
                assert!(longest(window) <= most, "{kernel}, {kernels_own}: {window:#?}");
            }
        }
    }
}
