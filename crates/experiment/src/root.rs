// SPDX-License-Identifier: GPL-2.0-or-later
//! The root of the file: its own keys, and the experiment that all sections make together.

use super::diagnostic::{Problems, Source, known_words};
use super::paths::Paths;
use super::read::{Reader, Section};
use super::{
    ALL_LOADS, Driver, Experiment, Flavour, Generator, Instrument, Load, LoadPlace, Paper, Program,
    Target, WARM_UP_MAX, Wiring, document, guest, limits, local, probe, program, trigger,
};
use probes::plan::SleepMethod;
use probes::{Definition, PROBES, Plan, Probe};
use sample::{ALL_RESPONDERS, Nanos, Responder, ResponderSet, SeriesName};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Seed of an experiment that names none.
const SEED: u64 = 1;
/// A greater number is a typing mistake: each repetition takes as long as the experiment.
const REPEATS_MAX: u64 = 100;
/// Time under load before measuring, where the experiment names none: the load's own start is over, and
/// caches of the kernel (slab, dentries, page cache) are in use.
const WARM_UP: Nanos = Nanos::from_millis(200);

/// What a limit may name.
#[derive(Default)]
pub struct Lists {
    pub flavours: Vec<Flavour>,
    pub loads: Vec<Load>,
    pub series: Vec<SeriesName>,
    /// Whether there are no more flavours than these; not so where their list is faulty.
    pub complete: bool,
}

/// Parses, overrides, checks. Relative paths begin at `directory`, which is absolute; `known` is what limits may name
/// besides what the result measures.
pub fn build(
    directory: &Path,
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
    let left_out = local::leave_out(&mut root);
    let paths = Paths::in_directory(directory);
    let experiment = check(&mut reader, &root, &paths, known);
    match experiment {
        Some(experiment) if reader.problems.is_empty() => Ok(Experiment {
            path: path.into(),
            source: text.into(),
            overrides: overrides.to_vec(),
            left_out,
            ..experiment
        }),
        _ => Err(Problems::new(sources, reader.problems)),
    }
}

/// Reads every key and notes every problem; `None` only if something was noted.
fn check(
    reader: &mut Reader,
    root: &document::Table,
    paths: &Paths,
    known: Lists,
) -> Option<Experiment> {
    let root = reader.root(root);
    let title = title(reader, &root);
    let paper = root.entry("paper").map(|e| paper(reader, e));
    let target = target(reader, &root);
    let seed = root.entry("seed").and_then(|e| reader.integer(e, 0..=u64::MAX)).unwrap_or(SEED);
    let repeats = root.entry("repeats").and_then(|e| reader.integer(e, 1..=REPEATS_MAX));
    let flavours = flavours(reader, &root, target);
    let loads = loads(reader, &root);
    let warm_up = root.entry("warm_up").and_then(|e| reader.duration(e));
    if let Some((long, at)) = warm_up.filter(|(duration, _)| *duration > WARM_UP_MAX) {
        let message = format!("a warm-up cannot take {long}");
        reader.note(at, message, format!("it is at most {WARM_UP_MAX}, a day"));
    }
    let task = reader.section(&root, "task");
    let program = program::read(reader, &task, paths, target);
    let instruments = instruments(reader, &root, &task, (target, seed), program.as_ref(), paths);
    if let Some(instruments) = &instruments {
        program::check(reader, &task, instruments);
    }
    let load = load_place(reader, &root, paths);
    let section = reader.section(&root, "guest");
    let guest = guest::read(reader, &section, paths);
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
        path: PathBuf::new(),
        directory: paths.directory().into(),
        has_relative_paths: paths.had_relative(),
        source: String::new(),
        overrides: Vec::new(),
        title: title?,
        paper: paper.flatten(),
        target: target?,
        seed,
        // At most REPEATS_MAX.
        repeats: repeats.unwrap_or(1) as u32,
        left_out: Vec::new(),
        flavours: flavours?,
        loads: loads?,
        warm_up: warm_up.map_or(WARM_UP, |(duration, _)| duration),
        instruments: instruments?,
        program,
        load,
        guest,
        limits,
    })
}

fn load_place(reader: &mut Reader, root: &Section, paths: &Paths) -> LoadPlace {
    let section = reader.section(root, "load");
    let on_measured_cpus = section.entry("on_measured_cpus");
    let disk = section.entry("disk").and_then(|e| reader.text(e, "\"/var/tmp\""));
    LoadPlace {
        on_measured_cpus: on_measured_cpus.is_some_and(|e| reader.boolean(e).unwrap_or(false)),
        disk: disk.map(|(path, _)| paths.whole(path)),
    }
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
        reader.note(
            &entry.key_at,
            "a witness watches a guest of the rig from outside, and cannot watch this machine",
            help,
        );
    }
    let judged = |i: &Instrument| match i {
        Instrument::Probe(plan) => can_be_judged(&plan.probe),
        Instrument::Generator(_) => false,
    };
    if let Some(other) = instruments.unwrap_or_default().iter().find(|i| !judged(i)) {
        let message = format!("no witness can judge [{}]", other.name());
        reader.note(
            &entry.key_at,
            message,
            "a witness judges [cyclictest], and [periodic] except its method busy; leave the key out",
        );
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
    task: &Section,
    (target, seed): (Option<Target>, u64),
    program: Option<&Program>,
    paths: &Paths,
) -> Option<Vec<Instrument>> {
    let mut instruments = Vec::new();
    let asked = PROBES.into_iter().filter(|probe| root.entry(probe.name).is_some());
    let probes: Vec<&Definition> = asked.collect();
    // Without any, the one that every experiment once had is what is missing.
    if root.entry("trigger").is_some() || probes.is_empty() {
        instruments.push(generator(reader, root, (target, seed), paths).map(Instrument::Generator));
    } else {
        for key in ["responders", "driver"] {
            if let Some(entry) = root.entry(key) {
                let help = "responders answer triggers: add [trigger], or leave the key out";
                reader.note(&entry.key_at, format!("{key} without [trigger]"), help);
            }
        }
    }
    for probe in probes {
        let section = reader.section(root, probe.name);
        let plan = probe::read(reader, task, &section, probe);
        let plan = plan.map(|plan| Plan {
            program: program.filter(|_| program::starts(&plan.probe)).map(Program::command),
            ..plan
        });
        instruments.push(plan.map(Instrument::Probe));
    }
    instruments.into_iter().collect()
}

