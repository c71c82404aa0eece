// SPDX-License-Identifier: GPL-2.0-or-later
//! All time of every responder is understood, however busy the guest is; and stages begin where the guest itself says
//! so, by the pins that it writes on its way.

use serde_json::Value;
use testbench::{Lab, assert_as_promised_by, experiment, flavours_here};

const RESPONDERS: [&str; 8] =
    ["hardirq", "threaded_irq", "tasklet", "bh_work", "work", "work_highpri", "kthread", "task"];

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value:#}"))
}

/// A run of a busy guest with all responders.
fn run(flavour: &str) -> (Lab, Value) {
    let lab = Lab::new();
    let text = experiment(&[flavour], &["mixed"], 300, "");
    let run = lab.run(&text, &[]).exits(3).json()["runs"][0].clone();
    (lab, run)
}

#[test]
fn hardly_any_time_of_any_responder_is_unexplained_and_ledgers_add_up_to_what_was_measured() {
    let flavours = ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt", "7.3", "7.3-rt"];
    for flavour in flavours_here(&flavours) {
        let (lab, run) = run(flavour);
        let id = run["run"].as_str().expect("a name");
        let blamed = lab.onset(&["blame", id, "--above", "all", "--json"]).exits(0).json();
        assert_as_promised_by("blame", &blamed);
        let ledgers = blamed["ledgers"].as_array().expect("a list");
        let of: Vec<&str> = ledgers.iter().filter_map(|l| l["responder"].as_str()).collect();
        assert_eq!(of, RESPONDERS, "{flavour}");
        for (ledger, series) in ledgers.iter().zip(run["series"].as_array().expect("a list")) {
            let rows = ledger["rows"].as_array().expect("rows").iter();
            let sum = |rows: &mut dyn Iterator<Item = &Value>| -> u64 {
                rows.map(|row| number(row, "total_ns")).sum()
            };
            let total = sum(&mut rows.clone());
            assert_eq!(ledger["samples"], series["count"], "{flavour}");
            // The mean is of an exact sum.
            let mean = series["mean_ns"].as_f64().expect("a mean");
            let measured = (mean * number(series, "count") as f64).round();
            assert_eq!(total as f64, measured, "{flavour}: {}", ledger["responder"]);
            let unexplained = sum(&mut rows.filter(|row| row["cause"] == "unexplained"));
            assert!(unexplained * 100 <= total, "{flavour}: {ledger:#}");
        }
    }
}

/// When a stage begins after the line was raised; those that an answer does not have begin nowhere.
fn begins(explanation: &Value, stage: &str) -> Option<u64> {
    let parts = explanation["parts"].as_array().expect("parts");
    parts.iter().find(|part| part["stage"] == stage).map(|part| number(part, "from_ns"))
}

#[test]
fn stages_begin_where_the_pins_say() {
    for flavour in flavours_here(&["6.12 preempt=full", "6.12-rt", "7.3", "7.3-rt"]) {
        let (lab, run) = run(flavour);
        let id = run["run"].as_str().expect("a name");
        // In answers to all kinds of moments.
        for trigger in ["3", "77", "150", "222", "299"] {
            let explained = |responder| {
                let words = ["explain", id, "--sample", trigger, "--responder", responder];
                let printed = lab.onset(&[&words[..], &["--json"]].concat()).exits(0).json();
                printed["explanations"][0].clone()
            };
            let [hardirq, task] = ["hardirq", "task"].map(explained);
            // The handler writes its pin between its first instruction and the first task that it wakes.
            let answered = number(&hardirq, "latency_ns");
            let [handler, wake_up, resumed] =
                ["handler", "wake_up", "resumed"].map(|stage| begins(&task, stage).expect(stage));
            assert!(handler < answered && answered < wake_up, "{answered}: {task:#}");
            // Both are told of the same handler.
            assert_eq!(begins(&hardirq, "handler"), Some(handler));
            assert_eq!(begins(&hardirq, "entry"), begins(&task, "entry"));
            // The task is of the highest priority: what it woke after, it waited for.
            let user = begins(&task, "user").expect("it answers from user space");
            assert!(resumed < user && user < number(&task, "latency_ns"), "{task:#}");
            assert!(wake_up < resumed, "{task:#}");
        }
    }
}
