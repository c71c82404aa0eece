// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset run`: every flavour under every load.

use super::{SystemClock, print, print_json, report};
use crate::arguments::Run;
use crate::bundle::{Bundle, Manifest, Warning};
use crate::experiment::Experiment;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::target::Rig;
use crate::{matrix, terminal};
use rig::{Bench, Cache};
use sample::Clock;
use serde::Serialize;
use stats::{Finding, Summary, Verdict};
use std::path::{Path, PathBuf};

/// Version of the JSON that is printed (docs/run.schema.json).
const SCHEMA: u32 = 1;

pub fn run(arguments: &Run) -> Result<Exit, Failure> {
    let experiment = Experiment::load(&arguments.experiment)?;
    let experiment = experiment.with_overrides(&arguments.replacements())?;
    let bench = Bench::new(Cache::of_user()?, Installation::find()?.parts())?;
    let target = Rig::new(bench, &experiment)?;
    let jobs = arguments.jobs.map_or_else(processors, usize::from);
    let mut shown = terminal::Shown::new(&experiment);
    let root = &arguments.store.store;
    let results = matrix::run(&experiment, &target, root, &SystemClock, jobs, |e| shown.show(e));
    drop(shown);
    conclude(&experiment, &results, arguments)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Prints what there is, then fails if anything failed.
fn conclude(
    experiment: &Experiment,
    results: &[Result<PathBuf, Failure>],
    arguments: &Run,
) -> Result<Exit, Failure> {
    let paths = results.iter().flatten();
    let bundles = paths.map(|p| Bundle::open(p)).collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        print_json(&Printed::new(&bundles, errors(experiment, results)));
    } else {
        print(&terminal::ladders(&bundles)?);
    }
    if let (Some(output), false) = (&arguments.report, bundles.is_empty()) {
        // To stderr: stdout may be JSON.
        eprintln!("The report: {}", report::write(&bundles, output)?.display());
    }
    if rig::tool::interrupted() {
        return Err(rig::Error::Interrupted.into());
    }
    let failures: Vec<&Failure> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    if let Some(first) = failures.first() {
        let message =
            format!("{} of {} runs failed: {}", failures.len(), results.len(), first.message);
        return Err(Failure { exit: first.exit, message });
    }
    Ok(Exit::of(bundles.iter().map(|b| b.manifest().conclusion.verdict)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    runs: Vec<PrintedRun<'a>>,
    errors: Vec<PrintedError>,
}

/// A cell without a bundle.
#[derive(Serialize)]
struct PrintedError {
    flavour: String,
    load: String,
    message: String,
}

fn errors(experiment: &Experiment, results: &[Result<PathBuf, Failure>]) -> Vec<PrintedError> {
    let cells = experiment.cells().zip(results);
    let failed = cells.filter_map(|(cell, result)| Some((cell, result.as_ref().err()?)));
    failed
        .map(|(cell, failure)| PrintedError {
            flavour: cell.flavour.to_string(),
            load: cell.load.to_string(),
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
    seed: u64,
    clock: Clock,
    samples_blake3: &'a str,
    series: &'a [Summary],
    warnings: &'a [Warning],
    findings: &'a [Finding],
    verdict: Verdict,
}

impl<'a> Printed<'a> {
    fn new(bundles: &'a [Bundle], errors: Vec<PrintedError>) -> Self {
        let runs = bundles.iter().map(|b| printed_run(b.manifest(), b.path())).collect();
        Printed { schema: SCHEMA, runs, errors }
    }
}

fn printed_run<'a>(manifest: &'a Manifest, path: &Path) -> PrintedRun<'a> {
    PrintedRun {
        run: manifest.run.as_str(),
        bundle: path.canonicalize().unwrap_or_else(|_| path.into()).to_string_lossy().into_owned(),
        complete: manifest.complete,
        flavour: &manifest.about.flavour,
        load: &manifest.about.load,
        seed: manifest.about.seed,
        clock: manifest.clock,
        samples_blake3: &manifest.samples.blake3,
        series: &manifest.series,
        warnings: &manifest.conclusion.warnings,
        findings: &manifest.conclusion.findings,
        verdict: manifest.conclusion.verdict,
    }
}
