// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest can be saved at any time, not only where its warm-up ends, and measured from there.

use experiment::Experiment;
use lab::followed::{Ready, Subject};
use lab::target::Rig;
use rig::{Calls, Following, Generator};
use sample::{Insns, Nanos, Observation, Schedule, When};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use testbench::{Lab, experiment, have_kernels};
use wire::Event;

/// The virtual time in the text of an event.
fn instant(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("Stamp { ns: ")?;
    rest.split_once(',')?.0.parse().ok()
}

/// When triggers came and how late their answers were; when other events came, and their kinds.
type Seen = (Vec<(Nanos, Nanos)>, Vec<(u64, String)>);

/// The latencies of answers to triggers at these times, and the instants and kinds of all events from `from` on, both
/// since then.
fn seen(ready: &Ready, from: Nanos, times: &[Nanos]) -> Seen {
    let times = times.iter().map(|at| *at + from).collect();
    let when = When::Planned(Schedule::Explicit(times));
    let generator = Generator { when, ..ready.generator().clone() };
    let (_, follow) = ready.follow(Insns(2_000), Calls::Scheduling).expect("it is followed");
    let (mut samples, mut events, mut origin) = (Vec::new(), Vec::new(), None);
    let mut see = |event: &Event| {
        // Each guest gives the stacks numbers of its own, and tells of each once. Events without a time name things.
        let text = format!("{event:?}");
        let (Some(ns), false) = (instant(&text), matches!(event, Event::Frame { .. })) else {
            return;
        };
        let since = ns - *origin.get_or_insert(ns);
        if let Some(since) = since.checked_sub(from.0) {
            events.push((since, text.split(' ').next().unwrap_or_default().to_owned()));
        }
    };
    let following = Following { follow: &follow, see: &mut see };
    let mut observe = |observation| {
        if let Observation::Sample(sample) = observation {
            samples.push((sample.at - from, sample.latency));
        }
        ControlFlow::Continue(())
    };
    ready.fire(generator, &mut observe, Some(following), &|_| ()).expect("it runs");
    (samples, events)
}

#[test]
fn a_guest_that_goes_on_and_one_that_is_restored_there_do_the_same() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let text = experiment(&["6.12-rt"], &["mixed"], 1, "");
    let experiment = Experiment::parse(Path::new("later.toml"), &text).expect("it is sound");
    let rig = Rig::new(bench.clone(), &experiment).expect("a rig");
    let cell = experiment.cells().next().expect("a cell");
    let subject = Subject::of_cell(&rig, &experiment, cell);
    let first = Ready::new(&bench, subject, &|_| ()).expect("it boots");
    let by = Nanos::from_millis(40);
    let later = first.later(by).expect("it runs on");
    let times: Vec<Nanos> = (1..15).map(|n| Nanos::from_micros(n * 3_100)).collect();
    let (went_on, restored) = (seen(&first, by, &times), seen(&later, Nanos(0), &times));
    assert!(went_on.0.len() > 50 && went_on.0 == restored.0, "{:?}", went_on.0);
    // The mark of the guest that is restored, and what it says of the task that runs then.
    let after = |events: Vec<(u64, String)>| -> Vec<(u64, String)> {
        events.into_iter().filter(|(since, _)| *since > 0).collect()
    };
    let (went_on, restored) = (after(went_on.1), after(restored.1));
    assert!(went_on.len() > 10_000);
    let differs = went_on.iter().zip(&restored).find(|(a, b)| a != b);
    assert_eq!((differs, went_on.len()), (None, restored.len()));
}

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
