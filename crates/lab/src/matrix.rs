// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the cells of experiments, several at once, and turns each into a bundle.

#[cfg(test)]
mod tests;

use crate::target::Target;
use crate::{Error, Found};
use bundle::{
    About, Begun, BundleError, BundleWriter, Conclusion, RunId, SCHEMA, Tool, UtcTime, Warning,
};
use experiment::{Cell, Experiment, Instrument, Trigger};
use sample::Schedule;
use stats::Verdict;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use work::Progress;

/// How many names are tried for one run: four times as many as two runs of one second and cell can have by chance.
const TRIES: u16 = 1 << 10;

/// Dates and signs bundles. The measured time never comes from here.
pub trait Issuer: Sync {
    /// The present time, to the second.
    fn now(&self) -> UtcTime;

    /// The version of onset that makes the bundles.
    fn tool(&self) -> Tool;
}

/// An experiment, and where it runs. Cells are numbered over all experiments that run together, in order.
pub type Placed<'a> = (&'a Experiment, &'a dyn Target);

/// What happens while a matrix runs, for the code that shows it.
#[derive(Debug)]
pub enum Event {
    /// A cell goes on.
    Progress(usize, Progress),
    /// A cell has its bundle.
    Finished(usize, PathBuf, Verdict),
    /// The store has the bundle of a cell from before.
    Found(usize, PathBuf),
    /// A cell has no bundle. The text says why.
    Failed(usize, String),
}

/// Where the runs of a matrix go, and which of them there are.
pub struct Place<'a> {
    /// The directory of the store.
    pub root: &'a Path,
    /// The runs that are not measured again.
    pub found: &'a Found,
    /// Whether the cell with this number is to be run.
    pub is_wanted: &'a (dyn Fn(usize) -> bool + Sync),
}

/// The numbers of those cells whose runs the store does not have.
pub fn missing(experiments: &[Placed], place: Place, issuer: &dyn Issuer) -> Vec<usize> {
    let found = place.found;
    let wanted = wanted(experiments, place, issuer).into_iter();
    wanted.filter(|one| one.found(found).is_none()).map(|one| one.index).collect()
}

/// The wanted cells.
fn wanted<'a>(
    experiments: &[Placed<'a>],
    Place { root, is_wanted, .. }: Place<'a>,
    issuer: &'a dyn Issuer,
) -> Vec<One<'a>> {
    let cells = experiments.iter().flat_map(|(experiment, target)| {
        experiment.cells().map(move |cell| (*experiment, *target, cell))
    });
    let one =
        |(index, (experiment, target, cell))| One { experiment, target, root, issuer, index, cell };
    cells.enumerate().filter(|(index, _)| is_wanted(*index)).map(one).collect()
}

/// Runs every wanted cell, `jobs` at a time, and tells `show` of it on the calling thread. Bundles are written to the
/// store at the place. Returns a bundle or a failure for each wanted cell, in order. A failure does not keep the other
/// cells from running, but a [`work::Cancel`] does.
pub fn run(
    experiments: &[Placed],
    place: Place,
    issuer: &dyn Issuer,
    jobs: usize,
    mut show: impl FnMut(&Event),
) -> Vec<Result<PathBuf, Error>> {
    let found = place.found;
    let cells = wanted(experiments, place, issuer);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<PathBuf, Error>>>> =
        Mutex::new(cells.iter().map(|_| None).collect());
    let (tell, told) = mpsc::channel();
    let cancel = &work::Cancel::current();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cells.len().max(1)) {
            let tell = tell.clone();
            let (next, results, cells) = (&next, &results, &cells);
            scope.spawn(move || {
                cancel.during(|| {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(one) = cells.get(place) else { return };
                        let progress = |p| drop(tell.send(Event::Progress(one.index, p)));
                        let (result, ended) = one.run(found, &progress);
                        let _ = tell.send(ended);
                        results.lock().unwrap_or_else(|e| e.into_inner())[place] = Some(result);
                    }
                });
            });
        }
        drop(tell);
        told.iter().for_each(|event| show(&event));
    });
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.into_iter().map(|r| r.unwrap_or(Err(Error::Interrupted))).collect()
}

/// One cell on its way to a bundle.
struct One<'a> {
    experiment: &'a Experiment,
    target: &'a dyn Target,
    root: &'a Path,
    issuer: &'a dyn Issuer,
    index: usize,
    cell: Cell<'a>,
}

