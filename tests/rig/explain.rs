// SPDX-License-Identifier: GPL-2.0-or-later
//! Latencies of planted delays are blamed on what was planted, and come again to the instruction.

use crate::modules::module_for;
use crate::oracle;
use crate::planted::ours;
use sample::Responder;
use serde_json::Value;
use testbench::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, have_kernels, those_here};

/// Two virtual seconds: a delay takes some thousandth of the time, and several triggers have to meet each.
const TRIGGERS: u64 = 2_000;

/// The delays begin at the guest's timer tick, of which a millisecond is a part: triggers of that period would meet
/// none.
const ASKEW: &str = "period = \"1030us\", jitter = \"200us\"";
/// Anything that the guest does at its ticks is met at times, whatever phase they have.
const ANY_TIME: &str = "period = \"1030us\", jitter = \"800us\", duty = 0.1";

/// The run of an otherwise idle guest with the module, with so many triggers at these times.
fn run(lab: &Lab, kernel: &str, triggers: u64, times: &str) -> String {
    let more =
        format!("{FIRST_AND_LAST}\nguest.modules = [{:?}]", module_for(kernel, "test_delays"));
    let text = experiment(&[kernel], &["idle"], triggers, &more);
    let text = text.replacen("period = \"1ms\", jitter = \"200us\"", times, 1);
    lab.run(&text, &[]).exits(3).run().text("run").to_string()
}

fn numbers(list: &Value, key: &str) -> u64 {
    let list = list.as_array().expect("a list");
    list.iter().map(|item| item[key].as_u64().expect("a number")).sum()
}

fn has_frame(cause: &Value, function: &str) -> bool {
    let frames = cause["stack"].as_array().expect("a stack");
    let is = |frame: &Value| {
        frame.as_str().is_some_and(|f| f.starts_with(function) && f.ends_with("[test_delays]"))
    };
    frames.iter().any(is)
}

/// So many answers are looked at: which of the planted delays made the latest few late is the guest's luck.
const WORST: &str = "20";

/// The longest answers of a responder with what they are blamed on most.
fn worst_causes(lab: &Lab, run: &str, responder: &str) -> Vec<(u64, Value)> {
    let words = ["explain", run, "--responder", responder, "--worst", WORST, "--json"];
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("explain", &printed);
    let explanations = printed["explanations"].as_array().expect("a list");
    assert_eq!(explanations.len().to_string(), WORST);
    let worst = explanations.iter().map(|e| {
        let latency = e["latency_ns"].as_u64().expect("a number");
        assert_eq!(numbers(&e["parts"], "ns"), latency, "{e:#}");
        assert_eq!(numbers(&e["causes"], "ns"), latency, "{e:#}");
        let unexplained = e["unexplained_ns"].as_u64().expect("a number");
        assert!(unexplained * 100 <= latency, "{e:#}");
        (latency, e["causes"][0].clone())
    });
    worst.collect()
}

/// What the planted handler and softirq are called, and how many instructions they spend.
const HARDIRQ: (&str, u64) = ("test_hardirq [test_delays]", 113_000);
const SOFTIRQ: (&str, u64) = ("test_softirq [test_delays]", 173_000);

/// The ledger of this responder has a row of this cause for what is planted, and so has the answer that met most of it.
fn assert_named(
    lab: &Lab,
    run: &str,
    blamed: &Value,
    (responder, cause): (&str, &str),
    (entry, (function, spent)): (&str, (&str, u64)),
) {
    let who = format!("{entry}: {function}");
    let is_named = |c: &&Value| c["cause"] == cause && c["who"] == who.as_str();
    let ledgers = blamed["ledgers"].as_array().expect("a list");
    let own = ledgers.iter().find(|ledger| ledger["responder"] == responder).expect("its ledger");
    let rows = own["rows"].as_array().expect("a list");
    let row = rows.iter().find(is_named).unwrap_or_else(|| panic!("no {who} in {rows:#?}"));
    assert_eq!(row["stack"][0], function, "{row:#}");
    let most = row["max_ns"].as_u64().expect("a number");
    // An answer waits for the rest of it, and for what else that interrupt does.
    assert!((5_000..=spent + spent / 10).contains(&most), "{row:#}");
    let trigger = row["max_trigger"].to_string();
    let words = ["explain", run, "--responder", responder, "--sample", &trigger, "--json"];
    let printed = lab.onset(&words).exits(0).json();
    let causes = printed["explanations"][0]["causes"].as_array().expect("a list");
    let named = causes.iter().find(is_named).unwrap_or_else(|| panic!("no {who} in {causes:#?}"));
    assert_eq!((&named["ns"], &named["stack"]), (&row["max_ns"], &row["stack"]));
}

