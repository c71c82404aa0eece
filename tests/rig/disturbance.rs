// SPDX-License-Identifier: GPL-2.0-or-later
//! Interrupts of a second device, and bursts of timers, that take the guest's time beside its triggers.

use crate::modules::module_for;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testbench::{FIRST_AND_LAST, Lab, Run, assert_as_promised_by, experiment, have_kernels};

/// A trigger at each of six milliseconds. The first has no disturbance before it; what the others have is when their
/// line is raised: while the handler runs that only acknowledges, while it starts 64 timers, and while those expire.
const DISTURBANCES: [&str; 4] = ["1.9995ms", "2.999ms 64 timers", "3.975ms 64 timers", "5.5ms"];
/// The trigger of each of the first three, how much later its hard handler is at the least, and when it was disturbed
/// since the trigger, with how many timers.
const LATER_NS: [(u64, u64, i64, u8); 3] =
    [(1, 100, -500, 0), (2, 5_000, -1_000, 64), (3, 2_000, -25_000, 64)];

fn text(flavour: &str, disturbances: &[&str]) -> String {
    let disturbances = match disturbances {
        [] => String::new(),
        some => format!(", disturbances = {some:?}"),
    };
    let times: Vec<String> = (1..=6).map(|ms| format!("{ms}ms")).collect();
    let trigger = format!("trigger = {{ times = {times:?}, grace = \"50ms\"{disturbances} }}");
    let head = format!("title = \"test\"\ntarget = \"rig\"\nflavours = [{flavour:?}]\n");
    format!("{head}loads = [\"idle\"]\n{trigger}\n{FIRST_AND_LAST}\n")
}

/// Every latency of a responder, by trigger: there are fewer than a bundle keeps of the worst.
fn latencies(run: &Run, responder: &str) -> BTreeMap<u64, u64> {
    let series = run.file("series.json");
    let is = |s: &&Value| s["responder"] == responder;
    let own = series.as_array().expect("a list").iter().find(is).expect("it answered");
    let worst = own["worst"].as_array().expect("samples").iter();
    let number = |sample: &Value, key: &str| sample[key].as_u64().expect("a number");
    let all: BTreeMap<u64, u64> =
        worst.map(|s| (number(s, "trigger"), number(s, "latency_ns"))).collect();
    assert_eq!(all.len(), 6, "{series:#}");
    all
}

/// What an answer is blamed on, by cause, and what disturbed. Stages and causes add up to the latency.
fn explained(lab: &Lab, run: &Run, trigger: u64, latency: u64) -> (BTreeMap<String, u64>, Value) {
    let number = trigger.to_string();
    let words = ["explain", run.text("run"), "--responder", "hardirq", "--sample", &number];
    let printed = lab.onset(&[&words[..], &["--json"]].concat()).exits(0).json();
    assert_as_promised_by("explain", &printed);
    let explanation = &printed["explanations"][0];
    assert_eq!(explanation["latency_ns"], latency);
    let ns = |part: &Value| part["ns"].as_u64().expect("a number");
    let parts = explanation["parts"].as_array().expect("a list");
    assert_eq!(parts.iter().map(ns).sum::<u64>(), latency, "{explanation:#}");
    let mut causes = BTreeMap::new();
    for cause in explanation["causes"].as_array().expect("a list") {
        *causes.entry(cause["cause"].as_str().expect("a word").into()).or_default() += ns(cause);
    }
    assert_eq!(causes.values().sum::<u64>(), latency, "{explanation:#}");
    (causes, explanation["disturbances"].clone())
}

