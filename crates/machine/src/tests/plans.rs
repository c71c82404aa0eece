// SPDX-License-Identifier: GPL-2.0-or-later
//! Plans: what is proposed, their files, and what is refused before anything is changed.

use super::*;

fn names(plan: &Plan) -> Vec<(&str, &str)> {
    plan.changes().iter().map(|c| (c.knob.name.as_str(), c.value.as_str())).collect()
}

fn with(words: &[&str]) -> Result<Plan, String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    let cpus = Cpus { measured: vec![3], housekeeping: vec![0, 1, 2] };
    Plan::default().with(&words, &cpus).map_err(|e| e.to_string())
}

#[test]
fn a_plan_has_what_differs_isolation_last_and_boot_parameters_after_all() {
    let prepared = Prepared::new();
    let plan = Plan::proposed(&prepared.looks());
    let names = names(&plan);
    let at = |name: &str| names.iter().position(|(known, _)| *known == name);
    assert!(at("irq.smp_affinity") > at("vm.stat_interval"), "{names:?}");
    assert!(at("preempt") > at("irq.smp_affinity"), "{names:?}");
    assert!(names.contains(&("workqueue.cpumask", "00000007")), "{names:?}");
    assert!(names.contains(&("isolcpus", "managed_irq,domain,3")), "{names:?}");
    // These have their values already, and the last is only told.
    for absent in ["sched.preempt", "vm.zone_reclaim_mode", "ksm.run", "irqbalance"] {
        assert_eq!(at(absent), None, "{absent}");
    }
    assert!(plan.clone().at_once().changes().iter().all(|change| !change.knob.reboot));
    plan.consistent().unwrap();
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let prepared = Prepared::new();
    let plan = Plan::proposed(&prepared.looks());
    let text = plan.text();
    let mut again = names(&Plan::parse(&text).unwrap())
        .into_iter()
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect::<Vec<_>>();
    let mut first =
        names(&plan).into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>();
    again.sort();
    first.sort();
    assert_eq!(again, first);
}

#[test]
fn the_same_plan_on_another_machine_says_what_it_cannot_do() {
    let prepared = Prepared::new();
    let plan =
        Plan::parse("version = 1\n[knobs]\n\"ksm.run\" = \"1\"\n\"vm.swappiness\" = \"10\"\n")
            .unwrap();
    fs::remove_file(prepared.path("/sys/kernel/mm/ksm/run")).unwrap();
    let applied = prepared.begin().apply(&plan, &prepared.cpus()).unwrap();
    assert!(
        matches!(&applied[0].fate, Fate::Refused(why) if why.contains("not here: there is no"))
    );
    assert_eq!(applied[1].fate, Fate::Changed { places: 1, refused: Vec::new() });
}

#[test]
fn what_is_no_plan_is_refused_with_a_remedy() {
    for (text, says) in [
        ("", "it is no plan"),
        ("version = 1\n", "onset tune --output FILE"),
        ("version = 2\nmore = 1\n", "version 2, and this onset knows 1"),
        ("version = 1\n[knobs]\n\"vm.swapines\" = \"1\"\n", "\"vm.swappiness\""),
        ("version = 1\ncpus = 1\n[knobs]\n", "unknown field"),
        ("version = 1\n[knobs]\nirqbalance = \"1\"\n", "systemctl stop irqbalance"),
    ] {
        let why = Plan::parse(text).unwrap_err().to_string();
        assert!(why.contains(says), "{text:?}: {why}");
    }
}

#[test]
fn what_is_said_on_the_command_line_is_checked_before_anything_is_changed() {
    for (word, says) in [
        ("vm.swapines=1", "\"vm.swappiness\""),
        ("vm.swappiness", "proposes no value"),
        ("vm.swappiness=", "cannot be the value"),
        ("vm.swappiness=1\n2", "cannot be the value"),
        ("mitigations=", "cannot be the value"),
        ("mitigations=off 'quiet", "cannot be the value"),
        ("priority.irq=high", "fifo:PRIORITY"),
        ("resctrl=1", "only tells how"),
        ("vm.dirty_bytes=8192", "only tells how"),
        ("vm.dirty_background_bytes=8192", "vm.dirty_background_ratio"),
    ] {
        let why = with(&[word]).unwrap_err();
        assert!(why.contains(says), "{word:?}: {why}");
    }
    assert_eq!(
        names(&with(&["timer_migration=0", "threadirqs"]).unwrap()),
        [("kernel.timer_migration", "0"), ("threadirqs", "")]
    );
    assert_eq!(
        names(&with(&["vm.swappiness=1", "vm.swappiness=2"]).unwrap()),
        [("vm.swappiness", "2")]
    );
}
