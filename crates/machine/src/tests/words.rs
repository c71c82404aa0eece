// SPDX-License-Identifier: GPL-2.0-or-later
//! Knobs of a guest's command line, on a prepared machine.

use super::*;
use crate::KnobWord;

/// What is read back after the knobs of a line have been given, with their words' keys.
fn given(machine: &Prepared, line: &str) -> Vec<(String, String)> {
    let (system, cpus) = (machine.system(), machine.cpus());
    let mut all = KnobWord::all(line);
    all.iter_mut().for_each(|one| one.give(&system, &cpus));
    all.iter().map(|one| one.read_back(&system, &cpus)).collect()
}

#[test]
fn a_knob_of_a_command_line_is_given_and_read_back_by_its_notation() {
    let machine = Prepared::new();
    let line = "quiet knob.transparent_hugepage.enabled=never knob.scaling_governor=performance -- knob.ksm.run=1";
    let told = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        given(&machine, line),
        [
            told("knob.transparent_hugepage.enabled", "never"),
            told("knob.scaling_governor", "performance")
        ]
    );
    assert_eq!(machine.text("/sys/kernel/mm/transparent_hugepage/enabled"), "never");
    for cpu in 0..4 {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        assert_eq!(machine.text(&path).trim(), "performance");
    }
    // What stands behind the kernel's own words is for process 1 alone.
    assert_eq!(machine.text("/sys/kernel/mm/ksm/run").trim(), "0");
}

#[test]
fn a_knob_that_cannot_be_given_says_why() {
    let machine = Prepared::new();
    machine.link("/sys/kernel/rcu_normal", "/proc/version");
    for (word, why) in [
        ("knob.nosuch=1", "there is no knob \"nosuch\""),
        ("knob.ksm.run", "it needs a value"),
        ("knob.threadirqs=1", "write it without knob."),
        ("knob.sched.features=NO_HRTICK", "onset does not change it"),
        ("knob.rcu_normal=1", "/sys/kernel/rcu_normal: "),
    ] {
        let [(_, text)] = &given(&machine, word)[..] else { panic!("{word}") };
        assert!(text.contains(why), "{word}: {text}");
    }
    fs::remove_file(machine.path("/sys/kernel/mm/ksm/run")).unwrap();
    let [(_, text)] = &given(&machine, "knob.ksm.run=1")[..] else { panic!() };
    assert!(text.starts_with("not here: "), "{text}");
}
