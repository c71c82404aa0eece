// SPDX-License-Identifier: GPL-2.0-or-later
//! What hunts find in forks comes out again, to the instruction, in a guest that is restored from its snapshot, and in
//! a fork of a guest that is not followed.

use experiment::{ALL_LOADS, Experiment, Load};
use hunt::{Begin, TrialResult};
use lab::followed::{Ready, Subject, narrow};
use lab::hunting::{Blind, JOURNAL, Journal, Walkers};
use lab::target::Rig;
use rig::Generator;
use sample::{Insns, Nanos, Observation, Schedule, When};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use testbench::{Lab, have_kernels};

/// How many finds are compared. `ONSET_FINDS=1000` compares so many: of hunts of each strategy, on these flavours and
/// under each load.
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
/// The strategies of a hunt: all, or some of them, so that each has many finds.
const SOME: [&[&str]; 3] = [
    &[],
    &["random", "coverage", "window_start", "stage_aware"],
    &["window_chain", "refine", "disturb"],
];
/// How many finds of a trial are compared, so that many trials are.
const OF_A_TRIAL: usize = 4;
/// The trial that a hunt restores itself, to compare it with its fork.
const CHECKED: u64 = 1;
/// As in a hunt.
const GRACE: Nanos = Nanos::from_millis(1_000);
const HIGH: Nanos = Nanos::from_micros(1);

/// The latency of each answer, by the number of its trigger and its responder.
type Answers = BTreeMap<(u64, String), (Nanos, Option<Insns>)>;

/// A guest, and copies of it that walk on without being followed.
struct Stand<'a> {
    ready: Ready<'a>,
    walkers: Walkers<Blind>,
}

impl Stand<'_> {
    /// The answers to the triggers of a trial, from its snapshot or in a fork.
    fn answers(&self, trial: &TrialResult, forked: bool) -> Answers {
        let ready = &self.ready;
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
        if forked {
            let run = self.walkers.fire(ready, &generator, trial.instants[0], &mut observe);
            run.expect("nobody stops it").expect("it is a fork");
        } else {
            ready.fire(generator, &mut observe, None, &|_| ()).expect("it runs");
        }
        answers
    }
}

/// What was compared so far.
#[derive(Debug, Default)]
struct Compared {
    of: BTreeMap<String, usize>,
    flavours: BTreeSet<String>,
    loads: BTreeSet<String>,
    /// How many files of finds were replayed.
    files: usize,
}

impl Compared {
    fn sum(&self) -> usize {
        self.of.values().sum()
    }
}

/// Hunts. Returns how many trials were forks.
fn hunt(lab: &Lab, path: &str, place: &str, words: &[&str]) -> usize {
    let hunted = lab.onset(&[&["hunt", path, "--directory", place], words].concat()).exits(0);
    assert!(!hunted.stderr.contains("restored their guest"), "{}", hunted.stderr);
    hunted.forks()
}

/// The experiment of a hunt in one guest.
fn text(flavour: &str, load: Load) -> String {
    let text = std::fs::read_to_string(testbench::repository().join("experiments/hunt.toml"))
        .expect("an experiment")
        .replace("loads = [\"mixed\"]", &format!("loads = [{:?}]", load.name()));
    let flavours = text.lines().find(|line| line.starts_with("flavours")).expect("a line");
    text.replace(flavours, &format!("flavours = [{flavour:?}]"))
}

