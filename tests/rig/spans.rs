// SPDX-License-Identifier: GPL-2.0-or-later
//! Samples of probes are explained: what is planted is what the latest ones are blamed on, and the parts add up to the
//! time from the expiry of the timer to the reading of the clock.

use crate::modules::module_for;
use crate::oracle;
use crate::planted::ours;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use testbench::{
    Lab, assert_as_promised_by, compiled, figure, have_kernels, repository, those_here,
    write_manifest,
};

/// The planted delays repeat with the guest's ticks, of which a millisecond is a part. With this period a probe meets
/// them at other times of their course again and again.
const PERIOD: &str = "1030us";
const COUNT: u64 = 2_000;
/// What the module does, how it is blamed, and how many instructions that takes. Which of these make a probe's task
/// late depends on the kernel, and which a run meets on the guest's luck.
const PLANTED: [(&str, &str, u64); 8] = [
    ("irqs_off", "test_irqs_off", 137_000),
    ("preempt_off", "test_preempt_off", 223_000),
    ("irqs_off", "test_raw_spinlock", 61_000),
    ("interrupt", "test_hardirq", 113_000),
    // On PREEMPT_RT a task waits for a lock that the thread of expired timers holds, which this one interrupts.
    ("lock", "test_hardirq", 113_000),
    ("softirq", "test_softirq", 173_000),
    // On PREEMPT_RT a task that wants the lock of softirqs waits for the thread that runs this one.
    ("lock", "test_softirq", 173_000),
    ("preempt_off", "test_bh_off", 91_000),
];
/// What nothing in an idle guest takes that was not planted, in ns.
const UNPLANTED: u64 = 30_000;
/// How exactly an instant of the guest's clock is known in virtual time, in ns (docs/hunting/probes.md).
const PRECISION: u64 = 40;
/// How many of the latest samples are looked at.
const WORST: &str = "60";

/// An experiment with the module, in an otherwise idle guest, whose probe is this section.
fn with_delays(kernel: &str, section: &str) -> String {
    let module = module_for(kernel, "test_delays");
    format!(
        "title = \"late\"\ntarget = \"rig\"\nflavours = [{kernel:?}]\nloads = [\"idle\"]\n\
         guest.modules = [{module:?}]\n{section}"
    )
}

fn measured(lab: &Lab, text: &str) -> Value {
    lab.run(text, &[]).exits(3).run().0
}

fn name(run: &Value) -> String {
    run["run"].as_str().expect("a name").to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn sum(list: &Value) -> u64 {
    list.as_array().expect("a list").iter().map(|item| number(&item["ns"])).sum()
}

/// The latest samples of a series, explained. Each adds up, and hardly anything is left open.
fn worst(lab: &Lab, run: &str, series: &str) -> Vec<Value> {
    let words = ["explain", run, "--series", series, "--worst", WORST, "--json"];
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("explain", &printed);
    let explanations = printed["explanations"].as_array().expect("a list").clone();
    assert!(!explanations.is_empty(), "{run} {series}");
    for e in &explanations {
        let latency = number(&e["latency_ns"]);
        assert_eq!((sum(&e["parts"]), sum(&e["causes"])), (latency, latency), "{e:#}");
        let stages = e["stages"].as_object().expect("stages").values().map(number);
        assert_eq!(stages.sum::<u64>(), latency, "{e:#}");
        assert!(number(&e["unexplained_ns"]) * 100 <= latency, "{e:#}");
        assert_eq!((&e["beginning"], &e["responder"]), (&"due".into(), &series.into()), "{e:#}");
    }
    explanations
}

/// The function of the module that a cause names as it should, and how many instructions that has.
fn planted(cause: &Value) -> Option<(&'static str, u64)> {
    let is = |planted: &&(&str, &'static str, u64)| {
        cause["cause"] == planted.0 && ours(cause) == Some(planted.1)
    };
    PLANTED.iter().find(is).map(|planted| (planted.1, planted.2))
}

/// The maximum is blamed on something that was planted, with its name and its length, and so are other late samples.
/// Returns the planted functions of which samples have a good part.
fn assert_planted(what: &str, worst: &[Value]) -> BTreeSet<&'static str> {
    let main = &worst[0]["causes"][0];
    let (function, spent) = planted(main).unwrap_or_else(|| panic!("{what}: {main:#}"));
    let (ns, latency) = (number(&main["ns"]), number(&worst[0]["latency_ns"]));
    figure(&format!("{what}, {function}, ns"), spent, ns);
    // A timer expires anywhere in it, so that a sample has a part of it: the more, the luckier the guest. What else the
    // interrupt does comes on top.
    assert!((UNPLANTED..=spent + spent / 10).contains(&ns), "{what}: {main:#}");
    assert!(ns * 10 >= latency * 8, "{what}: {main:#}");
    let causes = worst.iter().flat_map(|e| e["causes"].as_array().expect("causes"));
    let mut met = BTreeMap::new();
    for (cause, (function, spent)) in causes.filter_map(|c| Some((c, planted(c)?))) {
        let ns = number(&cause["ns"]);
        assert!(ns <= spent + spent / 10, "{what}: {cause:#}");
        *met.entry(function).or_insert(0) += ns;
    }
    met.into_iter().filter(|(_, ns)| *ns > 5_000).map(|(function, _)| function).collect()
}

