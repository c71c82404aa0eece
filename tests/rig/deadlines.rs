// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits on misses of a deadline: what the command counts while it measures is what its samples say.

use bundle::Bundle;
use serde_json::{Value, json};
use testbench::{Lab, Run, assert_as_promised, experiment, have_kernels};

const DEADLINE_NS: u64 = 20_000;

/// The events of a series in the order of their numbers: whether each missed the deadline. Only superseded triggers may
/// be lost; each of them was answered by the sample before it, and met the deadline if that did.
fn missed(run: &Run, responder: &str, deadline_ns: u64) -> Vec<bool> {
    let bundle = Bundle::open(&run.bundle()).expect("a bundle");
    let summary = bundle.manifest().series.iter().find(|s| s.responder.as_str() == responder);
    let losses = summary.expect("a series").losses;
    assert_eq!(losses.total(), losses.superseded, "{responder}: only superseded triggers are lost");
    let mut samples = Vec::new();
    let id = bundle.manifest().series.iter().position(|s| s.responder.as_str() == responder);
    let take = |s: sample::Sample| {
        if Some(s.series.index()) == id {
            samples.push((s.trigger, s.latency.0 > deadline_ns));
        }
    };
    bundle.samples(take).expect("samples");
    samples.sort_unstable();
    let events = samples.len() as u64 + losses.superseded;
    (0..events)
        .map(|n| samples.iter().rev().find(|s| s.0 <= n).expect("the first answers").1)
        .collect()
}

/// The finding of one limit of a run.
fn finding<'a>(run: &'a Run, responder: &str, kind: &str, deadline_ns: u64) -> &'a Value {
    let all = run.0["findings"].as_array().expect("findings");
    let is = |f: &&Value| {
        f["responder"] == responder
            && f["tolerance"]["kind"] == kind
            && f["deadline_ns"] == deadline_ns
    };
    all.iter().find(is).unwrap_or_else(|| panic!("no {kind} of {responder} in {all:?}"))
}

fn assert_counted(finding: &Value, missed: &[bool]) {
    let count = |missed: &[bool]| missed.iter().filter(|m| **m).count();
    assert_eq!(finding["events"], missed.len(), "{finding}");
    assert_eq!(finding["missed"], count(missed), "{finding}");
    assert_eq!(finding["first"], json!(missed.iter().position(|m| *m)), "{finding}");
    let worst = match finding["tolerance"]["kind"].as_str() {
        Some("firm") => {
            let k = finding["tolerance"]["of"].as_u64().expect("k") as usize;
            missed.windows(k).map(count).max()
        }
        _ => missed.split(|m| !m).map(<[bool]>::len).max(),
    };
    let said = finding["worst"]["missed"].as_u64().unwrap_or(0);
    assert_eq!(Some(said as usize), worst, "{finding}");
}

#[test]
fn misses_are_those_of_the_samples_and_a_limit_passes_or_fails_by_them() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let limits = "responders = [\"hardirq\", \"task\", \"timer_softirq\"]\n[limits]\nhardirq.\"miss(10ms)\" = 0\n";
    let more = "task.\"miss(20us)\" = 0\ntask.\"consecutive(20us)\" = 1500\n\
                task.\"firm(20us)\" = \"10 of 10\"\ntimer_softirq.\"miss(10ms)\" = \"1 in 1000\"\n\
                timer_softirq.\"miss(20us)\" = \"1 in 100000\"\nhardirq.\"miss(20us)\" = \"1 in 100000\"\n";
    let text = experiment(&["6.12 preempt=none"], &["mixed"], 1500, &format!("{limits}{more}"));
    let finished = lab.run(&text, &[]).exits(1);
    let run = finished.run();
    let verdict = |responder: &str, kind: &str, deadline_ns: u64| {
        let finding = finding(&run, responder, kind, deadline_ns);
        (
            finding["verdict"].as_str().unwrap_or_default(),
            finding["reason"].as_str().unwrap_or_default(),
        )
    };

    let late = missed(&run, "task", DEADLINE_NS);
    assert!(late.iter().any(|m| *m) && late.iter().any(|m| !m), "the deadline tells nothing apart");
    for kind in ["misses", "consecutive", "firm"] {
        assert_counted(finding(&run, "task", kind, DEADLINE_NS), &late);
    }
    assert_eq!(verdict("task", "misses", DEADLINE_NS), ("fail", "exceeded"));
    assert_eq!(verdict("task", "consecutive", DEADLINE_NS), ("pass", "within"));
    assert_eq!(verdict("task", "firm", DEADLINE_NS), ("fail", "exceeded"));
    let latest = &finding(&run, "task", "misses", DEADLINE_NS)["latest"];
    assert_eq!(latest["latency_ns"], run.series("task")["max_ns"]);

    // Three of four of its triggers are superseded, and were answered within the deadline all the same.
    assert!(run.series("timer_softirq")["losses"]["superseded"].as_u64() > Some(500));
    let kept = missed(&run, "timer_softirq", 10_000_000);
    assert_counted(finding(&run, "timer_softirq", "share", 10_000_000), &kept);
    assert_eq!(verdict("timer_softirq", "share", 10_000_000), ("pass", "within"));
    assert_eq!(verdict("timer_softirq", "share", DEADLINE_NS), ("fail", "exceeded"));

    assert_counted(
        finding(&run, "hardirq", "misses", 10_000_000),
        &missed(&run, "hardirq", 10_000_000),
    );
    assert_eq!(verdict("hardirq", "misses", 10_000_000), ("pass", "within"));

    assert_as_promised(&finished.json());
    lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
}

#[test]
fn a_probe_in_the_guest_has_deadlines_too_and_too_few_events_decide_nothing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12 preempt=none\"]\nloads = [\"idle\"]\n\
                [periodic]\nmethods = [\"nanosleep\"]\ncount = 50\n[limits]\nall.\"miss(5ms)\" = \"1 in 60\"\n\
                all.\"firm(5ms)\" = \"9 of 50\"\nall.\"firm(6ms)\" = \"9 of 51\"\n";
    let finished = lab.run(text, &[]).exits(3);
    let run = finished.run();
    let name = "nanosleep-1ms";
    let share = finding(&run, name, "share", 5_000_000);
    assert_eq!(
        (share["needed"].as_u64(), share["reason"].as_str()),
        (Some(10), Some("too_few_samples"))
    );
    assert_eq!(finding(&run, name, "firm", 5_000_000)["verdict"], "pass");
    let short = finding(&run, name, "firm", 6_000_000);
    assert_eq!(
        (short["needed"].as_u64(), short["verdict"].as_str()),
        (Some(1), Some("inconclusive"))
    );
    assert_counted(share, &missed(&run, name, 5_000_000));
    assert_as_promised(&finished.json());
    lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
}