/// Compares up to this many finds of a hunt.
fn compare(
    (flavour, load, some): (&str, Load, &[&str]),
    (most, budget): (usize, &str),
    compared: &Mutex<Compared>,
) {
    let lab = Lab::new();
    let text = text(flavour, load);
    let words = ["--flavour", flavour, "--load", load.name(), "--budget", budget];
    let some: Vec<&str> = some.iter().flat_map(|strategy| ["--strategy", strategy]).collect();
    let forks = hunt(&lab, &lab.experiment(&text), "hunt", &[&words[..], &some].concat());

    let bench = crate::bench(&lab);
    let mut experiment = Experiment::parse(Path::new("hunt.toml"), &text).expect("an experiment");
    narrow(&mut experiment, Some(flavour), &[load]).expect("it has them");
    let rig = Rig::new(bench.clone(), &experiment).expect("a rig");
    let cell = experiment.cells().next().expect("a cell");
    let mut subject = Subject::of_cell(&rig, &experiment, cell);
    subject.generator_mut().expect("triggers").high = HIGH;
    let first = Ready::new(&bench, subject, &|_| ()).expect("it is ready");
    let there = |begin: &Begin| {
        let ready = first.later(begin.after).expect("it runs on");
        Stand { ready, walkers: Walkers::default() }
    };
    let mut stands: BTreeMap<Begin, Stand> = BTreeMap::new();

    let directory = lab.path().join("hunt");
    let read = Journal::read(&directory.join(JOURNAL), &|said| panic!("{said}"));
    let (_, trials) = read.expect("a journal");
    let fires = |trial: &&TrialResult| trial.scouted.is_none() && trial.died.is_none();
    assert_eq!(trials.values().filter(fires).count(), forks, "{flavour}, {load}: all are forks");
    let mut own: BTreeMap<String, usize> = BTreeMap::new();
    let found = trials.values().filter(|trial| !trial.late.is_empty() && trial.number != CHECKED);
    for trial in found {
        let stand = stands.entry(trial.begin).or_insert_with(|| there(&trial.begin));
        let cold = stand.answers(trial, false);
        assert!(stand.answers(trial, true) == cold, "{flavour}, {load}, {trial:?}: not followed");
        let late = trial.late.iter().flat_map(|(name, late)| late.iter().map(move |l| (name, l)));
        for (responder, late) in late.take(OF_A_TRIAL) {
            assert_eq!(
                cold.get(&(late.trigger, responder.clone())),
                Some(&(late.latency_ns, Some(late.latency_insns))),
                "{flavour}, {load}, trial {} by {}, {responder}",
                trial.number,
                trial.strategy
            );
            *own.entry(trial.strategy.to_string()).or_default() += 1;
        }
        if own.values().sum::<usize>() >= most {
            break;
        }
    }
    // The files of the finds may have another beginning than their trials.
    let files = Lab::names(&directory);
    let files: Vec<_> = files.iter().filter(|name| name.ends_with(".find.json")).collect();
    for file in &files {
        lab.onset(&["replay", &format!("hunt/{file}")]).exits(0);
    }
    let mut compared = compared.lock().expect("no other cell failed");
    own.iter().for_each(|(strategy, n)| *compared.of.entry(strategy.clone()).or_default() += n);
    compared.flavours.insert(flavour.into());
    compared.loads.insert(load.name().into());
    compared.files += files.len();
    println!("{flavour}, {load}: {own:?}; {} in all, {} files", compared.sum(), compared.files);
}

#[test]
fn what_forks_find_comes_out_again_after_a_restore() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let wanted = std::env::var("ONSET_FINDS").ok().and_then(|n| n.parse().ok()).unwrap_or(FINDS);
    let compared = Mutex::new(Compared::default());
    // The mildest comes last. Each time round, a load meets another flavour, and each flavour other strategies.
    let loads: Vec<Load> = ALL_LOADS.into_iter().rev().collect();
    let many = loads.len();
    if wanted == FINDS {
        compare((FLAVOURS[0], loads[0], SOME[1]), (FINDS, "16trials"), &compared);
    } else {
        let cell = |n: usize| {
            let flavour = FLAVOURS[(n + n / many) % FLAVOURS.len()];
            (flavour, loads[n % many], SOME[(n + n / many) % SOME.len()])
        };
        let next = Mutex::new(0..);
        let of_each = (wanted / (2 * many) + 1, "32trials");
        let works = || {
            while compared.lock().expect("no other cell failed").sum() < wanted {
                let n = next.lock().expect("no other cell failed").next().expect("a number");
                compare(cell(n), of_each, &compared);
            }
        };
        std::thread::scope(|threads| {
            let other = threads.spawn(works);
            works();
            other.join().expect("it found no difference");
        });
    }
    let compared = compared.into_inner().expect("no cell failed");
    println!("{compared:?}");
    assert!(
        compared.sum() >= wanted && compared.of.len() > 1 && compared.files > 1,
        "{compared:?}"
    );
    if wanted != FINDS {
        // Foresight is among all of them.
        assert_eq!(compared.of.len(), SOME.concat().len() + 1, "{compared:?}");
    }
    if wanted >= 1_000 {
        assert_eq!((compared.flavours.len(), compared.loads.len()), (FLAVOURS.len(), many));
    }
}
