// SPDX-License-Identifier: GPL-2.0-or-later
//! No task is scheduled later than the longest stretches of its run can make.

use testbench::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, flavours_here};

const TRIGGERS: u64 = 400;

#[test]
fn no_task_is_scheduled_later_than_the_bound_of_its_run() {
    let all = ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt", "7.3", "7.3-rt"];
    let flavours = flavours_here(&all);
    if flavours.is_empty() {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&flavours, &["mixed"], TRIGGERS, FIRST_AND_LAST);
    let path = lab.experiment(&text);
    let printed = lab.onset(&["bound", &path, "--json"]).exits(0).json();
    assert_as_promised_by("bound", &printed);
    assert_eq!(printed["holds"], true, "{printed:#}");
    let cells = printed["cells"].as_array().expect("a list");
    assert_eq!(cells.len(), flavours.len());
    for cell in cells {
        let number = |key: &str| cell[key].as_u64().unwrap_or_else(|| panic!("{key}: {cell:#}"));
        let term = |key: &str| cell[key]["ns"].as_u64().expect("a number");
        let free = term("st").max(term("poid")) + term("paie") + term("psd");
        assert_eq!(number("interference_free_ns"), free, "{cell:#}");
        assert_eq!(number("bound_ns"), free + number("interrupts_ns"), "{cell:#}");

        // Each term says where: the scheduler's have its own frames, however short they are.
        let has = |key: &str, place: &str, function: &str| {
            let frames = cell[key][place].as_array().expect("a list");
            frames.iter().any(|f| f.as_str().is_some_and(|f| f.starts_with(function)))
        };
        assert!(has("psd", "stack", "__schedule+"), "{cell:#}");
        assert!(has("st", "stack", "__schedule+"), "{cell:#}");
        assert_ne!(cell["poid"]["stack"], serde_json::json!([]), "{cell:#}");

        let [hardirq, task] = &cell["responders"].as_array().expect("a list")[..] else {
            panic!("two responders: {cell:#}");
        };
        // The handler of an interrupt is not switched to.
        assert_eq!(hardirq["held"], 0, "{cell:#}");
        assert_eq!(hardirq["unbounded"]["not_switched"], hardirq["answers"], "{cell:#}");
        // Nearly all of the task's answers are what the bound is for.
        let [answers, held] = ["answers", "held"].map(|key| task[key].as_u64().expect("a number"));
        assert!(answers * 2 > TRIGGERS && held * 10 >= answers * 9, "{cell:#}");
        // Of hardly one is any part not understood, however busy the guest is.
        let unexplained = task["unbounded"]["unexplained"].as_u64().unwrap_or(0);
        assert!(unexplained * 100 <= answers, "{cell:#}");
        let longest = &task["longest"];
        let of_longest = |key: &str| longest[key].as_u64().expect("a number");
        assert!(of_longest("scheduling_ns") <= number("bound_ns"), "{cell:#}");
        assert!(of_longest("scheduling_ns") < of_longest("latency_ns"), "{cell:#}");
    }
}
