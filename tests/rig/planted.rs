// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt finds the delays that a module plants, by name and length, and invents none.

use crate::hunt::hunt_for;
use serde_json::Value;
use testbench::{Lab, figure, those_here};

/// What the module does, how long, and whose answer it delays.
pub type Planted = (&'static str, &'static str, &'static str, u64);
pub const PLANTED: [Planted; 6] = [
    ("hardirq", "irqs_off", "test_irqs_off", 137_000),
    ("hardirq", "interrupt", "test_hardirq", 113_000),
    ("hardirq", "irqs_off", "test_raw_spinlock", 61_000),
    ("task", "preempt_off", "test_preempt_off", 223_000),
    ("task", "softirq", "test_softirq", 173_000),
    ("task", "preempt_off", "test_bh_off", 91_000),
];
/// With PREEMPT_RT, a task is late neither for bottom halves, which are a lock there, nor for softirqs; a tasklet is.
const PLANTED_RT: [Planted; 6] = [
    PLANTED[0],
    PLANTED[1],
    PLANTED[2],
    PLANTED[3],
    ("tasklet", "softirq", "test_softirq", 173_000),
    ("tasklet", "lock", "test_bh_off", 91_000),
];

/// The function of the module that a cause names, in its stack or by whom.
pub fn ours(cause: &Value) -> Option<&str> {
    let stack = cause["stack"].as_array().expect("a stack").iter();
    let frames = stack.chain([&cause["who"]]).map(|frame| frame.as_str().expect("text"));
    let own = frames.filter_map(|frame| frame.strip_suffix(" [test_delays]"));
    own.map(|frame| frame.rsplit(' ').next().unwrap_or(frame))
        .map(|frame| frame.split('+').next().unwrap_or(frame))
        .next()
}

#[test]
fn all_planted_delays_are_found_with_their_functions_and_lengths_and_none_is_invented() {
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let (flavour, planted) = match kernel {
            "6.12" => ("6.12 preempt=full", &PLANTED[..]),
            "6.12-rt" => (kernel, &PLANTED_RT[..]),
            "7.3" => (kernel, &PLANTED[..]),
            _ => (kernel, &PLANTED_RT[..]),
        };
        assert_all_are_found((kernel, flavour), planted);
    }
}

/// How soon a delay is met depends on the guest's history. The hunt goes on until all are, or to the last of these.
const BUDGETS: [&str; 3] = ["48trials", "192trials", "768trials"];

fn assert_all_are_found(guest: (&str, &str), planted: &[Planted]) {
    let lab = Lab::new();
    let mut finds = Vec::new();
    for budget in BUDGETS {
        finds = planted_finds(&lab, guest, budget);
        if planted.iter().all(|planted| !of_planted(&finds, planted).is_empty()) {
            break;
        }
    }
    for planted in planted {
        let (responder, cause, function, spent) = *planted;
        let found = of_planted(&finds, planted);
        let Some(find) = found.first() else { panic!("{function} for {responder} in {finds:#?}") };
        let told_apart = found.iter().filter(|find| find[BY_THE_HUNT] == true).count();
        assert!(told_apart <= 1, "{function} is two finds: {found:#?}");
        // It was fired into at its beginning.
        let ns = main_cause(find)["ns"].as_u64().expect("a time");
        figure(&format!("hunt in {}, {cause} of {function}, ns", guest.1), spent, ns);
        assert!(ns.abs_diff(spent) <= spent / 50, "{function}: {ns} ns of {spent}: {find:#}");
    }
    // Nothing else is late by half of the shortest, and nothing planted is longer than it is. One thing is the guest's
    // own: PREEMPT_RT answers a tasklet in ksoftirqd, which waits for its turn behind other ordinary threads.
    let rt = guest.1.ends_with("-rt");
    for find in finds.iter().filter(|find| main_cause(find)["ns"].as_u64() >= Some(LATE)) {
        let main = main_cause(find);
        let who = main["who"].as_str().expect("text");
        if rt && find["responder"] == "tasklet" && main["cause"] == "task" {
            assert!(who.starts_with("kworker/") && who.ends_with(" nice 0"), "{find:#}");
            assert_replays_and_adds_up(&lab, find);
            continue;
        }
        let planted = PLANTED.iter().find(|planted| ours(main) == Some(planted.2));
        let (.., spent) = planted.unwrap_or_else(|| panic!("{find:#}"));
        assert!(main["ns"].as_u64() <= Some(spent + spent / 50), "{find:#}");
    }
    for (responder, _, function, _) in [PLANTED[0], PLANTED[3]] {
        let worst = finds.iter().find(|find| find["responder"] == responder).expect("it answered");
        let stack = worst["stack"].as_array().expect("a stack");
        let is_ours = |frame: &Value| {
            let frame = frame.as_str().expect("text");
            frame.starts_with(&format!("{function}+")) && frame.ends_with(" [test_delays]")
        };
        assert!(stack.iter().any(is_ours), "{responder} was fired at {worst:#}");
        assert_replays_and_adds_up(&lab, worst);
    }
}

