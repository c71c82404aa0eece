// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset run`: measures every flavour of an experiment under every load, with every instrument.

use super::{SystemClock, print, print_json, report, store};
use crate::arguments::{Outcome, Run};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use bundle::Bundle;
use experiment::{Experiment, Target};
use lab::matrix;
use lab::target::{self, Local, Rig};
use std::path::PathBuf;
use view::results::{CellError, Runs};
use view::terminal;
use view::visible::tell;

pub fn run(arguments: &Run) -> Result<Exit, Failure> {
    let replacements = arguments.replacements();
    // All experiments are read before the first is measured: a mistake in the last must not cost an hour.
    let mut experiments = Vec::new();
    for path in &arguments.experiments {
        let experiment = Experiment::load(path)?.with_overrides(&replacements)?;
        if !experiment.left_out.is_empty() {
            let (path, keys) = (path.display(), experiment.left_out.join(", "));
            tell!(
                "{path}: onset ignores these keys on this machine, since only the rig has them: {keys}"
            );
        }
        experiments.extend(experiment.repetitions()?);
    }
    run_all(&experiments, arguments.jobs, &arguments.outcome)
}

/// Runs experiments one after the other, and prints the results of all.
pub fn run_all(
    experiments: &[Experiment],
    jobs: Option<u16>,
    outcome: &Outcome,
) -> Result<Exit, Failure> {
    experiments.iter().try_for_each(Experiment::check_program).map_err(Failure::usage)?;
    let targets = experiments.iter().map(target).collect::<Result<Vec<_>, Failure>>()?;
    // The check comes first, not after an hour of measuring.
    outcome.report.as_deref().map_or(Ok(()), report::check_chosen)?;
    let store = store(&outcome.store.store);
    let mut results = Vec::new();
    for (experiment, target) in experiments.iter().zip(&targets) {
        // Two probes at once on one machine would disturb each other.
        let jobs = match experiment.target {
            Target::Local => 1,
            Target::Rig => jobs.map_or_else(processors, usize::from),
        };
        let mut shown = terminal::Shown::new(experiment);
        let run =
            matrix::run(experiment, &**target, store.root(), &SystemClock, jobs, |e| shown.show(e));
        results.push((experiment, run));
    }
    conclude(&results, outcome)
}

fn target(experiment: &Experiment) -> Result<Box<dyn target::Target>, Failure> {
    Ok(match experiment.target {
        Target::Local => Box::new(Local::new(Installation::find()?.parts().agent)),
        Target::Rig => Box::new(Rig::new(super::bench()?, experiment)?),
    })
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

type Results<'a> = [(&'a Experiment, Vec<Result<PathBuf, lab::Error>>)];

/// Prints the finished runs, then fails if any run failed.
fn conclude(results: &Results, outcome: &Outcome) -> Result<Exit, Failure> {
    let all = || results.iter().flat_map(|(_, results)| results);
    let paths = all().flatten();
    let bundles = paths.map(|p| Bundle::open(p)).collect::<Result<Vec<_>, _>>()?;
    if outcome.json {
        print_json(&Runs::of(&bundles, errors(results)))?;
    } else {
        let papers = terminal::papers(&bundles)?;
        print(&(terminal::ladders(&bundles)? + &papers + &terminal::next_steps(&bundles)))?;
    }
    if let (Some(output), false) = (&outcome.report, bundles.is_empty()) {
        // This goes to stderr, since stdout may be JSON.
        tell!("the report is in {}", report::write(&bundles, output)?.display());
    }
    if work::is_cancelled() {
        return Err(rig::Error::Interrupted.into());
    }
    let failures: Vec<&lab::Error> = all().filter_map(|r| r.as_ref().err()).collect();
    if let Some(first) = failures.first() {
        let message = format!("{} of {} runs failed: {first}", failures.len(), all().count());
        return Err(Failure { message, ..Failure::from(*first) });
    }
    Ok(Exit::of(bundles.iter().map(|b| b.manifest().conclusion.verdict)))
}

/// Prints finished runs as JSON.
pub fn print_runs(bundles: &[Bundle]) -> Result<(), Failure> {
    print_json(&Runs::of(bundles, Vec::new()))
}

fn errors(results: &Results) -> Vec<CellError> {
    let cells = results.iter().flat_map(|(experiment, results)| experiment.cells().zip(results));
    let failed = cells.filter_map(|(cell, result)| Some((cell, result.as_ref().err()?)));
    failed
        .map(|(cell, failure)| CellError {
            flavour: cell.flavour.to_string(),
            load: cell.load.to_string(),
            instrument: cell.instrument.name(),
            message: failure.to_string(),
        })
        .collect()
}
