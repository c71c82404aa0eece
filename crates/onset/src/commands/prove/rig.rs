// SPDX-License-Identifier: GPL-2.0-or-later
//! In the rig: what each knob does and what it costs, in pairs of guests.

mod hunted;
mod reasons;
mod screen;

use super::{CONTROL_ROW, TOGETHER, goal};
use crate::arguments::TuneProve;
use crate::commands::run::{Results, measure_all};
use crate::commands::store;
use crate::failure::Failure;
use bundle::{Bundle, Manifest};
use experiment::{Experiment, Flavour};
use lab::Found;
use machine::{Cpus, Knob, KnobKind, Plan};
use stats::Statistic;
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
#[derive(Clone)]
struct Change {
    name: String,
    words: String,
}

/// Changes of a flavour.
type Chosen = (String, Vec<Change>);

/// What is asked for, and what it is judged by.
struct Proving<'a> {
    arguments: &'a TuneProve,
    responder: String,
    statistic: Statistic,
}

pub fn prove(arguments: &TuneProve) -> Result<Proof, Failure> {
    let (knobs, untried) = knobs(arguments).map_err(Failure::usage)?;
    let changes = changes(&knobs, arguments).map_err(Failure::usage)?;
    let (responder, statistic) = goal(arguments.goal.as_deref().unwrap_or(GOAL))?;
    let proving = Proving { arguments, responder, statistic };
    let mut kernels = match arguments.screen {
        true => screen::kernels(&proving, &changes)?,
        false => kernels(&proving, &changes)?,
    };
    for kernel in &mut kernels {
        reasons::tell(&proving, kernel)?;
        if let Some(budget) = arguments.hunt {
            kernel.hunted = hunted::hunt(&proving, kernel, budget)?;
        }
    }
    Ok(Proof {
        schema: Proof::SCHEMA,
        statistic: statistic.name(),
        load: arguments.load.name().into(),
        kernels,
        untried,
        machine: None,
        responder: proving.responder,
    })
}

/// Every change in pairs, and its costs.
fn kernels(proving: &Proving, changes: &[Change]) -> Result<Vec<KernelProof>, Failure> {
    let chosen =
        proving.arguments.flavours.iter().map(|flavour| Ok((base(flavour)?, changes.to_vec())));
    let chosen: Vec<Chosen> = chosen.collect::<Result<_, Failure>>()?;
    let runs = proving.runs(&chosen, true)?;
    let kernel = |(flavour, changes): &Chosen| KernelProof {
        rows: changes.iter().map(|change| proving.row(&runs, flavour, change)).collect(),
        groups: Vec::new(),
        hunted: None,
        flavour: flavour.clone(),
    };
    Ok(chosen.iter().map(kernel).collect())
}

/// The flavour as its runs name it.
fn base(flavour: &str) -> Result<String, Failure> {
    Ok(flavour.parse::<Flavour>().map_err(Failure::usage)?.to_string())
}

impl Proving<'_> {
    /// The runs of the pairs, and of the costs if they are asked for.
    fn runs(&self, chosen: &[Chosen], costs: bool) -> Result<Runs, Failure> {
        let latencies = self.latencies(chosen)?.repetitions()?;
        let costs = if costs { self.costs(chosen)?.repetitions()? } else { Vec::new() };
        let all = [latencies, costs].concat();
        Runs::of(&self.measured(&all)?)
    }

    /// Guests that are alike answer alike, so what an earlier proof measured counts, also one with other knobs or
    /// pairs.
    fn measured<'a>(&self, all: &'a [Experiment]) -> Result<Results<'a>, Failure> {
        let found = Found::of(&store(&self.arguments.store.store))?;
        let results = measure_all(all, self.arguments.jobs, &found, &self.arguments.store)?;
        match work::is_cancelled() {
            true => Err(rig::Error::Interrupted.into()),
            false => Ok(results),
        }
    }

    fn row(&self, runs: &Runs, base: &str, change: &Change) -> ProofRow {
        let goal = (self.responder.as_str(), self.statistic);
        let name = (change.name.clone(), change.words.clone());
        ProofRow::of(name, goal, runs.pairs(base, &change.words))
    }

    fn latencies(&self, chosen: &[Chosen]) -> Result<Experiment, Failure> {
        experiment(chosen, |root| {
            root["repeats"] = value(i64::from(self.arguments.pairs.unwrap_or(PAIRS)));
            root["loads"] = value(Array::from_iter([self.arguments.load.name()]));
            root["responders"] = value(Array::from_iter([self.responder.as_str()]));
            triggers(root);
        })
    }

    fn costs(&self, chosen: &[Chosen]) -> Result<Experiment, Failure> {
        experiment(chosen, |root| {
            root["loads"] = value(Array::from_iter(["idle"]));
            root["cost"]["suites"] = value(Array::from_iter(["syscalls", "context"]));
        })
    }
}

fn triggers(root: &mut DocumentMut) {
    root["trigger"]["period"] = value("1ms");
    root["trigger"]["jitter"] = value("200us");
    root["trigger"]["count"] = value(1000);
}

/// The guest has one CPU, which is the measured one.
fn cpus() -> Result<Cpus, String> {
    Cpus::of(&[0], Some("0"))
}

/// The knobs with their values, and those of all knobs that no guest can try.
fn knobs(arguments: &TuneProve) -> Result<(Vec<String>, Vec<String>), String> {
    if !arguments.all {
        return Ok((arguments.knobs.clone(), Vec::new()));
    }
    let cpus = cpus()?;
    let of_boot = |knob: &&Knob| matches!(knob.kind, KnobKind::Boot | KnobKind::Sysctl);
    let all = machine::knobs().iter().filter(of_boot);
    let all = all.map(|knob| knob.trial(&cpus).ok_or_else(|| knob.name.clone()));
    let (tried, untried): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
    Ok((
        tried.into_iter().flatten().collect(),
        untried.into_iter().filter_map(Result::err).collect(),
    ))
}

/// The control and each knob; all together if several are named and none is screened.
fn changes(knobs: &[String], arguments: &TuneProve) -> Result<Vec<Change>, String> {
    let mut changes = vec![Change { name: CONTROL_ROW.into(), words: CONTROL.into() }];
    let cpus = cpus()?;
    for knob in knobs {
        let plan = Plan::default().with(std::slice::from_ref(knob), &cpus);
        let words = words(&plan.map_err(|e| e.to_string())?)?;
        changes.push(Change { name: knob.clone(), words });
    }
    if arguments.screen || arguments.all {
        return Ok(changes);
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

/// An experiment with each flavour, without a change and with each.
fn experiment(
    chosen: &[Chosen],
    fill: impl FnOnce(&mut DocumentMut),
) -> Result<Experiment, Failure> {
    let with = |(flavour, changes): &Chosen| -> Vec<String> {
        let changed = changes.iter().map(|change| format!("{flavour} {}", change.words));
        std::iter::once(flavour.clone()).chain(changed).collect()
    };
    let mut flavours: Vec<String> = Vec::new();
    for flavour in chosen.iter().flat_map(with) {
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