#[test]
fn planted_delays_are_what_the_worst_answers_are_blamed_on() {
    let lab = Lab::new();
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let run = run(&lab, kernel, TRIGGERS, ASKEW);
        let hardirq = worst_causes(&lab, &run, "hardirq");
        let (latency, cause) = &hardirq[0];
        assert!((20_000..=140_000).contains(latency), "{kernel}: {latency} ns");
        let of_handler = cause["cause"] == "interrupt" && ours(cause) == Some("test_hardirq");
        let planted = ["test_irqs_off+", "test_raw_spinlock+"].iter().any(|f| has_frame(cause, f));
        assert!(of_handler || planted, "{kernel}: {cause:#}");

        let task = worst_causes(&lab, &run, "task");
        let preempt_off = |(_, c): &&(u64, Value)| {
            c["cause"] == "preempt_off" && has_frame(c, "test_preempt_off+")
        };
        assert!(task.iter().any(|t| preempt_off(&t)), "{kernel}: {task:#?}");

        let printed = lab.onset(&["blame", &run, "--above", "all", "--json"]).exits(0).json();
        assert_as_promised_by("blame", &printed);
        for ledger in printed["ledgers"].as_array().expect("a list") {
            assert_eq!(ledger["samples"], TRIGGERS, "{kernel}: {ledger:#}");
            assert_eq!(numbers(&ledger["rows"], "total_ns"), ledger["total_ns"], "{kernel}");
        }
    }
}

#[test]
fn a_planted_handler_and_a_planted_softirq_are_named_with_their_entry_and_their_module() {
    let lab = Lab::new();
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let run = run(&lab, kernel, 5_000, ANY_TIME);
        let blamed = lab.onset(&["blame", &run, "--above", "all", "--json"]).exits(0).json();
        assert_as_promised_by("blame", &blamed);
        assert_named(&lab, &run, &blamed, ("hardirq", "interrupt"), ("local timer", HARDIRQ));
        // PREEMPT_RT runs softirqs in a thread, which no answer waits for.
        if !kernel.ends_with("-rt") {
            assert_named(&lab, &run, &blamed, ("task", "softirq"), ("tasklet", SOFTIRQ));
        }
    }
}

