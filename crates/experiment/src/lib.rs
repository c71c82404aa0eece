// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments: what onset measures, on which target, under which load, within which limits.
//!
//! An experiment is a TOML file (`docs/experiments.md` is its reference). This crate reads the whole file. An unknown
//! key is an error, and so is a value of a wrong type or outside of its range. All mistakes are reported at once, each
//! with its place. The crate does not check whether the kernels, modules and files in the experiment exist; the code
//! that uses them does.

mod diagnostic;
mod document;
mod flavour;
mod guest;
mod limits;
mod local;
mod paper;
mod paths;
mod probe;
mod program;
mod read;
mod root;
#[cfg(test)]
mod tests;
mod trigger;

pub use agent::{ALL_LOADS, Load};
pub use diagnostic::{Problems, known_words};
pub use flavour::{Flavour, ParseFlavourError};
pub use guest::{GUEST_SEED, MEMORY_MAX, MEMORY_MIN, SHIFT_MAX};
pub use guest::{Guest, GuestFile, Mebibytes, ParseMebibytesError};
pub use limits::{Scope, ScopedLimit};
pub use paper::Paper;
pub use program::Program;
pub use trigger::{TRIGGERS_APART, Trigger};

use probes::Plan;
use root::{Lists, build};
use sample::{Nanos, ResponderSet, SeriesName};
use stats::Limit;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file that is read. A million explicit trigger times take less.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The longest time that a run measures, with its last grace: a month.
pub const RUN_MAX: Nanos = Nanos::from_millis(31 * 24 * 3_600_000);
/// The longest warm-up: a day.
pub const WARM_UP_MAX: Nanos = Nanos::from_millis(24 * 3_600_000);
/// How many triggers or rounds a run has at most: a week at 1 ms has 604,800,000. The journal of so many, each answered
/// by one responder, takes 40 GB.
const COUNT_MAX: u64 = 1_000_000_000;

/// The system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This machine.
    Local,
    /// A QEMU guest in virtual time.
    Rig,
}

impl Target {
    /// The word used in files, JSON and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Local => "local",
            Target::Rig => "rig",
        }
    }
}

/// The instrument, which measures.
#[derive(Clone, Debug, PartialEq)]
pub enum Instrument {
    /// Triggers from outside, and the driver's responders that answer them.
    Generator(Generator),
    /// A probe on the target itself.
    Probe(Plan),
}

/// See [`Instrument::Generator`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// The responders; at least one.
    pub responders: ResponderSet,
    /// The triggers that they answer.
    pub trigger: Trigger,
    /// How the module with the responders is loaded.
    pub driver: Driver,
}

impl Instrument {
    /// The name of its section in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Instrument::Generator(_) => "trigger",
            Instrument::Probe(plan) => plan.probe.name(),
        }
    }

    /// The names of its series, in their order.
    pub fn series(&self) -> Vec<SeriesName> {
        match self {
            Instrument::Generator(generator) => {
                generator.responders.iter().map(SeriesName::from).collect()
            }
            Instrument::Probe(plan) => {
                let name = |name: &String| name.parse().expect("probes name series as files allow");
                plan.series().iter().map(name).collect()
            }
        }
    }
}

/// How the module with the responders is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Let PREEMPT_RT make a thread of the hard handler; else the handler stays hard.
    pub threaded: bool,
    /// Which way triggers and answers take.
    pub wiring: Wiring,
}

/// The way of triggers and answers between the instrument and the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wiring {
    /// The parallel port: its interrupt, and its data register.
    #[default]
    Port,
    /// GPIO lines, by gpiolib. In the rig they are the pins of the same port.
    Gpio,
}

impl Wiring {
    /// Both.
    pub const ALL: [Wiring; 2] = [Wiring::Port, Wiring::Gpio];

    /// The word used in files and pages, which is the driver's parameter `trigger`.
    pub const fn name(self) -> &'static str {
        match self {
            Wiring::Port => "port",
            Wiring::Gpio => "gpio",
        }
    }
}

