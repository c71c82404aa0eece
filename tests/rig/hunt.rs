// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt finds the same again, with any number of machines, and does not find less than luck.

use crate::determinism::is_qemu_of_path;
use crate::modules::module_for;
use crate::programs::program;
use serde_json::Value;
use testbench::{
    FIRST_AND_LAST, Finished, Lab, Started, assert_as_promised_by, experiment, have_kernels,
    users_of,
};

/// A hunt of some rounds, in a directory of its own.
fn hunt(lab: &Lab, directory: &str, budget: &str, words: &[&str]) -> Value {
    hunted(lab, directory, budget, words).json()
}

fn hunted(lab: &Lab, directory: &str, budget: &str, words: &[&str]) -> Finished {
    let place = lab.path().join(directory);
    let place = place.to_str().expect("the lab's path is text");
    let flavour = ["--flavour", "6.12 preempt=none", "--budget", budget];
    let rest = ["--json", "--directory", place];
    let hunted = lab.onset(&[&["hunt"], &flavour[..], &rest[..], words].concat()).exits(0);
    assert_as_promised_by("hunt", &hunted.json());
    hunted
}

const IDLE: [&str; 6] = ["--load", "idle", "--responder", "hardirq", "--jobs", "2"];

#[test]
fn a_hunt_that_was_killed_goes_on_to_the_same_end_and_one_that_is_ended_early_has_its_finds() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let whole = nameless(hunt(&lab, "whole", "18trials", &IDLE));
    let begun = |directory: &str| {
        let place = lab.path().join(directory);
        let place = place.to_str().expect("the lab's path is text").to_owned();
        let words = ["hunt", "--flavour", "6.12 preempt=none", "--budget", "18trials", "--json"];
        let words = [&words[..], &["--directory", &place], &IDLE].concat();
        let mut started = Started::of(&mut lab.command(&words));
        started.wait_until_it_says(&place);
        started.wait_until_it_says("10 trials");
        started
    };
    let killed = begun("killed");
    killed.signal(libc::SIGKILL);
    killed.wait();
    assert_eq!(nameless(hunt(&lab, "killed", "18trials", &IDLE)), whole);

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
    assert_eq!(nameless(hunt(&lab, "interrupted", "18trials", &IDLE)), whole);

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
    assert_eq!(nameless(hunt(&lab, "failed", "18trials", &IDLE)), whole);
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

/// A trial whose process is killed was not made: it is made again, from the guest that walks or from the snapshot.
#[test]
fn a_hunt_whose_trials_are_killed_comes_to_the_same_end() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let whole = nameless(hunt(&lab, "whole", "18trials", &IDLE));
    let place = lab.path().join("killed");
    let place = place.to_str().expect("the lab's path is text");
    let words = ["hunt", "--flavour", "6.12 preempt=none", "--budget", "18trials", "--json"];
    let words = [&words[..], &["--directory", place], &IDLE].concat();
    let mut started = Started::of(&mut lab.command(&words));
    started.wait_until_it_says(place);
    // Places on the guest's way are among them, and trials.
    let killed = started.kill_grandchildren("qemu-system-x86_64", 8);
    assert!(killed > 0, "no trial was a fork");
    let found = started.wait().exits(0).json();
    assert_eq!(nameless(found), whole);
    assert_eq!(users_of(lab.path()), [0; 0]);
}

/// QEMU here is one that the system lets have as many copies as a test says. With none, no trial is forked.
#[test]
fn a_hunt_without_room_for_forks_says_so_and_finds_the_same() {
    if !have_kernels(&["6.12"]) || !is_qemu_of_path() {
        return;
    }
    let lab = Lab::new();
    let (undisturbed, whole) = {
        let hunted = hunted(&lab, "whole", "18trials", &IDLE);
        (hunted.forks(), nameless(hunted.json()))
    };
    let library = program(&lab, "no_fork.c", &["-shared", "-fPIC"]);
    let with = |copies: u32| {
        let library = library.display();
        lab.qemu_with(&format!("NO_FORK={copies} LD_PRELOAD=\"$LD_PRELOAD:{library}\""));
        let place = lab.path().join(format!("copies-{copies}"));
        let place = place.to_str().expect("the lab's path is text");
        let words = ["hunt", "--flavour", "6.12 preempt=none", "--budget", "18trials", "--json"];
        let words = [&words[..], &["--directory", place], &IDLE].concat();
        let hunted = Finished::of(lab.command(&words).env("PATH", lab.with_bin())).exits(0);
        assert_eq!(nameless(hunted.json()), whole, "{copies}");
        (hunted.forks(), hunted)
    };
    let (forks, hunted) = with(0);
    hunted.says(&["no more forks: each trial restores its guest", "vm.overcommit_memory"]);
    assert_eq!(forks, 0);
    // The guest goes on as a scout, and leaves a copy. Of two trials at once one has room.
    let (forks, hunted) = with(2);
    assert!(0 < forks && forks < undisturbed, "of {undisturbed}: {}", hunted.stderr);
    assert_eq!(users_of(lab.path()), [0; 0]);
}