/// The two traces as others read them have the line, the answer of the task, and what was between them, at the same
/// times.
fn assert_traces_show(lab: &Lab, replayed: &Value) {
    let latency = replayed["latency_ns"].as_u64().expect("a number");
    let pin = format!("D{}", Responder::Task.pin());
    let tracks = oracle::perfetto(&lab.path().join("t.pftrace"));
    let trigger = format!("trigger {}", replayed["trigger"]);
    let mut line = tracks["line"].instants.iter();
    let raised = line.find(|(_, name)| *name == trigger).expect("the trigger").0;
    let is_between = |at: &u64| (raised..=raised + latency).contains(at);
    // An answer changes its pin.
    let slices = tracks[&pin].slices.iter();
    let changes: Vec<u64> = slices.flat_map(|(from, to, _)| [*from, *to]).collect();
    assert!(changes.contains(&(raised + latency)), "{changes:?}");
    for name in ["interrupts off", "interrupts", "preemption off", "scheduler", "running task"] {
        let mut slices = tracks[name].slices.iter();
        assert!(slices.any(|(from, ..)| is_between(from)), "nothing in {name:?}");
    }
    let of = |name: &str| tracks[name].instants.iter().filter(|(at, _)| is_between(at));
    let woken: Vec<_> = of("wake-ups").map(|(_, who)| who).collect();
    assert!(woken.iter().any(|who| who.starts_with("init [")), "{woken:?}");
    let calls: Vec<_> = of("calls").map(|(_, function)| function).collect();
    assert!(calls.iter().any(|function| function.starts_with("__schedule+")), "{calls:?}");
    // Whatever is watched for is among the calls of all functions, at the same time.
    let functions = &tracks["functions"].slices;
    for (at, name) in of("calls") {
        let (name, _) = name.split_once('+').expect("a symbol");
        let is = |(from, _, function): &&(u64, u64, String)| {
            from == at && function.split(' ').next() == Some(name)
        };
        assert!(functions.iter().any(|f| is(&f)), "{name} at {at}");
    }
    // The handler is called in its interrupt, and wakes the task.
    let of_name = |name: &str| {
        let mut all = functions.iter().filter(|(from, ..)| is_between(from));
        all.find(|(.., function)| function == name).unwrap_or_else(|| panic!("no call of {name}"))
    };
    let around = |outer: &(u64, u64, String), inner: &(u64, u64, String)| {
        outer.0 <= inner.0 && inner.1 <= outer.1
    };
    let [entry, handler, wake] =
        ["handle_irq_event", "onset_run_hardirq [onset_port]", "try_to_wake_up"].map(of_name);
    assert!(around(entry, handler) && around(handler, wake), "{entry:?} {handler:?} {wake:?}");

    let wires = oracle::vcd(&lab.path().join("t.vcd"));
    let [trigger] = wires["trigger"][..] else { panic!("{wires:?}") };
    let answered = wires[&pin].iter().find(|at| **at >= trigger);
    assert_eq!(answered, Some(&(trigger + latency)));
    let from = raised - trigger;
    let masked = wires["irqs_off"].iter().map(|at| from + at);
    let masked: Vec<u64> = masked.filter(is_between).collect();
    let slices = tracks["interrupts off"].slices.iter();
    let mut shown: Vec<u64> =
        slices.flat_map(|(from, to, _)| [*from, *to]).filter(is_between).collect();
    shown.dedup();
    assert_eq!(masked, shown);
}

#[test]
fn a_latency_comes_again_to_the_instruction_with_its_trace() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab, "6.12", TRIGGERS, ASKEW);
    let words =
        ["replay", &run, "--times", "3", "--trace", "t.pftrace", "--vcd", "t.vcd", "--json"];
    let of_task = ["--responder", "task"];
    let printed = lab.onset(&[&words[..], &of_task].concat()).exits(0).json();
    assert_as_promised_by("replay", &printed);
    assert_eq!(printed["identical"], true);
    assert_eq!((&printed["times"], &printed["identical_times"]), (&3.into(), &3.into()));
    assert_eq!(printed["latency_ns"], printed["expected_ns"]);
    assert_traces_show(&lab, &printed);
    lab.onset(&["replay", &run, "--worst", "4001"]).exits(2).says(&["4000 answers", "--worst"]);
    lab.onset(&["explain", &run, "--responder", "work"]).exits(2).says(&["hardirq, task"]);
}

#[test]
fn a_replay_on_another_qemu_is_refused_with_both_versions() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab, "6.12", TRIGGERS, ASKEW);
    let manifest = lab.store().join(&run).join("manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let mut altered: Value = serde_json::from_str(&text).expect("JSON");
    for (keys, value, said) in [
        (&["qemu"][..], "9.0.0", "QEMU is"),
        (&["plugin"], "0.0.1 00", "the plugin is"),
        (&["kernel", "release"], "6.11", "the kernel's release is"),
        (&["machine", "snapshot"], "00", "snapshot is"),
    ] {
        let mut changed = altered.clone();
        let place = keys.iter().fold(&mut changed["about"], |place, key| &mut place[*key]);
        *place = value.into();
        testbench::write_manifest(&manifest, &changed);
        lab.onset(&["replay", &run]).exits(69).says(&[said, &format!("was {value} then")]);
    }
    altered["about"]["target"] = "local".into();
    testbench::write_manifest(&manifest, &altered);
    lab.onset(&["replay", &run]).exits(2).says(&["measured on a machine"]);
}
