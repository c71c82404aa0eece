// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt finds the same again, with any number of machines, and does not find less than luck.

use crate::modules::module_for;
use lab::{
    FIRST_AND_LAST, Lab, Started, assert_as_promised_by, experiment, figure, have_kernels,
    those_here, users_of,
};
use serde_json::Value;

/// A hunt of some rounds, in a directory of its own.
fn hunt(lab: &Lab, directory: &str, budget: &str, words: &[&str]) -> Value {
    let place = lab.path().join(directory);
    let place = place.to_str().expect("the lab's path is text");
    let flavour = ["--flavour", "6.12 preempt=none", "--budget", budget];
    let rest = ["--json", "--directory", place];
    let found = lab.onset(&[&["hunt"], &flavour[..], &rest[..], words].concat()).exits(0).json();
    assert_as_promised_by("hunt", &found);
    found
}

const IDLE: [&str; 6] = ["--load", "idle", "--responder", "hardirq", "--jobs", "2"];

#[test]
fn a_hunt_that_was_killed_goes_on_to_the_same_end_and_one_that_is_ended_early_has_its_finds() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let whole = nameless(hunt(&lab, "whole", "26trials", &IDLE));
    let begun = |directory: &str| {
        let place = lab.path().join(directory);
        let place = place.to_str().expect("the lab's path is text").to_owned();
        let words = ["hunt", "--flavour", "6.12 preempt=none", "--budget", "26trials", "--json"];
        let words = [&words[..], &["--directory", &place], &IDLE].concat();
        let mut started = Started::of(&mut lab.command(&words));
        started.wait_until_it_says(&place);
        started.wait_until_it_says("10 trials");
        started
    };
    let killed = begun("killed");
    killed.signal(libc::SIGKILL);
    killed.wait();
    assert_eq!(nameless(hunt(&lab, "killed", "26trials", &IDLE)), whole);

    let interrupted = begun("interrupted");
    interrupted.signal(libc::SIGINT);
    let found = interrupted.wait().exits(130).json();
    assert_as_promised_by("hunt", &found);
    assert_eq!(users_of(lab.path()), [0; 0]);
    assert_eq!(found["ended"], "interrupted");
    // Where there is nothing but the kernel, as on another machine.
    let elsewhere = Lab::private();
    let find = found["worst"][0]["find"].as_str().expect("a file");
    let replayed = elsewhere.onset(&["replay", find, "--json"]).exits(0).json();
    assert_eq!(replayed["latency_ns"], found["worst"][0]["latency_ns"]);
    assert_eq!(nameless(hunt(&lab, "interrupted", "26trials", &IDLE)), whole);

    // What the host does to a machine is no death of its guest.
    let failed = begun("failed");
    failed.kill_children("qemu-system-x86_64");
    let place = lab.path().join("failed");
    let again = format!("--directory {}", place.display());
    let found = failed.wait().exits(69).says(&["signal: 9", "To go on: onset hunt", &again]).json();
    assert_as_promised_by("hunt", &found);
    assert_eq!((&found["ended"], &found["died"]), (&"failed".into(), &Value::Array(Vec::new())));
    assert!(found["trials"].as_u64() >= Some(10), "{found:#}");
    let find = found["worst"][0]["find"].as_str().expect("a file");
    let replayed = lab.onset(&["replay", find, "--json"]).exits(0).json();
    assert_eq!(replayed["latency_ns"], found["worst"][0]["latency_ns"]);
    assert_eq!(nameless(hunt(&lab, "failed", "26trials", &IDLE)), whole);
}

#[test]
fn a_guest_that_does_not_answer_is_a_find_and_its_silence_is_counted() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let words = ["--budget", "1trials", "--strategy", "random"];
    let found = hunt_with(&lab, ("6.12", "6.12 preempt=full"), "test_deaf", &words);
    assert_eq!(found["worst"], Value::Array(Vec::new()));
    let lost = found["losses"]["task"]["unanswered"].as_u64();
    assert!(lost > Some(0) && lost == found["triggers"].as_u64(), "{found:#}");
    let text = found["died"][0]["text"].as_str().expect("why");
    assert_eq!(text, "hardirq and task did not answer within 1.00 s");
    let again =
        lab.onset(&["run", found["died"][0]["experiment"].as_str().expect("a file"), "--json"]);
    assert_eq!(again.exits(3).run().series("task")["losses"]["unanswered"].as_u64(), lost);
}

/// What was found, without what names the directory.
fn nameless(mut found: Value) -> Value {
    found.as_object_mut().expect("an object").remove("directory");
    for worst in found["worst"].as_array_mut().expect("finds") {
        worst.as_object_mut().expect("a find").remove("find");
    }
    found
}

