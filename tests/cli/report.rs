// SPDX-License-Identifier: GPL-2.0-or-later
//! Reports of hunts that no machine made: whole ones, killed ones, damaged ones.

use serde_json::{Value, json};
use std::fs;
use testbench::Lab;

/// The version of journals that onset reads.
const VERSION: u32 = 13;

/// The journal of a hunt: its trials are (number, strategy, latency of the task).
fn journal(trials: &[(u64, &str, u64)]) -> String {
    let guest = |load| json!({"load": load, "seed": 1, "snapshot": "key"});
    let about = json!({
        "journal": VERSION, "experiment": "title = \"hunt\"\n", "flavour": "6.12 preempt=none",
        "guests": [guest("mixed"), guest("fork")], "responders": ["hardirq", "task"],
        "strategies": ["random", "coverage"], "seed": 1,
    });
    let trial = |&(number, strategy, latency): &(u64, &str, u64)| {
        let late = json!({
            "latency_ns": latency, "latency_insns": latency, "triggers": 1, "trigger": 0,
            "stack": ["__cond_resched+0x0", "do_writepages+0x8a"],
        });
        json!({
            "number": number, "strategy": strategy, "guest": number % 2, "begin_after_ns": 0, "snapshot": "key", "way_ns": 0, "undisturbed_ns": 0, "worked_insns": 10, "triggers": 10,
            "virtual_ns": 1_000, "instants": [5], "late": {"task": [late]}, "seen": [1, 2, 3], "fired": [number],
        })
    };
    let lines = std::iter::once(about).chain(trials.iter().map(trial));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The numbers in the page that `onset report` wrote.
fn numbers_of(lab: &Lab, page: &str) -> Value {
    let page = fs::read_to_string(lab.path().join(page)).expect("a page");
    let (_, rest) = page.split_once("id=\"onset-report\">").expect("its numbers");
    let (text, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn imported_loops_have_no_times_in_a_report() {
    let lab = Lab::bare();
    let text = "# Histogram\n000058 000006\n000059 000018\n# Total: 000000024\n# Max Latencies: 00059\n\
        # Histogram Overflows: 00000\n";
    let file = lab.write("histogram.txt", text);
    let file = file.to_string_lossy();
    lab.onset(&["import", &file, "--report", "imported.html"]).exits(3);
    let report = numbers_of(&lab, "imported.html");
    let series = &report["runs"][0]["series"][0];
    assert_eq!((&series["count"], &series["max_ns"]), (&json!(24), &json!(59_000)));
    assert_eq!((&series["timeline"], &series["worst"]), (&json!([]), &json!([])));
}

#[test]
fn a_report_of_a_hunt_needs_no_run_and_tells_how_the_worst_grew() {
    let lab = Lab::bare();
    let hunt = lab.path().join("a hunt");
    fs::create_dir(&hunt).expect("a directory");
    // The second line of trials came first, and the last is one that counts only when trial 3 has ended.
    let trials = [(1, "random", 200), (0, "coverage", 300), (2, "random", 500), (4, "random", 900)];
    fs::write(hunt.join("trials.jsonl"), journal(&trials)).expect("writable");
    lab.onset(&["report", "a hunt", "-o", "killed.html"]).exits(0);
    let report = numbers_of(&lab, "killed.html");
    assert_eq!((&report["clock"], &report["runs"]), (&json!("virtual"), &json!([])));
    let told = &report["hunts"][0];
    assert_eq!(told["load"], "mixed, fork");
    assert_eq!((&told["trials"], &told["ended"]), (&json!(3), &Value::Null));
    assert_eq!((&told["stacks_seen"], &told["stacks_fired_into"]), (&json!(4), &json!(3)));
    let [hardirq, task] = [0, 1].map(|i| &told["responders"][i]);
    assert_eq!((&hardirq["find"], &hardirq["growth"]), (&Value::Null, &json!([])));
    let point =
        |at: u64, ns: u64, trial: u64| json!({"virtual_ns": at, "latency_ns": ns, "trial": trial});
    assert_eq!(task["growth"], json!([point(1_000, 300, 0), point(3_000, 500, 2)]));
    assert_eq!(task["random"], json!([point(1_000, 200, 1), point(2_000, 500, 2)]));
    let index = |of: &Value| of.as_u64().expect("an index") as usize;
    let stack = &report["code"]["stacks"][index(&task["find"]["stack"])];
    assert_eq!(report["code"]["frames"][index(&stack[0])], "__cond_resched+0x0");
    assert_eq!(task["find"]["replay"], Value::Null, "nobody wrote it");

    let concluded = |latency: u64, trial: u64, file: &str| {
        let cause = |share: f64| json!({"cause": "irqs_off", "who": "", "stack": ["a+0x1"], "ns": latency, "share": share});
        json!({
            "responder": "task", "latency_ns": latency, "find": format!("elsewhere/{file}"), "at_strategy": "random",
            "trial": trial, "guest": trial % 2, "disturbances": [], "causes": [cause(1.0), cause(0.001)],
        })
    };
    let worst = [concluded(500, 2, "task.find.json"), concluded(200, 1, "task.2.find.json")];
    let conclusion = json!({"ended": "stale", "worst": worst});
    fs::write(hunt.join("hunt.json"), conclusion.to_string()).expect("writable");
    fs::write(hunt.join("task.find.json"), "{}").expect("writable");
    // Named by its whole path, as a script does.
    let whole = hunt.to_str().expect("the lab's path is text");
    lab.onset(&["report", whole, "-o", "ended.html"]).exits(0);
    let report = numbers_of(&lab, "ended.html");
    assert!(!report.to_string().contains(&*lab.path().to_string_lossy()), "{report:#}");
    let lead = report["lead"][0].as_str().expect("a sentence");
    let part = "made task answer as late as 500 ns of virtual time, the worst of 30 triggers.";
    assert!(lead.contains(part), "{lead}");
    let told = &report["hunts"][0];
    assert_eq!(told["ended"], "stale");
    let task = &told["responders"][1];
    assert_eq!(task["find"]["replay"], "onset replay 'a hunt/task.find.json'");
    assert_eq!(task["find"]["under"], "mixed");
    let [main] = &task["find"]["causes"].as_array().expect("causes")[..] else {
        panic!("{task:#}")
    };
    assert_eq!(main["share"], 1.0, "what is less than a hundredth is left out");
    let [other] = &task["others"].as_array().expect("finds")[..] else { panic!("{task:#}") };
    assert_eq!((&other["latency_ns"], &other["under"]), (&json!(200), &json!("fork")));
    assert_eq!(other["file"], "task.2.find.json");
    let cause = &numbers_of(&lab, "ended.html")["code"]["causes"][index(&other["main"]["cause"])];
    assert_eq!(cause["cause"], "irqs_off");

    // It went on to a later answer, and was killed before that had a file.
    let later = [&trials[..], &[(3, "coverage", 700)]].concat();
    fs::write(hunt.join("trials.jsonl"), journal(&later)).expect("writable");
    lab.onset(&["report", "a hunt", "-o", "later.html"]).exits(0);
    let task = &numbers_of(&lab, "later.html")["hunts"][0]["responders"][1];
    assert_eq!((&task["find"]["latency_ns"], &task["find"]["trial"]), (&json!(900), &json!(4)));
    assert_eq!((&task["find"]["replay"], &task["find"]["causes"]), (&Value::Null, &json!([])));
    let others: Vec<_> = task["others"].as_array().expect("finds").iter().collect();
    assert_eq!((others.len(), &others[0]["file"]), (2, &json!("task.find.json")));
}

#[test]
fn a_hunt_that_cannot_be_read_is_refused_with_what_is_wrong() {
    let lab = Lab::bare();
    let hunt = lab.path().join("hunt");
    fs::create_dir(&hunt).expect("a directory");
    let whole = journal(&[(0, "random", 200)]);
    // One load for all was what the version before had.
    let before =
        "{\"journal\":3,\"experiment\":\"\",\"flavour\":\"6.12\",\"load\":\"mixed\"}\n{}\n";
    let refused = format!("has version 3, and this onset reads {VERSION}");
    for (text, exit, said) in [
        ("", 69, "no journal of a hunt"),
        ("{}\n", 69, "no journal of a hunt"),
        // Also where it and its trials are written otherwise.
        (before, 69, &refused),
        (&journal(&[]), 2, "no trial that ended"),
        (
            &whole.replace("\"strategy\":\"random\"", "\"strategy\":\"luck\""),
            69,
            "a trial cannot be read",
        ),
    ] {
        fs::write(hunt.join("trials.jsonl"), text).expect("writable");
        lab.onset(&["report", "hunt", "-o", "r.html"]).exits(exit).says(&[said]);
    }
    fs::write(hunt.join("trials.jsonl"), whole).expect("writable");
    fs::write(hunt.join("hunt.json"), "{").expect("writable");
    lab.onset(&["report", "hunt", "-o", "r.html"]).exits(69).says(&["hunt.json", "remove it"]);
    assert!(!lab.path().join("r.html").exists());
}