#[test]
fn a_disturbance_before_a_trigger_makes_its_answer_later_by_the_interrupts_that_it_brings() {
    if !have_kernels(&["6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    for flavour in ["6.12 preempt=none", "6.12-rt"] {
        let run = |disturbances| lab.run(&text(flavour, disturbances), &[]).exits(3).run();
        let (calm, disturbed, again) = (run(&[]), run(&DISTURBANCES), run(&DISTURBANCES));
        let hash = "samples_blake3";
        assert_eq!(disturbed.text(hash), again.text(hash), "{flavour}");
        assert_ne!(disturbed.text(hash), calm.text(hash), "{flavour}");
        assert_eq!(run(&[]).text(hash), calm.text(hash), "{flavour}");
        let about = &disturbed.file("manifest.json")["about"]["experiment"];
        assert_eq!(about["trigger"]["disturbances"][1], json!({"at_ns": 2_999_000, "timers": 64}));

        let [calm, late] = [&calm, &disturbed].map(|run| latencies(run, "hardirq"));
        assert_eq!(calm[&0], late[&0], "{flavour}: nothing came before it");
        for (trigger, least, from_ns, timers) in LATER_NS {
            let later = late[&trigger].saturating_sub(calm[&trigger]);
            assert!(later >= least, "{flavour}: {trigger} by {later} ns");
            let (causes, by) = explained(&lab, &disturbed, trigger, late[&trigger]);
            assert_eq!(by, json!([{"from_ns": from_ns, "timers": timers}]), "{flavour}");
            // All of it: what is left is the answer's own way, which is what it was.
            assert!(causes["interrupt"].abs_diff(later) <= 50, "{flavour}: {later} {causes:?}");
        }
        // By its own disturbance, and not by those of others.
        assert!(late[&1] < late[&3] && late[&3] < late[&2], "{flavour}: {late:?}");

        let (_, by) = explained(&lab, &disturbed, 0, late[&0]);
        assert_eq!(by, json!([]), "{flavour}: nothing came before it");

        let words = ["replay", disturbed.text("run"), "--sample", "3", "--times", "2", "--json"];
        let replayed = lab.onset(&[&words[..], &["--vcd", "t.vcd"]].concat()).exits(0).json();
        let vcd = std::fs::read_to_string(lab.path().join("t.vcd")).expect("written");
        let raised = vcd.lines().filter(|line| ["0d", "1d"].contains(line)).count();
        assert_eq!(raised, 2, "{flavour}: its level at first, and one disturbance: {vcd}");
        assert_eq!(replayed["identical_times"], 2, "{flavour}: {replayed:#}");
    }
}

#[test]
fn a_hunt_disturbs_its_finds_which_come_again_and_are_minimised() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let hunt = |jobs| {
        let cell = ["--flavour", "6.12 preempt=none", "--load", "idle", "--strategy", "disturb"];
        let rest = ["--budget", "26trials", "--jobs", jobs, "--directory", jobs, "--json"];
        let found = lab.onset(&[&["hunt"], &cell[..], &rest[..]].concat()).exits(0).json();
        assert_as_promised_by("hunt", &found);
        found
    };
    let (one, two) = (hunt("1"), hunt("2"));
    let without_paths = |found: &Value| {
        let mut worst = found["worst"].clone();
        for find in worst.as_array_mut().expect("finds") {
            find.as_object_mut().expect("a find").remove("find");
        }
        worst
    };
    assert_eq!(without_paths(&one), without_paths(&two));
    let worst = one["worst"].as_array().expect("finds").iter();
    let is_disturbed =
        |find: &&Value| find["disturbances"].as_array().is_some_and(|d| d.len() == 1);
    let find = worst.clone().find(is_disturbed).unwrap_or_else(|| panic!("{worst:#?}"));
    // The latest answer of an idle guest takes a few microseconds; a disturbance makes it later.
    let calm = worst.clone().find(|f| f["responder"] == find["responder"]).expect("a calm one");
    let latency = |find: &Value| find["latency_ns"].as_u64().expect("a latency");
    assert!(!is_disturbed(&calm) && latency(find) > latency(calm), "{find:#} {calm:#}");
    let file = find["find"].as_str().expect("a file");
    let replayed = lab.onset(&["replay", file, "--times", "2", "--json"]).exits(0).json();
    assert_eq!(replayed["identical_times"], 2, "{replayed:#}");
    assert_eq!(replayed["latency_ns"], find["latency_ns"]);
    let small = lab.onset(&["minimise", file, "-o", "small.json", "--json"]).exits(0).json();
    assert_as_promised_by("minimise", &small);
    assert_eq!(small["before"]["disturbances"], 1);
    assert_eq!(small["replayed"], true);
    lab.onset(&["replay", "small.json"]).exits(0);
}

