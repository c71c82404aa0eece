// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between an experiment and what it measures.
//!
//! A target measures one cell and hands over observations; everything above (bundles, verdicts,
//! tables) is the same for all targets and is tested with a fake one.

mod contents;
#[cfg(test)]
pub mod fake;
mod line;
pub mod local;
mod rig;

pub use self::contents::contents;
pub use self::local::Local;
pub use self::rig::{Rig, plugin_version};

use crate::bundle::{Kernel, Machine, Warning};
use crate::experiment::{Cell, Experiment};
use crate::failure::Failure;
use crate::truth::Truth;
use ::rig::{Observer, Progress};
use sample::{Clock, SeriesName};
use std::collections::BTreeMap;

/// A system under test.
pub trait Target: Sync {
    /// The word for it in files.
    fn name(&self) -> &'static str;

    /// The clock of everything it measures.
    fn clock(&self) -> Clock;

    /// The series of a run, in their order: those of the instrument that the flavour has, and a warning for each that it
    /// lacks. Observations name them by their index in this list.
    fn series(&self, cell: Cell) -> (Vec<SeriesName>, Vec<Warning>);

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
    /// What a probe counted beside its samples.
    pub probe_counters: BTreeMap<String, u64>,
    /// How true each series of the probe is, where a witness or the port saw it.
    pub truth: Option<Vec<Truth>>,
    /// Records lost on the way.
    pub dropped: u64,
    /// What the target's kernel printed, where it was heard.
    pub console: Option<String>,
    /// Doubts about the target; those that follow from the numbers are added above.
    pub warnings: Vec<Warning>,
}

impl Measured {
    /// What two guests of one run yield: the first one's, with what the second one adds, doubts and lost.
    fn joined(mut self, other: Measured) -> Measured {
        self.machine.contents_blake3.extend(other.machine.contents_blake3);
        self.dropped += other.dropped;
        let new = |w: &Warning| !self.warnings.contains(w);
        let new: Vec<Warning> = other.warnings.into_iter().filter(new).collect();
        self.warnings.extend(new);
        self.console = match (self.console, other.console) {
            (Some(first), Some(second)) => Some(first + &second),
            (first, second) => first.or(second),
        };
        self
    }
}

/// The kernel by its own words, under the name that it is kept under or its release.
fn kernel(name: Option<&str>, mut reported: BTreeMap<String, String>) -> Kernel {
    let mut said = |key: &str| reported.remove(key).unwrap_or_default();
    let (release, build, command_line) = (said("release"), said("build"), said("command_line"));
    Kernel { name: name.unwrap_or(&release).into(), release, build, command_line, reported }
}
