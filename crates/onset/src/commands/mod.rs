// SPDX-License-Identifier: GPL-2.0-or-later
//! One module per command. Each takes the arguments of its command, carries it out, and prints.

mod atlas;
mod blame;
mod bound;
mod breed;
mod census;
mod compare;
mod doctor;
mod documentation;
mod explain;
mod export;
mod generator;
mod guest;
mod hunt;
mod import;
mod kernels;
mod list;
mod live;
mod measure;
mod merge;
mod minimise;
mod patch;
mod prove;
mod replay;
mod report;
mod respond;
mod run;
mod serve;
mod shards;
mod show;
mod tune;
mod windows;
mod words;

use crate::arguments::{self, Command};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use bundle::store::Store;
use bundle::{Bundle, Tool, UtcTime, Warning};
use experiment::Experiment;
use lab::followed::Named;
use lab::matrix::Issuer;
use lab::target::{Rig, Target};
use rig::{Bench, Cache};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::Path;
use view::visible::{tell, visible_json};

/// Carries out a command.
///
/// # Errors
/// The failure says what failed, why, what to do, and the exit status.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Doctor { json, shards, sees } => {
            doctor::run(json, shards.as_deref(), sees.as_deref())
        }
        Command::Kernels(command) => kernels::run(command),
        Command::Run(arguments) => run::run(&arguments),
        Command::Measure { probe } => measure::run(&probe),
        Command::Breed(arguments) => breed::run(&arguments),
        Command::Hunt(arguments) => hunt::run(&arguments),
        Command::Live(arguments) => live::run(&arguments),
        Command::Respond(arguments) => respond::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Generator(arguments) => generator::run(&arguments),
        Command::List { store, json } => list::run(&store.store, json),
        Command::Show { run, store, json, verify } => show::run(&run, &store.store, json, verify),
        Command::Compare { before, after, fail_if, store, json } => {
            compare::run((&before, &after), &fail_if, &store.store, json)
        }
        Command::Report { runs, inside, output, store } => {
            report::run(&runs, inside, &output, &store.store)
        }
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Blame(arguments) => blame::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Windows(arguments) => windows::run(&arguments),
        Command::Atlas(arguments) => atlas::run(&arguments),
        Command::Patch(arguments) => patch::run(&arguments),
        Command::Bound(arguments) => bound::run(&arguments),
        Command::Census(arguments) => census::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Minimise(arguments) => minimise::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Documentation { directory } => documentation::run(&directory),
    }
}

/// This onset, and the time of the machine's clock.
pub(crate) struct SystemClock;

impl Issuer for SystemClock {
    fn now(&self) -> UtcTime {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map_or(0, |d| d.as_secs());
        UtcTime::from_unix_seconds(seconds).expect("the machine's clock is between 1970 and 9999")
    }

    fn tool(&self) -> Tool {
        Tool { version: env!("CARGO_PKG_VERSION").into(), revision: env!("ONSET_REVISION").into() }
    }
}

/// This onset: its version, and the revision of its sources.
fn version() -> String {
    let Tool { version, revision } = SystemClock.tool();
    format!("{version} ({revision})")
}

/// The bundle that the user means: a path, or a name in the store.
pub(crate) fn open(run: &str, store: &Path) -> Result<Bundle, Failure> {
    Ok(lab::followed::open(run, || self::store(store))?)
}

/// The run or the find that the user means.
fn named(latencies: &arguments::Latencies) -> Result<Named, Failure> {
    Ok(Named::find(&latencies.run, || store(&latencies.store.store))?)
}

/// Opens the store. First makes bundles from what killed or failed commands left in it, and tells the user of remains
/// that cannot become a bundle.
pub(crate) fn store(root: &Path) -> Store {
    let store = Store::at(root);
    for left in store.salvage() {
        tell!("onset: warning: {left}");
    }
    store
}

/// The bench, which runs guests.
fn bench() -> Result<Bench, Failure> {
    let cache = Cache::of_user()?.announcing(|what| tell!("{what}"));
    Ok(Bench::new(cache, Installation::find()?.parts())?)
}

/// Tells the user which of an experiment's responders its kernels do not have, since nothing waits for those. `onset
/// run` says it in the warnings of each run.
fn tell_missing(rig: &Rig, experiment: &Experiment) {
    let missing: Vec<Warning> = experiment.cells().flat_map(|cell| rig.series(cell).1).collect();
    for (index, warning) in missing.iter().enumerate() {
        // Tell it once for each kernel, not once for each load.
        if !missing[..index].contains(warning) {
            tell_warning(warning);
        }
    }
}

/// Tells a doubt in one line: what is seen, why, and what to do.
fn tell_warning(warning: &Warning) {
    tell!("! {}: {}; {}", warning.symptom(), warning.cause(), warning.action());
}

/// Prints to stdout. If the reader closed the pipe, it has read enough: this is no error.
///
/// # Errors
/// When stdout cannot be written, for example because the disk is full.
fn print(text: &str) -> Result<(), Failure> {
    write_out(&view::screen::shown(text))
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unavailable(format!("cannot write the result to stdout: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes a file that a reader sees whole or not at all.
///
/// # Errors
/// When it cannot be written, with its path.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    confined::directory_of(path)
        .and_then(|(directory, name)| directory.replace(name, text.as_bytes()))
        .map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))
}

/// Prints JSON to stdout.
///
/// # Errors
/// As [`print`].
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).expect("plain data");
    write_out(&(visible_json(&text) + "\n"))
}
