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
mod paper;
mod probe;
mod read;
#[cfg(test)]
mod tests;
mod trigger;

pub use agent::{ALL_LOADS, Load};
pub use diagnostic::Problems;
pub use flavour::{Flavour, ParseFlavourError};
pub(crate) use guest::{GUEST_SEED, MEMORY_MAX, MEMORY_MIN, SHIFT_MAX};
pub use guest::{Guest, GuestFile, Mebibytes, ParseMebibytesError};
pub use limits::{Scope, ScopedLimit};
pub use paper::Paper;
pub use trigger::Trigger;

use crate::truth;
use diagnostic::{Source, known_words};
use probes::Plan;
use read::{Reader, Section};
use sample::{ALL_RESPONDERS, Nanos, Responder, ResponderSet, SeriesName};
use stats::Limit;
use std::collections::BTreeSet;
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

/// What measures.
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
    /// Who answers; at least one.
    pub responders: ResponderSet,
    /// What is answered.
    pub trigger: Trigger,
    /// How the answering module is loaded.
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

    /// What it measures, in the order of its series.
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
}

/// Where a load of this machine runs; in the rig it has the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadPlace {
    /// On the measured CPUs too.
    pub on_measured_cpus: bool,
    /// A directory of the disk that the `disk` load keeps busy; without one it writes to memory.
    pub disk: Option<PathBuf>,
}

/// One place of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell<'a> {
    /// Kernel and boot parameters.
    pub flavour: &'a Flavour,
    /// What keeps the target busy.
    pub load: Load,
    /// What measures.
    pub instrument: &'a Instrument,
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
    /// The paper's table or figure that it makes again, for the report.
    pub paper: Option<Paper>,
    /// What is measured.
    pub target: Target,
    /// Of everything random; 0 … 2⁶³−1 (TOML has no larger integers).
    pub seed: u64,
    /// At least one, no two equal; for this machine the one that it runs.
    pub flavours: Vec<Flavour>,
    /// At least one, no two equal.
    pub loads: Vec<Load>,
    /// Time under load before measuring begins.
    pub warm_up: Nanos,
    /// What measures, each in runs of its own; at least one.
    pub instruments: Vec<Instrument>,
    /// Where loads of this machine run.
    pub load: LoadPlace,
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
        let series = file.series();
        let Experiment { flavours, loads, .. } = file;
        build(&self.path, &self.source, &all, Lists { flavours, loads, series, complete: true })
    }

    /// The matrix: for each flavour in order, each load in order, each instrument in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.flavours.iter().flat_map(move |flavour| {
            self.loads.iter().flat_map(move |&load| {
                self.instruments.iter().map(move |instrument| Cell { flavour, load, instrument })
            })
        })
    }

    /// What all instruments measure.
    pub fn series(&self) -> Vec<SeriesName> {
        self.instruments.iter().flat_map(Instrument::series).collect()
    }

    /// The limits that hold in a cell, for responders that are measured: of several for one statistic
    /// of one responder the narrowest (flavour and load, before flavour, before everywhere).
    pub fn limits_for(&self, cell: Cell<'_>) -> Vec<Limit> {
        let mut limits = limits::narrowest(&self.limits, cell.flavour, cell.load);
        let measured = cell.instrument.series();
        limits.retain(|l| measured.contains(&l.responder));
        limits
    }
}

/// What a limit may name.
#[derive(Default)]
struct Lists {
    flavours: Vec<Flavour>,
    loads: Vec<Load>,
    series: Vec<SeriesName>,
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
    let paper = root.entry("paper").map(|e| paper(reader, e));
    let target = target(reader, &root);
    let seed = root.entry("seed").and_then(|e| reader.integer(e, 0..=u64::MAX)).unwrap_or(SEED);
    let flavours = flavours(reader, &root, target);
    let loads = loads(reader, &root);
    let warm_up = root.entry("warm_up").and_then(|e| reader.duration(e));
    let instruments = instruments(reader, &root, target, seed);
    let section = reader.section(&root, "load");
    let load = LoadPlace {
        on_measured_cpus: section
            .entry("on_measured_cpus")
            .is_some_and(|e| reader.boolean(e).unwrap_or(false)),
        disk: section
            .entry("disk")
            .and_then(|e| reader.text(e, "\"/var/tmp\""))
            .map(|(path, _)| directory.join(path)),
    };
    let section = reader.section(&root, "guest");
    let guest = guest::read(reader, &section, directory);
    check_witness(reader, &section, target, instruments.as_deref());
    check_begin_after(reader, &section, instruments.as_deref());
    let measured = instruments.iter().flatten().flat_map(Instrument::series);
    let lists = Lists {
        flavours: [&known.flavours[..], flavours.as_deref().unwrap_or_default()].concat(),
        loads: [&known.loads[..], loads.as_deref().unwrap_or(&ALL_LOADS)].concat(),
        series: known
            .series
            .into_iter()
            .chain(measured)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        complete: flavours.is_some() && instruments.is_some(),
    };
    let limits = limits::read(reader, &root, &lists);
    Some(Experiment {
        path: path.into(),
        source: String::new(),
        overrides: Vec::new(),
        title: title?,
        paper: paper.flatten(),
        target: target?,
        seed,
        flavours: flavours?,
        loads: loads?,
        warm_up: warm_up.map_or(WARM_UP, |(duration, _)| duration),
        instruments: instruments?,
        load,
        guest,
        limits,
    })
}

