// SPDX-License-Identifier: GPL-2.0-or-later
//! Locks that a module holds for long on PREEMPT_RT, where who wants them sleeps: answers that wait for one are blamed
//! on it, on its holder, and on whom the holder waits for.

use crate::modules::module_for;
use serde_json::Value;
use std::ops::RangeInclusive;
use testbench::{Lab, Run, assert_as_promised_by, experiment, have_kernels};

const KERNEL: &str = "6.12-rt";
const TRIGGERS: u64 = 5_000;
/// Each lock is met at any time of the 19 ms in which the two take turns.
const ANY_TIME: &str = "period = \"1ms\", jitter = \"800us\", duty = 0.1";

/// Functions of test_locks.c and how many instructions they spend: 400,000 and 300,000, to within 2 %. Who comes
/// shortly before the first waits for all of it; for the second only who comes into it, which may be a tenth late.
const LOCK: (&str, RangeInclusive<u64>) = ("test_hold_lock", 392_000..=408_000);
const BOTTOM_HALVES: (&str, RangeInclusive<u64>) = ("test_hold_bottom_halves", 270_000..=306_000);

/// The run of an otherwise idle guest with the module.
fn run(lab: &Lab, more: &str) -> Run {
    let more = format!("guest.modules = [{:?}]\n{more}", module_for(KERNEL, "test_locks"));
    let text = experiment(&[KERNEL], &["idle"], TRIGGERS, &more);
    let text = text.replacen("period = \"1ms\", jitter = \"200us\"", ANY_TIME, 1);
    lab.run(&text, &[]).exits(3).run()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().expect("a number")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().expect("a list")
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, key: &str) -> u64 {
    rows.into_iter().map(|row| number(row, key)).sum()
}

fn all_kinds(value: &Value) -> u64 {
    let kinds = value["kinds"].as_object().expect("kinds");
    kinds.values().map(|kind| kind["ns"].as_u64().expect("a number")).sum()
}

/// Of the paper's latencies; 0 where nothing belongs to it.
fn kind(value: &Value, name: &str) -> u64 {
    value["kinds"].get(name).map_or(0, |kind| kind["ns"].as_u64().expect("a number"))
}

fn is_lock(row: &&Value) -> bool {
    row["cause"] == "lock"
}

/// Whether this part passed in a function of the module.
fn is_in(function: &str, row: &Value) -> bool {
    let is = |frame: &Value| {
        let name = frame.as_str().and_then(|frame| frame.strip_suffix(" [test_locks]"));
        name.and_then(|name| name.split('+').next()) == Some(function)
    };
    list(row, "stack").iter().any(is)
}

/// Whether these are the holders, one waiting for the next, and the last of them itself is what runs meanwhile.
fn is_held(holders: &[&str], row: &Value) -> bool {
    let who = row["who"].as_str().expect("text");
    let Some(tasks) = who.strip_suffix(": kernel") else { return false };
    // Each with its priority behind its name: "test-locks RT 50".
    let names = tasks.split(" < ").map(|task| task.split(' ').next());
    is_lock(&row) && names.eq(holders.iter().map(|name| Some(*name)))
}

/// So many of the longest answers of a responder.
fn worst(lab: &Lab, run: &Run, responder: &str, count: usize) -> Vec<Value> {
    let (name, many) = (run.text("run"), count.to_string());
    let words = ["explain", name, "--responder", responder, "--worst", &many, "--json"];
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("explain", &printed);
    let worst = list(&printed, "explanations").to_vec();
    assert_eq!(worst.len(), count);
    for e in &worst {
        let latency = number(e, "latency_ns");
        let sums = [sum(list(e, "parts"), "ns"), sum(list(e, "causes"), "ns"), all_kinds(e)];
        assert_eq!(sums, [latency; 3], "{e:#}");
        assert!(number(e, "unexplained_ns") * 100 <= latency, "{e:#}");
    }
    worst
}

/// The ledger of a responder, of all of its answers.
fn ledger(lab: &Lab, run: &Run, responder: &str) -> Value {
    let words = ["blame", run.text("run"), "--responder", responder, "--above", "all", "--json"];
    let printed = lab.onset(&words).exits(0).json();
    assert_as_promised_by("blame", &printed);
    let [ledger] = list(&printed, "ledgers") else { panic!("{printed:#}") };
    assert_eq!(ledger["samples"], run.series(responder)["count"]);
    let sums = [sum(list(ledger, "rows"), "total_ns"), all_kinds(ledger)];
    assert_eq!(sums, [number(ledger, "total_ns"); 2]);
    ledger.clone()
}

