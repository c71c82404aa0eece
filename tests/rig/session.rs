// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest that is triggered by commands while it runs gives the samples of a schedule of the same instants, however
//! the commands come.

use experiment::{Experiment, Instrument};
use lab::target::{Command, Lead, Rig, Session, Step, Target};
use sample::{Nanos, Observation};
use std::ops::ControlFlow;
use std::path::Path;
use testbench::{Lab, have_kernels};

/// A cell of this experiment, with triggers at uneven instants.
const EXPERIMENT: &str = r#"
    title = "test"
    target = "rig"
    flavours = ["6.12 preempt=none"]
    loads = ["mixed"]
    trigger = { period = "1ms", jitter = "400us", count = 400, grace = "50ms" }
"#;

/// The instants of the experiment's triggers, and how long the line stays high.
fn triggers(experiment: &Experiment) -> (Vec<Nanos>, Nanos) {
    let cell = experiment.cells().next().expect("a cell");
    let Instrument::Generator(generator) = cell.instrument else { panic!("it has triggers") };
    let schedule = &generator.trigger.schedule;
    let times = (0..schedule.count()).filter_map(|n| schedule.due(n));
    (times.collect(), generator.trigger.high)
}

/// Runs a session, to which `lead` says something before each step: what it was told of observations, and all of them.
fn led(
    rig: &Rig,
    experiment: &Experiment,
    mut lead: impl FnMut(&mut dyn Session, &[Observation]),
) -> Vec<Observation> {
    let cell = experiment.cells().next().expect("a cell");
    let mut session = rig.begin(experiment, cell, Lead::Commands, &|_| ()).expect("it begins");
    let mut seen = Vec::new();
    loop {
        lead(session.as_mut(), &seen);
        let step = session.step(&mut taking(&mut seen)).expect("it goes on");
        if step == Step::Ended {
            break;
        }
    }
    let measured = session.finish(&mut taking(&mut seen)).expect("it has measured");
    assert_eq!(measured.warnings, [], "{:?}", measured.console);
    seen
}

/// What is observed where all triggers are commanded before the first step.
fn at_once(rig: &Rig, experiment: &Experiment, times: &[Nanos], high: Nanos) -> Vec<Observation> {
    let mut times = Some(times);
    led(rig, experiment, |session, _| {
        let Some(times) = times.take() else { return };
        for at in times {
            session.command(Command::Trigger { at: *at, high }).expect("they rise");
        }
        session.command(Command::End).expect("any session ends");
    })
}

fn taking(seen: &mut Vec<Observation>) -> impl FnMut(Observation) -> ControlFlow<()> {
    |observation| {
        seen.push(observation);
        ControlFlow::Continue(())
    }
}

#[test]
fn commands_give_the_samples_of_a_schedule_of_the_same_instants_however_they_come() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let experiment = Experiment::parse(Path::new("session.toml"), EXPERIMENT).expect("it is sound");
    let rig = Rig::new(crate::bench(&lab), &experiment).expect("a rig");
    let (times, high) = triggers(&experiment);
    let cell = experiment.cells().next().expect("a cell");
    let mut planned = Vec::new();
    let measured = rig.measure(&experiment, cell, &mut taking(&mut planned), &|_| ());
    measured.expect("it measures");
    assert!(planned.len() > times.len(), "{} observations", planned.len());

    // All at once, before the guest has answered anything.
    assert_eq!(at_once(&rig, &experiment, &times, high), planned);

    // One after the other, each after the guest has come to shortly before it, and answered.
    let mut told = 0;
    let one_by_one = led(&rig, &experiment, |session, seen| {
        let answers = seen.iter().filter(|o| matches!(o, Observation::Sample(_))).count();
        if told > 0 && told < times.len() && answers < told / 2 {
            return;
        }
        match times.get(told) {
            Some(at) => {
                let before = Nanos(at.0 - 100);
                session.command(Command::Run { until: before }).expect("it rises");
                session.command(Command::Trigger { at: *at, high }).expect("it rises");
            }
            None => session.command(Command::End).expect("any session ends, also told twice"),
        }
        told += 1;
    });
    assert_eq!(one_by_one, planned);

    // Another instant is another history: the comparison above could have come out otherwise.
    let mut moved = times.clone();
    moved[20] += Nanos(1);
    assert_ne!(at_once(&rig, &experiment, &moved, high), planned);
}

#[test]
fn a_session_refuses_what_it_cannot_do_and_its_guest_is_gone_with_it() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let experiment = Experiment::parse(Path::new("session.toml"), EXPERIMENT).expect("it is sound");
    let rig = Rig::new(crate::bench(&lab), &experiment).expect("a rig");
    let cell = experiment.cells().next().expect("a cell");
    let trigger = |at| Command::Trigger { at: Nanos(at), high: Nanos(1_000) };
    let refused = |session: &mut dyn Session, command| {
        session.command(command).expect_err("it is refused").to_string()
    };

    let mut planned = rig.begin(&experiment, cell, Lead::Plan, &|_| ()).expect("it begins");
    let why = refused(planned.as_mut(), trigger(5));
    assert!(why.contains("planned, and not commanded"), "{why}");
    let mut seen = Vec::new();
    let measured = planned.finish(&mut taking(&mut seen)).expect("an interrupted run is one");
    assert_eq!(measured.warnings.iter().map(|w| w.code()).collect::<Vec<_>>(), ["interrupted"]);

    let mut led = rig.begin(&experiment, cell, Lead::Commands, &|_| ()).expect("it begins");
    led.command(trigger(500)).expect("the first");
    let why = refused(led.as_mut(), trigger(500));
    assert!(why.contains("after 500 ns"), "{why}");
    drop(led);
    assert_eq!(testbench::users_of(lab.path()), [0; 0]);
}