/// Where a load runs on this machine. In the rig, a load runs in the whole guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadPlace {
    /// Whether it may run on the measured CPUs too.
    pub on_measured_cpus: bool,
    /// A directory of the disk that the `disk` load keeps busy; without one it writes to memory.
    pub disk: Option<PathBuf>,
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell<'a> {
    /// Kernel and boot options (the flavour).
    pub flavour: &'a Flavour,
    /// The load, which keeps the target busy.
    pub load: Load,
    /// The instrument, which measures.
    pub instrument: &'a Instrument,
}

/// An experiment. Every value in it has been checked for its type and range.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The file from which it was read.
    pub path: PathBuf,
    /// Where its relative paths begin; absolute.
    pub directory: PathBuf,
    /// Whether the experiment has relative paths.
    pub has_relative_paths: bool,
    /// The file's text, before overrides.
    pub source: String,
    /// The replacements of the command line, in their order: dotted key and value.
    pub overrides: Vec<(String, String)>,
    /// One line for people.
    pub title: String,
    /// The paper's table or figure that it makes again, for the report.
    pub paper: Option<Paper>,
    /// What is measured.
    pub target: Target,
    /// The seed of everything random; 0 … 2⁶³−1 (TOML has no larger integers).
    pub seed: u64,
    /// How often each cell is run, at least once ([`Experiment::repetitions`]).
    pub repeats: u32,
    /// Keys of the file that only the rig has, and that `target=local` on the command line removed; as dotted keys.
    pub left_out: Vec<String>,
    /// The flavours: at least one, all different. For this machine, the kernel that it runs.
    pub flavours: Vec<Flavour>,
    /// The loads: at least one, all different.
    pub loads: Vec<Load>,
    /// Time under load before measuring begins.
    pub warm_up: Nanos,
    /// The instruments, each with runs of its own; at least one.
    pub instruments: Vec<Instrument>,
    /// The user's own program, which is the task that is measured.
    pub program: Option<Program>,
    /// Where loads run on this machine.
    pub load: LoadPlace,
    /// The virtual machine, and the files that are put into it.
    pub guest: Guest,
    /// The limits as the file states them, in its order; [`Experiment::limits_for`] resolves them.
    pub limits: Vec<ScopedLimit>,
}

/// Why an experiment cannot be read.
#[derive(Debug)]
pub enum ExperimentError {
    /// The file cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// The file is above 16 MiB.
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// The file is not UTF-8, as TOML has to be.
    NotText {
        /// Which.
        path: PathBuf,
        /// Bytes before the first that is wrong.
        valid: usize,
    },
    /// The file, or a replacement of the command line, has mistakes.
    Invalid(Problems),
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, .. } if path.is_dir() => {
                write!(
                    f,
                    "{} is a directory; give the file of an experiment in it",
                    path.display()
                )?;
                let within = experiments_in(path);
                if !within.is_empty() {
                    write!(f, ": {}", within.join(", "))?;
                }
                Ok(())
            }
            Self::Unreadable { path, cause } => {
                write!(f, "cannot read the experiment {}: {cause}", path.display())
            }
            Self::TooLarge { path } => {
                let mib = FILE_BYTES_MAX >> 20;
                write!(f, "{} is no experiment: it is larger than {mib} MiB", path.display())
            }
            Self::NotText { path, valid } => write!(
                f,
                "{} is no experiment: byte {valid} is not UTF-8; save the file as UTF-8 text",
                path.display()
            ),
            Self::Invalid(problems) => problems.fmt(f),
        }
    }
}

/// The names of the experiments in a directory, in their order.
fn experiments_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}

impl std::error::Error for ExperimentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// The keys that say which cells there are, and nothing of what is measured in a cell.
const MATRIX: [&str; 3] = ["flavours", "loads", "repeats"];

/// What an experiment says of each of its cells: its text without the keys of the matrix. Two experiments with the same
/// rest measure the same in the cells that both have. A text that is no TOML is its own rest.
pub fn rest(source: &str) -> String {
    let Ok(mut document) = source.parse::<toml_edit::DocumentMut>() else { return source.into() };
    MATRIX.iter().for_each(|key| drop(document.remove(key)));
    document.to_string()
}

/// Whether a key that was set on the command line is one of the matrix.
pub fn is_of_matrix(key: &str) -> bool {
    MATRIX.contains(&key)
}

