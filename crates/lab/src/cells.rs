// SPDX-License-Identifier: GPL-2.0-or-later
//! Cells to run with the kernel followed: the cells of an experiment, or the cell of one run.

use crate::Error;
use crate::followed::{Subject, narrow};
use crate::target::Rig;
use bundle::Bundle;
use experiment::{Experiment, Load};
use rig::Bench;

/// A cell, and all that is needed to run it.
pub struct FollowedCell {
    /// The cell's flavour.
    pub flavour: String,
    /// The cell's load.
    pub load: String,
    /// The cell's guest, and what is measured in it.
    pub subject: Subject,
}

impl FollowedCell {
    /// The wanted cells of an experiment, with the rig in which they are run.
    ///
    /// # Errors
    /// If the experiment does not have the flavour or the load, if it has no triggers, or if a kernel is not in the
    /// cache.
    pub fn of_experiment(
        bench: &Bench,
        mut experiment: Experiment,
        flavour: Option<&str>,
        load: Option<Load>,
    ) -> Result<(Vec<FollowedCell>, Rig, Experiment), Error> {
        narrow(&mut experiment, flavour, load.as_slice())?;
        let rig = Rig::new(bench.clone(), &experiment)?;
        let cell = |cell: experiment::Cell| {
            let subject = Subject::of_cell(&rig, &experiment, cell);
            let [flavour, load] = [cell.flavour.to_string(), cell.load.to_string()];
            FollowedCell { flavour, load, subject }
        };
        let cells = experiment.cells().map(cell).collect();
        Ok((cells, rig, experiment))
    }

    /// The cell of a run.
    ///
    /// # Errors
    /// The errors of [`Subject::of_bundle`].
    pub fn of_run(bench: &Bench, bundle: &Bundle) -> Result<FollowedCell, Error> {
        let about = &bundle.manifest().about;
        let [flavour, load] = [&about.flavour, &about.load].map(String::clone);
        Ok(FollowedCell { flavour, load, subject: Subject::of_bundle(bench, bundle)? })
    }
}