fn hardirq(found: &Value) -> u64 {
    let worst = found["worst"].as_array().expect("finds");
    let own = worst.iter().find(|find| find["responder"] == "hardirq");
    own.and_then(|find| find["latency_ns"].as_u64()).expect("the handler has answered")
}

#[test]
fn a_hunt_finds_the_same_with_one_machine_and_two_and_no_less_than_as_many_triggers_at_random() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let hunt = |directory, budget, words: &[&str]| {
        let common = ["--load", "mixed", "--responder", "hardirq"];
        nameless(hunt(&lab, directory, budget, &[&common, words].concat()))
    };
    let two = hunt("two", "10trials", &["--jobs", "2"]);
    let fired = &two["by_strategy"]["foresight"];
    // Some look ahead; the others fire once, where that promises more.
    assert!(
        fired["trials"].as_u64() >= Some(3) && fired["triggers"].as_u64() >= Some(1),
        "{fired}"
    );
    let one = hunt("one", "10trials", &["--jobs", "1"]);
    assert_eq!(one, two);
    let random = hunt("random", "18trials", &["--strategy", "random"]);
    assert!(random["triggers"].as_u64() >= two["triggers"].as_u64(), "{}", random["triggers"]);
    assert!(hardirq(&two) >= hardirq(&random), "{} < {}", hardirq(&two), hardirq(&random));
}

#[test]
fn loads_and_histories_are_hunted_in_together_and_each_find_comes_again_in_its_own_guest() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let guests = ["--load", "idle", "--load", "fork", "--guest-seed", "1", "--guest-seed", "2"];
    // The first round of each.
    let found = hunt(&lab, "guests", "8trials", &guests);
    let [idle, idle_2, fork, fork_2] = &found["guests"].as_array().expect("guests")[..] else {
        panic!("four guests: {found:#}")
    };
    for (guest, load, seed) in
        [(idle, "idle", 1), (idle_2, "idle", 2), (fork, "fork", 1), (fork_2, "fork", 2)]
    {
        assert_eq!((&guest["load"], &guest["seed"]), (&load.into(), &seed.into()));
    }
    assert_ne!(fork["snapshot"], fork_2["snapshot"]);
    let shares = found["by_guest"].as_array().expect("their shares");
    let trials = shares.iter().map(|share| share["trials"].as_u64().expect("a number"));
    let trials: Vec<u64> = trials.collect();
    assert_eq!(trials, [2; 4]);
    // A find of each guest that has one; what forks has the latest.
    let finds = found["worst"].as_array().expect("finds");
    let mut first: Vec<&Value> = Vec::new();
    for find in finds {
        if first.iter().all(|known| known["guest"] != find["guest"]) {
            first.push(find);
        }
    }
    assert!(first.len() >= 2 && first[0]["guest"].as_u64() >= Some(2), "{finds:#?}");
    let guest_of =
        |find: &Value| &found["guests"][find["guest"].as_u64().expect("a number") as usize];
    assert!(first.iter().any(|find| guest_of(find)["seed"] == 2), "{finds:#?}");
    for find in first {
        let path = find["find"].as_str().expect("a file");
        let text = std::fs::read_to_string(path).expect("it is there");
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        let guest = guest_of(find);
        assert_eq!((&kept["load"], &kept["guest_seed"]), (&guest["load"], &guest["seed"]));
        let replayed = lab.onset(&["replay", path, "--json"]).exits(0).json();
        assert_eq!(replayed["latency_ns"], find["latency_ns"], "{path}");
    }
}

/// Hunts in an idle guest with this module of the tests, which lies beside the experiment. That waits for no answer that is late,
/// which has to make no difference to what is found and replayed.
fn hunt_with(lab: &Lab, guest: (&str, &str), name: &str, words: &[&str]) -> Value {
    hunt_for(lab, (FIRST_AND_LAST, "0ms"), guest, name, words)
}

/// The same with these responders, so long after the warm-up.
fn hunt_for(
    lab: &Lab,
    (responders, begin_after): (&str, &str),
    (kernel, flavour): (&str, &str),
    name: &str,
    words: &[&str],
) -> Value {
    let file = format!("{name}.ko");
    std::fs::copy(module_for(kernel, name), lab.path().join(&file)).expect("writable");
    let guest = format!("guest = {{ modules = [{file:?}], begin_after = {begin_after:?} }}");
    let more = format!("{responders}\n{guest}");
    let impatient = experiment(&[flavour], &["idle"], 10, &more).replace("50ms", "1us");
    let path = lab.experiment(&impatient);
    let found = lab.onset(&[&["hunt", &path, "--json"], words].concat()).exits(0).json();
    assert_as_promised_by("hunt", &found);
    found
}

