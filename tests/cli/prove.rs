// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset tune prove` and `onset tune apply --goal` on this machine. Each test has a knob of its own, whose value means
//! nothing to what is measured. Where nobody may write that knob, the tests assert the refusal.

use crate::tuning_alone;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use testbench::{Finished, Lab, Started, assert_as_promised_by, skip, wait_for};

/// A knob of this machine, for one test.
struct Knob {
    name: &'static str,
    path: &'static str,
    before: u64,
}

impl Knob {
    /// None, with the reason, if this kernel lacks it.
    fn find(name: &'static str, path: &'static str) -> Option<Knob> {
        match fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) {
            Some(before) => Some(Knob { name, path, before }),
            None => {
                skip("this machine lacks the knob");
                None
            }
        }
    }

    fn now(&self) -> u64 {
        let text = fs::read_to_string(self.path).expect("it was there");
        text.trim().parse().expect("a number")
    }

    fn is_writable(&self) -> bool {
        fs::OpenOptions::new().write(true).open(self.path).is_ok()
    }

    /// Another value, and the words that ask for it.
    fn other(&self) -> (u64, String) {
        (self.before + 1, format!("{}={}", self.name, self.before + 1))
    }
}

fn prove(lab: &Lab, words: &str) -> Finished {
    lab.onset(&words_of(lab, words))
}

/// `onset tune prove` in short blocks beside no load, with a journal of its own.
fn words_of<'a>(lab: &Lab, words: &'a str) -> Vec<&'a str> {
    let journal: &'static str = journal(lab).leak();
    let all = ["tune", "prove", "--load", "idle", "--json", "--journal", journal].into_iter();
    all.chain(words.split_whitespace()).collect()
}

fn journal(lab: &Lab) -> String {
    lab.path().join("tune").to_str().expect("a text").to_owned()
}

fn apply(lab: &Lab, goal: &str, more: &[&str]) -> Finished {
    let journal = journal(lab);
    let words = ["tune", "apply", "--journal", &journal, "--goal", goal];
    lab.onset(&[&words[..], more].concat())
}

fn row<'a>(proof: &'a Value, change: &str) -> &'a Value {
    let rows = proof["kernels"][0]["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["change"] == change).unwrap_or_else(|| panic!("{change}: {proof}"))
}

#[test]
fn what_cannot_be_proven_here_is_refused_before_anything_is_changed() {
    let lab = Lab::bare();
    for (words, says) in [
        ("--knob preempt=full", ["preempt needs a reboot", "--flavour FLAVOUR"]),
        ("--knob vm.swappiness", ["vm.swappiness", "=VALUE"]),
        ("--knob vm.swappiness=1 --knob vm.swappiness=2", ["named twice", "one after the other"]),
        ("--knob rcu_normal=1 --knob rcu_expedited=1", ["contradict", "one at a time"]),
        ("--knob vm.swappiness=1 --goal quick.p99", ["\"quick\"", "periodic"]),
        ("--knob vm.swappiness=1 --goal periodic.p98", ["periodic.p98", "RESPONDER.STATISTIC"]),
        ("--knob vm.swappiness=1 --block 5", ["--block", "unit"]),
        ("--knob vm.swappiness=1 --flavour 6.12 --block 1s", ["--flavour", "--block"]),
    ] {
        prove(&lab, words).exits(2).says(&says);
    }
    assert!(!Path::new(&journal(&lab)).exists() && lab.bundles().is_empty());
}

#[test]
fn a_goal_that_cannot_be_judged_is_refused_by_its_name() {
    let lab = Lab::bare();
    for (goal, status, says) in [
        ("periodic.p99", 2, ["has no \"<\"", "task.max < 100us"]),
        ("periodic.p99 > 100us", 2, ["a goal says '<'", "task.max < 100us"]),
        ("periodic.p98 < 100us", 2, ["unknown statistic", "known are max mean"]),
        ("periodic.p99 < 100", 2, ["needs a unit", "task.max < 100us"]),
        ("quick.p99 < 100us", 2, ["\"quick\"", "periodic"]),
        ("periodic.p99 < 100us", 3, ["no proof", "onset tune prove --knob"]),
    ] {
        apply(&lab, goal, &[]).exits(status).says(&says);
    }
    let goal = "periodic.p99 < 100us";
    apply(&lab, goal, &["--cost", "power > -5%"]).exits(2).says(&["power", "'throughput > -5%'"]);
    apply(&lab, goal, &["--knob", "vm.swappiness=1"]).exits(2).says(&["--goal", "--knob"]);
    lab.onset(&["tune", "apply", "--cost", "throughput > -5%"]).exits(2).says(&["--goal"]);
    assert!(!Path::new(&journal(&lab)).exists());
}

