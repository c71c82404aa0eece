// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset hunt`: searches for the worst answer, and keeps what it takes to have it again.

mod deaths;
mod printed;

use super::{SystemClock, print, print_json};
use crate::arguments::Hunt as Arguments;
use crate::bundle::RunId;
use crate::experiment::{Cell, Experiment};
use crate::failure::{Exit, Failure};
use crate::followed::{Ready, Subject, narrow};
use crate::hunt::{
    ALL, About, CONCLUSION, Ended, Field, Find, Grounds, Hunt, JOURNAL, Journal, Known,
    explain_finds, find_file,
};
use crate::matrix::WallClock;
use crate::target::Rig;
use crate::terminal::{self, Shown};
use ::rig::Bench;
use printed::Printed;
use sample::{Insns, Nanos, Responder, ResponderSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// Shorter stretches get no stack; they are no reason for an answer to be late.
const STACKS_FROM: Insns = Insns(5_000);
/// How long the line is high.
const HIGH: Nanos = Nanos::from_micros(1);

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
        enough: None,
    };
    let name = format!("{} · {}", cell.flavour, cell.load);
    let bench = rig.bench();
    let grounds = Grounds::new(ready(bench, subject, name)?);
    let directory = directory(arguments, cell)?;
    let flavour = (cell.flavour.to_string(), cell.load);
    let key = grounds.first().made_with().snapshot;
    let about = About::of(&hunt, &experiment.source, flavour, &key);
    let mut journal = Journal::open(&directory.join(JOURNAL), &about)?;
    if journal.count() > 0 {
        eprintln!("going on after {} trials", journal.count());
    }
    let (known, ended) = search(&hunt, &grounds, &mut journal)?;
    let mut finds = Find::all(&grounds, &known, &hunt.responders)?;
    let mut interrupted = ended == Ended::Interrupted;
    if !interrupted {
        interrupted = explain_finds(bench, &mut finds, hunt.jobs).is_err();
    }
    write_finds(&mut finds, &directory)?;
    let deaths = deaths::write(&experiment, cell, &known, &directory)?;
    let printed = Printed::of(&about, &directory, &known, (&finds, &deaths), ended);
    write_json(&directory.join(CONCLUSION), &printed)?;
    if arguments.json {
        print_json(&printed);
    } else {
        print(&terminal::hunted(&about, &known, (&finds, &deaths), ended, &directory));
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Success })
}

/// A guest to be hunted in.
pub(super) fn ready(
    bench: &Bench,
    mut subject: Subject,
    name: String,
) -> Result<Ready<'_>, Failure> {
    // Over before the next trigger may come, however close that is: what raises the interrupt is the edge.
    subject.generator.high = HIGH;
    Shown::during(name, ["ready", "failed"], |progress| Ready::new(bench, subject, progress))
}

/// Hunts, and shows how far it has come after each round.
pub(super) fn search(
    hunt: &Hunt,
    grounds: &Grounds,
    journal: &mut Journal,
) -> Result<(Known, Ended), Failure> {
    let (map, follow) = grounds.first().follow(STACKS_FROM, false)?;
    for missing in &follow.missing {
        eprintln!("! not seen in this kernel: {missing}");
    }
    let field = Field { grounds, follow: &follow, symbols: &map };
    hunt.search(&|trial| field.run(trial), journal, &mut |known| {
        eprintln!("{}", terminal::hunt_progress(known));
    })
}

/// Writes a file for each, by which it can be had again; what an earlier part of the hunt wrote below them goes.
fn write_finds(finds: &mut [Find], directory: &Path) -> Result<(), Failure> {
    let mut ranks: BTreeMap<Responder, usize> = BTreeMap::new();
    for find in finds {
        let rank = ranks.entry(find.responder).or_default();
        let path = directory.join(find_file(find.responder.name(), *rank));
        write_json(&path, &find.reproducer)?;
        find.path = Some(path);
        *rank += 1;
    }
    for (responder, rank) in ranks {
        let below = (rank..).map(|rank| directory.join(find_file(responder.name(), rank)));
        below.take_while(|path| std::fs::remove_file(path).is_ok()).for_each(drop);
    }
    Ok(())
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