impl One<'_> {
    /// Measures the cell, or finds its run.
    fn run(&self, found: &Found, progress: &dyn Fn(Progress)) -> (Result<PathBuf, Error>, Event) {
        if let Some(path) = self.found(found) {
            return (Ok(path.clone()), Event::Found(self.index, path));
        }
        let measured = self.measure(progress);
        let event = match &measured {
            Ok((path, verdict)) => Event::Finished(self.index, path.clone(), *verdict),
            Err(e) => Event::Failed(self.index, e.to_string()),
        };
        (measured.map(|(path, _)| path), event)
    }

    /// The run of the cell from before.
    fn found(&self, found: &Found) -> Option<PathBuf> {
        let parts = || self.target.parts(self.experiment, self.cell);
        found.find(&self.about(self.issuer.now()), parts)
    }

    fn measure(&self, progress: &dyn Fn(Progress)) -> Result<(PathBuf, Verdict), Error> {
        if work::is_cancelled() {
            return Err(Error::Interrupted);
        }
        let created = self.issuer.now();
        let (responders, missing) = self.target.series(self.cell);
        let mut about = self.about(created);
        let mut begun = Begun {
            schema: SCHEMA,
            run: RunId::new(created, &self.slug(), 0),
            clock: self.target.clock(),
            responders,
            about: about.clone(),
            limits: self.experiment.limits_for(self.cell),
            warnings: missing,
        };
        let mut writer = self.begin(&mut begun)?;
        let mut broken: Option<BundleError> = None;
        let mut observe = |observation| match writer.observe(&observation) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                broken.get_or_insert(e);
                ControlFlow::Break(())
            }
        };
        let measured = self.target.measure(self.experiment, self.cell, &mut observe, progress);
        let measured = match (measured, broken) {
            (Ok(measured), None) => measured,
            (Err(cause), None) => return Err(keep(writer, begun, cause)),
            (_, Some(broken)) => return Err(keep(writer, begun, broken.into())),
        };
        writer.add_dropped(measured.dropped);
        let kept = writer.kept();
        let left = |e: BundleError| left(e.into(), kept.as_deref());
        if let Some(console) = &measured.console {
            writer.add_console(console).map_err(&left)?;
        }
        let warnings = [measured.warnings, begun.warnings].concat();
        let complete = !warnings.iter().any(Warning::cuts_short);
        let conclusion =
            Conclusion::of(&writer.summaries(), &writer.tallies(), begun.limits, warnings);
        let verdict = conclusion.verdict;
        (about.kernel, about.machine) = (Some(measured.kernel), Some(measured.machine));
        (about.qemu, about.plugin) = measured.versions.unzip();
        about.load_counters = measured.counters;
        about.probe_counters = measured.probe_counters;
        about.truth = measured.truth;
        match writer.finish(about, conclusion, complete) {
            // The bundle is there and whole, so its verdict counts. Only its message has to reach the user.
            Err(e @ BundleError::NotDurable { .. }) => Err(e.into()),
            finished => Ok((finished.map_err(left)?, verdict)),
        }
    }

    /// Begins the bundle under a name that no other run of the store has. A probe may take less than a second, so a
    /// script may make several runs in one second. Chance alone tells only 256 of them apart.
    fn begin(&self, begun: &mut Begun) -> Result<BundleWriter, BundleError> {
        let first = salt(self.index);
        for further in 0..TRIES {
            begun.run = RunId::new(begun.about.created, &self.slug(), first.wrapping_add(further));
            match BundleWriter::create(self.root, begun) {
                Err(BundleError::Exists { .. }) => {}
                done => return done,
            }
        }
        BundleWriter::create(self.root, begun)
    }

    fn slug(&self) -> String {
        let Cell { flavour, load, instrument } = self.cell;
        match instrument {
            Instrument::Generator(_) => format!("{flavour} {load}"),
            Instrument::Probe(plan) => format!("{} {flavour} {load}", plan.probe.name()),
        }
    }

    /// The facts that are known before the target is asked.
    fn about(&self, created: UtcTime) -> About {
        let Experiment { title, seed, source, directory, overrides, .. } = self.experiment;
        About {
            title: title.clone(),
            created,
            tool: self.issuer.tool(),
            target: self.target.name().into(),
            flavour: self.cell.flavour.to_string(),
            load: self.cell.load.name().into(),
            seed: *seed,
            kernel: None,
            machine: None,
            qemu: None,
            plugin: None,
            experiment: bundle::Experiment {
                source: source.clone(),
                directory: directory
                    .to_str()
                    .filter(|_| self.experiment.has_relative_paths)
                    .map(str::to_owned),
                overrides: overrides.clone(),
                paper: self.experiment.paper.map(|p| p.name().into()),
                warm_up: self.experiment.warm_up,
                trigger: match self.cell.instrument {
                    Instrument::Generator(generator) => Some(trigger(&generator.trigger)),
                    Instrument::Probe(_) => None,
                },
                probe: match self.cell.instrument {
                    Instrument::Generator(_) => None,
                    Instrument::Probe(plan) => Some(plan.clone()),
                },
            },
            load_counters: BTreeMap::new(),
            probe_counters: BTreeMap::new(),
            truth: None,
        }
    }
}

/// Makes a bundle of the observations from before the measurement failed, if there are any. Returns the error, with the
/// place of the bundle.
fn keep(writer: BundleWriter, begun: Begun, cause: Error) -> Error {
    let Some(kept) = writer.kept() else { return cause };
    let Begun { about, limits, mut warnings, .. } = begun;
    warnings.push(Warning::Failed { text: cause.to_string() });
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), limits, warnings);
    match writer.finish(about, conclusion, false) {
        Ok(bundle) | Err(BundleError::NotDurable { path: bundle, .. }) => {
            Error::KeptAsBundle { cause: Box::new(cause), bundle }
        }
        Err(_) => left(cause, Some(&kept)),
    }
}

/// The error, with the place of the observations.
fn left(cause: Error, kept: Option<&Path>) -> Error {
    match kept {
        None => cause,
        Some(kept) => Error::KeptAsPartial { cause: Box::new(cause), partial: kept.into() },
    }
}

/// The triggers in the form of the manifest.
fn trigger(asked: &Trigger) -> bundle::Trigger {
    bundle::Trigger {
        schedule: match &asked.schedule {
            Schedule::Periodic { phase, period, jitter, count, .. } => bundle::Schedule::Periodic {
                period: *period,
                jitter: *jitter,
                phase: *phase,
                count: *count,
            },
            Schedule::Explicit(times) => bundle::Schedule::Times { times_ns: times.clone() },
        },
        high: asked.high,
        grace: asked.grace,
        disturbances: asked.disturbances.clone(),
    }
}

/// Tells the runs of one second apart: those of this command by their number, others by chance.
fn salt(index: usize) -> u16 {
    // These are the standard library's random keys for hash maps.
    let chance = RandomState::new().build_hasher().finish();
    (chance as u16) << 8 | (index as u16 & 0xff)
}
