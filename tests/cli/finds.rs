// SPDX-License-Identifier: GPL-2.0-or-later
//! Damaged finds, and what is none: what is wrong, and what to do.

use serde_json::{Value, json};
use testbench::{Finished, Lab};

/// The commands that take a find.
const COMMANDS: [&str; 3] = ["explain", "replay", "minimise"];

fn find() -> Value {
    json!({
        "schema": 2, "kernel": "6.12", "release": "6.12.0", "parameters": [], "load": "idle",
        "warm_up_ns": 1, "memory_mib": 256, "icount_shift": 0, "driver": null, "modules": [],
        "programs": [], "files": [], "snapshot": "00", "qemu": "10.0.2", "plugin": "0.1.0 00",
        "times_ns": [5, 9], "high_ns": 1, "grace_ns": 1, "responders": ["hardirq", "task"],
        "answer": { "responder": "task", "trigger": 1, "latency_ns": 7, "insns": 7 },
    })
}

/// Each command with this file; QEMU is only asked for its version.
fn each(text: &str, check: impl Fn(Finished)) {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    lab.write("find.json", text);
    for command in COMMANDS {
        let mut words = lab.command(&[command, "find.json"]);
        check(Finished::of(words.env("PATH", lab.with_bin())));
        assert_eq!(Lab::names(lab.path()), ["bin", "cache", "find.json"], "nothing was written");
    }
}

#[test]
fn a_damaged_find_is_refused_with_what_is_wrong_and_what_to_take() {
    let damaged = |key: &str, value: Value| {
        let mut find = find();
        find[key] = value;
        find.to_string()
    };
    let whole = find().to_string();
    for (text, why) in [
        (whole[..whole.len() / 2].to_string(), "EOF"),
        (String::new(), "EOF"),
        ("a find".into(), "expected value"),
        ("{}".into(), "missing field `schema`"),
        (damaged("latency_us", 7.into()), "unknown field `latency_us`"),
        (damaged("times_ns", "soon".into()), "expected a sequence"),
        (damaged("times_ns", json!([5, -9])), "expected u64"),
        (damaged("times_ns", json!([9, 5])), "do not rise"),
        (damaged("times_ns", json!([5, 5])), "do not rise"),
        (damaged("times_ns", json!([5])), "not among its times"),
        (damaged("load", "heavy".into()), "unknown load"),
        (damaged("responders", json!(["hardirq"])), "none of its responders"),
        (damaged("responders", json!(["softirq"])), "unknown responder"),
        (damaged("memory_mib", 0.into()), "memory_mib"),
        (damaged("icount_shift", 64.into()), "icount_shift"),
        (damaged("answer", Value::Null), "struct Answer"),
    ] {
        each(&text, |finished| {
            finished.exits(69).says(&["find.json", "no find, or a damaged one", why, "take"]);
        });
    }
    let newer = damaged("schema", 3.into());
    each(&newer, |finished| {
        finished.exits(69).says(&["schema 3", "reads 2", "the onset that wrote it"]);
    });
}

#[test]
fn a_find_of_a_kernel_that_is_not_here_says_how_to_get_it() {
    each(&find().to_string(), |finished| {
        finished.exits(2).says(&["\"6.12\"", "onset kernels fetch 6.12"]);
    });
}

#[test]
fn a_bound_needs_a_run_or_an_experiment_with_triggers() {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    let bound = |words: &[&str]| {
        let words = [&["bound"], words].concat();
        Finished::of(lab.command(&words).env("PATH", lab.with_bin()))
    };
    bound(&["latest"]).exits(2);
    let text = testbench::experiment(&["6.12 preempt=none"], &["idle"], 5, "");
    let path = lab.experiment(&text);
    bound(&[&path, "--flavour", "6.13"]).exits(2).says(&["6.13", "\"6.12 preempt=none\""]);
    bound(&[&path, "--load", "mixed"]).exits(2).says(&["mixed", "idle"]);
    lab.write("find.json", &find().to_string());
    bound(&["find.json"]).exits(2).says(&["find.json"]);
}

#[test]
fn what_is_neither_a_find_nor_a_run_is_told_apart_by_its_name() {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    for name in ["none.json", "hunts/task.find", "/nowhere/task.find.json"] {
        for command in COMMANDS {
            let mut words = lab.command(&[command, name]);
            let finished = Finished::of(words.env("PATH", lab.with_bin())).exits(2);
            finished.says(&[&format!("there is no file {name}"), "onset list"]);
        }
    }
    let mut command = lab.command(&["minimise", "none"]);
    Finished::of(command.env("PATH", lab.with_bin())).exits(2).says(&["no runs", "onset run"]);
    let text = find().to_string();
    lab.write("find.json", &text);
    let mut command = lab.command(&["minimise", "find.json", "--sample", "3"]);
    Finished::of(command.env("PATH", lab.with_bin())).exits(2).says(&["a find is one latency"]);
}

#[test]
fn a_hunt_starts_from_finds_alone_and_leaves_nothing_if_it_does_not_begin() {
    let lab = Lab::bare();
    lab.write("damaged.find.json", "{}");
    std::fs::create_dir(lab.path().join("empty")).unwrap();
    let flavour = ["hunt", "--flavour", "6.12", "--load", "idle"];
    let hunt = |from: &str| lab.onset(&[&flavour[..], &["--from", from]].concat());
    hunt("missing").exits(69).says(&["cannot read the find missing"]);
    hunt("damaged.find.json").exits(69).says(&["damaged.find.json is no find", "schema"]);
    hunt(".").exits(69).says(&["damaged.find.json is no find"]);
    hunt("empty").exits(2).says(&["--from empty", "no file *.find.json"]);
    lab.onset(&[&flavour[..], &["--strategy", "corpus"]].concat())
        .exits(2)
        .says(&["corpus", "refine"]);
    assert_eq!(Lab::names(lab.path()), ["cache", "damaged.find.json", "empty"]);
}
