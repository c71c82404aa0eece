// SPDX-License-Identifier: GPL-2.0-or-later
//! A trial that is forked from a guest that walked on gives what a run from the guest's snapshot gives.

use experiment::Experiment;
use lab::followed::{Ready, Subject};
use lab::target::Rig;
use rig::{Calls, Ending, Follow, Following, Generator, Sees, Walker};
use sample::{Aim, Disturbance, Insns, Nanos, Observation, Rule, Schedule, Stretch, When};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;
use testbench::{Lab, experiment, have_kernels, is_alive, kill};
use wire::Event;

/// Stretches shorter than this get no stack, as in a hunt.
const STACKS_FROM: Insns = Insns(5_000);

/// What is told of a trial.
type Told = (Vec<Observation>, Vec<Event>);

#[derive(Clone, Default)]
struct Events(Vec<Event>);

impl Sees for Events {
    fn see(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// Keeps nothing.
#[derive(Clone)]
struct Blind;

impl Sees for Blind {
    fn see(&mut self, _: &Event) {}
}

/// What a run from the snapshot tells.
fn cold(ready: &Ready, generator: &Generator, follow: Option<&Follow>) -> Told {
    let (mut observed, mut seen) = (Vec::new(), Vec::new());
    let mut see = |event: &Event| seen.push(*event);
    let following = follow.map(|follow| Following { follow, see: &mut see });
    let observe = &mut |observation| {
        observed.push(observation);
        ControlFlow::Continue(())
    };
    let outcome = ready.fire(generator.clone(), observe, following, &|_| ()).expect("it runs");
    assert_eq!(outcome.ending, Ending::Whole);
    (observed, seen)
}

/// What a fork tells.
fn forked(walker: &mut Walker<Events>, generator: &Generator, from: Nanos, follows: bool) -> Told {
    let (observed, seen) = fork(walker, generator, from);
    (observed, if follows { seen.0 } else { Vec::new() })
}

/// The observations of a fork, and what looked at it.
fn fork<S: Sees>(
    walker: &mut Walker<S>,
    generator: &Generator,
    from: Nanos,
) -> (Vec<Observation>, S) {
    let trial = walker.begin(generator, from).expect("the walker is well");
    let mut trial = trial.expect("it forks");
    let mut observed = Vec::new();
    let observe = &mut |observation| {
        observed.push(observation);
        ControlFlow::Continue(())
    };
    let outcome = trial.measure(observe).expect("it measures");
    let seen = trial.seen().clone();
    walker.ended(trial);
    let outcome = outcome.unwrap_or_else(|| panic!("it does not end as usual: {observed:?}"));
    assert_eq!(outcome.ending, Ending::Whole);
    (observed, seen)
}

/// A guest of this flavour under `mixed`, where measuring begins.
fn ready<'a>(bench: &'a rig::Bench, flavour: &str) -> Ready<'a> {
    let text = experiment(&[flavour], &["mixed"], 1, "");
    let experiment = Experiment::parse(Path::new("walk.toml"), &text).expect("it is sound");
    let rig = Rig::new(bench.clone(), &experiment).expect("a rig");
    let cell = experiment.cells().next().expect("a cell");
    let subject = Subject::of_cell(&rig, &experiment, cell);
    Ready::new(bench, subject, &|_| ()).expect("it boots")
}

/// Triggers from `from` on, with these disturbances.
fn planned(ready: &Ready, from: Nanos, disturbances: Vec<Disturbance>) -> Generator {
    let times = [Nanos(0), Nanos(300_000), Nanos(1_000_001)].map(|after| from + after);
    let when = When::Planned(Schedule::Explicit(times.into()));
    Generator { when, disturbances, ..ready.generator().clone() }
}

/// Triggers as stretches open.
fn aimed(ready: &Ready, rule: Rule, seed: u64) -> Generator {
    let kinds = Stretch::IrqsOff as u8 | Stretch::PreemptOff as u8;
    let gap = Nanos::from_micros(300);
    let aim = Aim { rule, kinds, gap, count: 9, until: Nanos::from_millis(5), seed };
    Generator { when: When::Aimed(aim), ..ready.generator().clone() }
}

