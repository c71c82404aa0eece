// SPDX-License-Identifier: GPL-2.0-or-later
//! One module per command; each reads its arguments, does it, and prints.

mod blame;
mod bound;
mod compare;
mod doctor;
mod documentation;
mod explain;
mod hunt;
mod kernels;
mod list;
mod measure;
mod minimise;
mod replay;
mod report;
mod run;
mod show;
mod windows;

pub use bound::{Answered, Bounded};
pub use minimise::{Minimised, Size};
pub use windows::SeenWindows;

use crate::arguments::Command;
use crate::bundle::{Bundle, UtcTime, Warning};
use crate::experiment::Experiment;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::matrix::WallClock;
use crate::store::Store;
use crate::target::{Rig, Target};
use crate::visible::{tell, visible, visible_json};
use rig::{Bench, Cache};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Carries out a command.
///
/// # Errors
/// What failed, why, what to do, and the exit status.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Doctor { json } => doctor::run(json),
        Command::Kernels(command) => kernels::run(command),
        Command::Run(arguments) => run::run(&arguments),
        Command::Measure { probe } => measure::run(&probe),
        Command::Hunt(arguments) => hunt::run(&arguments),
        Command::List { store, json } => list::run(&store.store, json),
        Command::Show { run, store, json, verify } => show::run(&run, &store.store, json, verify),
        Command::Compare { before, after, fail_if, store, json } => {
            compare::run((&before, &after), &fail_if, &store.store, json)
        }
        Command::Report { runs, inside, output, store } => {
            report::run(&runs, inside, &output, &store.store)
        }
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Blame(arguments) => blame::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Windows(arguments) => windows::run(&arguments),
        Command::Bound(arguments) => bound::run(&arguments),
        Command::Minimise(arguments) => minimise::run(&arguments),
        Command::Documentation { directory } => documentation::run(&directory),
    }
}

/// The machine's clock.
pub(crate) struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> UtcTime {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map_or(0, |d| d.as_secs());
        UtcTime::from_unix_seconds(seconds).expect("the machine's clock is between 1970 and 9999")
    }
}

/// The bundle that the user means: a path, or a name in the store.
pub(crate) fn open(run: &str, store: &Path) -> Result<Bundle, Failure> {
    let path = Path::new(run);
    if path.join(crate::bundle::MANIFEST).is_file() {
        return Ok(Bundle::open(path)?);
    }
    if path.is_dir() && run.contains('/') {
        return Err(Failure::usage(format!(
            "{run} is neither a bundle nor the directory of a hunt; name one, or a run of a store: --store {run}"
        )));
    }
    Ok(Bundle::open(&self::store(store).find(run)?)?)
}

/// The store, in which bundles were made of what killed or failed commands left; the user is told of what none can be made of.
pub(crate) fn store(root: &Path) -> Store {
    let store = Store::at(root);
    for left in store.salvage() {
        tell!("onset: warning: {left}");
    }
    store
}

/// What runs guests.
fn bench() -> Result<Bench, Failure> {
    Ok(Bench::new(Cache::of_user()?, Installation::find()?.parts())?)
}

/// Says which of an experiment's responders its kernels do not have, since nobody waits for those then. `onset run` has it in
/// each run's warnings.
fn tell_missing(rig: &Rig, experiment: &Experiment) {
    let missing: Vec<Warning> = experiment.cells().flat_map(|cell| rig.series(cell).1).collect();
    for (index, warning) in missing.iter().enumerate() {
        // Once for each kernel, not for each load.
        if !missing[..index].contains(warning) {
            tell!("! {}: {}; {}", warning.symptom(), warning.cause(), warning.action());
        }
    }
}

/// Prints to stdout. Who closed the pipe has read enough: no error.
///
/// # Errors
/// A result that nobody gets, because the disk is full for instance.
fn print(text: &str) -> Result<(), Failure> {
    write_out(&visible(text))
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unavailable(format!("the result cannot be written to stdout: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints JSON to stdout.
///
/// # Errors
/// Those of [`print`].
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).expect("plain data");
    write_out(&(visible_json(&text) + "\n"))
}