/// Half of the shortest planted delay, in ns.
const LATE: u64 = 30_000;
/// Whether the hunt itself explained a find.
const BY_THE_HUNT: &str = "explained_by_the_hunt";

/// The finds of a hunt that goes on to this budget in a directory of its own, with the causes of all that are late: a
/// hunt explains so many, and leaves the rest to `explain`. What a disturbance made later is told apart, and left out.
fn planted_finds(lab: &Lab, guest: (&str, &str), budget: &str) -> Vec<Value> {
    let responders = "responders = [\"hardirq\", \"tasklet\", \"task\"]";
    let directory = lab.path().join("planted");
    let directory = directory.to_str().expect("the lab's path is text");
    let words = ["--budget", budget, "--directory", directory];
    let found = hunt_for(lab, (responders, "0ms"), guest, "test_delays", &words);
    let finds = found["worst"].as_array().expect("finds").iter();
    let finds = finds.filter(|find| find["at_strategy"] != "disturb").cloned().map(|mut find| {
        let is_told = find["causes"].as_array().is_some_and(|causes| !causes.is_empty());
        find[BY_THE_HUNT] = is_told.into();
        if !is_told && find["latency_ns"].as_u64() >= Some(LATE) {
            let file = find["find"].as_str().expect("a file");
            let printed = lab.onset(&["explain", file, "--json"]).exits(0).json();
            find["causes"] = printed["explanations"][0]["causes"].clone();
        }
        find
    });
    finds.collect()
}

/// The finds whose main cause is this.
fn of_planted<'a>(finds: &'a [Value], planted: &Planted) -> Vec<&'a Value> {
    let (responder, cause, function, _) = *planted;
    let is = |find: &&Value| {
        let main = main_cause(find);
        find["responder"] == responder && main["cause"] == cause && ours(main) == Some(function)
    };
    finds.iter().filter(is).collect()
}

/// The cause that took most of a latency; null where the find is not explained.
fn main_cause(find: &Value) -> &Value {
    &find["causes"][0]
}

/// A find is explained as the hunt explained it, its causes are all of its latency, and it replays.
fn assert_replays_and_adds_up(lab: &Lab, find: &Value) {
    let file = find["find"].as_str().expect("a file");
    let printed = lab.onset(&["explain", file, "--json"]).exits(0).json();
    assert_eq!(printed["explanations"][0]["causes"], find["causes"], "{find:#}");
    let causes = find["causes"].as_array().expect("causes").iter();
    let sum: u64 = causes.map(|cause| cause["ns"].as_u64().expect("a time")).sum();
    assert_eq!(Some(sum), find["latency_ns"].as_u64(), "{find:#}");
    let replayed = lab.onset(&["replay", file, "--json"]).exits(0).json();
    assert_eq!(replayed["latency_ns"], find["latency_ns"], "{find:#}");
}
