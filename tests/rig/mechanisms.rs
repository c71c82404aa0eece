// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms for which a parallel port has no pin: the high-priority tasklet, a timer's softirq, and the ordinary
//! wait queue. Each answers alone, with all others and in any set, where the kernel says that it does; and everything
//! that looks into an answer looks into theirs.

use serde_json::Value;
use std::collections::BTreeMap;
use testbench::{
    Lab, RESPONDERS, Run, assert_as_promised_by, experiment, have_kernels, those_here,
};

const NEW: [&str; 3] = ["tasklet_hi", "timer_softirq", "waitqueue"];
const KERNELS: [&str; 3] = ["6.12", "6.12-rt", "7.3-rt"];
/// A tick of the kernels that are tried (HZ=250).
const TICK_NS: u64 = 4_000_000;

/// Triggers come longer than two ticks apart, and in every part of one: a timer has answered before the next trigger.
fn text(flavour: &str, load: &str, triggers: u64, responders: &[&str]) -> String {
    let more = format!("responders = {responders:?}");
    let text = experiment(&[flavour], &[load], triggers, &more);
    text.replacen("period = \"1ms\", jitter = \"200us\"", "period = \"9100us\"", 1)
}

fn run(lab: &Lab, flavour: &str, load: &str, triggers: u64, responders: &[&str]) -> Run {
    lab.run(&text(flavour, load, triggers, responders), &[]).exits(3).run()
}

/// Instant and latency of each sample of each responder, by its trigger.
fn samples(lab: &Lab, run: &Run) -> BTreeMap<String, BTreeMap<u64, (u64, u64)>> {
    let csv = lab.onset(&["export", run.text("run"), "--csv"]).exits(0).stdout;
    let mut all = BTreeMap::<String, BTreeMap<u64, (u64, u64)>>::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |n: usize| fields[n].parse().expect("a number");
        let of = all.entry(fields[0].into()).or_default();
        of.insert(number(1), (number(2), number(3)));
    }
    all
}

/// Every trigger was answered by itself.
fn assert_answered(run: &Run, triggers: u64, responders: &[&str]) {
    assert_eq!(run.responders(), responders, "in the order of the pins");
    assert_eq!(run.codes(), [""; 0]);
    for responder in responders {
        let series = run.series(responder);
        assert_eq!(series["count"], triggers, "{responder}: {series:#}");
        let losses = series["losses"].as_object().expect("losses");
        assert!(losses.values().all(|lost| lost == 0), "{responder}: {losses:?}");
    }
}

#[test]
fn each_answers_alone_with_all_others_and_in_an_odd_set() {
    const TRIGGERS: u64 = 200;
    let lab = Lab::new();
    let odd = ["threaded_irq", "work", "timer_softirq", "waitqueue"];
    let sets = [&NEW[..1], &NEW[1..2], &NEW[2..], &RESPONDERS, &odd];
    for kernel in those_here(&KERNELS) {
        for set in sets {
            let run = run(&lab, kernel, "idle", TRIGGERS, set);
            assert_answered(&run, TRIGGERS, set);
        }
    }
}

#[test]
fn a_high_tasklet_is_no_later_than_an_ordinary_one_and_a_timer_answers_at_a_tick() {
    const TRIGGERS: u64 = 300;
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let run = run(&lab, kernel, "idle", TRIGGERS, &RESPONDERS);
        let samples = samples(&lab, &run);
        for (trigger, (_, high)) in &samples["tasklet_hi"] {
            let (_, ordinary) = samples["tasklet"][trigger];
            assert!(*high < ordinary, "{kernel}: trigger {trigger}: {high} and {ordinary}");
        }
        let timer = &samples["timer_softirq"];
        let (at, latency) = timer[&0];
        let tick = (at + latency) % TICK_NS;
        for (trigger, (at, latency)) in timer {
            // How far from where the first answer lies between two ticks.
            let off = (at + latency).abs_diff(tick) % TICK_NS;
            let off = off.min(TICK_NS - off);
            assert!(off < 200_000, "{kernel}: trigger {trigger} is answered {off} ns off a tick");
        }
    }
}

#[test]
fn a_timer_alone_waits_for_any_part_of_a_tick_and_for_no_more() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let run = run(&lab, kernel, "idle", 300, &["timer_softirq"]);
        let median = run.median("timer_softirq");
        assert!((TICK_NS / 4..3 * TICK_NS / 4).contains(&median), "{kernel}: {median}");
        let least = run.series("timer_softirq")["min_ns"].as_u64().expect("a minimum");
        assert!(least < TICK_NS / 8, "{kernel}: {least}");
        let most = run.max("timer_softirq");
        assert!((7 * TICK_NS / 8..TICK_NS + 200_000).contains(&most), "{kernel}: {most}");
    }
}

#[test]
fn triggers_before_one_tick_have_one_answer_of_a_timer() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let often = experiment(&["6.12"], &["idle"], 400, "responders = [\"timer_softirq\"]");
    let run = lab.run(&often, &[]).exits(3).run();
    assert_eq!(run.codes(), ["superseded"]);
    let series = run.series("timer_softirq");
    let [count, superseded] =
        [&series["count"], &series["losses"]["superseded"]].map(|n| n.as_u64().expect("a number"));
    assert_eq!(count + superseded, 400);
    // Four triggers come in a tick.
    assert!((90..=134).contains(&count), "{count}");
}

