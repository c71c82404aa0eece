// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset generator`: a guest of the rig that behaves like a generator of triggers on the network, with a machine that
//! answers them.

use super::guest::Asked;
use super::{bench, tell_missing, tell_warning};
use crate::arguments::Generator as Arguments;
use crate::failure::{Exit, Failure};
use experiment::Experiment;
use lab::generator::{Fired, Generator, Happened, Line, Log, Note};
use lab::target::{Lead, Rig, Session, Step, Target};
use sample::ResponderSet;
use std::cell::RefCell;
use std::fs::File;
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

/// How many triggers wait at most before they are written to the log.
const LOGGED_AT_ONCE: usize = 4096;

/// Serves hosts until the user asks to stop, or the guest ends. However it ends, the host is told, and the log written.
fn serve(
    mut generator: Generator<'_>,
    mut line: Line,
    arguments: &Arguments,
    root: &str,
) -> Result<Exit, Failure> {
    tell!("listening on {}", line.address()?);
    let mut logged =
        Logged { path: arguments.log.as_deref(), root, log: None, waiting: Vec::new() };
    let mut served = Ok(());
    while served.is_ok() && !work::is_cancelled() && !generator.has_ended() {
        line.turn(&mut generator, &mut |happened| tell_of(happened));
        served = generator.turn(line.now()).map_err(Failure::from);
        logged.take(generator.fired());
        let has_stopped = tell_notes(&mut generator);
        if has_stopped {
            line.turn(&mut generator, &mut |happened| tell_of(happened));
        }
        if has_stopped || logged.waiting.len() >= LOGGED_AT_ONCE {
            served = served.and_then(|()| logged.write());
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
    logged.take(generator.fired());
    logged.write()?;
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

/// The log that the user asked for, if he did.
struct Logged<'a> {
    path: Option<&'a Path>,
    /// The keys of an experiment, without its triggers.
    root: &'a str,
    /// From the first trigger on.
    log: Option<Log<File>>,
    waiting: Vec<Fired>,
}

impl Logged<'_> {
    fn take(&mut self, fired: Vec<Fired>) {
        if self.path.is_some() {
            self.waiting.extend(fired);
        }
    }

    /// Writes what waits. An old file of that name is replaced.
    fn write(&mut self) -> Result<(), Failure> {
        let Some(path) = self.path.filter(|_| !self.waiting.is_empty()) else { return Ok(()) };
        let written = match &mut self.log {
            Some(log) => log.add(&self.waiting),
            None => confined::directory_of(path).and_then(|(directory, name)| {
                directory.replace(name, b"")?;
                let log = self.log.insert(Log::new(self.root, directory.edit(name)?)?);
                log.add(&self.waiting)
            }),
        };
        self.waiting.clear();
        written.map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))
    }
}
