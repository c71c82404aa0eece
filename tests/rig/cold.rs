// SPDX-License-Identifier: GPL-2.0-or-later
//! What hunts find in forks comes out again, to the instruction, in a guest that is restored from its snapshot.

use experiment::{ALL_LOADS, Experiment, Load};
use hunt::{Begin, TrialResult};
use lab::followed::{Ready, Subject, narrow};
use lab::hunting::{JOURNAL, Journal};
use lab::target::Rig;
use rig::Generator;
use sample::{Insns, Nanos, Observation, Schedule, When};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use testbench::{Lab, have_kernels};

/// How many finds are compared. `ONSET_FINDS=1000` compares so many, of hunts on these flavours under each load.
const FINDS: usize = 40;
const FLAVOURS: [&str; 7] = [
    "6.12-rt",
    "6.12 preempt=none",
    "7.3 preempt=lazy",
    "6.12 preempt=full",
    "7.3-rt",
    "6.1 preempt=none",
    "6.1-rt",
];
/// As in a hunt.
const GRACE: Nanos = Nanos::from_millis(1_000);
const HIGH: Nanos = Nanos::from_micros(1);

/// The latency of each answer, by the number of its trigger and its responder.
type Answers = BTreeMap<(u64, String), (Nanos, Option<Insns>)>;

/// The answers to the triggers of a trial, from its snapshot.
fn cold(ready: &Ready, trial: &TrialResult) -> Answers {
    let when = When::Planned(Schedule::Explicit(trial.instants.clone()));
    let disturbances = trial.disturbances.clone();
    let generator = Generator { when, grace: GRACE, disturbances, ..ready.generator().clone() };
    let responders = ready.responders();
    let mut answers = Answers::new();
    let mut observe = |observation| {
        if let Observation::Sample(s) = observation {
            let responder = responders[s.series.index()].name().to_owned();
            answers.insert((s.trigger, responder), (s.latency, s.path));
        }
        ControlFlow::Continue(())
    };
    ready.fire(generator, &mut observe, None, &|_| ()).expect("it runs");
    answers
}

/// Compares up to this many finds of a hunt. Adds how many it compared of each strategy.
fn compare(
    lab: &Lab,
    (flavour, load, seed): (&str, Load, u64),
    (most, budget): (usize, &str),
    compared: &mut BTreeMap<String, usize>,
) {
    let text = std::fs::read_to_string(testbench::repository().join("experiments/hunt.toml"))
        .expect("an experiment")
        .replace("loads = [\"mixed\"]", &format!("loads = [{:?}]", load.name()));
    let flavours = text.lines().find(|line| line.starts_with("flavours")).expect("a line");
    let text = text.replace(flavours, &format!("flavours = [{flavour:?}]"));
    let place = format!("hunt-{seed}-{}-{load}", flavour.replace(' ', "-"));
    let seed = seed.to_string();
    let words = ["--flavour", flavour, "--load", load.name(), "--seed", &seed, "--budget", budget];
    let path = lab.experiment(&text);
    let hunted = lab.onset(&[&["hunt", &path, "--directory", &place], &words[..]].concat());
    let hunted = hunted.exits(0);
    assert!(!hunted.stderr.contains("no more forks"), "{}", hunted.stderr);

    let bench = crate::bench(lab);
    let mut experiment = Experiment::parse(Path::new("hunt.toml"), &text).expect("an experiment");
    narrow(&mut experiment, Some(flavour), &[load]).expect("it has them");
    let rig = Rig::new(bench.clone(), &experiment).expect("a rig");
    let cell = experiment.cells().next().expect("a cell");
    let mut subject = Subject::of_cell(&rig, &experiment, cell);
    subject.generator_mut().expect("triggers").high = HIGH;
    let first = Ready::new(&bench, subject, &|_| ()).expect("it is ready");
    let mut grounds: BTreeMap<Begin, Ready> = BTreeMap::new();

    let journal = lab.path().join(&place).join(JOURNAL);
    let (_, trials) = Journal::read(&journal, &|said| panic!("{said}")).expect("a journal");
    let mut left = most;
    for trial in trials.into_values().filter(|trial| !trial.late.is_empty()) {
        let ready = grounds
            .entry(trial.begin)
            .or_insert_with(|| first.later(trial.begin.after).expect("it runs on"));
        let answers = cold(ready, &trial);
        for (responder, late) in &trial.late {
            for late in late {
                let again = answers.get(&(late.trigger, responder.clone()));
                assert_eq!(
                    again,
                    Some(&(late.latency_ns, Some(late.latency_insns))),
                    "{flavour}, {load}, seed {seed}, trial {} by {}, {responder}",
                    trial.number,
                    trial.strategy
                );
                *compared.entry(trial.strategy.to_string()).or_default() += 1;
                left = left.saturating_sub(1);
            }
        }
        if left == 0 {
            return;
        }
    }
}

#[test]
fn what_forks_find_comes_out_again_after_a_restore() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let wanted = std::env::var("ONSET_FINDS").ok().and_then(|n| n.parse().ok()).unwrap_or(FINDS);
    let mut compared = BTreeMap::new();
    // The mildest comes last. Each time round, a load meets another flavour.
    let loads: Vec<Load> = ALL_LOADS.into_iter().rev().collect();
    let many = loads.len();
    let cells = (0..).map(|n| (FLAVOURS[(n + n / many) % FLAVOURS.len()], loads[n % many], 1));
    // Some of each, so that many finds are of many guests.
    let of_each = if wanted == FINDS { (FINDS, "16trials") } else { (wanted / many, "32trials") };
    for cell in cells {
        let sum: usize = compared.values().sum();
        if sum >= wanted || (wanted == FINDS && sum > 0) {
            break;
        }
        compare(&lab, cell, of_each, &mut compared);
        println!("{cell:?}: {compared:?}");
    }
    let sum: usize = compared.values().sum();
    assert!(compared.len() > 1 && sum * 2 > wanted, "{compared:?}");
}
