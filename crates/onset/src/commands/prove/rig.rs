// SPDX-License-Identifier: GPL-2.0-or-later
//! In the rig: what each knob does and what it costs, in pairs of guests.

pub(super) mod hunted;
pub(super) mod reasons;
pub(super) mod screen;

use super::{CONTROL_ROW, TOGETHER, goal, knob};
use crate::arguments::{StoreArgument, TuneProve};
use crate::commands::run::{Results, measure_all};
use crate::commands::store;
use crate::failure::Failure;
use bundle::{Bundle, Manifest};
use experiment::{Experiment, Flavour, Load};
use lab::Found;
use machine::{Cpus, KnobKind, Plan};
use probes::context::keys;
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

/// What is changed, and the words that change it.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) words: String,
    /// Whether the words are the name of another kernel with the same boot options. Else they are further options.
    pub(super) is_kernel: bool,
}

/// Changes of a flavour.
pub(super) type Chosen = (String, Vec<Change>);

/// What is asked for, and what it is judged by.
pub(super) struct Proving<'a> {
    pub(super) load: Load,
    /// How many pairs.
    pub(super) pairs: u16,
    /// How many guests run at once.
    pub(super) jobs: Option<u16>,
    pub(super) store: &'a StoreArgument,
    pub(super) responder: String,
    pub(super) statistic: Statistic,
    /// Who answers beside the responder that is judged.
    pub(super) others: &'static [&'static str],
    /// Says which costs are measured.
    pub(super) costs: fn(&mut DocumentMut),
}

impl Change {
    /// What changes nothing.
    pub(super) fn control() -> Change {
        Change { name: CONTROL_ROW.into(), words: CONTROL.into(), is_kernel: false }
    }

    /// The flavour with the change.
    pub(super) fn of(&self, base: &str) -> String {
        match (self.is_kernel, base.split_once(' ')) {
            (false, _) => format!("{base} {}", self.words),
            (true, Some((_, options))) => format!("{} {options}", self.words),
            (true, None) => self.words.clone(),
        }
    }
}

pub fn prove(arguments: &TuneProve) -> Result<Proof, Failure> {
    let (knobs, untried) = knobs(arguments).map_err(Failure::usage)?;
    let changes = changes(&knobs, arguments).map_err(Failure::usage)?;
    let (responder, statistic) = goal(arguments.goal.as_deref().unwrap_or(GOAL))?;
    let proving = Proving {
        load: arguments.load,
        pairs: arguments.pairs.unwrap_or(PAIRS),
        jobs: arguments.jobs,
        store: &arguments.store,
        responder,
        statistic,
        others: &[],
        costs: |root| {
            root["cost"]["suites"] = value(Array::from_iter(["syscalls", "context"]));
            few_batches(root);
        },
    };
    let flavours = arguments.flavours.iter().map(|flavour| base(flavour));
    let flavours: Vec<String> = flavours.collect::<Result<_, _>>()?;
    let mut kernels = match arguments.screen {
        true => screen::kernels(&proving, &flavours, &changes)?,
        false => kernels(&proving, &flavours, &changes)?,
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
fn kernels(
    proving: &Proving,
    flavours: &[String],
    changes: &[Change],
) -> Result<Vec<KernelProof>, Failure> {
    let chosen: Vec<Chosen> =
        flavours.iter().map(|flavour| (flavour.clone(), changes.to_vec())).collect();
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
pub(super) fn base(flavour: &str) -> Result<String, Failure> {
    Ok(flavour.parse::<Flavour>().map_err(Failure::usage)?.to_string())
}

impl Proving<'_> {
    /// The runs of the pairs, and of the costs if they are asked for.
    pub(super) fn runs(&self, chosen: &[Chosen], costs: bool) -> Result<Runs, Failure> {
        let latencies = self.latencies(chosen)?.repetitions()?;
        let costs = if costs { self.costs(chosen)?.repetitions()? } else { Vec::new() };
        let all = [latencies, costs].concat();
        Runs::of(&self.measured(&all)?)
    }

    /// Guests that are alike answer alike, so what an earlier proof measured counts, also one with other knobs or
    /// pairs.
    fn measured<'a>(&self, all: &'a [Experiment]) -> Result<Results<'a>, Failure> {
        let found = Found::of(&store(&self.store.store))?;
        let results = measure_all(all, self.jobs, &found, self.store)?;
        match work::is_cancelled() {
            true => Err(rig::Error::Interrupted.into()),
            false => Ok(results),
        }
    }

    pub(super) fn row(&self, runs: &Runs, base: &str, change: &Change) -> ProofRow {
        let goal = (self.responder.as_str(), self.statistic);
        let name = (change.name.clone(), change.words.clone());
        ProofRow::of(name, goal, runs.pairs(base, change))
    }

    pub(super) fn latencies(&self, chosen: &[Chosen]) -> Result<Experiment, Failure> {
        let others = self.others.iter().filter(|other| **other != self.responder).copied();
        experiment(chosen, |root| {
            root["repeats"] = value(i64::from(self.pairs));
            root["loads"] = value(Array::from_iter([self.load.name()]));
            root["responders"] = value(Array::from_iter(others.chain([self.responder.as_str()])));
            triggers(root);
        })
    }

    fn costs(&self, chosen: &[Chosen]) -> Result<Experiment, Failure> {
        experiment(chosen, |root| {
            root["loads"] = value(Array::from_iter(["idle"]));
            (self.costs)(root);
        })
    }
}

