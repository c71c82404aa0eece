// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset hunt`: searches for the worst answer, and keeps what it takes to have it again.

use super::{SystemClock, print, print_json};
use crate::arguments::Hunt as Arguments;
use crate::bundle::RunId;
use crate::experiment::{Cell, Experiment, Instrument};
use crate::failure::{Exit, Failure};
use crate::hunt::{ALL, About, Ended, Field, Found, Hunt, Journal, Known, Share, Step, Strategy};
use crate::installation::Installation;
use crate::matrix::WallClock;
use crate::target::{Prepared, Rig};
use crate::terminal;
use ::rig::{Bench, Cache, Follow};
use sample::{Insns, Nanos, Responder, ResponderSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};
use vmlinux::Map;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;
/// Shorter stretches get no stack; they are no reason for an answer to be late.
const STACKS_FROM: Insns = Insns(5_000);

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let experiment = experiment(arguments)?;
    let cell = only_cell(&experiment)?;
    let responders = responders(arguments, cell)?;
    let parts = Installation::find()?.parts();
    let rig = Rig::new(Bench::new(Cache::of_user()?, parts)?, &experiment)?;
    eprintln!("{} · {}: preparing the guest", cell.flavour, cell.load);
    let prepared = rig.prepare(&experiment, cell, &|_| ())?;
    let lacking = responders.iter().find(|r| !prepared.generator.responders.contains(**r));
    if let Some(responder) = lacking {
        return Err(Failure::usage(format!(
            "{} has no {}: leave it out",
            cell.flavour,
            responder.name()
        )));
    }
    let hunt = Hunt {
        responders,
        strategies: match arguments.strategies.as_slice() {
            [] => ALL.to_vec(),
            some => some.to_vec(),
        },
        seed: arguments.seed,
        budget: arguments.budget,
        jobs: arguments.jobs.map_or_else(super::run::processors, usize::from),
    };
    let directory = directory(arguments, cell)?;
    let about = about(&experiment, cell, &hunt, &prepared);
    let mut journal = Journal::open(&directory.join("trials.jsonl"), &about)?;
    if journal.count() > 0 {
        eprintln!("going on after {} trials", journal.count());
    }
    let (known, ended) = search(&hunt, &rig, &prepared, &mut journal)?;
    conclude(arguments, &about, &directory, &known, ended)
}

fn search(
    hunt: &Hunt,
    rig: &Rig,
    prepared: &Prepared,
    journal: &mut Journal,
) -> Result<(Known, Ended), Failure> {
    let path = rig.bench().map(&prepared.guest, &prepared.snapshot)?;
    let bytes = std::fs::read(&path).map_err(Failure::unavailable)?;
    let map = Map::from_bytes(bytes).map_err(Failure::unavailable)?;
    let follow = Follow::new(&map, &path, STACKS_FROM, false);
    for missing in &follow.missing {
        eprintln!("not seen in this kernel: {missing}");
    }
    let field = Field { bench: rig.bench(), prepared, follow: &follow, symbols: &map };
    hunt.search(&|trial| field.run(trial), journal, &mut |known| {
        eprintln!("{}", terminal::hunt_progress(known));
    })
}

/// The experiment with one flavour and one load, as far as the arguments choose them.
fn experiment(arguments: &Arguments) -> Result<Experiment, Failure> {
    let text = match &arguments.experiment {
        Some(path) => Experiment::load(path)?.source,
        None => String::new(),
    };
    let mut root: DocumentMut = text.parse().map_err(Failure::usage)?;
    if arguments.experiment.is_none() {
        root["title"] = value("hunt");
        root["target"] = value("rig");
        let mut trigger = Table::new();
        trigger["period"] = value("1ms");
        trigger["count"] = value(1);
        let names = if arguments.responders.is_empty() {
            vec!["hardirq".to_string(), "task".to_string()]
        } else {
            arguments.responders.clone()
        };
        root["responders"] = value(toml_edit::Array::from_iter(names));
        root["trigger"] = Item::Table(trigger);
        if arguments.flavour.is_none() || arguments.load.is_none() {
            return Err(Failure::usage(
                "give --flavour and --load, or an experiment: onset hunt --flavour 6.12-rt --load mixed",
            ));
        }
    }
    // The document's limits are about other runs.
    root.remove("limits");
    for (key, chosen) in [("flavours", &arguments.flavour), ("loads", &arguments.load)] {
        if let Some(chosen) = chosen {
            root[key] = value(toml_edit::Array::from_iter([chosen]));
        }
    }
    let path = arguments.experiment.as_deref().unwrap_or(Path::new("onset hunt"));
    Ok(Experiment::parse(path, &root.to_string())?)
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

fn responders(arguments: &Arguments, cell: Cell) -> Result<Vec<Responder>, Failure> {
    let all = match cell.instrument {
        Instrument::Generator(generator) => generator.responders,
        Instrument::Probe(_) => ResponderSet::default(),
    };
    if arguments.responders.is_empty() {
        return Ok(all.iter().collect());
    }
    let named = arguments.responders.iter().map(|name| {
        let responder: Responder = name.parse().map_err(Failure::usage)?;
        match all.contains(responder) {
            true => Ok(responder),
            false => Err(Failure::usage(format!(
                "{name} is not among the experiment's responders: {}",
                all.iter().map(Responder::name).collect::<Vec<_>>().join(", ")
            ))),
        }
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

fn about(experiment: &Experiment, cell: Cell, hunt: &Hunt, prepared: &Prepared) -> About {
    About {
        journal: Journal::VERSION,
        experiment: experiment.source.clone(),
        flavour: cell.flavour.to_string(),
        load: cell.load.to_string(),
        responders: hunt.responders.iter().map(|r| r.name().to_string()).collect(),
        strategies: hunt.strategies.iter().map(Strategy::to_string).collect(),
        seed: hunt.seed,
        snapshot: prepared.snapshot.1.clone(),
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
    strategies: BTreeMap<&'static str, &'a Share>,
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
    find: String,
    at_strategy: Strategy,
    trial: u64,
    stack: &'a [String],
}

#[derive(Serialize)]
struct PrintedDeath<'a> {
    trial: u64,
    text: &'a str,
}

fn conclude(
    arguments: &Arguments,
    about: &About,
    directory: &Path,
    known: &Known,
    ended: Ended,
) -> Result<Exit, Failure> {
    let worst = known.worst.iter().filter(|(name, _)| about.responders.contains(name));
    let worst = worst.map(|(responder, found)| printed(responder, found, directory));
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
        strategies: known.shares.iter().map(|(s, share)| (s.name(), share)).collect(),
        growth: &known.growth,
        died: known.died.iter().map(|(t, d)| PrintedDeath { trial: *t, text: &d.text }).collect(),
    };
    let path = directory.join("hunt.json");
    let text = serde_json::to_string_pretty(&printed).expect("plain data");
    std::fs::write(&path, text + "\n")
        .map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))?;
    if arguments.json {
        print_json(&printed);
    } else {
        print(&terminal::hunted(about, known, ended, directory));
    }
    Ok(if ended == Ended::Interrupted { Exit::Interrupted } else { Exit::Success })
}

fn printed<'a>(responder: &'a str, found: &'a Found, directory: &Path) -> PrintedFound<'a> {
    PrintedFound {
        responder,
        latency_ns: found.best.latency_ns,
        find: directory.join(format!("{responder}.find.json")).display().to_string(),
        at_strategy: found.strategy,
        trial: found.trial,
        stack: &found.best.stack,
    }
}
