// SPDX-License-Identifier: GPL-2.0-or-later
//! Cells to run with the kernel followed: the cells of an experiment, or the cell of one run.

use crate::Error;
use crate::followed::{Subject, narrow};
use crate::target::Rig;
use bundle::Bundle;
use experiment::{Experiment, Load};
use rig::Bench;

/// A cell, and what it takes to run it.
pub struct FollowedCell {
    /// Its flavour.
    pub flavour: String,
    /// Its load.
    pub load: String,
    /// Its guest and its triggers.
    pub subject: Subject,
}

impl FollowedCell {
    /// Those of an experiment's cells that are asked for, with the rig that they are run in.
    ///
    /// # Errors
    /// A flavour or a load that the experiment does not have, an experiment without triggers, a kernel that is not
    /// here.
    pub fn of_experiment(
        bench: &Bench,
        mut experiment: Experiment,
        flavour: Option<&str>,
        load: Option<Load>,
    ) -> Result<(Vec<FollowedCell>, Rig, Experiment), Error> {
        narrow(&mut experiment, flavour, load.as_slice())?;
        let rig = Rig::new(bench.clone(), &experiment)?;
        let cell = |cell: experiment::Cell| {
            let subject = Subject::of_cell(&rig, &experiment, cell)?;
            let [flavour, load] = [cell.flavour.to_string(), cell.load.to_string()];
            Some(FollowedCell { flavour, load, subject })
        };
        let cells = experiment.cells().filter_map(cell).collect();
        Ok((cells, rig, experiment))
    }

    /// That of a run.
    ///
    /// # Errors
    /// Those of [`Subject::of_bundle`].
    pub fn of_run(bench: &Bench, bundle: &Bundle) -> Result<FollowedCell, Error> {
        let about = &bundle.manifest().about;
        let [flavour, load] = [&about.flavour, &about.load].map(String::clone);
        Ok(FollowedCell { flavour, load, subject: Subject::of_bundle(bench, bundle)? })
    }
}
