// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers make sense: their order, their dependence on kernel, load and driver, their place in time.

use testbench::{Lab, Run, experiment, have_kernels};

const NONE: &str = "6.12 preempt=none";
const RT: &str = "6.12-rt";

fn of<'a>(runs: &'a [Run], flavour: &str, load: &str) -> &'a Run {
    let is = |r: &&Run| r.text("flavour") == flavour && r.text("load") == load;
    runs.iter().find(is).unwrap_or_else(|| panic!("no run of {flavour} under {load}"))
}

#[test]
fn an_idle_ladder_has_its_order_and_rt_keeps_the_task_early_under_load() {
    if !have_kernels(&["6.12", RT]) {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&[NONE, RT], &["idle", "mixed"], 1500, "");
    let runs = lab.run(&text, &[]).exits(3).runs();
    for flavour in [NONE, RT] {
        let idle = of(&runs, flavour, "idle");
        let [hardirq, threaded, work] =
            ["hardirq", "threaded_irq", "work"].map(|responder| idle.median(responder));
        assert!(hardirq < threaded && threaded < work, "{flavour}: {hardirq} {threaded} {work}");
        assert_eq!(idle.codes(), [""; 0], "{flavour}");
    }
    let hardirq = |flavour| of(&runs, flavour, "idle").median("hardirq");
    assert!(hardirq(RT) < 3 * hardirq(NONE), "{} and {}", hardirq(RT), hardirq(NONE));
    let task = |flavour| of(&runs, flavour, "mixed").max("task");
    assert!(task(NONE) > 5 * task(RT), "{} and {}", task(NONE), task(RT));
}

#[test]
fn a_threaded_handler_is_late_on_rt_and_no_different_without() {
    if !have_kernels(&["6.12", RT]) {
        return;
    }
    let lab = Lab::new();
    let hard = experiment(&[NONE, RT], &["idle"], 300, "");
    let hard = lab.run(&hard, &[]).exits(3).runs();
    let threaded = experiment(&[NONE, RT], &["idle"], 300, "driver.threaded = true");
    let threaded = lab.run(&threaded, &[]).exits(3).runs();
    let median = |runs, flavour| of(runs, flavour, "idle").median("hardirq");
    assert!(median(&threaded, RT) > 3 * median(&hard, RT));
    assert!(median(&threaded, NONE).abs_diff(median(&hard, NONE)) <= 20);
}

#[test]
fn a_responder_alone_answers_earlier_than_in_company() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let all = lab.run(&experiment(&[NONE], &["idle"], 300, ""), &[]).exits(3).run();
    let alone = experiment(&[NONE], &["idle"], 300, "").replacen(
        "loads",
        "responders = [\"task\"]\nloads",
        1,
    );
    let alone = lab.run(&alone, &[]).exits(3).run();
    assert_eq!(alone.responders(), ["task"]);
    assert_eq!(alone.series("task")["count"], 300);
    assert!(alone.median("task") < all.median("task"));
}

#[test]
fn an_older_kernel_answers_with_all_it_has_and_says_what_it_lacks() {
    if !have_kernels(&["6.1", "6.1-rt"]) {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&["6.1", "6.1-rt"], &["idle"], 100, "limits.task.p50 = \"1ms\"");
    for run in lab.run(&text, &[]).exits(0).runs() {
        let warning = run.warning("responder_missing");
        assert_eq!(warning["responder"], "bh_work");
        assert!(warning["release"].as_str().is_some_and(|r| r.starts_with("6.1.")), "{warning}");
        assert_eq!(run.responders().len(), 7);
        for responder in run.responders() {
            assert_eq!(run.series(responder)["count"], 100, "{responder}");
        }
    }
}

#[test]
fn given_times_are_met_to_the_nanosecond() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let times = [1_000_000u64, 1_700_003, 3_141_592, 3_242_592, 50_000_001];
    let list: Vec<String> = times.iter().map(|t| format!("\"{t}ns\"")).collect();
    let text = format!(
        "title = \"t\"\ntarget = \"rig\"\nflavours = [\"{NONE}\"]\nloads = [\"idle\"]\n\
         trigger = {{ times = [{}], grace = \"50ms\" }}\n",
        list.join(", ")
    );
    let run = lab.run(&text, &[]).exits(3).run();
    for series in run.file("series.json").as_array().expect("responders") {
        let worst = series["worst"].as_array().expect("samples");
        let mut found: Vec<(u64, u64)> = worst
            .iter()
            .filter_map(|w| Some((w["trigger"].as_u64()?, w["at_ns"].as_u64()?)))
            .collect();
        found.sort();
        assert_eq!(found, (0..).zip(times).collect::<Vec<_>>(), "{}", series["responder"]);
    }
}
