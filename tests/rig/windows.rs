// SPDX-License-Identifier: GPL-2.0-or-later
//! Windows that a module plants are found: their function, their module, their length.

use crate::modules::module_for;
use lab::{Lab, assert_as_promised_by, experiment, figure, have_kernels};
use serde_json::Value;

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
    // Interrupts that came meanwhile are not the module's; what they took is told for preemption off.
    let softirqs = if inside { 0 } else { number(row, "softirq_ns") };
    let own = number(row, "total_ns") - number(row, "hardirq_ns") - softirqs;
    let mean = own / number(row, "count");
    // The window of a thread that serves softirqs also has the others that waited, and what preempts it.
    let is_right = match kind {
        "migration_off" => (spent..spent + spent / 4).contains(&mean),
        // A task that has bottom halves disabled can be preempted on PREEMPT_RT, and may have been in one of a few.
        "bh_off" => {
            let longest = number(row, "max_ns");
            let mean_of_others = (own - longest) / (number(row, "count") - 1);
            is_about(mean_of_others, spent) && (spent..spent + spent / 2).contains(&longest)
        }
        _ => is_about(mean, spent),
    };
    figure(&format!("windows of {kernel}, {kind} of {function}, ns in the mean"), spent, mean);
    assert!(is_right, "{kind} of {function} took {mean} ns: {row:#?}");
    if kind == "irqs_off" {
        assert!(is_about(number(row, "max_insns"), spent), "{row:#?}");
    }
    assert!((3..=8).contains(&number(row, "count")), "{row:#?}");
    // It is where the time went, whoever opened the window.
    assert_eq!(ours(row, "inside"), Some(function), "{row:#?}");
}

#[test]
fn planted_delays_are_found_with_their_function_module_and_length_and_none_is_invented() {
    for (kernel, planted) in [("6.12", &PLANTED), ("6.12-rt", &PLANTED_RT)] {
        if !have_kernels(&[kernel]) {
            continue;
        }
        let lab = Lab::new();
        let more = format!("guest.modules = [{:?}]", module_for(kernel, "test_delays"));
        // Few triggers: each is an interrupt that may fall into a delay and make it longer.
        let text = experiment(&[kernel], &["idle"], 10, &more).replacen("1ms", "29ms", 1);
        let path = lab.experiment(&text);
        let printed = lab.onset(&["windows", &path, "--top", "40", "--json"]).exits(0).json();
        assert_as_promised_by("windows", &printed);
        assert_eq!(printed["cells"][0]["missing"], Value::Array(Vec::new()), "{kernel}");
        let windows = printed["windows"].as_array().expect("a list");
        planted.iter().for_each(|planted| assert_found(kernel, windows, planted));
        // Nothing else is as long with interrupts or preemption off.
        let is_long = |w: &&Value| {
            ["irqs_off", "preempt_off"].iter().any(|kind| w["kind"] == *kind)
                && number(w, "max_insns") >= 50_000
        };
        for window in windows.iter().filter(is_long) {
            let function = ours(window, "inside").or(ours(window, "stack"));
            let is_planted = planted.iter().any(|p| Some(p.function) == function);
            assert!(is_planted, "{kernel}: {window:#?}");
        }
    }
}
