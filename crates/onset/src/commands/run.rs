// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset run`: measures every flavour of an experiment under every load, with every instrument.

use super::shards::{Divided, NamedBy, Next, Work, jobs};
use super::{SystemClock, print, print_json, report, store};
use crate::arguments::{Outcome, Run, StoreArgument};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use bundle::Bundle;
use bundle::store::Store;
use experiment::{Experiment, Target};
use lab::Found;
use lab::matrix::{self, Place, Placed};
use lab::shards::{Shard, name_of, place_of};
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
    if arguments.sharing.of().is_some() {
        return shared(&experiments, arguments);
    }
    let found = match arguments.resume {
        true => Found::of(&store(&arguments.outcome.store.store))?,
        false => Found::default(),
    };
    run_all(&experiments, arguments.jobs, &found, &arguments.outcome)
}

/// Runs experiments, but for the runs that were found, and prints the results of all.
pub fn run_all(
    experiments: &[Experiment],
    jobs: Option<u16>,
    found: &Found,
    outcome: &Outcome,
) -> Result<Exit, Failure> {
    // The check comes first, not after an hour of measuring.
    outcome.report.as_deref().map_or(Ok(()), report::check_chosen)?;
    conclude(&measure_all(experiments, jobs, found, &outcome.store)?, outcome)
}

/// Runs experiments, but for the runs that were found. The cells of experiments in the rig run together. Returns the
/// results of all.
pub fn measure_all<'a>(
    experiments: &'a [Experiment],
    jobs: Option<u16>,
    found: &Found,
    store: &StoreArgument,
) -> Result<Results<'a>, Failure> {
    let targets = targets(experiments)?;
    Ok(measure_some((experiments, &targets), jobs, (found, &|_| true), store))
}

/// The same for those cells alone whose numbers are wanted. Cells are numbered over all experiments.
fn measure_some<'a>(
    (experiments, targets): (&'a [Experiment], &[Box<dyn target::Target>]),
    jobs: Option<u16>,
    (found, is_wanted): (&Found, &(dyn Fn(usize) -> bool + Sync)),
    store: &StoreArgument,
) -> Results<'a> {
    let store = super::store(&store.store);
    let mut results = Vec::new();
    let mut before = 0;
    for together in experiments.chunk_by(|one, next| one.target == next.target) {
        // Two probes at once on one machine would disturb each other.
        let jobs = match together[0].target {
            Target::Local => 1,
            Target::Rig => jobs.map_or_else(processors, usize::from),
        };
        let mut shown = terminal::Shown::new(together);
        let place =
            Place { root: store.root(), found, is_wanted: &|index| is_wanted(before + index) };
        let placed = placed(together, &targets[results.len()..]);
        let runs = matrix::run(&placed, place, &SystemClock, jobs, |e| shown.show(e));
        let mut runs = runs.into_iter();
        for experiment in together {
            let cells = before..before + experiment.cells().count();
            before = cells.end;
            let wanted = cells.filter(|cell| is_wanted(*cell)).count();
            results.push((experiment, runs.by_ref().take(wanted).collect()));
        }
    }
    results
}

/// Each experiment with its target.
fn placed<'a>(
    experiments: &'a [Experiment],
    targets: &'a [Box<dyn target::Target>],
) -> Vec<Placed<'a>> {
    experiments.iter().zip(targets).map(|(experiment, target)| (experiment, &**target)).collect()
}

/// Shares the cells of all experiments: each shard has some of them. At the end the store has all their runs.
fn shared(experiments: &[Experiment], arguments: &Run) -> Result<Exit, Failure> {
    if experiments.iter().any(|experiment| experiment.target == Target::Local) {
        return Err(Failure::usage(
            "an experiment on this machine cannot be shared: other machines have other latencies; leave out --on, --shards and --shard",
        ));
    }
    let Outcome { store, report, .. } = &arguments.outcome;
    report.as_deref().map_or(Ok(()), report::check_chosen)?;
    let targets = targets(experiments)?;
    let missing = |all: &[Shard]| -> Result<Vec<Shard>, Failure> {
        let found = Found::of_shards(&Store::at(&store.store))?;
        let place = Place { root: &store.store, found: &found, is_wanted: &|_| true };
        let cells = matrix::missing(&placed(experiments, &targets), place, &SystemClock);
        let lacks = |shard: &&Shard| cells.iter().any(|cell| shard.has(*cell));
        Ok(all.iter().filter(lacks).copied().collect())
    };
    let work = Work {
        sharing: &arguments.sharing,
        // The directory has a name of its own for each work.
        about: Vec::new(),
        directory: place_of(&store.store).join(name(experiments)),
        named_by: NamedBy { options: &["--store"], place: &store.store },
        kernels: experiments.iter().flat_map(|e| &e.flavours).map(|f| f.kernel.as_str()).collect(),
        jobs: arguments.jobs,
        has_all: &|all| missing(all).is_ok_and(|missing| missing.is_empty()),
    };
    let divided = Divided::begin(&work, &super::bench()?)?.expect("the work is divided");
    let make = |shard: Shard| {
        let found = Found::of_shards(&Store::at(&store.store))?;
        let is_wanted = |cell: usize| shard.has(cell);
        let jobs = Some(jobs(arguments.jobs) as u16);
        let results = measure_some((experiments, &targets), jobs, (&found, &is_wanted), store);
        let failed = results.iter().flat_map(|(_, results)| results).find_map(|r| r.as_ref().err());
        match failed {
            Some(e) => Err(Failure::from(e)),
            None if work::is_cancelled() => Err(rig::Error::Interrupted.into()),
            None => Ok(()),
        }
    };
    match divided.run(&missing, &make)? {
        Next::Nothing => Ok(Exit::Success),
        Next::Whole(_) => {
            let found = Found::of_shards(&Store::at(&store.store))?;
            run_all(experiments, arguments.jobs, &found, &arguments.outcome)
        }
    }
}

/// The name of the directory for what concerns the shards of these experiments: several works may share a store.
fn name(experiments: &[Experiment]) -> String {
    let asked = experiments.iter().map(|e| format!("{}\0{:?}\0{}", e.source, e.overrides, e.seed));
    name_of(&asked.collect::<String>())
}

/// Where each of these experiments runs. Their programs are checked first.
fn targets(experiments: &[Experiment]) -> Result<Vec<Box<dyn target::Target>>, Failure> {
    experiments.iter().try_for_each(Experiment::check_program).map_err(Failure::usage)?;
    let target = |experiment: &Experiment| -> Result<Box<dyn target::Target>, Failure> {
        Ok(match experiment.target {
            Target::Local => Box::new(Local::new(Installation::find()?.parts().agent)),
            Target::Rig => Box::new(Rig::new(super::bench()?, experiment)?),
        })
    };
    experiments.iter().map(target).collect()
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The results of each experiment's cells.
pub type Results<'a> = Vec<(&'a Experiment, Vec<Result<PathBuf, lab::Error>>)>;

/// Prints the finished runs, then fails if any run failed.
fn conclude(results: &Results<'_>, outcome: &Outcome) -> Result<Exit, Failure> {
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

fn errors(results: &Results<'_>) -> Vec<CellError> {
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
