// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments: what is measured, on which target, under which load, within which limits.
//!
//! A TOML file (`docs/experiments.md` is its reference) is read whole: every key is known or an error,
//! every value has its type and range, and all that is wrong is reported at once with its place. What it
//! cannot tell: whether the kernels, modules and files that it names exist; who uses them says so.

mod diagnostic;
mod document;
mod flavour;
mod guest;
mod limits;
mod read;
#[cfg(test)]
mod tests;
mod trigger;

pub use agent::{ALL_LOADS, Load};
pub use diagnostic::Problems;
pub use flavour::{Flavour, ParseFlavourError};
pub use guest::{Guest, GuestFile, Mebibytes, ParseMebibytesError};
pub use limits::{Scope, ScopedLimit};
pub use trigger::{Schedule, Trigger};

use diagnostic::{Source, known_words};
use read::{Reader, Section};
use sample::{ALL_RESPONDERS, Nanos, Responder, ResponderSet, SeriesName};
use stats::Limit;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Seed of an experiment that names none.
const SEED: u64 = 1;
/// Time under load before measuring, where the experiment names none: the load's own start is over, and
/// caches of the kernel (slab, dentries, page cache) are in use.
const WARM_UP: Nanos = Nanos::from_millis(200);
/// Largest file that is read. A million explicit trigger times take less.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A QEMU guest in virtual time.
    Rig,
}

impl Target {
    /// The word used in files, JSON and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Rig => "rig",
        }
    }
}

/// How the module with the responders is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Let PREEMPT_RT make a thread of the hard handler; else the handler stays hard.
    pub threaded: bool,
}

/// One place of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// Kernel and boot parameters.
    pub flavour: &'a Flavour,
    /// What keeps the target busy.
    pub load: Load,
}

/// An experiment in which everything is known to be of its type and range.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Where it was read from.
    pub path: PathBuf,
    /// The file's text, before overrides.
    pub source: String,
    /// What the command line replaced, in its order: dotted key and value.
    pub overrides: Vec<(String, String)>,
    /// One line for people.
    pub title: String,
    /// What is measured.
    pub target: Target,
    /// Of everything random; 0 … 2⁶³−1 (TOML has no larger integers).
    pub seed: u64,
    /// At least one, no two equal.
    pub flavours: Vec<Flavour>,
    /// At least one, no two equal.
    pub loads: Vec<Load>,
    /// Time under load before measuring begins.
    pub warm_up: Nanos,
    /// Who answers; at least one.
    pub responders: ResponderSet,
    /// What is answered.
    pub trigger: Trigger,
    /// How the answering module is loaded.
    pub driver: Driver,
    /// The machine and what is put into it.
    pub guest: Guest,
    /// As stated, in the file's order; [`Experiment::limits_for`] resolves them.
    pub limits: Vec<ScopedLimit>,
}

/// Why there is no experiment.
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
    /// The file, or an override, says something that cannot be.
    Invalid(Problems),
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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

impl std::error::Error for ExperimentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

impl Experiment {
    /// Reads an experiment from its file.
    pub fn load(path: &Path) -> Result<Self, ExperimentError> {
        let unreadable = |cause| ExperimentError::Unreadable { path: path.into(), cause };
        let file = std::fs::File::open(path).map_err(unreadable)?;
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
        build(path, text, &[], Lists::default())
    }

    /// The same experiment with values replaced, each by a dotted key and a TOML value (`trigger.count`,
    /// `100000`); a value that is not TOML is a text, so that `1ms` needs no quotes. The result passes
    /// the same checks. The file's limits for flavours, loads and responders that are replaced stay
    /// allowed, and hold for nothing.
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Self, Problems> {
        let all = [&self.overrides[..], overrides].concat();
        let file = Self::parse(&self.path, &self.source)?;
        let Experiment { flavours, loads, responders, .. } = file;
        build(&self.path, &self.source, &all, Lists { flavours, loads, responders, complete: true })
    }

    /// The matrix: for each flavour in order, each load in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.flavours
            .iter()
            .flat_map(|flavour| self.loads.iter().map(move |&load| Cell { flavour, load }))
    }

    /// The limits that hold in a cell, for responders that are measured: of several for one statistic
    /// of one responder the narrowest (flavour and load, before flavour, before everywhere).
    pub fn limits_for(&self, cell: Cell<'_>) -> Vec<Limit> {
        let mut limits = limits::narrowest(&self.limits, cell.flavour, cell.load);
        let measured: Vec<SeriesName> = self.responders.iter().map(SeriesName::from).collect();
        limits.retain(|l| measured.contains(&l.responder));
        limits
    }
}

/// What a limit may name.
#[derive(Default)]
struct Lists {
    flavours: Vec<Flavour>,
    loads: Vec<Load>,
    responders: ResponderSet,
    /// Whether there are no more flavours than these; not so where their list is faulty.
    complete: bool,
}

