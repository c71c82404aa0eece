// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset generator`: a guest of the rig that behaves like a generator of triggers on the network, with a machine that
//! answers them.

use super::guest::Asked;
use super::{bench, tell_missing, tell_warning};
use crate::arguments::Generator as Arguments;
use crate::failure::{Exit, Failure};
use experiment::Experiment;
use lab::generator::{self, Generator, Happened, Line, Note};
use lab::target::{Lead, Rig, Session, Step, Target};
use sample::ResponderSet;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use view::terminal::{self, Shown};
use view::visible::tell;
use work::Cancel;

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let root = root(arguments);
    // The hosts say when it is triggered, but [trigger] has to have something.
    let text = format!("{root}\n[trigger]\nperiod = \"1ms\"\ncount = 1\n");
    let experiment = Experiment::parse(Path::new("onset generator"), &text)?;
    let line = Line::listen(arguments.listen)?;
    let rig = Rig::new(bench()?, &experiment)?;
    if arguments.responders.is_empty() {
        tell_missing(&rig, &experiment);
    }
    let cell = experiment.cells().next().expect("one flavour, one load");
    let responders: ResponderSet =
        rig.series(cell).0.iter().filter_map(|name| name.as_str().parse().ok()).collect();
    let name = format!("{} {}", arguments.flavour, arguments.load);
    // The session keeps it as long as it goes on.
    let shown = RefCell::new(Shown::of(vec![name.clone()]));
    let progress = |progress| shown.borrow_mut().progress(0, progress);
    let begun = rig.begin(&experiment, cell, Lead::Commands, &progress);
    let begun = begun.map_err(Failure::from).and_then(until_it_runs);
    shown.borrow_mut().end(0, if begun.is_ok() { "ready" } else { "failed" });
    serve(Generator::new(begun?, responders, &name), line, arguments, &root)
}

/// The keys of the experiment, without its triggers.
fn root(arguments: &Arguments) -> String {
    let Arguments { flavour, load, responders, .. } = arguments;
    let loads = std::slice::from_ref(load);
    Asked { title: "generator", flavour, loads, responders }.root().to_string()
}

fn until_it_runs(mut session: Box<dyn Session + '_>) -> Result<Box<dyn Session + '_>, Failure> {
    loop {
        match session.step(&mut |_| ControlFlow::Continue(()))? {
            Step::Begins if work::is_cancelled() => return Err(lab::Error::Interrupted.into()),
            Step::Begins => {}
            Step::GoesOn { .. } => return Ok(session),
            Step::Ended => return Err(Failure::unavailable("the guest ended before it answered")),
        }
    }
}

/// How long a host may take to read the end of its run.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves hosts until the user asks to stop, or the guest ends. However it ends, the host is told, and the log written.
fn serve(
    mut generator: Generator<'_>,
    mut line: Line,
    arguments: &Arguments,
    root: &str,
) -> Result<Exit, Failure> {
    tell!("listening on {}", line.address()?);
    let mut served = Ok(());
    while served.is_ok() && !work::is_cancelled() && !generator.has_ended() {
        line.turn(&mut generator, &mut |happened| tell_of(happened));
        served = generator.turn(line.now()).map_err(Failure::from);
        if tell_notes(&mut generator) {
            line.turn(&mut generator, &mut |happened| tell_of(happened));
            served = served.and(write_log(&generator, arguments, root));
        }
    }
    let has_ended = generator.has_ended();
    generator.switch_off();
    tell_notes(&mut generator);
    let begun = Instant::now();
    while generator.has_to_say() && line.has_host() && begun.elapsed() < LAST_WORDS {
        line.turn(&mut generator, &mut |happened| tell_of(happened));
        std::thread::sleep(work::POLL);
    }
    write_log(&generator, arguments, root)?;
    served?;
    // The user asked to stop serving; how the guest ends is still worth knowing.
    let measured = Cancel::default().during(|| generator.finish())?;
    for warning in measured.warnings.iter().filter(|w| has_ended || !w.cuts_short()) {
        tell_warning(warning);
    }
    match has_ended {
        true => Err(Failure::unavailable("the guest has ended, and nobody answers any more")),
        false => Ok(Exit::Interrupted),
    }
}

/// Tells what has happened; whether a run has ended.
fn tell_notes(generator: &mut Generator<'_>) -> bool {
    let notes = generator.notes();
    for note in &notes {
        match note {
            Note::Started(started) => tell!("{}", terminal::started(started)),
            Note::Stopped(stopped) => tell!("{}", terminal::stopped(stopped)),
        }
    }
    notes.iter().any(|note| matches!(note, Note::Stopped(_)))
}

fn tell_of(happened: Happened) {
    match happened {
        Happened::Came(address) => tell!("a host at {address} came"),
        Happened::Went => tell!("the host went"),
        Happened::Replaced(address) => {
            tell!("a host at {address} took the place of the one before");
        }
    }
}

/// Writes every trigger so far to the file that the user named.
fn write_log(generator: &Generator<'_>, arguments: &Arguments, root: &str) -> Result<(), Failure> {
    match (&arguments.log, generator::experiment(root, generator.log())) {
        (Some(path), Some(text)) => super::write_file(path, &text),
        _ => Ok(()),
    }
}
