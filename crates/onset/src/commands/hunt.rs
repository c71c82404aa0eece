// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset hunt`: searches for the worst answer, and keeps what it takes to have it again.

use super::{SystemClock, print, print_json};
use crate::arguments::Hunt as Arguments;
use crate::bundle::RunId;
use crate::experiment::{Cell, Experiment};
use crate::failure::{Exit, Failure};
use crate::followed::{Answer, Ready, Reproducer, Subject, narrow};
use crate::hunt::{
    ALL, About, CONCLUSION, Ended, Field, Found, Hunt, JOURNAL, Journal, Known, Share, Step,
    Strategy, find_file,
};
use crate::matrix::WallClock;
use crate::target::Rig;
use crate::terminal::{self, Shown};
use ::rig::Bench;
use sample::{Insns, Nanos, Responder, ResponderSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// Version of the JSON that is printed (docs/hunt.schema.json).
const SCHEMA: u32 = 1;
/// Shorter stretches get no stack; they are no reason for an answer to be late.
const STACKS_FROM: Insns = Insns(5_000);
/// How long the line is high.
const HIGH: Nanos = Nanos::from_micros(1);
/// No trial goes on for longer after its last trigger, so that a guest that died in one has died by then.
const DEATH_AFTER: Nanos = Nanos::from_millis(60_000);

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let experiment = experiment(arguments)?;
    let cell = only_cell(&experiment)?;
    let rig = Rig::new(super::bench()?, &experiment)?;
    let subject = Subject::of_cell(&rig, &experiment, cell).expect("narrowed to triggers");
    let hunt = Hunt {
        responders: responders(arguments, cell, &subject)?,
        strategies: match arguments.strategies.as_slice() {
            [] => ALL.to_vec(),
            some => some.to_vec(),
        },
        seed: arguments.seed,
        budget: arguments.budget,
        jobs: arguments.jobs.map_or_else(super::run::processors, usize::from),
    };
    let name = format!("{} · {}", cell.flavour, cell.load);
    let bench = rig.bench();
    let ready = ready(bench, subject, name)?;
    let directory = directory(arguments, cell)?;
    let about = about(&experiment, cell, &hunt, &ready.made_with().snapshot);
    let mut journal = Journal::open(&directory.join(JOURNAL), &about)?;
    if journal.count() > 0 {
        eprintln!("going on after {} trials", journal.count());
    }
    let (known, ended) = search(&hunt, &ready, &mut journal)?;
    let finds = keep(&ready, &known, &directory)?;
    let deaths = keep_deaths(&experiment, cell, &known, &directory)?;
    conclude(arguments, &about, &directory, (&known, &finds, &deaths), ended)
}

fn ready(bench: &Bench, mut subject: Subject, name: String) -> Result<Ready<'_>, Failure> {
    // Over before the next trigger may come, however close that is: what raises the interrupt is the edge.
    subject.generator.high = HIGH;
    Shown::during(name, ["ready", "failed"], |progress| Ready::new(bench, subject, progress))
}

fn search(hunt: &Hunt, ready: &Ready, journal: &mut Journal) -> Result<(Known, Ended), Failure> {
    let (map, follow) = ready.follow(STACKS_FROM, false)?;
    for missing in &follow.missing {
        eprintln!("! not seen in this kernel: {missing}");
    }
    let field = Field { ready, follow: &follow, symbols: &map };
    hunt.search(&|trial| field.run(trial), journal, &mut |known| {
        eprintln!("{}", terminal::hunt_progress(known));
    })
}

/// Writes a file for the worst of each responder, by which it can be had again.
fn keep(
    ready: &Ready,
    known: &Known,
    directory: &Path,
) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let made_with = ready.made_with();
    let mut finds = BTreeMap::new();
    for (name, Found { best, .. }) in &known.worst {
        let answer = Answer {
            responder: name.parse().map_err(Failure::unavailable)?,
            trigger: best.trigger,
            latency_ns: best.latency_ns,
            insns: best.latency_insns,
        };
        let times = best.instants.clone();
        let find = Reproducer::of(ready.guest(), ready.generator(), &made_with, times, answer);
        let path = directory.join(find_file(name));
        write_json(&path, &find)?;
        finds.insert(name.clone(), path);
    }
    Ok(finds)
}