#[test]
fn a_fork_gives_what_a_run_from_the_snapshot_gives() {
    if !have_kernels(&["6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let ms = Nanos::from_millis;
    for (flavour, follows) in [("6.12-rt", false), ("6.12-rt", true), ("6.12 preempt=none", true)] {
        let ready = ready(&bench, flavour);
        let follow = ready.follow(STACKS_FROM, Calls::None).expect("a map").1;
        let follow = follow.numbering_stretches();
        let follow = follows.then_some(&follow);
        let mut walker = ready.walker(follow, Events::default()).expect("it walks");
        let disturbed = vec![Disturbance { at: ms(35), timers: 3 }];
        // The second begins before the place that the first one leaves, and the third where nothing was executed yet.
        let mut trials = vec![
            (ms(40), planned(&ready, ms(40), Vec::new())),
            (ms(35), planned(&ready, ms(36), disturbed)),
            (ms(0), planned(&ready, ms(2), Vec::new())),
        ];
        if follows {
            trials.push((ms(0), aimed(&ready, Rule::Nested, 1)));
            trials.push((ms(0), aimed(&ready, Rule::Coverage, 2)));
        }
        let mut seen = BTreeSet::new();
        for (from, generator) in trials {
            let cold = cold(&ready, &generator, follow);
            assert!(!cold.0.is_empty(), "{flavour} {from}");
            for time in ["first", "second"] {
                let warm = forked(&mut walker, &generator, from, follows);
                let differs = warm.1.iter().zip(&cold.1).position(|(warm, cold)| warm != cold);
                assert_eq!(warm.0, cold.0, "{flavour} {from}, {time}");
                assert_eq!(
                    (differs, warm.1.len()),
                    (None, cold.1.len()),
                    "{flavour} {from}, {time}"
                );
            }
            seen.insert(format!("{:?}", cold.0));
        }
        assert!(seen.len() > 2, "the trials could have come out otherwise");
    }
}

/// What is told of triggers in the guest that was saved at this time after `ready`, which is removed then.
fn told_later(ready: &Ready, by: Nanos, follow: &Follow) -> Told {
    let key = rig::key_after(&ready.made_with().snapshot, by);
    let directory = ready.bench().cache().directory().join("snapshots").join(key);
    assert!(directory.join("state").is_file(), "it was saved");
    let later = ready.later(by).expect("it is whole");
    let told = cold(&later, &planned(&later, Nanos::from_millis(20), Vec::new()), Some(follow));
    std::fs::remove_dir_all(&directory).expect("it is there");
    told
}

#[test]
fn a_guest_that_walks_is_a_scout_that_sees_and_saves_what_one_from_the_snapshot_does() {
    if !have_kernels(&["6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let until = rig::FIRST_STAGE;
    for flavour in ["6.12-rt", "6.12 preempt=full"] {
        let ready = ready(&bench, flavour);
        let follow = ready.follow(STACKS_FROM, Calls::None).expect("a map").1;
        let follow = follow.numbering_stretches();
        let mut cold_seen = Vec::new();
        let mut see = |event: &Event| cold_seen.push(*event);
        let when = When::Aimed(Aim::scout(until));
        let generator = Generator { when, ..ready.generator().clone() };
        let following = Following { follow: &follow, see: &mut see };
        let outcome = ready.advance(until, generator, following).expect("it goes on");
        assert_eq!(outcome.ending, Ending::Whole);
        let cold_saved = told_later(&ready, until, &follow);

        let mut walker = ready.walker(Some(&follow), Events::default()).expect("it walks");
        // A place from before the scout stays.
        let early = planned(&ready, Nanos::from_millis(30), Vec::new());
        let from = Nanos::from_millis(30);
        let before = forked(&mut walker, &early, from, true);
        let mut seen = walker.seen().0.clone();
        let mut see = |event: &Event| seen.push(*event);
        let outcome = ready.scout(&mut walker, until, &mut see).expect("it goes on");
        assert_eq!(outcome.expect("it was a scout").ending, Ending::Whole);
        assert!(seen.iter().any(|event| matches!(event, Event::Stretch { .. })), "{flavour}");
        let differs = seen.iter().zip(&cold_seen).position(|(warm, cold)| warm != cold);
        assert_eq!((differs, seen.len()), (None, cold_seen.len()), "{flavour}");
        assert!(told_later(&ready, until, &follow) == cold_saved, "{flavour}");
        let again = ready.scout(&mut walker, until, &mut |_| ()).expect("it is well");
        assert!(again.is_none(), "a guest goes on once");
        // What fires from the places that it left is as if it were restored, and so is what begins where it began.
        assert!(walker.processes().len() > 8, "{:?}", walker.processes());
        assert!(forked(&mut walker, &early, from, true) == before, "{flavour}");
        for from in [Nanos(0), Nanos::from_millis(77), Nanos::from_millis(190)] {
            let generator = planned(&ready, from, Vec::new());
            let cold = cold(&ready, &generator, Some(&follow));
            let mut warm = forked(&mut walker, &generator, from, true);
            // On its way, the scout told of stretches.
            warm.1.retain(|event| !matches!(event, Event::Stretch { .. }));
            assert!(warm == cold, "{flavour} {from}");
        }
    }
}

#[test]
fn places_and_processes_are_bounded_and_nothing_of_them_is_left() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let ready = ready(&bench, "6.12-rt");
    let mut walker = ready.walker(None, Events::default()).expect("it walks");
    let processes = walker.processes();
    assert_eq!(processes.len(), 1);
    let mut first = None;
    for ms in (1..=22).chain([1]) {
        let from = Nanos::from_millis(ms);
        let told = forked(&mut walker, &planned(&ready, from, Vec::new()), from, false);
        assert!(walker.processes().len() <= 20, "{:?}", walker.processes());
        // The place of the first trial had to make room meanwhile.
        if ms == 1 {
            assert_eq!(*first.get_or_insert(told.0.clone()), told.0);
        }
    }
    let processes = walker.processes();
    assert!(processes.len() > 10, "{processes:?}");
    // A place whose process somebody kills is made again.
    let from = Nanos::from_millis(1);
    processes[1..].iter().copied().for_each(kill);
    let mut told = || forked(&mut walker, &planned(&ready, from, Vec::new()), from, false).0;
    assert_eq!(first, Some(told()));
    assert_eq!(first, Some(told()));
    let again = walker.processes();
    assert!(again.iter().any(|process| !processes.contains(process)), "{again:?} {processes:?}");
    // Without the process that has restored the guest there are no more places before the others.
    kill(walker.processes()[0]);
    let early = planned(&ready, Nanos(0), Vec::new());
    let failure = walker.begin(&early, Nanos(0)).err().expect("it has ended").to_string();
    assert!(failure.contains("QEMU"), "{failure}");
    let processes = [processes, again].concat();
    drop(walker);
    let begun = Instant::now();
    while processes.iter().any(|pid| is_alive(*pid)) {
        assert!(begun.elapsed().as_secs() < 60, "{processes:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// `make bench` shows what this prints: how many trials of 1 and of 5 virtual ms a core makes in a second.
#[test]
fn trials_a_second_are_counted_and_all_forks_of_a_place_are_alike() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let ready = ready(&bench, "6.12-rt");
    let follow = ready.follow(STACKS_FROM, Calls::None).expect("a map").1.numbering_stretches();
    let from = Nanos::from_millis(200);
    for follow in [None, Some(&follow)] {
        let mut walker = ready.walker(follow, Blind).expect("it walks");
        for length in [1, 5] {
            let times: Vec<Nanos> = (0..=length).map(|n| from + Nanos::from_millis(n)).collect();
            let when = When::Planned(Schedule::Explicit(times));
            let generator = Generator { when, ..ready.generator().clone() };
            let mut forked = || fork(&mut walker, &generator, from).0;
            let first = forked();
            assert!(!first.is_empty());
            let begun = Instant::now();
            let trials = 20;
            assert!((0..trials).all(|_| forked() == first));
            let rate = f64::from(trials) / begun.elapsed().as_secs_f64();
            let followed = if follow.is_some() { ", followed" } else { "" };
            println!("forks: {rate:.1} trials of {length} virtual ms a second and core{followed}");
        }
    }
}
