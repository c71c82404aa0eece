// SPDX-License-Identifier: GPL-2.0-or-later
//! A report that looks inside: what it shows adds up, and is what the commands for each part print.

use serde_json::Value;
use std::collections::BTreeSet;
use testbench::{FIRST_AND_LAST, Lab, assert_as_promised_by, experiment, have_kernels};

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn sum(of: &Value, key: &str) -> u64 {
    list(of).iter().map(|item| item[key].as_u64().expect("a number")).sum()
}

/// The numbers in the page.
fn numbers_of(lab: &Lab, page: &str) -> Value {
    let page = std::fs::read_to_string(lab.path().join(page)).expect("a page");
    assert!(page.len() < 1_200_000, "{} bytes", page.len());
    let (_, rest) = page.split_once("id=\"onset-report\">").expect("its numbers");
    let (text, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(text).expect("JSON")
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of:#}"))
}

/// The parts are the latency, and nearly all of it is understood.
fn adds_up(latency: &Value) {
    let parts = &latency["parts"];
    assert_eq!(Value::from(sum(parts, "ns")), latency["latency_ns"], "{latency:#}");
    assert_eq!(Value::from(sum(parts, "insns")), latency["insns"], "{latency:#}");
    let others = latency["others"]["total_ns"].as_u64().expect("a number");
    assert_eq!(Value::from(sum(&latency["causes"], "ns") + others), latency["latency_ns"]);
    assert!(
        number(latency, "unexplained_ns") * 100 <= number(latency, "latency_ns"),
        "{latency:#}"
    );
}

/// Each ledger of these is the sum of its rows, and nearly all of it is understood.
fn is_understood(blamed: &Value) {
    assert_eq!(list(&blamed["ledgers"]).len(), 2, "{blamed:#}");
    for ledger in list(&blamed["ledgers"]) {
        let rows = list(&ledger["rows"]).iter();
        let unexplained = rows.filter(|row| row["cause"] == "unexplained");
        let unexplained: u64 = unexplained.map(|row| number(row, "total_ns")).sum();
        assert!(unexplained * 100 <= number(ledger, "total_ns"), "{ledger:#}");
        assert_eq!(sum(&ledger["rows"], "total_ns"), number(ledger, "total_ns"), "{ledger:#}");
    }
}

/// The command gives the latency of this trigger again.
fn comes_again(lab: &Lab, replay: &Value, responder: &Value, trigger: &Value) {
    let words: Vec<&str> = replay.as_str().expect("a command").split(' ').collect();
    assert_eq!(words[0], "onset");
    let again = lab.onset(&[&words[1..], &["--json"]].concat()).exits(0).json();
    assert_eq!((&again["responder"], &again["trigger"]), (responder, trigger));
}

#[test]
fn a_report_that_looks_inside_agrees_with_windows_blame_and_explain() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&["6.12"], &["mixed"], 120, FIRST_AND_LAST);
    let run = lab.run(&text, &[]).exits(3).run().text("run").to_string();
    let hunt = lab.path().join("hunt");
    let hunt = hunt.to_str().expect("the lab's path is text");
    let words = ["hunt", "--flavour", "6.12", "--load", "mixed", "--budget", "2trials"];
    lab.onset(&[&words[..], &["--directory", hunt]].concat()).exits(0);
    lab.onset(&["report", &run, hunt, "--inside", "-o", "r.html"]).exits(0);
    let report = numbers_of(&lab, "r.html");
    let whole = lab.path().to_string_lossy();
    assert!(!report.to_string().contains(&*whole), "a page names no directory of the machine");
    let inside = &report["runs"][0]["inside"];

    let printed = lab.onset(&["windows", &run, "--top", "12", "--json"]).exits(0).json();
    let kinds: BTreeSet<_> =
        list(&printed["windows"]).iter().filter_map(|w| w["kind"].as_str()).collect();
    let shown: Vec<_> = list(&inside["windows"]).iter().map(|kind| &kind["kind"]).collect();
    assert!(!kinds.is_empty() && shown.len() == kinds.len(), "{shown:?} of {kinds:?}");
    for kind in list(&inside["windows"]) {
        let name = kind["kind"].as_str().expect("a kind");
        let longest =
            list(&printed["windows"]).iter().find(|w| w["kind"] == name).expect("the kind");
        assert_eq!(kind["rows"][0]["max_ns"], longest["max_ns"], "{name}");
        let totals = &printed["cells"][0]["totals"][name];
        // However closely the page's run was followed, a stack has as many windows as in the terminal.
        let whole = |of: &Value| ["count", "stacks"].map(|key| number(of, key));
        assert_eq!(whole(kind), whole(totals), "{name}");
        let counts = |rows: &[&Value]| -> Vec<(u64, u64)> {
            let mut counts: Vec<_> =
                rows.iter().map(|row| (number(row, "max_ns"), number(row, "count"))).collect();
            counts.sort_unstable();
            counts
        };
        let own: Vec<&Value> =
            list(&printed["windows"]).iter().filter(|w| w["kind"] == name).collect();
        let shown: Vec<&Value> = list(&kind["rows"]).iter().collect();
        assert_eq!(counts(&shown), counts(&own), "{name}");
    }
    let printed = lab.onset(&["blame", &run, "--json"]).exits(0).json();
    assert_as_promised_by("blame", &printed);
    let ledgers = [&inside["ledgers"], &printed["ledgers"]].map(|ledgers| list(ledgers).len());
    assert_eq!(ledgers, [2, 2], "{printed:#}");
    for (ledger, own) in list(&inside["ledgers"]).iter().zip(list(&printed["ledgers"])) {
        for key in ["responder", "samples", "from_ns", "total_ns", "kinds"] {
            assert_eq!(ledger[key], own[key], "{key}");
        }
        let others = ledger["others"]["total_ns"].as_u64().expect("a number");
        assert_eq!(Value::from(sum(&ledger["rows"], "total_ns") + others), ledger["total_ns"]);
        let row = &own["rows"][0];
        for key in ["stretches", "longest_ns", "max_stretches"] {
            assert_eq!(ledger["rows"][0][key], row[key], "{key}");
        }
        // The page names the run from where it lies, which is where the lab works.
        let replay = &ledger["rows"][0]["replay"];
        let words = |of: &Value| -> Vec<String> {
            of.as_str().expect("a command").split(' ').map(str::to_owned).collect()
        };
        let (page, terminal) = (words(replay), words(&row["replay"]));
        assert_eq!((&page[..2], &page[3..]), (&terminal[..2], &terminal[3..]));
        comes_again(&lab, replay, &own["responder"], &row["max_trigger"]);
    }
    is_understood(&lab.onset(&["blame", &run, "--above", "all", "--json"]).exits(0).json());
    for responder in ["hardirq", "task"] {
        let worst: Vec<&Value> =
            list(&inside["worst"]).iter().filter(|worst| worst["responder"] == responder).collect();
        let words = ["explain", &run, "--responder", responder, "--worst", "5", "--json"];
        let printed = lab.onset(&words).exits(0).json();
        let explained = list(&printed["explanations"]);
        assert_eq!((worst.len(), explained.len()), (5, 5));
        for (worst, explained) in worst.into_iter().zip(explained) {
            adds_up(worst);
            for key in ["trigger", "latency_ns", "stages", "kinds", "unexplained_ns"] {
                assert_eq!(worst[key], explained[key], "{key}");
            }
            let again = format!(" --sample {} --responder {responder}", worst["trigger"]);
            assert!(worst["replay"].as_str().is_some_and(|r| r.ends_with(&again)), "{worst:#}");
        }
    }
    assert_eq!(inside["exceeded"], serde_json::json!([]));
    assert!(number(&inside["bound"], "bound_ns") >= number(&inside["scheduling_ns"], "task"));
    assert!(!list(&report["hunts"][0]["responders"]).is_empty(), "{:#}", report["hunts"]);
    for hunted in list(&report["hunts"][0]["responders"]) {
        let find = &hunted["find"];
        adds_up(&find["explanation"]);
        assert_eq!(find["latency_ns"], find["explanation"]["latency_ns"]);
    }
}