#[test]
fn an_ordinary_wait_queue_costs_little_but_on_rt_where_a_thread_has_to_wake_it() {
    if !have_kernels(&["6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let alone = |kernel, responder| run(&lab, kernel, "idle", 300, &[responder]).median(responder);
    let [plain, rt] = ["6.12 preempt=full", "6.12-rt"]
        .map(|kernel| ["kthread", "waitqueue"].map(|responder| alone(kernel, responder)));
    assert!(plain[1] < 2 * plain[0], "{plain:?}");
    assert!(rt[1] > rt[0] + 1_000, "{rt:?}");
}

fn numbers(list: &Value, key: &str) -> u64 {
    let list = list.as_array().expect("a list");
    list.iter().map(|item| item[key].as_u64().expect("a number")).sum()
}

/// The time of a cause in an explanation.
fn of_cause(explanation: &Value, cause: &str) -> u64 {
    let causes = explanation["causes"].as_array().expect("a list");
    let own = causes.iter().filter(|c| c["cause"] == cause);
    own.map(|c| c["ns"].as_u64().expect("a number")).sum()
}

#[test]
fn their_latest_answers_are_explained_replayed_and_drawn() {
    let lab = Lab::new();
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let run = run(&lab, kernel, "mixed", 60, &["hardirq", NEW[0], NEW[1], NEW[2]]);
        let id = run.text("run");
        for (responder, pin) in NEW.into_iter().zip(8..) {
            let words = ["explain", id, "--responder", responder, "--worst", "3", "--json"];
            let explained = lab.onset(&words).exits(0).json();
            assert_as_promised_by("explain", &explained);
            let explanations = explained["explanations"].as_array().expect("a list");
            assert_eq!(explanations.len(), 3);
            for e in explanations {
                let latency = e["latency_ns"].as_u64().expect("a number");
                assert_eq!(numbers(&e["parts"], "ns"), latency, "{kernel}: {e:#}");
                assert_eq!(numbers(&e["causes"], "ns"), latency, "{kernel}: {e:#}");
                let unexplained = e["unexplained_ns"].as_u64().expect("a number");
                assert!(unexplained * 100 <= latency, "{kernel} {responder}: {e:#}");
                let tick = of_cause(e, "tick");
                match responder {
                    "timer_softirq" => assert!(tick * 2 > TICK_NS, "{kernel}: {e:#}"),
                    _ => assert_eq!(tick, 0, "{kernel} {responder}: {e:#}"),
                }
            }
            assert_eq!(explanations[0]["latency_ns"], run.max(responder), "{kernel}");

            let vcd = lab.path().join(format!("{responder}.vcd"));
            let vcd = vcd.to_str().expect("text");
            let words = ["replay", id, "--responder", responder, "--vcd", vcd, "--json"];
            let replayed = lab.onset(&words).exits(0).json();
            assert_eq!(replayed["latency_ns"], run.max(responder), "{kernel}");
            let drawn = std::fs::read_to_string(vcd).expect("it was written");
            let wire = drawn.lines().find(|line| line.ends_with(&format!(" D{pin} $end")));
            let wire = wire.and_then(|line| line.split(' ').nth(3)).expect("its wire");
            let (_, changes) = drawn.split_once("$end\n#").expect("changes after the first values");
            let is_its = |line: &&str| line.len() == 2 && line.ends_with(wire);
            assert!(changes.lines().any(|line| is_its(&line)), "{kernel}: D{pin} never changed");
        }
        let blamed = lab.onset(&["blame", id, "--above", "all", "--json"]).exits(0).json();
        assert_as_promised_by("blame", &blamed);
        for ledger in blamed["ledgers"].as_array().expect("a list") {
            assert_eq!(numbers(&ledger["rows"], "total_ns"), ledger["total_ns"], "{kernel}");
        }
    }
}

#[test]
fn a_hunt_for_the_latest_of_each_finds_what_comes_again() {
    let lab = Lab::new();
    for kernel in those_here(&["6.12", "7.3-rt"]) {
        for responder in NEW {
            let place = lab.path().join(format!("{kernel}-{responder}"));
            let place = place.to_str().expect("text");
            let words = ["hunt", "--flavour", kernel, "--load", "idle", "--responder", responder];
            let rest = ["--budget", "12trials", "--json", "--directory", place];
            let found = lab.onset(&[&words[..], &rest].concat()).exits(0).json();
            assert_as_promised_by("hunt", &found);
            let worst = &found["worst"][0];
            assert_eq!(worst["responder"], responder, "{kernel}: {found:#}");
            let find = worst["find"].as_str().expect("a file");
            let replayed = lab.onset(&["replay", find, "--json"]).exits(0).json();
            assert_eq!(replayed["latency_ns"], worst["latency_ns"], "{kernel}");
        }
    }
}
