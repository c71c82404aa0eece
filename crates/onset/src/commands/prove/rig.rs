// SPDX-License-Identifier: GPL-2.0-or-later
//! In the rig: what each knob does and what it costs, in pairs of guests.

use super::{CONTROL_ROW, TOGETHER, goal};
use crate::arguments::TuneProve;
use crate::commands::run::{Results, measure_all};
use crate::commands::store;
use crate::failure::Failure;
use bundle::{Bundle, Manifest};
use experiment::{Experiment, Flavour};
use lab::Found;
use machine::{Cpus, KnobKind, Plan};
use std::collections::BTreeMap;
use std::path::Path;
use toml_edit::{Array, DocumentMut, value};
use view::results::{KernelProof, Pairs, Proof, ProofRow};

/// A word that no kernel knows. It has the form of a parameter of a module, which no kernel refuses.
const CONTROL: &str = "onset.control=1";
/// How many pairs there are if nobody says a number: the least with which an effect can be told from chance.
const PAIRS: u16 = 6;
/// Whose answers are judged if nobody says so, and by which statistic.
const GOAL: &str = "task.p99";
/// The guest's seed of the first pair, as an override says it: not at all.
const FIRST: &str = "";

/// What is changed, and the words of the command line that change it.
struct Change {
    name: String,
    words: String,
}

pub fn prove(arguments: &TuneProve) -> Result<Proof, Failure> {
    let changes = changes(&arguments.knobs).map_err(Failure::usage)?;
    let (responder, statistic) = goal(arguments.goal.as_deref().unwrap_or(GOAL))?;
    let experiments = [latencies(arguments, &changes, &responder)?, costs(arguments, &changes)?];
    let all: Vec<Experiment> =
        experiments.iter().map(Experiment::repetitions).collect::<Result<Vec<_>, _>>()?.concat();
    // Guests that are alike answer alike, so what an earlier proof measured counts, also one with other knobs or pairs.
    let found = Found::of(&store(&arguments.store.store))?;
    let results = measure_all(&all, None, &found, &arguments.store)?;
    if work::is_cancelled() {
        return Err(rig::Error::Interrupted.into());
    }
    let runs = Runs::of(&results)?;
    let goal = (responder.as_str(), statistic);
    let kernel = |flavour: &String| -> Result<KernelProof, Failure> {
        let base = flavour.parse::<Flavour>().map_err(Failure::usage)?.to_string();
        let row = |change: &Change| {
            let words = change.words.clone();
            ProofRow::of((change.name.clone(), words), goal, runs.pairs(&base, &change.words))
        };
        Ok(KernelProof { rows: changes.iter().map(row).collect(), flavour: base })
    };
    Ok(Proof {
        schema: Proof::SCHEMA,
        statistic: statistic.name(),
        load: arguments.load.name().into(),
        kernels: arguments.flavours.iter().map(kernel).collect::<Result<_, _>>()?,
        machine: None,
        responder,
    })
}

/// The control, each knob, and if there are several all together.
fn changes(knobs: &[String]) -> Result<Vec<Change>, String> {
    let mut changes = vec![Change { name: CONTROL_ROW.into(), words: CONTROL.into() }];
    // The guest has one CPU, which is the measured one.
    let cpus = Cpus::of(&[0], Some("0"))?;
    for knob in knobs {
        let plan = Plan::default().with(std::slice::from_ref(knob), &cpus);
        let words = words(&plan.map_err(|e| e.to_string())?)?;
        changes.push(Change { name: knob.clone(), words });
    }
    let together = Plan::default().with(knobs, &cpus).map_err(|e| e.to_string())?;
    if together.changes().len() > 1 {
        together.consistent().map_err(|e| format!("{e}; prove them one at a time"))?;
        changes.push(Change { name: TOGETHER.into(), words: words(&together)? });
    }
    Ok(changes)
}