/// Writes an experiment for each guest that died after a trigger: the same triggers, after which it dies again, with all that
/// its console says in the bundle.
fn keep_deaths(
    experiment: &Experiment,
    cell: Cell,
    known: &Known,
    directory: &Path,
) -> Result<BTreeMap<u64, PathBuf>, Failure> {
    let mut deaths = BTreeMap::new();
    for (trial, died) in known.died.iter().filter(|(_, died)| !died.instants.is_empty()) {
        let mut root: DocumentMut = experiment.source.parse().expect("it was read before");
        root["flavours"] = value(Array::from_iter([cell.flavour.to_string()]));
        root["loads"] = value(Array::from_iter([cell.load.to_string()]));
        let times = died.instants.iter().map(|at| format!("{}ns", at.0));
        let apart = died.instants.windows(2).map(|w| w[1].0 - w[0].0).min().unwrap_or(1_000_000);
        let trigger = [
            ("times", value(Array::from_iter(times))),
            ("duty", value(HIGH.0 as f64 / apart as f64)),
            ("grace", value(DEATH_AFTER.to_string())),
        ];
        root["trigger"] = Item::Table(Table::from_iter(trigger));
        let path = directory.join(format!("died-{trial}.toml"));
        write(&path, &root.to_string())?;
        deaths.insert(*trial, path);
    }
    Ok(deaths)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write(path, &(serde_json::to_string_pretty(value).expect("plain data") + "\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    super::report::write_whole(path, text.as_bytes())
        .map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))
}

/// The experiment with the flavour and the load that the arguments choose.
fn experiment(arguments: &Arguments) -> Result<Experiment, Failure> {
    let mut experiment = match &arguments.experiment {
        Some(path) => Experiment::load(path)?,
        None => Experiment::parse(Path::new("onset hunt"), &text(arguments)?)?,
    };
    narrow(&mut experiment, arguments.flavour.as_deref(), arguments.load)?;
    Ok(experiment)
}

/// An experiment for what is hunted, where none was given.
fn text(arguments: &Arguments) -> Result<String, Failure> {
    let (Some(flavour), Some(load)) = (&arguments.flavour, arguments.load) else {
        return Err(Failure::usage(
            "give --flavour and --load, or an experiment: onset hunt --flavour 6.12-rt --load mixed",
        ));
    };
    let list = |words: &[String]| value(Array::from_iter(words));
    let mut root = DocumentMut::new();
    root["title"] = value("hunt");
    root["target"] = value("rig");
    root["flavours"] = list(std::slice::from_ref(flavour));
    root["loads"] = list(&[load.to_string()]);
    root["responders"] = match arguments.responders.as_slice() {
        [] => list(&["hardirq".into(), "task".into()]),
        some => list(some),
    };
    // A hunt has instants of its own; a trigger has to have some.
    let trigger = [("period", value("1ms")), ("count", value(1))];
    root["trigger"] = Item::Table(Table::from_iter(trigger));
    Ok(root.to_string())
}

fn only_cell(experiment: &Experiment) -> Result<Cell<'_>, Failure> {
    let cells: Vec<Cell> = experiment.cells().collect();
    match cells.as_slice() {
        [cell] => Ok(*cell),
        _ => {
            let names: Vec<String> =
                cells.iter().map(|c| format!("\n  {} · {}", c.flavour, c.load)).collect();
            Err(Failure::usage(format!(
                "a hunt is for one cell, and there are {}; choose by --flavour and --load:{}",
                cells.len(),
                names.concat()
            )))
        }
    }
}

fn responders(
    arguments: &Arguments,
    cell: Cell,
    subject: &Subject,
) -> Result<Vec<Responder>, Failure> {
    let has = subject.generator.responders;
    let names = |set: ResponderSet| set.iter().map(Responder::name).collect::<Vec<_>>().join(", ");
    if arguments.responders.is_empty() {
        return Ok(has.iter().collect());
    }
    let named = arguments.responders.iter().map(|name| {
        let responder: Responder = name.parse().map_err(Failure::usage)?;
        if has.contains(responder) {
            return Ok(responder);
        }
        Err(Failure::usage(format!(
            "{} has no {name} here: either its kernel lacks it, or the experiment leaves it out; there are {}",
            cell.flavour,
            names(has)
        )))
    });
    named.collect()
}

