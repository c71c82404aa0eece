// SPDX-License-Identifier: GPL-2.0-or-later
//! What each strategy finds alone.

use crate::hunt::hunt_with;
use crate::planted::{PLANTED, Planted, ours};
use serde_json::Value;
use testbench::{Lab, have_kernels};

/// What one strategy alone finds of what `test_delays` plants, where the kernel is not preempted.
fn alone(lab: &Lab, strategy: &str, trials: u64) -> Value {
    let budget = format!("{trials}trials");
    let words = ["--strategy", strategy, "--budget", &budget];
    let found = hunt_with(lab, ("6.12", "6.12 preempt=none"), "test_delays", &words);
    let (by, own) = (&found["by_strategy"], &found["by_strategy"][strategy]);
    assert_eq!(by.as_object().map(|by| by.len()), Some(1), "{by}");
    // No more than that, though rounds are of eight.
    assert_eq!((&own["trials"], &found["trials"]), (&trials.into(), &trials.into()));
    for find in finds(&found) {
        assert_eq!(find["at_strategy"], strategy);
        assert!(!frames(find).is_empty(), "each trigger was aimed: {find:#}");
    }
    found
}

fn finds(found: &Value) -> &[Value] {
    found["worst"].as_array().expect("finds")
}

fn frames(find: &Value) -> Vec<&str> {
    let stack = find["stack"].as_array().expect("a stack").iter();
    stack.map(|frame| frame.as_str().expect("text")).collect()
}

/// What is planted in the stretch that was fired into as it opened: by its function itself, or by the lock that this
/// takes.
fn entered(find: &Value) -> Option<&'static Planted> {
    let frames = frames(find);
    let mut openers = frames.iter().skip_while(|f| f.starts_with("_raw_spin_lock_irqsave+"));
    let own = openers.next()?.strip_suffix(" [test_delays]")?.split('+').next()?;
    PLANTED.iter().find(|planted| planted.2 == own)
}

/// The finds of which [`entered`] says something. Each is as late as the rest of the stretch is long.
fn planted_in(found: &Value) -> Vec<(&Value, &'static Planted)> {
    let own = finds(found).iter().filter_map(|find| Some((find, entered(find)?)));
    let own: Vec<(&Value, &Planted)> = own.collect();
    for (find, planted) in &own {
        let latency = find["latency_ns"].as_u64();
        assert!(latency >= Some(planted.3), "{find:#}");
        // Of many finds not all are explained.
        if let Some(main) = find["causes"].get(0) {
            assert_eq!(ours(main), Some(planted.2), "{find:#}");
        }
    }
    own
}

#[test]
fn aiming_at_the_beginnings_of_stretches_alone_finds_those_that_were_planted() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let found = alone(&lab, "window_start", 24);
    let outermost = |(_, planted): &(&Value, &Planted)| planted.2 != "test_raw_spinlock";
    let planted = planted_in(&found);
    assert!(planted.iter().any(outermost), "{:#}", found["worst"]);
    assert!(planted.iter().any(|of| !outermost(of)), "{:#}", found["worst"]);

    // What opens inside another alone: preemption is turned off for a lock where interrupts are off.
    let found = alone(&lab, "window_chain", 24);
    let planted = planted_in(&found);
    assert!(!planted.is_empty(), "{:#}", found["worst"]);
    assert!(!planted.iter().any(outermost), "{:#}", found["worst"]);
}

#[test]
fn aiming_at_every_opener_in_turn_enters_short_stretches_too() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let found = alone(&lab, "coverage", 40);
    let coverage = |key: &str| found["coverage"][key].as_u64().expect("a number");
    assert!(2 * coverage("stacks_fired_into") >= coverage("stacks_seen"), "{}", found["coverage"]);
    let is_ours = |frame: &&str| frame.ends_with(" [test_delays]");
    let of_ours = |find: &&Value| frames(find).iter().any(is_ours);
    assert!(finds(&found).iter().any(|find| of_ours(&find)), "{:#}", found["worst"]);
    // As late as where nothing is off.
    let short =
        |find: &&Value| find["responder"] == "hardirq" && find["latency_ns"].as_u64() < Some(1_000);
    assert!(finds(&found).iter().any(|find| short(&find)), "{:#}", found["worst"]);
}

#[test]
fn aiming_at_what_keeps_the_scheduler_away_has_the_task_woken_there() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let found = alone(&lab, "stage_aware", 60);
    let of_task = |(find, planted): &(&Value, &Planted)| {
        find["responder"] == "task" && planted.1 == "preempt_off"
    };
    let planted = planted_in(&found);
    let of = planted.iter().find(|of| of_task(of));
    let (find, (_, _, function, spent)) = of.expect("the task was woken in one of them");
    let file = find["find"].as_str().expect("a file");
    let explained = lab.onset(&["explain", file, "--json"]).exits(0).json();
    assert_eq!(explained["explanations"][0]["causes"][0]["cause"], "preempt_off");
    // Woken at once, and let go when the stretch ends.
    let stages = &explained["explanations"][0]["stages"];
    let stage = |name: &str| stages[name].as_u64().expect("a stage");
    assert!(stage("need_resched") >= *spent, "{function}: {stages}");
    assert!(stage("entry") + stage("handler") < 1_000, "{function}: {stages}");
    // What turns off interrupts alone is nothing to it.
    assert!(!planted.iter().any(|(_, planted)| planted.2 == "test_irqs_off"));
}

#[test]
fn what_comes_together_is_met_where_a_scout_saw_it_and_makes_as_late_as_foreseen() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let place = lab.path().join("together");
    let directory = place.to_str().expect("the lab's path is text");
    // Of the loads, this is the one in which masked stretches and other interrupts meet most often.
    let guest = ["--flavour", "6.12-rt", "--load", "disk"];
    let responders = ["--responder", "hardirq", "--responder", "task"];
    let how = ["--strategy", "foresight", "--budget", "28trials", "--directory", directory];
    lab.onset(&[&["hunt"], &guest[..], &responders, &how].concat()).exits(0);
    let journal = std::fs::read_to_string(place.join("trials.jsonl")).expect("a journal");
    let trials = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let met: Vec<Value> =
        trials.map(|trial| trial["encounter"].clone()).filter(|met| !met.is_null()).collect();
    assert!(met.len() >= 3, "{met:?}");
    for met in &met {
        let insns = |value: &Value| value.as_u64().expect("instructions");
        let answered = |responder| insns(&met["answered_insns"][responder]);
        let masked = insns(&met["masked_insns"]);
        // The hard handler is entered as interrupts are on again: from there to its pin it takes some 290 instructions.
        let handler = answered("hardirq").checked_sub(masked);
        assert!(handler.is_some_and(|path| (250..350).contains(&path)), "{met}");
        // The task's path is some 4,700, where nothing comes. What was over before the task answered adds to that, to
        // within what an interrupt's entry and exit share with the path.
        let answered_after = answered("task").checked_sub(masked).expect("the task was held back");
        let interrupts = met["interrupts"].as_array().expect("interrupts").iter();
        let lengths =
            interrupts.map(|next| (insns(&next["after_insns"]), insns(&next["takes_insns"])));
        let before = lengths.filter(|(after, takes)| after + takes <= answered_after + 500);
        let path = answered_after.checked_sub(before.map(|(_, takes)| takes).sum::<u64>());
        assert!(path.is_some_and(|path| (3_000..8_000).contains(&path)), "{met}");
    }
}