#[test]
fn a_pair_has_a_block_with_the_knob_and_one_without_and_leaves_the_old_value() {
    let place = "/proc/sys/vm/dirty_writeback_centisecs";
    let Some(knob) = Knob::find("vm.dirty_writeback_centisecs", place) else { return };
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let (_, words) = knob.other();
    let same = format!("--knob {}={}", knob.name, knob.before);
    prove(&lab, &same).exits(69).says(&["nothing can be proven", "already"]);
    let finished = prove(&lab, &format!("--knob {words} --pairs 1 --block 500ms"));
    if !knob.is_writable() {
        finished.exits(69).says(&["nothing can be proven", knob.path]);
        return skip("nobody may write the knob");
    }
    // One pair tells nothing from chance.
    let finished = finished.exits(3).says(&["the seed of the order is"]);
    let proof = finished.json();
    assert_as_promised_by("prove", &proof);
    assert_eq!(proof["machine"]["block_ns"], 500_000_000);
    for change in ["control", &words] {
        let row = row(&proof, change);
        let latency = &row["latency"];
        let pairs = ["fell", "rose", "same"].map(|key| latency[key].as_u64().expect("a count"));
        assert_eq!(pairs.iter().sum::<u64>(), 1, "{row}");
        assert_eq!(latency["effect"]["verdict"], "cannot_tell", "{row}");
        let runs = row["runs"][0].as_array().expect("a pair");
        assert!(runs[0] != runs[1], "{row}");
        let ratio = row["with_ns"].as_f64().unwrap() / row["without_ns"].as_f64().unwrap();
        let judged = latency["ratio_median"].as_f64().unwrap();
        assert!((ratio / judged - 1.0).abs() < 1e-9, "{row}");
        assert!(row["context_switches"]["ratio_median"].as_f64().is_some_and(|r| r > 0.0));
    }
    assert_eq!((row(&proof, &words)["words"].as_str(), knob.now()), (Some(&*words), knob.before));
    let with = row(&proof, &words)["runs"][0][1].as_str().expect("a run");
    let manifest = fs::read_to_string(lab.store().join(with).join("manifest.json")).expect("a run");
    assert!(manifest.contains(&format!("\"title\": \"tune prove: {words}\"")), "{manifest}");
    // What is not shown to help is not applied.
    let goal = "periodic.p99 < 1us";
    apply(&lab, goal, &[]).exits(3).says(&["cannot tell whether it helps", "nothing is changed"]);
    apply(&lab, "gtod.p99 < 1us", &[]).exits(3).says(&["no proof", "--goal"]);
    assert_eq!(knob.now(), knob.before);
}

#[test]
fn a_proof_that_is_stopped_undoes_and_one_that_is_killed_leaves_that_to_undo() {
    let place = "/proc/sys/vm/compaction_proactiveness";
    let Some(knob) = Knob::find("vm.compaction_proactiveness", place) else { return };
    if !knob.is_writable() {
        return skip("nobody may write the knob");
    }
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let (other, words) = knob.other();
    let words = format!("--knob {words} --pairs 100 --block 5s");
    let begun = || {
        let started = Started::of(&mut lab.command(&words_of(&lab, &words)));
        wait_for("the seed", || lab.bundles().first().map(drop));
        wait_for("the change", || (knob.now() == other).then_some(()));
        started
    };
    let started = begun();
    started.signal(libc::SIGINT);
    started.wait().exits(130);
    assert_eq!(knob.now(), knob.before);
    let started = begun();
    started.signal(libc::SIGKILL);
    drop(started.wait());
    assert_eq!(knob.now(), other);
    // Nobody proves on top of what is changed.
    prove(&lab, &words).exits(69).says(&["1 changes", "onset tune undo", "--journal DIR"]);
    let journal = journal(&lab);
    lab.onset(&["tune", "undo", "--journal", &journal]).exits(0);
    assert_eq!(knob.now(), knob.before);
}