/// What the witness says of the probe: by how much its samples are longer than to the first instruction of the task.
fn error_of(run: &Value) -> (u64, u64) {
    let error = &run["truth"][0]["error"];
    (number(&error["min_ns"]), number(&error["max_ns"]))
}

#[test]
fn the_maximum_of_cyclictest_is_what_was_planted_on_every_kernel() {
    if !Path::new("/usr/bin/cyclictest").exists() {
        return testbench::skip("no cyclictest; install it: apt-get install rt-tests");
    }
    let (lab, mut met) = (Lab::new(), BTreeSet::new());
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let section =
            format!("guest.witness = true\n[cyclictest]\nperiod = \"{PERIOD}\"\ncount = {COUNT}\n");
        let run = measured(&lab, &with_delays(kernel, &section));
        let series = "cyclictest-clock_nanosleep-1.03ms";
        let worst = worst(&lab, &name(&run), series);
        met.extend(assert_planted(&format!("cyclictest in {kernel}"), &worst));
        let (least, most) = error_of(&run);
        for e in &worst {
            assert!(e["task"].as_str().expect("text").starts_with("cyclictest RT 90"), "{e:#}");
            // From the first instruction on is what the witness calls the error. All before it is from the expiry.
            let from_first = number(&e["stages"]["user"]);
            let all = least.saturating_sub(PRECISION)..=most + PRECISION;
            assert!(all.contains(&from_first), "{least} {most} {e:#}");
        }
    }
    assert!(met.len() >= 2, "{met:?}");
}

#[test]
fn the_maximum_of_a_sleeping_task_is_what_was_planted_and_two_explanations_are_the_same() {
    let (lab, mut met) = (Lab::new(), BTreeSet::new());
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let methods = "methods = [\"clock_nanosleep\", \"timerfd\"]";
        let section = format!("[periodic]\n{methods}\nperiods = [\"{PERIOD}\"]\ncount = {COUNT}\n");
        let run = name(&measured(&lab, &with_delays(kernel, &section)));
        for series in ["clock_nanosleep-1.03ms", "timerfd-1.03ms"] {
            let worst = worst(&lab, &run, series);
            met.extend(assert_planted(&format!("{series} in {kernel}"), &worst));
        }
        let words = ["explain", &run, "--worst", "5", "--json"];
        let first = lab.onset(&words).exits(0).stdout;
        assert_eq!(lab.onset(&words).exits(0).stdout, first, "{kernel}");
    }
    assert!(met.len() >= 2, "{met:?}");
}

/// A loop of 1.03 ms that does nothing, with the answers of a whole run in its ledger.
#[test]
fn the_worst_cycle_of_the_users_own_program_is_explained_blamed_and_replayed() {
    let lab = Lab::new();
    let source = fs::read_to_string(repository().join("examples/cycles.c")).expect("readable");
    let source = source.replacen("period = 1000000;", "period = 1030000;", 1);
    assert!(source.contains("period = 1030000;"));
    let source = lab.write("my-loop.c", &source);
    let program = compiled(&lab, &source, &[]);
    for kernel in those_here(&["6.12", "7.3-rt"]) {
        let section = format!(
            "task.program = [{program:?}]\n[cycles]\nperiod = \"{PERIOD}\"\ncount = {COUNT}\n"
        );
        let run = name(&measured(&lab, &with_delays(kernel, &section)));
        let start = worst(&lab, &run, "start");
        assert_planted(&format!("start of a cycle in {kernel}"), &start);
        assert_eq!(start[0]["task"], "my-loop RT 90");
        let response = worst(&lab, &run, "response");
        assert!(number(&response[0]["latency_ns"]) >= number(&start[0]["latency_ns"]));
        let blamed = lab.onset(&["blame", &run, "--above", "all", "--json"]).exits(0).json();
        assert_as_promised_by("blame", &blamed);
        let ledgers = blamed["ledgers"].as_array().expect("a list");
        assert_eq!(ledgers.len(), 3);
        for ledger in ledgers {
            let rows = ledger["rows"].as_array().expect("rows");
            let all: u64 = rows.iter().map(|row| number(&row["total_ns"])).sum();
            assert_eq!((&ledger["samples"], all), (&COUNT.into(), number(&ledger["total_ns"])));
        }
        let words = ["replay", &run, "--series", "start", "--times", "2", "--json"];
        let replayed = lab.onset(&words).exits(0).json();
        assert_as_promised_by("replay", &replayed);
        assert_eq!(replayed["latency_ns"], start[0]["latency_ns"]);
        assert_eq!(
            (&replayed["identical"], &replayed["trigger"]),
            (&true.into(), &start[0]["trigger"])
        );
    }
}