/// What the module does, how long, and whose answer it delays.
type Planted = (&'static str, &'static str, &'static str, u64);
const PLANTED: [Planted; 6] = [
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
fn ours(cause: &Value) -> Option<&str> {
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

fn assert_all_are_found(guest: (&str, &str), planted: &[Planted]) {
    let lab = Lab::new();
    let responders = "responders = [\"hardirq\", \"tasklet\", \"task\"]";
    let found =
        hunt_for(&lab, (responders, "0ms"), guest, "test_delays", &["--budget", "24trials"]);
    let finds = found["worst"].as_array().expect("finds").iter();
    // What a disturbance made later is told apart.
    let finds: Vec<&Value> = finds.filter(|find| find["at_strategy"] != "disturb").collect();
    let main = |find: &Value| find["causes"][0].clone();
    for &(responder, cause, function, spent) in planted {
        let is = |find: &&&Value| {
            let main = main(find);
            find["responder"] == responder
                && main["cause"] == cause
                && ours(&main) == Some(function)
        };
        let found: Vec<&&Value> = finds.iter().filter(is).collect();
        let [find] = found[..] else { panic!("{function} for {responder} in {finds:#?}") };
        // It was fired into at its beginning.
        let ns = main(find)["ns"].as_u64().expect("a time");
        figure(&format!("hunt in {}, {cause} of {function}, ns", guest.1), spent, ns);
        assert!(ns.abs_diff(spent) <= spent / 50, "{function}: {ns} ns of {spent}: {find:#}");
    }
    // Nothing else is late by half of the shortest, and nothing planted is longer than it is.
    for find in finds.iter().filter(|find| main(find)["ns"].as_u64() >= Some(30_000)) {
        let main = main(find);
        let planted = PLANTED.iter().find(|planted| ours(&main) == Some(planted.2));
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
        let file = worst["find"].as_str().expect("a file");
        let printed = lab.onset(&["explain", file, "--json"]).exits(0).json();
        assert_eq!(printed["explanations"][0]["causes"], worst["causes"], "{responder}");
        let replayed = lab.onset(&["replay", file, "--json"]).exits(0).json();
        assert_eq!(replayed["latency_ns"], worst["latency_ns"]);
    }
}

#[test]
fn a_guest_that_dies_under_fire_is_kept_and_dies_again() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let words = ["--budget", "66trials", "--strategy", "random"];
    let found = hunt_with(&lab, ("6.12", "6.12 preempt=full"), "test_panic", &words);
    let died = &found["died"][0];
    let text = died["text"].as_str().expect("its last words");
    assert!(text.contains("planted by a test"), "{text}");
    let again = lab.onset(&["run", died["experiment"].as_str().expect("a file"), "--json"]);
    let run = again.exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    // Its time of death is in it.
    assert_eq!(run.warning("guest_panicked")["text"], text);
}

#[test]
fn an_oops_under_fire_is_kept_whole_and_comes_again() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let guest = ("6.12", "6.12 preempt=full");
    // It begins some tenths of a second before.
    let how = (FIRST_AND_LAST, "1500ms");
    let words = ["--budget", "8trials", "--strategy", "random"];
    let found = hunt_for(&lab, how, guest, "test_oops", &words);
    let died = &found["died"][0];
    let kept = std::fs::read_to_string(died["console"].as_str().expect("a file"));
    // A console's lines end as a terminal wants it.
    let kept = kept.expect("it is there").replace('\r', "");
    let text = died["text"].as_str().expect("its last words");
    // More than the first lines: where it was, and by which way it had come there.
    let trace = kept.split_once("Call Trace:").expect("a call trace").1;
    assert!(kept.contains("NULL pointer dereference") && kept.contains(text), "{text}");
    assert!(!text.contains("Call Trace:"), "{text}");
    assert!(kept.contains("RIP: 0010:strike+0x"), "{kept}");
    assert!(trace.contains("process_one_work+0x") && trace.contains("ret_from_fork+0x"), "{kept}");
    assert!(!kept.contains("Linux version"), "only what it said in that trial: {kept}");
    let again = lab.onset(&["run", died["experiment"].as_str().expect("a file"), "--json"]);
    assert_eq!(again.exits(3).run().warning("guest_oops")["text"], text);
}

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

/// What is planted in the stretch that was fired into as it opened: by its function itself, or by the lock that this takes.
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
    let how = ["--strategy", "foresight", "--budget", "14trials", "--directory", directory];
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
        // The task's path is some 4,700, where nothing comes; what does adds to that.
        let interrupts = met["interrupts"].as_array().expect("interrupts").iter();
        let coming = interrupts.filter(|next| insns(&next["after_insns"]) < 4_500);
        let adds = masked + coming.map(|next| insns(&next["takes_insns"])).sum::<u64>();
        let path = answered("task").checked_sub(adds);
        assert!(path.is_some_and(|path| (3_000..8_000).contains(&path)), "{met}");
    }
}