/// A witness sees the rig's guest alone, and can judge sleeping.
fn check_witness(
    reader: &mut Reader,
    guest: &Section,
    target: Option<Target>,
    instruments: Option<&[Instrument]>,
) {
    let asked = |e: &&document::Entry| matches!(e.node.value, document::Value::Boolean(true));
    let Some(entry) = guest.entry("witness").filter(asked) else { return };
    if target == Some(Target::Local) {
        let help = "write target = \"rig\", or leave it out";
        reader.note(&entry.key_at, "nobody sees this machine from outside", help);
    }
    let judged = |i: &Instrument| match i {
        Instrument::Probe(plan) => truth::can_be_judged(&plan.probe),
        Instrument::Generator(_) => false,
    };
    if let Some(other) = instruments.unwrap_or_default().iter().find(|i| !judged(i)) {
        let message = format!("no witness can judge [{}]", other.name());
        reader.note(&entry.key_at, message, "it judges [periodic] and [cyclictest]; leave it out");
    }
}

/// A probe begins where the warm-up ends: it is started by the guest, which does not know how far it was let run.
fn check_begin_after(reader: &mut Reader, guest: &Section, instruments: Option<&[Instrument]>) {
    let Some(entry) = guest.entry("begin_after") else { return };
    let is_probe = |i: &&Instrument| matches!(i, Instrument::Probe(_));
    if let Some(probe) = instruments.unwrap_or_default().iter().find(is_probe) {
        let message = format!("[{}] cannot begin later", probe.name());
        reader.note(&entry.key_at, message, "begin_after is for [trigger]; write a longer warm_up");
    }
}

/// `[trigger]` or the section of a probe; several are measured one after the other.
fn instruments(
    reader: &mut Reader,
    root: &Section,
    target: Option<Target>,
    seed: u64,
) -> Option<Vec<Instrument>> {
    let mut instruments = Vec::new();
    let probes: Vec<&str> =
        probe::PROBES.into_iter().filter(|name| root.entry(name).is_some()).collect();
    // Without any, the one that every experiment once had is what is missing.
    if root.entry("trigger").is_some() || probes.is_empty() {
        instruments.push(generator(reader, root, target, seed).map(Instrument::Generator));
    } else {
        for key in ["responders", "driver"] {
            if let Some(entry) = root.entry(key) {
                let help = "responders answer triggers: add [trigger], or leave the key out";
                reader.note(&entry.key_at, format!("{key} without [trigger]"), help);
            }
        }
    }
    let task = reader.section(root, "task");
    for name in probes {
        let section = reader.section(root, name);
        instruments.push(probe::read(reader, &task, &section).map(Instrument::Probe));
    }
    instruments.into_iter().collect()
}

fn generator(
    reader: &mut Reader,
    root: &Section,
    target: Option<Target>,
    seed: u64,
) -> Option<Generator> {
    if target == Some(Target::Local) {
        let help = format!(
            "this machine is measured by a probe: write one of [{}]; triggers need target = \"rig\"",
            probe::PROBES.join("], [")
        );
        let at = root.entry("trigger").map_or(&root.at, |e| &e.key_at);
        reader.note(at, "no generator triggers this machine from outside", help);
        return None;
    }
    let responders = responders(reader, root);
    let section = reader.section(root, "trigger");
    let trigger = trigger::read(reader, &section, seed);
    let section = reader.section(root, "driver");
    let threaded = section.entry("threaded").and_then(|e| reader.boolean(e));
    let driver = Driver { threaded: threaded.unwrap_or(false) };
    Some(Generator { responders: responders?, trigger: trigger?, driver })
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
    let targets = [Target::Local, Target::Rig];
    let found = targets.into_iter().find(|t| t.name() == name);
    if found.is_none() {
        let help = known_words(name, targets.map(Target::name));
        reader.note(at, format!("unknown target {name:?}"), help);
    }
    found
}

fn paper(reader: &mut Reader, entry: &document::Entry) -> Option<Paper> {
    let (name, at) = reader.text(entry, "\"2001-delay\"")?;
    let found = Paper::ALL.into_iter().find(|p| p.name() == name);
    if found.is_none() {
        let help = known_words(name, Paper::ALL.map(Paper::name));
        reader.note(at, format!("no table or figure is called {name:?}"), help);
    }
    found
}

fn flavours(reader: &mut Reader, root: &Section, target: Option<Target>) -> Option<Vec<Flavour>> {
    const EXAMPLE: &str = "[\"6.12 preempt=none\", \"6.12-rt\"]";
    if target == Some(Target::Local) {
        if let Some(entry) = root.entry("flavours") {
            let help = "this machine runs the kernel that it runs; leave flavours out";
            reader.note(&entry.key_at, "flavours with target = \"local\"", help);
        }
        return Some(vec![Flavour::local()]);
    }
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