/// Instructions vary from batch to batch by the interrupts in them alone: a few batches have one without.
pub(super) fn few_batches(root: &mut DocumentMut) {
    root["cost"]["count"] = value(5);
    root["cost"]["repetitions"] = value(1);
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
    let all = machine::knobs().iter().filter(|knob| knob.kind != KnobKind::Told);
    let all = all.map(|knob| knob.trial(&cpus).ok_or_else(|| knob.name.clone()));
    let (tried, untried): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
    Ok((
        tried.into_iter().flatten().collect(),
        untried.into_iter().filter_map(Result::err).collect(),
    ))
}

/// The control and each knob; all together if several are named and none is screened.
fn changes(knobs: &[String], arguments: &TuneProve) -> Result<Vec<Change>, String> {
    let mut changes = vec![Change::control()];
    let cpus = cpus()?;
    for knob in knobs {
        let plan = Plan::default().with(&with_needed(knob, knobs)?, &cpus);
        let words = words(&plan.map_err(|e| e.to_string())?)?;
        changes.push(Change { name: knob.clone(), words, is_kernel: false });
    }
    if arguments.screen || arguments.all {
        return Ok(changes);
    }
    let together = Plan::default().with(knobs, &cpus).map_err(|e| e.to_string())?;
    if together.changes().len() > 1 {
        together.consistent().map_err(|e| format!("{e}; prove them one at a time"))?;
        let words = words(&together)?;
        changes.push(Change { name: TOGETHER.into(), words, is_kernel: false });
    }
    Ok(changes)
}

/// A knob after those without which it does nothing, with the values that these have among the others.
///
/// # Errors
/// If one of them is not there.
fn with_needed(said: &str, others: &[String]) -> Result<Vec<String>, String> {
    let found = machine::find(knob(said))?;
    let is_of = |other: &&String, name: &str| {
        machine::find(knob(other)).is_ok_and(|other| other.name == name)
    };
    let needed = found.needs.iter().map(|name| {
        let other = others.iter().find(|other| is_of(other, name)).cloned();
        other.ok_or_else(|| format!("{said} does nothing without {name}; add --knob {name}=VALUE"))
    });
    needed.chain([Ok(said.to_owned())]).collect()
}

/// The words of the command line that carry out a plan. Since Linux 5.8 a word may set anything below /proc/sys, too.
/// The guest's process 1 carries out the others ([`machine::KnobWord`]).
fn words(plan: &Plan) -> Result<String, String> {
    let word = |change: &machine::Change| {
        let machine::Change { knob, value } = change;
        let prefix = match knob.kind {
            KnobKind::Boot => "",
            KnobKind::Sysctl => keys::SYSCTL,
            _ => keys::KNOB,
        };
        if value.contains(char::is_whitespace) {
            return Err(format!(
                "{} is given to a guest as a word of its command line, which has no spaces; the value is {value:?}",
                knob.name
            ));
        }
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
        let changed = changes.iter().map(|change| change.of(flavour));
        std::iter::once(flavour.clone()).chain(changed).collect()
    };
    let mut flavours: Vec<String> = Vec::new();
    for flavour in chosen.iter().flat_map(with) {
        if !flavours.contains(&flavour) {
            flavours.push(flavour);
        }
    }
    let mut root = DocumentMut::new();
    root["title"] = value("prove");
    root["target"] = value("rig");
    root["flavours"] = value(Array::from_iter(flavours));
    fill(&mut root);
    Ok(Experiment::parse(Path::new("onset prove"), &root.to_string())?)
}

/// The runs, by flavour, whether they are of the cost suite, and the seed of the guest.
pub(super) struct Runs(BTreeMap<(String, bool, String), Result<Manifest, String>>);

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

    /// The pairs of a flavour and the same with a change.
    pub(super) fn pairs(&self, base: &str, change: &Change) -> Pairs {
        let changed = change.of(base);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_proven_with_what_it_needs() {
        let all = ["vm.swappiness=1", "rcu_nocbs=0", "rcu_nocb_poll"].map(str::to_owned);
        assert_eq!(with_needed("rcu_nocb_poll", &all), Ok(all[1..].to_vec()));
        assert_eq!(with_needed("vm.swappiness=1", &all), Ok(all[..1].to_vec()));
        let missing = with_needed("rcu_nocb_poll", &all[..1]).unwrap_err();
        assert!(missing.contains("nothing without rcu_nocbs; add --knob rcu_nocbs"), "{missing}");
    }
}
