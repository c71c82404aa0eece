// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset run`: every flavour under every load, with every instrument.

use super::{SystemClock, print, print_json, report, store};
use crate::arguments::{Outcome, Run};
use crate::bundle::{Bundle, Evidence, Manifest, Warning};
use crate::company::{Unequal, unequal_by_experiment};
use crate::experiment::{Experiment, Target};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::target::{self, Local, Rig};
use crate::truth::Truth;
use crate::visible::tell;
use crate::{matrix, terminal};
use probes::context::keys;
use rig::{Bench, Cache};
use sample::Clock;
use serde::Serialize;
use stats::{Finding, Summary, Verdict};
use std::path::{Path, PathBuf};

/// Version of the JSON that is printed (docs/run.schema.json).
const SCHEMA: u32 = 1;

pub fn run(arguments: &Run) -> Result<Exit, Failure> {
    let replacements = arguments.replacements();
    // All are read before the first is measured: a mistake in the last must not cost an hour.
    let mut experiments = Vec::new();
    for path in &arguments.experiments {
        let experiment = Experiment::load(path)?.with_overrides(&replacements)?;
        if !experiment.left_out.is_empty() {
            let (path, keys) = (path.display(), experiment.left_out.join(", "));
            tell!("{path}: left out on this machine, since only the rig has it: {keys}");
        }
        experiments.extend(experiment.repetitions()?);
    }
    run_all(&experiments, arguments.jobs, &arguments.outcome)
}

/// Runs experiments one after the other and prints what came of all of them.
pub fn run_all(
    experiments: &[Experiment],
    jobs: Option<u16>,
    outcome: &Outcome,
) -> Result<Exit, Failure> {
    let targets = experiments.iter().map(target).collect::<Result<Vec<_>, Failure>>()?;
    // Not after an hour.
    outcome.report.as_deref().map_or(Ok(()), report::check_chosen)?;
    let store = store(&outcome.store.store);
    let mut results = Vec::new();
    for (experiment, target) in experiments.iter().zip(&targets) {
        // Two probes on one machine would measure each other.
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
    let parts = Installation::find()?.parts();
    Ok(match experiment.target {
        Target::Local => Box::new(Local::new(parts)),
        Target::Rig => Box::new(Rig::new(Bench::new(Cache::of_user()?, parts)?, experiment)?),
    })
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

type Results<'a> = [(&'a Experiment, Vec<Result<PathBuf, Failure>>)];

/// Prints what there is, then fails if anything failed.
fn conclude(results: &Results, outcome: &Outcome) -> Result<Exit, Failure> {
    let all = || results.iter().flat_map(|(_, results)| results);
    let paths = all().flatten();
    let bundles = paths.map(|p| Bundle::open(p)).collect::<Result<Vec<_>, _>>()?;
    if outcome.json {
        print_json(&Printed::new(&bundles, errors(results)))?;
    } else {
        print(&terminal::ladders(&bundles)?)?;
    }
    if let (Some(output), false) = (&outcome.report, bundles.is_empty()) {
        // To stderr: stdout may be JSON.
        tell!("The report: {}", report::write(&bundles, output)?.display());
    }
    if rig::tool::interrupted() {
        return Err(rig::Error::Interrupted.into());
    }
    let failures: Vec<&Failure> = all().filter_map(|r| r.as_ref().err()).collect();
    if let Some(first) = failures.first() {
        let message =
            format!("{} of {} runs failed: {}", failures.len(), all().count(), first.message);
        return Err(Failure { exit: first.exit, message });
    }
    Ok(Exit::of(bundles.iter().map(|b| b.manifest().conclusion.verdict)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    runs: Vec<PrintedRun<'a>>,
    /// Where the runs of an experiment did not answer in the same company.
    unequal: Vec<Unequal>,
    errors: Vec<PrintedError>,
}

/// A cell without a bundle.
#[derive(Serialize)]
struct PrintedError {
    flavour: String,
    load: String,
    instrument: &'static str,
    message: String,
}

fn errors(results: &Results) -> Vec<PrintedError> {
    let cells = results.iter().flat_map(|(experiment, results)| experiment.cells().zip(results));
    let failed = cells.filter_map(|(cell, result)| Some((cell, result.as_ref().err()?)));
    failed
        .map(|(cell, failure)| PrintedError {
            flavour: cell.flavour.to_string(),
            load: cell.load.to_string(),
            instrument: cell.instrument.name(),
            message: failure.message.clone(),
        })
        .collect()
}

#[derive(Serialize)]
struct PrintedRun<'a> {
    run: &'a str,
    bundle: String,
    complete: bool,
    flavour: &'a str,
    load: &'a str,
    instrument: &'static str,
    seed: u64,
    clock: Clock,
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption: Option<&'a str>,
    evidence: Evidence,
    samples_blake3: &'a str,
    series: &'a [Summary],
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<&'a [Truth]>,
    warnings: &'a [Warning],
    findings: &'a [Finding],
    verdict: Verdict,
}

impl<'a> Printed<'a> {
    fn new(bundles: &'a [Bundle], errors: Vec<PrintedError>) -> Self {
        let runs = bundles.iter().map(|b| printed_run(b.manifest(), b.path())).collect();
        let unequal = unequal_by_experiment(bundles.iter().map(Bundle::manifest));
        Printed { schema: SCHEMA, runs, unequal, errors }
    }
}

fn printed_run<'a>(manifest: &'a Manifest, path: &Path) -> PrintedRun<'a> {
    PrintedRun {
        run: manifest.run.as_str(),
        bundle: path.canonicalize().unwrap_or_else(|_| path.into()).to_string_lossy().into_owned(),
        complete: manifest.complete,
        flavour: &manifest.about.flavour,
        load: &manifest.about.load,
        instrument: manifest.about.experiment.instrument(),
        seed: manifest.about.seed,
        clock: manifest.clock,
        preemption: manifest
            .about
            .kernel
            .as_ref()
            .and_then(|kernel| kernel.reported.get(keys::PREEMPTION))
            .map(String::as_str),
        evidence: manifest.evidence(),
        samples_blake3: &manifest.samples.blake3,
        series: &manifest.series,
        truth: manifest.about.truth.as_deref(),
        warnings: &manifest.conclusion.warnings,
        findings: &manifest.conclusion.findings,
        verdict: manifest.conclusion.verdict,
    }
}