fn generator(
    reader: &mut Reader,
    root: &Section,
    (target, seed): (Option<Target>, u64),
    paths: &Paths,
) -> Option<Generator> {
    if target == Some(Target::Local) {
        let help = format!(
            "a probe measures this machine: write one of [{}]; [trigger] needs target = \"rig\"",
            PROBES.map(|probe| probe.name).join("], [")
        );
        let at = root.entry("trigger").map_or(&root.at, |e| &e.key_at);
        reader.note(at, "no generator triggers this machine from outside", help);
        return None;
    }
    let responders = responders(reader, root);
    let section = reader.section(root, "trigger");
    let trigger = trigger::read(reader, &section, seed, paths);
    let section = reader.section(root, "driver");
    let threaded = section.entry("threaded").and_then(|e| reader.boolean(e));
    let wiring = section.entry("wiring").and_then(|e| wiring(reader, e));
    let driver = Driver { threaded: threaded.unwrap_or(false), wiring: wiring.unwrap_or_default() };
    Some(Generator { responders: responders?, trigger: trigger?, driver })
}

fn wiring(reader: &mut Reader, entry: &document::Entry) -> Option<Wiring> {
    let (name, at) = reader.text(entry, "\"gpio\"")?;
    let found = Wiring::ALL.into_iter().find(|w| w.name() == name);
    if found.is_none() {
        let help = known_words(name, Wiring::ALL.map(Wiring::name));
        reader.note(at, format!("unknown wiring {name:?}"), help);
    }
    found
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
            let help = "on this machine onset measures the kernel that runs; leave flavours out";
            reader.note(&entry.key_at, "flavours with target = \"local\"", help);
        }
        return Some(vec![Flavour::local()]);
    }
    let entry = reader.required(root, "flavours", EXAMPLE)?;
    let convert = |text: &str| {
        let help = "write the name of a kernel, then its boot options: \"6.12 preempt=none\"";
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
        return Some(ResponderSet::OF_PORT);
    };
    let convert = |text: &str| {
        let help = known_words(text, ALL_RESPONDERS.iter().map(|r| r.name()));
        text.parse::<Responder>().map_err(|_| (format!("unknown responder {text:?}"), help))
    };
    let found = reader.words(entry, "[\"hardirq\", \"task\"]", convert)?;
    Some(found.into_iter().map(|(responder, _)| responder).collect())
}

/// Whether a witness can judge what the probe reports: it sees calls of the kernel, and a busy wait makes none.
fn can_be_judged(probe: &Probe) -> bool {
    match probe {
        Probe::Periodic(p) => !p.methods.contains(&SleepMethod::Busy),
        Probe::Cyclictest(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instrument;
    use std::path::Path;

    #[test]
    fn an_unknown_wiring_is_refused_with_the_nearest_that_exists() {
        let text = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12\"]\nloads = [\"idle\"]\n\
                    driver.wiring = \"gpoi\"\ntrigger = { period = \"1ms\", count = 1 }\n";
        let refused = Experiment::parse(Path::new("x.toml"), text).unwrap_err().to_string();
        assert!(refused.contains("unknown wiring \"gpoi\""), "{refused}");
        assert!(refused.contains("gpio") && refused.contains("port"), "{refused}");
    }

    fn responders(text: &str) -> ResponderSet {
        let experiment = Experiment::parse(Path::new("t.toml"), text).expect("it is sound");
        let [Instrument::Generator(generator)] = &experiment.instruments[..] else {
            panic!("not one generator");
        };
        generator.responders
    }

    #[test]
    fn those_without_a_pin_of_a_port_answer_where_they_are_named_and_nowhere_else() {
        let shipped = include_str!("../../../experiments/mechanisms.toml");
        assert_eq!(responders(shipped), ResponderSet::ALL);
        let named = |names: &str| {
            responders(&format!(
                "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12\"]\nloads = [\"idle\"]\n{names}\n\
                 [trigger]\nperiod = \"9ms\"\ncount = 10\n"
            ))
        };
        assert_eq!(named(""), ResponderSet::OF_PORT);
        let odd = [Responder::Work, Responder::TimerSoftirq, Responder::Waitqueue];
        let set = named("responders = [\"waitqueue\", \"work\", \"timer_softirq\"]");
        assert!(set.iter().eq(odd));
    }
}
