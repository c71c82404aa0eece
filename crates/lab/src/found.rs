// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the runs that need not be measured again.

use crate::Error;
use bundle::store::{Entry, Store};
use bundle::{About, Bundle, Manifest};
use stats::Verdict;
use std::path::PathBuf;

/// The runs that a store has, for whoever goes on with an experiment that was interrupted.
#[derive(Default)]
pub struct Found(Vec<(PathBuf, Manifest)>);

impl Found {
    /// The complete runs of a store, newest first. Those that cannot be read are none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(store: &Store) -> Result<Found, Error> {
        let entries = store.list()?;
        let path = |entry: Entry| store.root().join(entry.run.to_string());
        let open =
            |path: PathBuf| Some((path.clone(), Bundle::open(&path).ok()?.manifest().clone()));
        let mut runs: Vec<_> = entries.into_iter().map(path).filter_map(open).collect();
        runs.retain(|(_, run)| run.complete && run.conclusion.verdict != Verdict::Invalid);
        Ok(Found(runs))
    }

    /// The run of `about` on a kernel of this release, made by the same onset.
    pub(crate) fn find(&self, about: &About, release: &str) -> Option<PathBuf> {
        let is_same = |run: &Manifest| {
            let of = |about: &About| {
                let About { tool, target, flavour, load, seed, experiment, .. } = about.clone();
                (tool, target, flavour, load, seed, experiment)
            };
            of(&run.about) == of(about)
                && run.about.kernel.as_ref().is_some_and(|kernel| kernel.release == release)
        };
        self.0.iter().find(|(_, run)| is_same(run)).map(|(path, _)| path.clone())
    }
}