impl Experiment {
    /// Reads an experiment from its file.
    pub fn load(path: &Path) -> Result<Self, ExperimentError> {
        let unreadable = |cause| ExperimentError::Unreadable { path: path.into(), cause };
        let file = confined::file(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ExperimentError::TooLarge { path: path.into() });
        }
        let text = String::from_utf8(bytes).map_err(|e| ExperimentError::NotText {
            path: path.into(),
            valid: e.utf8_error().valid_up_to(),
        })?;
        Self::parse(path, &text).map_err(ExperimentError::Invalid)
    }

    /// Reads an experiment from `text`; `path` names it in errors, and relative paths begin at its
    /// directory. Touches no file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Problems> {
        Self::parse_in(path.parent().unwrap_or(Path::new("")), path, text)
    }

    /// As [`Experiment::parse`], for a text that came from elsewhere: relative paths begin at `directory`.
    pub fn parse_in(directory: &Path, path: &Path, text: &str) -> Result<Self, Problems> {
        // "." since an empty path has no absolute one. Without a current directory nothing relative is found anyway.
        let directory = Path::new(".").join(directory);
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        build(&directory, path, text, &[], Lists::default())
    }

    /// The same experiment with values replaced, each by a dotted key and a TOML value (`trigger.count`,
    /// `100000`); a value that is not TOML is a text, so that `1ms` needs no quotes. The result passes
    /// the same checks. The file's limits for flavours, loads and responders that are replaced stay
    /// allowed, and hold for nothing.
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Self, Problems> {
        let all = [&self.overrides[..], overrides].concat();
        let file = Self::parse_in(&self.directory, &self.path, &self.source)?;
        let series = file.series();
        let Experiment { flavours, loads, .. } = file;
        let known = Lists { flavours, loads, series, complete: true };
        build(&self.directory, &self.path, &self.source, &all, known)
    }

    /// Checks that there is a program if a probe measures one. The file alone need not name it, since the command line
    /// can ([`Experiment::with_overrides`]).
    ///
    /// # Errors
    /// The text says what to add.
    pub fn check_program(&self) -> Result<(), String> {
        let starts =
            |i: &Instrument| matches!(i, Instrument::Probe(plan) if program::starts(&plan.probe));
        if self.program.is_some() || !self.instruments.iter().any(starts) {
            return Ok(());
        }
        Err(match self.target {
            Target::Local => {
                "[cycles] measures your program, and there is none: name it on the command line, with onset measure \
                 cycles -- ./my-loop, or onset run … --set 'task.program=[\"./my-loop\"]'"
            }
            Target::Rig => {
                "[cycles] measures your program, and there is none: add [task] with program = [\"./my-loop\"]"
            }
        }
        .into())
    }

    /// The experiment once for each repetition. In the rig, each repetition has the next guest seed: the same guest
    /// with another history, since with the same seed it would have the same samples. A machine is simply measured
    /// again.
    pub fn repetitions(&self) -> Result<Vec<Self>, Problems> {
        let again = |n: u32| match (n, self.target) {
            (0, _) | (_, Target::Local) => Ok(self.clone()),
            (n, Target::Rig) => {
                let seed = self.guest.seed.wrapping_add(n);
                self.with_overrides(&[("guest.seed".into(), seed.to_string())])
            }
        };
        (0..self.repeats).map(again).collect()
    }

    /// The matrix: for each flavour in order, each load in order, each instrument in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.flavours.iter().flat_map(move |flavour| {
            self.loads.iter().flat_map(move |&load| {
                self.instruments.iter().map(move |instrument| Cell { flavour, load, instrument })
            })
        })
    }

    /// The series of all instruments.
    pub fn series(&self) -> Vec<SeriesName> {
        self.instruments.iter().flat_map(Instrument::series).collect()
    }

    /// The limits that hold in a cell, for the measured responders. If several are for the same statistic of the same
    /// responder, the narrowest counts (flavour and load before flavour, flavour before everywhere).
    pub fn limits_for(&self, cell: Cell<'_>) -> Vec<Limit> {
        let mut limits = limits::narrowest(&self.limits, cell.flavour, cell.load);
        let measured = cell.instrument.series();
        limits.retain(|l| measured.contains(&l.responder));
        limits
    }
}