/// The words of the command line that carry out a plan. Since Linux 5.8 a word may set anything below /proc/sys, too.
fn words(plan: &Plan) -> Result<String, String> {
    let word = |change: &machine::Change| {
        let machine::Change { knob, value } = change;
        let prefix = match knob.kind {
            KnobKind::Boot => "",
            KnobKind::Sysctl => "sysctl.",
            other => {
                return Err(format!(
                    "{} is a knob of the kind {}; the rig proves boot parameters and sysctls, which a guest takes at boot",
                    knob.name,
                    other.name()
                ));
            }
        };
        let value = if value.is_empty() { String::new() } else { format!("={value}") };
        Ok(format!("{prefix}{}{value}", knob.name))
    };
    Ok(plan.changes().iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" "))
}

fn experiment(
    arguments: &TuneProve,
    changes: &[Change],
    fill: impl FnOnce(&mut DocumentMut),
) -> Result<Experiment, Failure> {
    let with = |flavour: &String| -> Vec<String> {
        let changed = changes.iter().map(|change| format!("{flavour} {}", change.words));
        std::iter::once(flavour.clone()).chain(changed).collect()
    };
    let mut flavours: Vec<String> = Vec::new();
    for flavour in arguments.flavours.iter().flat_map(with) {
        if !flavours.contains(&flavour) {
            flavours.push(flavour);
        }
    }
    let mut root = DocumentMut::new();
    root["title"] = value("tune prove");
    root["target"] = value("rig");
    root["flavours"] = value(Array::from_iter(flavours));
    fill(&mut root);
    Ok(Experiment::parse(Path::new("onset tune prove"), &root.to_string())?)
}

fn latencies(
    arguments: &TuneProve,
    changes: &[Change],
    responder: &str,
) -> Result<Experiment, Failure> {
    experiment(arguments, changes, |root| {
        root["repeats"] = value(i64::from(arguments.pairs.unwrap_or(PAIRS)));
        root["loads"] = value(Array::from_iter([arguments.load.name()]));
        root["responders"] = value(Array::from_iter([responder]));
        root["trigger"]["period"] = value("1ms");
        root["trigger"]["jitter"] = value("200us");
        root["trigger"]["count"] = value(1000);
    })
}

fn costs(arguments: &TuneProve, changes: &[Change]) -> Result<Experiment, Failure> {
    experiment(arguments, changes, |root| {
        root["loads"] = value(Array::from_iter(["idle"]));
        root["cost"]["suites"] = value(Array::from_iter(["syscalls", "context"]));
    })
}

/// The runs, by flavour, whether they are of the cost suite, and the seed of the guest.
struct Runs(BTreeMap<(String, bool, String), Result<Manifest, String>>);

impl Runs {
    fn of(results: &Results<'_>) -> Result<Runs, Failure> {
        let mut runs = BTreeMap::new();
        for (experiment, results) in results {
            let seed = experiment.overrides.iter().rev().find(|(key, _)| key == "guest.seed");
            let seed = seed.map_or(FIRST, |(_, seed)| seed.as_str());
            for (cell, result) in experiment.cells().zip(results) {
                let run = match result {
                    Ok(path) => Ok(Bundle::open(path)?.manifest().clone()),
                    Err(e) => Err(e.to_string()),
                };
                let is_cost = matches!(cell.instrument, experiment::Instrument::Probe(_));
                runs.insert((cell.flavour.to_string(), is_cost, seed.to_owned()), run);
            }
        }
        Ok(Runs(runs))
    }

    /// The pairs of a flavour and the same with more words.
    fn pairs(&self, base: &str, words: &str) -> Pairs {
        let changed = format!("{base} {words}");
        let mut pairs = Pairs::default();
        for ((flavour, is_cost, seed), without) in &self.0 {
            let with = self.0.get(&(changed.clone(), *is_cost, seed.clone()));
            let (true, Some(with)) = (flavour == base, with) else { continue };
            match (without, with) {
                (Ok(a), Ok(b)) if *is_cost => pairs.costs = Some((a.clone(), b.clone())),
                (Ok(a), Ok(b)) => pairs.latencies.push((a.clone(), b.clone())),
                (a, b) => pairs.absent.extend([a, b].into_iter().filter_map(|r| r.clone().err())),
            }
        }
        pairs
    }
}