fn directory(arguments: &Arguments, cell: Cell) -> Result<PathBuf, Failure> {
    let directory = arguments.directory.clone().unwrap_or_else(|| {
        let title = format!("{} {}", cell.flavour, cell.load);
        let id = RunId::new(SystemClock.now(), &title, std::process::id() as u16);
        arguments.store.store.join("hunts").join(id.as_str())
    });
    std::fs::create_dir_all(&directory)
        .map_err(|e| Failure::unavailable(format!("{}: {e}", directory.display())))?;
    Ok(directory)
}

fn about(experiment: &Experiment, cell: Cell, hunt: &Hunt, snapshot: &str) -> About {
    About {
        journal: Journal::VERSION,
        experiment: experiment.source.clone(),
        flavour: cell.flavour.to_string(),
        load: cell.load.to_string(),
        responders: hunt.responders.iter().map(|r| r.name().to_string()).collect(),
        strategies: hunt.strategies.iter().map(Strategy::to_string).collect(),
        seed: hunt.seed,
        snapshot: snapshot.to_string(),
    }
}

/// What `--json` prints, and `hunt.json` holds.
#[derive(Serialize)]
pub struct Printed<'a> {
    schema: u32,
    directory: String,
    #[serde(flatten)]
    about: &'a About,
    ended: Ended,
    trials: u64,
    triggers: u64,
    virtual_ns: Nanos,
    coverage: Coverage,
    worst: Vec<PrintedFound<'a>>,
    by_strategy: BTreeMap<&'static str, &'a Share>,
    growth: &'a [Step],
    died: Vec<PrintedDeath<'a>>,
}

#[derive(Serialize)]
struct Coverage {
    stacks_seen: usize,
    stacks_fired_into: usize,
}

#[derive(Serialize)]
struct PrintedFound<'a> {
    responder: &'a str,
    latency_ns: Nanos,
    find: Option<String>,
    at_strategy: Strategy,
    trial: u64,
    stack: &'a [String],
}

#[derive(Serialize)]
struct PrintedDeath<'a> {
    trial: u64,
    text: &'a str,
    experiment: Option<String>,
}

fn conclude(
    arguments: &Arguments,
    about: &About,
    directory: &Path,
    (known, finds, deaths): (&Known, &BTreeMap<String, PathBuf>, &BTreeMap<u64, PathBuf>),
    ended: Ended,
) -> Result<Exit, Failure> {
    let worst = known.worst.iter().filter(|(name, _)| about.responders.contains(name));
    let worst = worst.map(|(responder, found)| printed(responder, found, finds.get(responder)));
    let died = known.died.iter().map(|(trial, died)| PrintedDeath {
        trial: *trial,
        text: &died.text,
        experiment: deaths.get(trial).map(|path| path.display().to_string()),
    });
    let printed = Printed {
        schema: SCHEMA,
        directory: directory.display().to_string(),
        about,
        ended,
        trials: known.trials,
        triggers: known.triggers,
        virtual_ns: known.virtual_ns,
        coverage: Coverage {
            stacks_seen: known.seen.union(&known.fired).count(),
            stacks_fired_into: known.fired.len(),
        },
        worst: worst.collect(),
        by_strategy: known.shares.iter().map(|(s, share)| (s.name(), share)).collect(),
        growth: &known.growth,
        died: died.collect(),
    };
    write_json(&directory.join(CONCLUSION), &printed)?;
    if arguments.json {
        print_json(&printed);
    } else {
        print(&terminal::hunted(about, (known, finds, deaths), ended, directory));
    }
    Ok(if ended == Ended::Interrupted { Exit::Interrupted } else { Exit::Success })
}

fn printed<'a>(
    responder: &'a str,
    found: &'a Found,
    find: Option<&'a PathBuf>,
) -> PrintedFound<'a> {
    PrintedFound {
        responder,
        latency_ns: found.best.latency_ns,
        find: find.map(|path| path.display().to_string()),
        at_strategy: found.strategy,
        trial: found.trial,
        stack: &found.best.stack,
    }
}
