// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds what a user names, a run of a store or the file of a find, and which of its latencies the user means.

use super::{Reproducer, Subject};
use crate::Error;
use bundle::store::Store;
use bundle::{Bundle, MANIFEST, Manifest};
use probes::{Probe, Sampled};
use rig::Bench;
use sample::{Sample, SeriesName};
use std::path::Path;

/// The thing that a user names: a run or a find.
#[derive(Debug)]
pub enum Named {
    /// The bundle of a run.
    Run(Box<Bundle>),
    /// A find, which has one latency.
    Find(Box<Reproducer>),
}

/// A choice of latencies of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The answers to the trigger with this number; of a probe, the event with this number.
    Trigger(u64),
    /// This many of the longest latencies.
    Worst(usize),
}

impl Named {
    /// Finds the named thing. A file is a find. Anything else is the beginning of a run's name, `latest`, or the path
    /// of a bundle.
    ///
    /// # Errors
    /// If there is no such file or run, or if the bundle or the find is damaged.
    pub fn find(name: &str, store: impl FnOnce() -> Store) -> Result<Named, Error> {
        let path = Path::new(name);
        if path.is_file() {
            return Reproducer::read(path).map(|find| Named::Find(Box::new(find)));
        }
        // No run has such a name.
        if (name.contains('/') || name.ends_with(".json")) && !path.exists() {
            return Err(Error::Unfit(format!(
                "there is no file {name}; name a find as the hunt printed it, or a run as `onset list` shows it"
            )));
        }
        open(name, store).map(|bundle| Named::Run(Box::new(bundle)))
    }

    /// The run's name. A find has none.
    pub fn run(&self) -> Option<&str> {
        match self {
            Named::Run(bundle) => Some(bundle.manifest().run.as_str()),
            Named::Find(_) => None,
        }
    }

    /// The flavour and the load, for people.
    pub fn title(&self) -> String {
        match self {
            Named::Run(bundle) => {
                let about = &bundle.manifest().about;
                format!("{} · {}", about.flavour, about.load)
            }
            Named::Find(find) => {
                let flavour =
                    [std::slice::from_ref(&find.kernel), &find.parameters[..]].concat().join(" ");
                format!("{flavour} · {}", find.load)
            }
        }
    }

    /// Whether it is a run of the probe `cost`.
    pub fn measured_costs(&self) -> bool {
        let Named::Run(bundle) = self else { return false };
        let plan = bundle.manifest().about.experiment.probe.as_ref();
        plan.is_some_and(|plan| matches!(plan.probe, Probe::Cost(_)))
    }

    /// The guest and its triggers.
    ///
    /// # Errors
    /// The errors of [`Subject::of_bundle`] and [`Reproducer::subject`].
    pub fn subject(&self, bench: &Bench) -> Result<Subject, Error> {
        match self {
            Named::Run(bundle) => Subject::of_bundle(bench, bundle),
            Named::Find(find) => find.subject(bench),
        }
    }

    /// The chosen latencies, the longest first. Without a choice, the longest one. A find has only its
    /// own.
    ///
    /// # Errors
    /// A series or trigger that the run does not have, a series whose samples cannot be explained, a choice in a find,
    /// or samples that cannot be read.
    pub fn samples(
        &self,
        series: Option<&SeriesName>,
        choice: Option<Choice>,
    ) -> Result<Vec<Sample>, Error> {
        match (self, series, choice) {
            (Named::Run(bundle), ..) => {
                samples_of(bundle, series, choice.unwrap_or(Choice::Worst(1)))
            }
            (Named::Find(find), None, None) => Ok(vec![find.sample()]),
            (Named::Find(_), ..) => Err(Error::Unfit(
                "a find is one latency: leave --sample, --worst and --responder out, or name a run"
                    .into(),
            )),
        }
    }
}

/// The bundle that the user means: by a path, or by a name in the store. The store is opened only for a name.
///
/// # Errors
/// If there is no such run, if the directory holds something else, or if the bundle is damaged.
pub fn open(run: &str, store: impl FnOnce() -> Store) -> Result<Bundle, Error> {
    let path = Path::new(run);
    if path.join(MANIFEST).is_file() {
        return Ok(Bundle::open(path)?);
    }
    if path.is_dir() && run.contains('/') {
        return Err(Error::Unfit(format!(
            "{run} is neither a bundle nor the directory of a hunt; name one, or a run of a store: --store {run}"
        )));
    }
    Ok(Bundle::open(&store().find(run)?)?)
}

/// The chosen latencies of a run, the longest first.
///
/// # Errors
/// The errors of [`Named::samples`].
pub fn samples_of(
    bundle: &Bundle,
    series: Option<&SeriesName>,
    choice: Choice,
) -> Result<Vec<Sample>, Error> {
    let manifest = bundle.manifest();
    let names: Vec<&SeriesName> = manifest.series.iter().map(|s| &s.responder).collect();
    check_series(&names, series, manifest.run.as_str())?;
    let explainable = explainable(manifest, series)?;
    let mut found: Vec<Sample> = Vec::new();
    bundle.samples(|sample| {
        let wanted = match choice {
            Choice::Trigger(trigger) => sample.trigger == trigger,
            Choice::Worst(_) => true,
        };
        if wanted && explainable[sample.series.index()] {
            found.push(sample);
        }
    })?;
    if found.is_empty() {
        let run = &manifest.run;
        let what = match choice {
            Choice::Trigger(trigger) => format!("no sample {trigger}"),
            Choice::Worst(_) => "no sample at all".into(),
        };
        return Err(Error::Unfit(format!(
            "{run} has {what}; triggers and the events of a probe are numbered from 0, and `onset show {run}` tells what was lost"
        )));
    }
    found.sort_by_key(|s| (std::cmp::Reverse(s.latency), s.trigger, s.series));
    if let Choice::Worst(count) = choice {
        found.truncate(count);
    }
    Ok(found)
}

/// Checks that a run has the series that the user asks for.
///
/// # Errors
/// If it does not; with the series that it has.
pub(super) fn check_series(
    names: &[&SeriesName],
    asked: Option<&SeriesName>,
    run: &str,
) -> Result<(), Error> {
    match asked.filter(|asked| !names.contains(asked)) {
        None => Ok(()),
        Some(asked) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let names = names.join(", ");
            Err(Error::Unfit(format!("{run} has no series {asked}; it has {names}")))
        }
    }
}

/// Which of a run's series are meant: the one that was asked for, or all whose samples are times by which a task was
/// late.
///
/// # Errors
/// If the asked series has no such samples, or if no series of the run has. The text says what its samples are.
fn explainable(manifest: &Manifest, asked: Option<&SeriesName>) -> Result<Vec<bool>, Error> {
    let is_asked = |name: &SeriesName| asked.is_none_or(|asked| asked == name);
    let names: Vec<&SeriesName> = manifest.series.iter().map(|s| &s.responder).collect();
    let Some(plan) = &manifest.about.experiment.probe else {
        return Ok(names.into_iter().map(is_asked).collect());
    };
    let other = |name: &SeriesName| match plan.probe.sampled(name.as_str()) {
        Sampled::Stretches | Sampled::WakeUps => None,
        Sampled::Other(what) => Some(what),
    };
    let meant: Vec<bool> = names.iter().map(|n| is_asked(n) && other(n).is_none()).collect();
    match names.iter().find(|name| is_asked(name)).and_then(|name| other(name)) {
        Some(what) if !meant.contains(&true) => Err(Error::Unfit(format!(
            "{}: onset cannot explain samples of {}: {what}",
            manifest.run,
            plan.probe.name()
        ))),
        _ => Ok(meant),
    }
}