#[test]
fn pulses_events_and_mutexes_are_explained_and_their_parts_add_up() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let explained = |section: &str, series: &str| {
        let run = name(&measured(&lab, &with_delays("6.12", section)));
        worst(&lab, &run, series)
    };
    let toggle = format!(
        "[toggle]\nmethod = \"clock_nanosleep\"\nline = \"parport:0x378\"\nperiod = \"{PERIOD}\"\ncount = {COUNT}\n"
    );
    assert_planted("an edge", &explained(&toggle, "rise"));
    let asynchronous = "[async]\nmechanisms = [\"futex\"]\nplacements = [\"same\"]\ncount = 200\n";
    let asynchronous = explained(asynchronous, "futex-same");
    assert_eq!(asynchronous.len().to_string(), WORST);
    for e in asynchronous {
        assert!(number(&e["stages"]["handler"]) > 0, "the sender wakes it: {e:#}");
    }
    // The middle task keeps the low one from giving the mutex back.
    let inversion = "[inversion]\nmiddle = [\"5ms\"]\ncount = 5\n";
    let inversion = explained(inversion, "plain-5ms");
    assert_eq!(inversion.len(), 5);
    for e in inversion {
        let main = &e["causes"][0];
        assert_eq!(main["cause"], "task", "{e:#}");
        assert!(number(&main["ns"]) > 4_000_000, "{e:#}");
    }
}

#[test]
fn a_late_sample_comes_again_with_its_trace_and_its_windows() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let section = format!("[periodic]\nperiods = [\"{PERIOD}\"]\ncount = {COUNT}\n");
    let run = name(&measured(&lab, &with_delays("6.12", &section)));
    let words = ["replay", &run, "--trace", "t.pftrace", "--vcd", "t.vcd", "--json"];
    let replayed = lab.onset(&words).exits(0).json();
    let latency = number(&replayed["latency_ns"]);
    let tracks = oracle::perfetto(&lab.path().join("t.pftrace"));
    let [due, done] = ["due", "done"].map(|wanted| {
        let line = tracks["line"].instants.iter();
        line.filter(|(_, name)| name == wanted).map(|(at, _)| *at).collect::<Vec<_>>()
    });
    assert_eq!((due.len(), done.len(), done[0] - due[0]), (1, 1, latency));
    let woken = &tracks["wake-ups"].instants;
    assert!(woken.iter().any(|(at, _)| (due[0]..=done[0]).contains(at)), "{woken:?}");
    let seen = lab.onset(&["windows", &run, "--json"]).exits(0).json();
    assert_as_promised_by("windows", &seen);
    let windows = seen["windows"].as_array().expect("a list").iter();
    let planted = windows.filter(|w| w["kind"] == "preempt_off" && ours_opened(w));
    let longest = planted.map(|w| number(&w["max_ns"])).max().expect("it is there");
    assert!((223_000..226_000).contains(&longest), "{longest}");
}

fn ours_opened(window: &Value) -> bool {
    let stack = window["stack"].as_array().expect("a stack").iter();
    stack.map(|frame| frame.as_str().expect("text")).any(|f| f.starts_with("test_preempt_off+"))
}

#[test]
fn what_cannot_be_explained_says_what_it_is_and_what_to_do() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let head = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12\"]\nloads = [\"idle\"]\n";
    let run = |section: &str| name(&measured(&lab, &format!("{head}{section}")));
    let gtod = run("[gtod]\nclocks = [\"monotonic\"]\ncount = 1000\n");
    for command in ["explain", "blame", "replay"] {
        let said = ["between two readings of a clock", "take periodic", "onset windows"];
        lab.onset(&[command, &gtod]).exits(2).says(&said);
    }
    lab.onset(&["windows", &gtod, "--json"]).exits(0);
    lab.onset(&["bound", &gtod]).exits(2).says(&["answers to triggers"]);
    let toggle = run("[toggle]\ncount = 100\n");
    let width = lab.onset(&["explain", &toggle, "--series", "width"]);
    width.exits(2).says(&["differences of two lengths", "rise or fall"]);
    lab.onset(&["explain", &toggle, "--series", "rise"]).exits(0);
    lab.onset(&["explain", &toggle, "--series", "no"]).exits(2).says(&["rise, fall, width"]);
    lab.onset(&["minimise", &toggle]).exits(2).says(&["no triggers to leave out"]);
    // The same run as a machine would have left it.
    let manifest = lab.store().join(&toggle).join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let mut altered: Value = serde_json::from_str(&text).expect("JSON");
    altered["about"]["target"] = "local".into();
    write_manifest(&manifest, &altered);
    for command in ["explain", "blame", "replay", "windows"] {
        let refused = lab.onset(&[command, &toggle]).exits(2);
        refused.says(&["measured on a machine", "onset measure toggle --flavour", "--count 100"]);
    }
}