/// Parses, overrides, checks. `known` is what limits may name besides what the result measures.
fn build(
    path: &Path,
    text: &str,
    overrides: &[(String, String)],
    known: Lists,
) -> Result<Experiment, Problems> {
    let file = Source::File { path: path.display().to_string(), text: text.into() };
    let said = overrides.iter().map(|(key, value)| Source::Override(format!("{key}={value}")));
    let sources: Vec<Source> = std::iter::once(file).chain(said).collect();
    let mut root = match document::parse(text) {
        Ok(root) => root,
        Err(problem) => return Err(Problems::new(sources, vec![problem])),
    };
    let mut reader = Reader::default();
    for (i, (key, value)) in overrides.iter().enumerate() {
        if let Err(problem) = document::apply(&mut root, i + 1, key, value) {
            reader.problems.push(problem);
        }
    }
    let experiment = check(&mut reader, &root, path, known);
    match experiment {
        Some(experiment) if reader.problems.is_empty() => {
            Ok(Experiment { source: text.into(), overrides: overrides.to_vec(), ..experiment })
        }
        _ => Err(Problems::new(sources, reader.problems)),
    }
}

/// Reads every key and notes every problem; `None` only if something was noted.
fn check(
    reader: &mut Reader,
    root: &document::Table,
    path: &Path,
    known: Lists,
) -> Option<Experiment> {
    let root = reader.root(root);
    let directory = path.parent().unwrap_or(Path::new(""));
    let title = title(reader, &root);
    let target = target(reader, &root);
    let seed = root.entry("seed").and_then(|e| reader.integer(e, 0..=u64::MAX));
    let flavours = flavours(reader, &root);
    let loads = loads(reader, &root);
    let warm_up = root.entry("warm_up").and_then(|e| reader.duration(e));
    let responders = responders(reader, &root);
    let section = reader.section(&root, "trigger");
    let trigger = trigger::read(reader, &section);
    let section = reader.section(&root, "driver");
    let threaded = section.entry("threaded").and_then(|e| reader.boolean(e));
    let section = reader.section(&root, "guest");
    let guest = guest::read(reader, &section, directory);
    // A faulty list has been noted; limits are checked against all that it could have held.
    let measured = responders.map_or(0xff, ResponderSet::mask);
    let lists = Lists {
        flavours: [&known.flavours[..], flavours.as_deref().unwrap_or_default()].concat(),
        loads: [&known.loads[..], loads.as_deref().unwrap_or(&ALL_LOADS)].concat(),
        responders: ResponderSet::from_mask(known.responders.mask() | measured),
        complete: flavours.is_some(),
    };
    let limits = limits::read(reader, &root, &lists);
    Some(Experiment {
        path: path.into(),
        source: String::new(),
        overrides: Vec::new(),
        title: title?,
        target: target?,
        seed: seed.unwrap_or(SEED),
        flavours: flavours?,
        loads: loads?,
        warm_up: warm_up.map_or(WARM_UP, |(duration, _)| duration),
        responders: responders?,
        trigger: trigger?,
        driver: Driver { threaded: threaded.unwrap_or(false) },
        guest,
        limits,
    })
}

fn title(reader: &mut Reader, root: &Section) -> Option<String> {
    const EXAMPLE: &str = "\"Response ladder\"";
    let entry = reader.required(root, "title", EXAMPLE)?;
    let (title, at) = reader.text(entry, EXAMPLE)?;
    if title.trim().is_empty() || title.contains(char::is_control) {
        reader.note(at, "the title has to be one line of text", "say what is measured, and why");
        return None;
    }
    Some(title.into())
}

fn target(reader: &mut Reader, root: &Section) -> Option<Target> {
    let entry = reader.required(root, "target", "\"rig\"")?;
    let (name, at) = reader.text(entry, "\"rig\"")?;
    if name == Target::Rig.name() {
        return Some(Target::Rig);
    }
    let help = known_words(name, [Target::Rig.name()]);
    reader.note(at, format!("unknown target {name:?}"), help);
    None
}

fn flavours(reader: &mut Reader, root: &Section) -> Option<Vec<Flavour>> {
    const EXAMPLE: &str = "[\"6.12 preempt=none\", \"6.12-rt\"]";
    let entry = reader.required(root, "flavours", EXAMPLE)?;
    let convert = |text: &str| {
        let help = "name a kernel, then words for its command line: \"6.12 preempt=none\"";
        text.parse::<Flavour>().map_err(|why| (format!("{text:?}: {why}"), help.into()))
    };
    let found = reader.words(entry, EXAMPLE, convert)?;
    Some(found.into_iter().map(|(flavour, _)| flavour).collect())
}

fn loads(reader: &mut Reader, root: &Section) -> Option<Vec<Load>> {
    const EXAMPLE: &str = "[\"idle\", \"mixed\"]";
    let entry = reader.required(root, "loads", EXAMPLE)?;
    let convert = |text: &str| {
        let help = known_words(text, ALL_LOADS.iter().map(|l| l.name()));
        text.parse::<Load>().map_err(|_| (format!("unknown load {text:?}"), help))
    };
    let found = reader.words(entry, EXAMPLE, convert)?;
    Some(found.into_iter().map(|(load, _)| load).collect())
}

fn responders(reader: &mut Reader, root: &Section) -> Option<ResponderSet> {
    let Some(entry) = root.entry("responders") else {
        return Some(ALL_RESPONDERS.into_iter().collect());
    };
    let convert = |text: &str| {
        let help = known_words(text, ALL_RESPONDERS.iter().map(|r| r.name()));
        text.parse::<Responder>().map_err(|_| (format!("unknown responder {text:?}"), help))
    };
    let found = reader.words(entry, "[\"hardirq\", \"task\"]", convert)?;
    Some(found.into_iter().map(|(responder, _)| responder).collect())
}