#[test]
fn a_trial_that_came_out_otherwise_in_a_fork_is_told_and_no_more_are_forked() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let whole = hunt(&lab, "whole", "6trials", &IDLE);
    assert_eq!(whole["forked_otherwise"], Value::Array(Vec::new()));
    // No rig does that, so the journal says that one did.
    let journal = lab.path().join("whole/trials.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut last: Value = serde_json::from_str(lines.last().expect("trials")).expect("JSON");
    last["forked_otherwise"] = true.into();
    *lines.last_mut().expect("trials") = last.to_string();
    std::fs::write(&journal, lines.join("\n") + "\n").expect("writable");
    let place = lab.path().join("whole");
    let place = place.to_str().expect("the lab's path is text");
    let words = ["hunt", "--flavour", "6.12 preempt=none", "--budget", "8trials"];
    let words = [&words[..], &["--directory", place], &IDLE].concat();
    let hunted = lab.onset(&words).exits(3);
    let hunted =
        hunted.says(&["0 of the trials made now were forks", "came out otherwise in a fork"]);
    assert!(hunted.stdout.contains("onset replay FIND"), "{}", hunted.stdout);
    let json = std::fs::read_to_string(lab.path().join("whole/hunt.json")).expect("a file");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["forked_otherwise"], Value::Array(vec![last["number"].clone()]));
}

#[test]
fn a_hunt_starts_from_the_finds_of_another_one_and_refuses_those_of_another_guest() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let first = hunt(&lab, "first", "16trials", &IDLE);
    let finds = first["worst"].as_array().expect("finds");
    let from = lab.path().join("first");
    let from = from.to_str().expect("the lab's path is text");
    let budget = format!("{}trials", finds.len() + 4);
    let words = [&IDLE[..], &["--seed", "9", "--from", from]].concat();
    let later = hunt(&lab, "later", &budget, &words);
    let corpus = &later["by_strategy"]["corpus"];
    assert_eq!(corpus["trials"].as_u64(), Some(finds.len() as u64), "{later:#}");
    assert_eq!(corpus["worst_ns"]["hardirq"], finds[0]["latency_ns"], "{later:#}");
    assert!(hardirq(&later) >= hardirq(&first));
    // Each find is as late as it was.
    let known = later["worst"].as_array().expect("finds");
    let again = known.iter().filter(|find| find["at_strategy"] == "corpus");
    let again: Vec<&Value> = again.map(|find| &find["latency_ns"]).collect();
    assert!(
        !again.is_empty()
            && again.iter().all(|late| finds.iter().any(|f| f["latency_ns"] == **late))
    );
    // It is another hunt than the same from nothing.
    let place = lab.path().join("later");
    let place = place.to_str().expect("the lab's path is text");
    let flavour = ["hunt", "--flavour", "6.12 preempt=none", "--budget", &budget];
    let from_nothing = [&flavour[..], &["--directory", place, "--seed", "9"], &IDLE].concat();
    lab.onset(&from_nothing).exits(2).says(&["set of finds to start from"]);
    let other = ["hunt", "--flavour", "6.12 preempt=full", "--from", from];
    let other = [&other[..], &IDLE].concat();
    lab.onset(&other).exits(2).says(&["no find is of a guest", "preempt=none under idle"]);
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

/// Hunts in an idle guest with this module of the tests, which lies beside the experiment. That waits for no answer
/// that is late, which has to make no difference to what is found and replayed.
pub fn hunt_with(lab: &Lab, guest: (&str, &str), name: &str, words: &[&str]) -> Value {
    hunt_for(lab, (FIRST_AND_LAST, "0ms"), guest, name, words)
}

/// The same with these responders, so long after the warm-up.
pub fn hunt_for(
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

#[test]
fn a_guest_that_dies_under_fire_is_kept_and_dies_again() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let words = ["--budget", "8trials", "--strategy", "random"];
    // It begins some tenths of a second before.
    let how = (FIRST_AND_LAST, "1500ms");
    let found = hunt_for(&lab, how, ("6.12", "6.12 preempt=full"), "test_panic", &words);
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