/// A task that holds a lock itself, and one that holds bottom halves and waits for the other.
const HOLDER: &[&str] = &["test-locks"];
const CHAIN: &[&str] = &["ksoftirqd/0", "test-locks"];

#[test]
fn answers_that_wait_for_locks_are_blamed_on_their_holders_and_on_where_these_are() {
    if !have_kernels(&[KERNEL]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab, "responders = [\"hardirq\", \"tasklet\"]");
    // The tasklet waits as well for a task that keeps bottom halves off, though that then serves the softirq itself. As
    // many as wait for any of the two that the module holds.
    let worst = worst(&lab, &run, "tasklet", 160);
    for e in &worst[..5] {
        let first = &list(e, "causes")[0];
        assert!(is_held(HOLDER, first) && is_in(LOCK.0, first), "{e:#}");
        let locks = list(e, "parts").iter().filter(is_lock);
        let inside = sum(locks.filter(|part| is_in(LOCK.0, part)), "insns");
        assert!(inside <= *LOCK.1.end(), "{e:#}");
    }
    let mut longest = [0; 2];
    for e in &worst {
        let locks = || list(e, "parts").iter().filter(is_lock);
        assert_eq!(kind(e, "priority_inversion"), sum(locks(), "ns"), "{e:#}");
        for (longest, (function, spent)) in longest.iter_mut().zip([LOCK, BOTTOM_HALVES]) {
            let inside = locks().filter(|part| is_held(HOLDER, part) && is_in(function, part));
            let inside = sum(inside, "insns");
            assert!(inside <= *spent.end(), "{e:#}");
            *longest = inside.max(*longest);
        }
    }
    for (longest, (function, spent)) in longest.into_iter().zip([LOCK, BOTTOM_HALVES]) {
        assert!(spent.contains(&longest), "{longest} instructions in {function}");
    }

    let ledger = ledger(&lab, &run, "tasklet");
    let locks = || list(&ledger, "rows").iter().filter(is_lock);
    assert_eq!(kind(&ledger, "priority_inversion"), sum(locks(), "total_ns"), "{ledger:#}");
    for (function, _) in [LOCK, BOTTOM_HALVES] {
        assert!(locks().any(|row| is_held(HOLDER, row) && is_in(function, row)), "{ledger:#}");
    }
}

#[test]
fn a_handler_that_was_made_a_thread_waits_for_a_chain_of_holders_before_it_is_entered() {
    if !have_kernels(&[KERNEL]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab, "driver.threaded = true\nresponders = [\"hardirq\"]");
    // Whoever serves softirqs holds the lock of bottom halves, which the handler of such a thread wants first. As many
    // as wait for any of the two that the module holds.
    let worst = worst(&lab, &run, "hardirq", 160);
    for e in &worst[..5] {
        let first = &list(e, "causes")[0];
        assert!(is_held(CHAIN, first) && is_in(LOCK.0, first), "{e:#}");
    }
    let mut longest = [0; 2];
    for e in &worst {
        let locks = || list(e, "parts").iter().filter(is_lock);
        assert!(locks().all(|part| part["stage"] == "entry"), "{e:#}");
        assert_eq!(kind(e, "priority_inversion"), sum(locks(), "ns"), "{e:#}");
        for (longest, holders) in longest.iter_mut().zip([CHAIN, HOLDER]) {
            let held = sum(locks().filter(|part| is_held(holders, part)), "insns");
            *longest = held.max(*longest);
        }
    }
    for (longest, (function, spent)) in longest.into_iter().zip([LOCK, BOTTOM_HALVES]) {
        assert!(spent.contains(&longest), "{longest} instructions in {function}");
    }

    let ledger = ledger(&lab, &run, "hardirq");
    for holders in [CHAIN, HOLDER] {
        let mut rows = list(&ledger, "rows").iter();
        assert!(rows.any(|row| is_held(holders, row)), "{holders:?} in {ledger:#}");
    }
}
