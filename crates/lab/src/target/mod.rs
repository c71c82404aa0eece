// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between an experiment and what it measures.
//!
//! A target begins to measure a cell and yields a session. The session hands over observations and takes commands.
//! Everything above (bundles, verdicts, tables) is the same for all targets, and is tested with a fake one.

mod contents;
#[cfg(any(test, feature = "examples"))]
pub mod fake;
pub mod local;
mod rig;

pub use self::contents::contents;
pub use self::local::Local;
pub use self::rig::{Rig, plugin_version};
pub use wire::Command;

use crate::Error;
use bundle::Truth;
use bundle::{Kernel, Machine, Warning};
use experiment::{Cell, Experiment};
use sample::{Clock, Nanos, Observer, SeriesName};
use std::collections::BTreeMap;
use work::Progress;
pub use work::Step;

/// The parts that decide the samples of a cell, as a manifest records them.
#[derive(Debug, Default, PartialEq)]
pub struct Parts {
    /// The hash of each part of the guest by its name.
    pub contents_blake3: BTreeMap<String, String>,
    /// The versions of QEMU and of the plugin.
    pub versions: Option<(String, String)>,
}

/// A system under test.
pub trait Target: Sync {
    /// The word for the target in files.
    fn name(&self) -> &'static str;

    /// The clock of everything that the target measures.
    fn clock(&self) -> Clock;

    /// The series of a run, in their order: those of the instrument that the flavour has. Also a warning for each that
    /// it lacks. Observations name a series by its index in this list.
    fn series(&self, cell: Cell) -> (Vec<SeriesName>, Vec<Warning>);

    /// What a cell is measured with, if this decides its samples: the same parts give the same samples again. None
    /// where measuring again gives other samples, as on a machine.
    fn parts(&self, experiment: &Experiment, cell: Cell) -> Option<Parts>;

    /// Gets the target ready for a cell, and begins to measure it.
    ///
    /// # Errors
    /// The errors of getting ready. [`Error::Instrument`] if the target lacks something that the cell, or its lead,
    /// asks for.
    fn begin<'a>(
        &'a self,
        experiment: &'a Experiment,
        cell: Cell<'a>,
        lead: Lead,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Box<dyn Session + 'a>, Error>;

    /// Measures one cell by its plan, to the end. Observations come in the order of time, until `observe` breaks.
    ///
    /// # Errors
    /// If nothing was measured. A run that ended early is a result, with its warning.
    fn measure(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Error> {
        let mut session = self.begin(experiment, cell, Lead::Plan, progress)?;
        work::to_the_end(progress, |is_to_end| {
            if is_to_end {
                session.command(Command::End)?;
            }
            session.step(observe)
        })?;
        session.finish(observe)
    }
}

/// The source of the triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// The cell's plan says when to trigger.
    Plan,
    /// The holder of the session says when to trigger, by commands.
    Commands,
}

/// Refuses commands, which a probe cannot carry out.
fn refuse_commands(lead: Lead) -> Result<(), Error> {
    match lead {
        Lead::Plan => Ok(()),
        Lead::Commands => {
            let text = "a probe measures by its plan, and takes no command but the end";
            Err(Error::Instrument(text.into()))
        }
    }
}

/// A cell that is being measured. It goes on by steps, and takes commands in between.
pub trait Session {
    /// Hands over the observations since the last step, and waits for a moment. If `observe` breaks, measuring
    /// ends.
    ///
    /// # Errors
    /// If nothing was measured.
    fn step(&mut self, observe: &mut Observer) -> Result<Step, Error>;

    /// Lets the target be triggered, if commands lead ([`Lead`]). [`Command::End`] ends any session, with what it has
    /// measured. A second one changes nothing.
    ///
    /// # Errors
    /// If the command cannot follow the last one, or if this session does not take it.
    fn command(&mut self, command: Command) -> Result<(), Error>;

    /// The end of the last [`Command::Run`] that the target has reached, since measuring began. 0 before the first one.
    fn reached(&self) -> Nanos {
        Nanos(0)
    }

    /// Ends the session. Returns its results besides its observations. A session that has not ended is interrupted.
    ///
    /// # Errors
    /// If nothing was measured.
    fn finish(self: Box<Self>, observe: &mut Observer) -> Result<Measured, Error>;
}

/// The results of a run besides its observations.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The kernel that ran.
    pub kernel: Kernel,
    /// The machine on which the kernel ran.
    pub machine: Machine,
    /// The versions of QEMU and of the plugin, if they were used.
    pub versions: Option<(String, String)>,
    /// The load's counters over the measuring phase.
    pub counters: BTreeMap<String, u64>,
    /// The counts of a probe beside its samples.
    pub probe_counters: BTreeMap<String, u64>,
    /// How accurate each series of the probe is, if a witness or the port saw it.
    pub truth: Option<Vec<Truth>>,
    /// The number of records that were lost on the way.
    pub dropped: u64,
    /// The text that the target's kernel printed, if onset could hear it.
    pub console: Option<String>,
    /// The doubts about the target. The layers above add those that follow from the numbers.
    pub warnings: Vec<Warning>,
}

impl Measured {
    /// The results of two guests of one run: those of the first, with what the second one adds, doubts and lost.
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
