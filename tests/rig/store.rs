// SPDX-License-Identifier: GPL-2.0-or-later
//! Stores that are shared, full, or closed.

use std::process::Command;
use testbench::{Finished, Lab, Started, experiment, have_kernels, skip};

#[test]
fn two_commands_on_one_store_both_succeed_and_are_listed() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], 200, ""));
    let words = ["run", &path, "--json"];
    let both = [0, 1].map(|_| Started::of(&mut lab.command(&words)));
    let runs = both.map(|started| started.wait().exits(3).run());
    assert_ne!(runs[0].text("run"), runs[1].text("run"));
    assert_eq!(runs[0].text("samples_blake3"), runs[1].text("samples_blake3"));
    let listed = lab.onset(&["list", "--json"]).exits(0).json();
    let mut names: Vec<_> = listed["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|r| r["run"].as_str().expect("a name").to_string())
        .collect();
    names.sort();
    assert_eq!(names, lab.bundles());
    assert_eq!(names.len(), 2);
}

/// Runs an experiment on a small file system of its own, mounted with `options` where nobody else sees it. Prints
/// what is left in the store. `None` where mounting is not allowed.
fn on_a_disk(lab: &Lab, options: &str, count: u64) -> Option<Finished> {
    std::fs::create_dir_all(lab.store()).expect("writable");
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        let onset = lab.command(&[]);
        command.args(["--mount", "sh", "-ec", script]).current_dir(lab.path());
        command.envs(onset.get_envs().filter_map(|(k, v)| Some((k, v?))));
        command
    };
    let mount = format!("mount -t tmpfs -o {options} none {}", lab.store().display());
    if Finished::of(&mut unshared(&mount)).status != Some(0) {
        skip("mounting a file system needs root");
        return None;
    }
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], count, ""));
    let onset = testbench::onset();
    let store = lab.store();
    let (onset, store) = (onset.display(), store.display());
    let script =
        format!("{mount}; set +e; {onset} run {path} >&2; code=$?; ls -A {store}; exit $code");
    Some(Finished::of(&mut unshared(&script)))
}

#[test]
fn a_full_disk_is_named_with_a_remedy_and_nothing_is_left_on_it() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    if let Some(finished) = on_a_disk(&lab, "size=128k", 3000) {
        let finished = finished.exits(69).says(&["No space left", "--store"]);
        assert_eq!(finished.stdout.trim(), ".lock");
    }
}

#[test]
fn a_read_only_store_is_named_with_a_remedy_before_anything_is_measured() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    if let Some(finished) = on_a_disk(&lab, "ro", 10) {
        let finished = finished.exits(69).says(&["Read-only", "--store"]);
        assert_eq!(finished.stdout, "");
        assert!(!finished.stderr.contains("measuring"), "{}", finished.stderr);
    }
}
