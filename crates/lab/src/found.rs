// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the runs that need not be measured again.

use crate::Error;
use crate::target::Parts;
use bundle::store::{Entry, Store};
use bundle::{About, Bundle};
use stats::Verdict;
use std::path::PathBuf;

/// The runs that a store has, for whoever goes on with an experiment that was interrupted.
#[derive(Default)]
pub struct Found(Vec<Run>);

struct Run {
    path: PathBuf,
    about: About,
    parts: Parts,
}

/// Without what says which other cells there are.
fn rest(asked: &bundle::Experiment) -> bundle::Experiment {
    let mut asked = asked.clone();
    asked.source = experiment::rest(&asked.source);
    asked.overrides.retain(|(key, _)| !experiment::is_of_matrix(key));
    asked
}

impl Found {
    /// The complete runs of a store that are valid, newest first. Those that cannot be read are none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(store: &Store) -> Result<Found, Error> {
        Found::those(store, |verdict| verdict != Verdict::Invalid)
    }

    /// The same, and the complete runs that are invalid: whoever shares the cells with others made them, and would make
    /// them equally again.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of_shards(store: &Store) -> Result<Found, Error> {
        Found::those(store, |_| true)
    }

    fn those(store: &Store, counts: impl Fn(Verdict) -> bool) -> Result<Found, Error> {
        let run = |entry: Entry| {
            let path = store.root().join(entry.run.to_string());
            let manifest = Bundle::open(&path).ok()?.manifest().clone();
            let mut about = manifest.about;
            about.experiment = rest(&about.experiment);
            let is_whole = manifest.complete && counts(manifest.conclusion.verdict);
            let parts = Parts {
                contents_blake3: about.machine.as_ref()?.contents_blake3.clone(),
                versions: about.qemu.clone().zip(about.plugin.clone()),
            };
            is_whole.then_some(Run { path, about, parts })
        };
        Ok(Found(store.list()?.into_iter().filter_map(run).collect()))
    }

    /// The run of `about` with these parts, made by the same onset. Which other cells its experiment had does not
    /// matter. `parts` reads whole files, so it is asked only if everything else is the same.
    pub(crate) fn find(
        &self,
        about: &About,
        parts: impl FnOnce() -> Option<Parts>,
    ) -> Option<PathBuf> {
        let asked = rest(&about.experiment);
        let is_same = |run: &&Run| {
            let About { tool, target, flavour, load, seed, experiment, .. } = &run.about;
            (tool, target, flavour) == (&about.tool, &about.target, &about.flavour)
                && (load, seed, experiment) == (&about.load, &about.seed, &asked)
        };
        let mut same = self.0.iter().filter(is_same).peekable();
        same.peek()?;
        let parts = parts()?;
        same.find(|run| run.parts == parts).map(|run| run.path.clone())
    }
}