/// Keeps a CPU busy for half of the time, above every probe, as long as a knob has the value that it had.
fn plant<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    (knob, cpu): (&'scope Knob, u32),
    end: &'scope AtomicBool,
) -> Result<ScopedJoinHandle<'scope, ()>, String> {
    let (tell, told) = std::sync::mpsc::channel();
    let planted = scope.spawn(move || {
        let policy = "fifo:95".parse().expect("a policy");
        let ready = rt::pin(cpu).and_then(|()| rt::apply(policy)).map_err(|e| e.to_string());
        let may_go_on = ready.is_ok();
        tell.send(ready).expect("the test waits for it");
        while may_go_on && !end.load(Ordering::Relaxed) {
            let begun = Instant::now();
            while knob.now() == knob.before && begun.elapsed() < Duration::from_millis(30) {}
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    told.recv().expect("it tells").map(|()| planted)
}

#[test]
fn a_planted_knob_is_found_and_applied_towards_a_goal_and_taken_back() {
    let place = "/proc/sys/kernel/hung_task_timeout_secs";
    let Some(knob) = Knob::find("kernel.hung_task_timeout_secs", place) else { return };
    if !knob.is_writable() {
        return skip("nobody may write the knob");
    }
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let cpu = *rt::online_cpus().expect("a list").last().expect("a CPU");
    let (other, words) = knob.other();
    let end = AtomicBool::new(false);
    let proof = std::thread::scope(|scope| {
        let planted = plant(scope, (&knob, cpu), &end);
        let asked = format!("--knob {words} --pairs 9 --block 300ms --cpus {cpu}");
        let finished = planted.is_ok().then(|| prove(&lab, &asked));
        end.store(true, Ordering::Relaxed);
        planted.map(|_| finished.expect("it was planted").json())
    });
    let proof = match proof {
        Ok(proof) => proof,
        Err(why) => return skip(&format!("nobody may run above the probe: {why}")),
    };
    let found = row(&proof, &words);
    assert_eq!(found["latency"]["effect"]["verdict"], "helps", "{found}");
    assert_eq!(proof["machine"]["chosen"], serde_json::json!([words]), "{found}");
    let with = found["with_ns"].as_f64().expect("a time");
    let without = found["without_ns"].as_f64().expect("a time");
    // Half of the periods begin in a stretch of 30 ms.
    assert!(without > 10e6 && with < without / 2.0, "{found}");

    let cpus = cpu.to_string();
    let goal = |ns: f64| format!("periodic.p99 < {ns}ns");
    let at = |ns: f64, more: &[&str]| {
        apply(&lab, &goal(ns.round()), &[&["--cpus", &cpus], more].concat())
    };
    let kept = ["kept the goal without any knob", "beside the load idle"];
    at(without * 2.0, &[]).exits(0).says(&kept);
    // The rig's responder is the same task here, and all of these knobs take effect at once.
    let of_task = format!("task.p99 < {}ns", (without * 2.0).round());
    let finished = apply(&lab, &of_task, &["--cpus", &cpus, "--only", "runtime"]).exits(0);
    finished.says(&["its task is the probe periodic", "kept the goal without any knob"]);
    // A proof says nothing of other CPUs.
    if let Some(other) = rt::online_cpus().expect("a list").into_iter().find(|other| *other != cpu)
    {
        let other = apply(&lab, &goal(1.0), &["--cpus", &other.to_string()]);
        other.exits(3).says(&["1 are of others", "--cpus"]);
    }
    // An idle load has no throughput.
    // No block without the knob keeps this, and each with it does.
    let between = without * 0.9;
    at(between, &["--cost", "throughput > -5%"]).exits(3).says(&["cost is unknown"]);
    assert_eq!(knob.now(), knob.before);
    let undo = || {
        assert_eq!(knob.now(), other);
        lab.onset(&["tune", "undo", "--journal", &journal(&lab)]).exits(0);
        assert_eq!(knob.now(), knob.before);
    };
    at(between, &[]).exits(0).says(&["reached"]);
    undo();
    at(1.0, &[]).exits(1).says(&["did not reach"]);
    undo();
    judged_together(&lab, &words, at);
    assert_eq!(knob.now(), knob.before);
}

/// Knobs that help one by one are judged by what they did together, as a second proof in the store says.
fn judged_together(lab: &Lab, words: &str, at: impl Fn(f64, &[&str]) -> Finished) {
    let proofs = lab.store().join("proofs");
    let first = fs::read_dir(&proofs).expect("proofs").next().expect("one").expect("a file");
    let text = fs::read_to_string(first.path()).expect("a proof");
    let mut proof: Value = serde_json::from_str(&text).expect("JSON");
    let helps = row(&proof, words).clone();
    let again = |change: &str, words: &str| {
        let mut row = helps.clone();
        (row["change"], row["words"]) = (change.into(), words.into());
        row
    };
    let second = "vm.stat_interval=7";
    // The same pairs the other way round: this change harms.
    let mut together = again("together", &format!("{words} {second}"));
    for pair in together["runs"].as_array_mut().expect("pairs") {
        pair.as_array_mut().expect("two runs").reverse();
    }
    let rows = proof["kernels"][0]["rows"].as_array_mut().expect("rows");
    rows.extend([again(second, second), together]);
    fs::write(proofs.join("zz.json"), proof.to_string()).expect("a file");
    at(1.0, &[]).exits(3).says(&["together: it harms", "onset tune prove --knob", second]);
}
