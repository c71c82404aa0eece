// SPDX-License-Identifier: GPL-2.0-or-later
//! Windows that a module plants are found: their function, their module, their length.

use crate::modules::module_for;
use lab::{Lab, assert_as_promised_by, experiment, have_kernels};
use serde_json::Value;

/// Instructions that each function of test_delays.c spends, and with what off.
const PLANTED: [(&str, &str, u64); 3] = [
    ("test_irqs_off", "irqs_off", 137_000),
    ("test_preempt_off", "preempt_off", 223_000),
    ("test_raw_spinlock", "irqs_off", 61_000),
];

/// The first frame of a stack that is in the module of the test.
fn ours(window: &Value) -> Option<&str> {
    let frames = window["stack"].as_array()?.iter().filter_map(Value::as_str);
    frames.into_iter().find(|frame| frame.ends_with("[test_delays]"))
}

/// Whether `length` is `spent` to within 2 %, or 200 for what is around it.
fn is_about(length: u64, spent: u64) -> bool {
    length.abs_diff(spent) <= (spent / 50).max(200)
}

#[test]
fn planted_delays_are_found_with_their_function_module_and_length() {
    let kernels = ["6.12", "6.12-rt"];
    if !have_kernels(&kernels) {
        return;
    }
    let lab = Lab::new();
    for kernel in kernels {
        let more = format!("guest.modules = [{:?}]", module_for(kernel, "test_delays"));
        let path = lab.experiment(&experiment(&[kernel], &["idle"], 300, &more));
        let printed = lab.onset(&["windows", &path, "--top", "40", "--json"]).exits(0).json();
        assert_as_promised_by("windows", &printed);
        assert_eq!(printed["cells"][0]["missing"], Value::Array(Vec::new()), "{kernel}");
        let windows = printed["windows"].as_array().expect("a list");
        for (function, kind, spent) in PLANTED {
            // Interrupts that were held back until its end open short windows below the same function.
            let is = |w: &&Value| {
                w["kind"] == kind
                    && w["max_insns"].as_u64().is_some_and(|n| n > spent / 2)
                    && ours(w).is_some_and(|f| f.starts_with(&format!("{function}+")))
            };
            let found: Vec<&Value> = windows.iter().filter(is).collect();
            assert_eq!(found.len(), 1, "{kernel}: {function} in {windows:#?}");
            // Interrupts that came while preemption was off are not the module's.
            let number = |key: &str| found[0][key].as_u64().expect("a number");
            let own = number("total_ns") - number("hardirq_ns") - number("softirq_ns");
            let mean = own / number("count");
            assert!(is_about(mean, spent), "{kernel}: {function} took {mean} ns");
            if kind == "irqs_off" {
                assert!(is_about(number("max_ns"), spent), "{kernel}: {:#?}", found[0]);
            }
            assert!((3..=8).contains(&number("count")), "{kernel}: {:#?}", found[0]);
        }
        // The timer's own handler, the softirq where it is none of a thread: their entries are known, and nothing else is as long.
        let long = windows.iter().filter(|w| w["kind"] == "irqs_off");
        let long: Vec<u64> = long.filter_map(|w| w["max_insns"].as_u64()).collect();
        // The handler's is in as many rows as there are places that it interrupted.
        let long: Vec<u64> = long.into_iter().filter(|n| *n >= 50_000).collect();
        let planted = [137_000, 113_000, 61_000];
        let is_planted = |n: &u64| planted.iter().any(|spent| is_about(*n, *spent));
        assert!(long.iter().all(is_planted), "{kernel}: {long:?}");
        let is_seen = |spent: &u64| long.iter().any(|n| is_about(*n, *spent));
        assert!(planted.iter().all(is_seen), "{kernel}: {long:?}");
    }
}