#[test]
fn minimising_leaves_the_disturbance_that_a_latency_needs() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = lab.run(&text("6.12 preempt=none", &DISTURBANCES), &[]).exits(3).run();
    let run = run.text("run");
    // Of the trigger before which 64 timers are being started: 19 µs of its answer.
    let words = ["minimise", run, "--responder", "hardirq", "--sample", "2", "-o", "small.json"];
    let small = lab.onset(&[&words[..], &["--json"]].concat()).exits(0).json();
    assert_as_promised_by("minimise", &small);
    let parts = |size: &Value| (size["triggers"].clone(), size["disturbances"].clone());
    assert_eq!(parts(&small["before"]), (3.into(), 2.into()), "{small:#}");
    assert_eq!(parts(&small["after"]), (1.into(), 1.into()), "{small:#}");
    let find = std::fs::read_to_string(lab.path().join("small.json")).expect("written");
    let find: Value = serde_json::from_str(&find).expect("JSON");
    assert_eq!(find["disturbances"], json!([{"at_ns": 2_999_000, "timers": 64}]));
    // Also before the first trigger.
    let explained = lab.onset(&["explain", "small.json", "--json"]).exits(0).json();
    let by = &explained["explanations"][0]["disturbances"];
    assert_eq!(*by, json!([{"from_ns": -1_000, "timers": 64}]), "{explained:#}");
    let text = lab.onset(&["explain", "small.json"]).exits(0).stdout;
    assert!(text.contains("disturbed 1.00 µs before the trigger (timers: 64)"), "{text}");
    // One that is not disturbed loses what came before it.
    let words = ["minimise", run, "--responder", "hardirq", "--sample", "5", "-o", "calm.json"];
    let calm = lab.onset(&[&words[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(parts(&calm["after"]), (1.into(), 0.into()), "{calm:#}");
    lab.onset(&["replay", "calm.json"]).exits(0);
}

#[test]
fn the_driver_can_be_unloaded_under_disturbances() {
    let kernels = ["6.12", "6.12-rt"];
    if !have_kernels(&kernels) {
        return;
    }
    let lab = Lab::new();
    // Handler, timers being started, and timers expiring: more than half of the time.
    let disturbances: Vec<String> =
        (1..=40_000).map(|n| format!("{}us 64 timers", 50 * n)).collect();
    for kernel in kernels {
        let module = module_for(kernel, "test_unload");
        let guest = format!("[guest]\nmodules = [{module:?}]\nprograms = [\"/sbin/rmmod\"]");
        let text = experiment(&[kernel], &["idle"], 2_000, &guest)
            .replacen("grace", &format!("disturbances = {disturbances:?}, grace"), 1)
            .replacen("loads", "responders = [\"hardirq\"]\nloads", 1);
        let run = lab.run(&text, &[]).exits(3).run();
        let console =
            std::fs::read_to_string(run.bundle().join("console.txt")).expect("it is there");
        assert!(console.contains("rmmod onset_port: status 0"), "{kernel}: {console}");
        let faults =
            ["guest_panicked", "guest_oops", "guest_warned", "guest_lockup", "machine_died"];
        assert!(run.codes().iter().all(|code| !faults.contains(code)), "{:?}", run.codes());
        let hardirq = run.series("hardirq");
        let lost = |kind: &str| hardirq["losses"][kind].as_u64().expect("a number");
        let samples = hardirq["count"].as_u64().expect("a number");
        assert!(samples > 0 && lost("unanswered") > 0, "it went while measured: {hardirq}");
        assert_eq!(samples + lost("unanswered") + lost("superseded"), 2_000, "{hardirq}");
    }
}
