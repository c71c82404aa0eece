// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between an experiment and what it measures.
//!
//! A target measures one cell and hands over observations; everything above (bundles, verdicts,
//! tables) is the same for all targets and is tested with a fake one.

#[cfg(test)]
pub mod fake;
pub mod local;
mod rig;

pub use self::rig::Rig;

use crate::bundle::{Kernel, Machine, Warning};
use crate::experiment::{Cell, Experiment, Flavour};
use crate::failure::Failure;
use ::rig::{Observer, Progress};
use sample::{Clock, ResponderSet};
use std::collections::BTreeMap;

/// A system under test.
pub trait Target: Sync {
    /// The word for it in files.
    fn name(&self) -> &'static str;

    /// The clock of everything it measures.
    fn clock(&self) -> Clock;

    /// Which of the experiment's responders a flavour has, and a warning for each that it lacks.
    fn responders(
        &self,
        experiment: &Experiment,
        flavour: &Flavour,
    ) -> (ResponderSet, Vec<Warning>);

    /// Measures one cell. Observations come in the order of time, until `observe` breaks.
    ///
    /// # Errors
    /// When nothing was measured. A run that ended early is a result, with its warning.
    fn measure(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Failure>;
}

/// What a run yields besides its observations.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The kernel that ran.
    pub kernel: Kernel,
    /// The machine it ran on.
    pub machine: Machine,
    /// Versions of QEMU and of the plugin, where they were used.
    pub versions: Option<(String, String)>,
    /// The load's counters over the measuring phase.
    pub counters: BTreeMap<String, u64>,
    /// Records lost on the way.
    pub dropped: u64,
    /// What the target's kernel printed, where it was heard.
    pub console: Option<String>,
    /// Doubts about the target; those that follow from the numbers are added above.
    pub warnings: Vec<Warning>,
}
