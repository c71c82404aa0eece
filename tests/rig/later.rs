// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest can be saved at any time, not only where its warm-up ends, and measured from there.

use std::fs;
use testbench::{Lab, experiment, have_kernels};

#[test]
fn measuring_can_begin_later_from_a_snapshot_that_comes_out_the_same_when_it_is_made_anew() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let snapshots = lab.cache().join("snapshots");
    // An idle guest waits for its next interrupt when it is stopped, a busy one executes. What is later than 200 ms is
    // reached by way of guests saved there, after 400 ms, 800 ms …
    for (load, later, made_anew) in
        [("idle", "133456789ns", 1), ("idle", "433456789ns", 3), ("mixed", "40ms", 1)]
    {
        let text = experiment(&["6.12 preempt=full"], &[load], 60, "");
        let at_once = lab.run(&text, &[]).exits(3).run().text("samples_blake3").to_string();
        let before = Lab::names(&snapshots);
        let text = format!("{text}\n[guest]\nbegin_after = \"{later}\"\n");
        let mut hashes = Vec::new();
        for _ in 0..3 {
            let finished = lab.run(&text, &[]).exits(3);
            hashes.push(finished.run().text("samples_blake3").to_string());
            let made = Lab::names(&snapshots).into_iter().filter(|key| !before.contains(key));
            let made: Vec<String> = made.collect();
            assert_eq!(made.len(), made_anew, "{load}, {later}");
            made.iter().for_each(|key| fs::remove_dir_all(snapshots.join(key)).expect("ours"));
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{load}: {hashes:?}");
        assert_ne!(hashes[0], at_once, "{load}");
    }
}

#[test]
fn a_scout_of_a_hunt_leaves_the_guest_that_a_later_beginning_would_make() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let snapshots = lab.cache().join("snapshots");
    let text = experiment(&["6.12 preempt=full"], &["mixed"], 60, "");
    let path = lab.experiment(&text);
    let looking = ["hunt", &path, "--strategy", "foresight", "--budget", "1trials", "--json"];
    let found = lab.onset(&looking).exits(0).json();
    assert_eq!(found["virtual_ns"], 200_000_000);
    let text = format!("{text}\n[guest]\nbegin_after = \"200ms\"\n");
    let hash = || lab.run(&text, &[]).exits(3).run().text("samples_blake3").to_string();
    let left = Lab::names(&snapshots);
    let (scouted, still) = (hash(), Lab::names(&snapshots));
    assert_eq!((left.len(), &still), (2, &left), "nothing had to be made");
    left.iter().for_each(|key| fs::remove_dir_all(snapshots.join(key)).expect("ours"));
    assert_eq!(hash(), scouted);
    assert_eq!(Lab::names(&snapshots), left);
}

#[test]
fn an_answer_after_a_later_beginning_is_replayed_to_the_instruction() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = experiment(&["6.12 preempt=none"], &["mixed"], 40, "guest.begin_after = \"40ms\"");
    // Without the triggers that came after it nobody would wait for it any more.
    let text = text.replace("50ms", "1us");
    let run = lab.run(&text, &[]).exits(3).run().text("run").to_string();
    let replayed = lab.onset(&["replay", &run, "--worst", "1", "--times", "2", "--json"]);
    assert_eq!(replayed.exits(0).json()["identical_times"], 2);
}
