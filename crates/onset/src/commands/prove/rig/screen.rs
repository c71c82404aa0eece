// SPDX-License-Identifier: GPL-2.0-or-later
//! The screening of many knobs: which of them are worth pairs of their own.
//!
//! A quiet guest answers alike whatever its history was: a word that means nothing does not move the median answer by a
//! nanosecond. So one guest tells whether a knob changes the way of an answer. It does not tell what
//! the knob does under load. The knobs that change nothing here get their pairs in groups: if all knobs of a group
//! together have no effect, none is looked for in each.

use super::super::knob;
use super::{CONTROL_ROW, Change, Chosen, Proving, triggers};
use crate::failure::Failure;
use bundle::Bundle;
use machine::Plan;
use sample::{Nanos, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml_edit::{Array, value};
use view::results::{KernelProof, ProofRow, Quiet, QuietAnswers, unsound};

/// The mechanisms that a quiet guest answers by.
pub const LADDER: [&str; 5] = ["hardirq", "threaded_irq", "tasklet", "work", "task"];
/// How many knobs a group has. The number is chosen: eight pairs tell of a group with an effect which knob has it, and
/// the groups of all knobs take less time than one knob of eight.
const GROUP: usize = 8;

/// What the quiet guests answered, by flavour; or why there was no guest.
struct QuietGuests(BTreeMap<String, Result<QuietAnswers, String>>);

/// Screens the changes, and measures those in pairs that the screening does not rule out.
pub fn kernels(
    proving: &Proving,
    flavours: &[String],
    changes: &[Change],
) -> Result<Vec<KernelProof>, Failure> {
    let quiet = QuietGuests::measured(proving, flavours, changes)?;
    let mut grouped: Vec<Chosen> = Vec::new();
    for flavour in flavours {
        let alike =
            |change: &&Change| quiet.compared(flavour, change).is_ok_and(|quiet| quiet.same);
        let alike = changes.iter().filter(|change| change.name != CONTROL_ROW).filter(alike);
        grouped.push((flavour.clone(), groups(&alike.cloned().collect::<Vec<_>>())));
    }
    let runs = proving.runs(&with_control(&grouped, changes), false)?;
    let mut kernels = Vec::new();
    let mut chosen: Vec<Chosen> = Vec::new();
    for (flavour, groups) in grouped {
        let groups: Vec<ProofRow> =
            groups.iter().map(|group| proving.row(&runs, &flavour, group)).collect();
        let is_open = |change: &&Change| match quiet.compared(&flavour, change) {
            Err(_) => false,
            Ok(quiet) => {
                !quiet.same || member(&groups, change).is_some_and(|g| groups[g].has_effect())
            }
        };
        chosen.push((flavour.clone(), changes.iter().filter(is_open).cloned().collect()));
        kernels.push(KernelProof { flavour, rows: Vec::new(), groups, hunted: None });
    }
    let runs = proving.runs(&with_control(&chosen, changes), true)?;
    for kernel in &mut kernels {
        let row = |change: &Change| row(proving, &runs, &quiet, kernel, change);
        kernel.rows = changes.iter().map(row).collect();
    }
    Ok(kernels)
}

fn row(
    proving: &Proving,
    runs: &super::Runs,
    quiet: &QuietGuests,
    kernel: &KernelProof,
    change: &Change,
) -> ProofRow {
    let mut row = proving.row(runs, &kernel.flavour, change);
    row.group = member(&kernel.groups, change).map(|group| group as u32 + 1);
    match quiet.compared(&kernel.flavour, change) {
        Ok(quiet) => row.quiet = Some(quiet),
        Err(why) => row.absent.push(why),
    }
    row
}

/// The control, which every kernel has, before its changes.
fn with_control(chosen: &[Chosen], changes: &[Change]) -> Vec<Chosen> {
    let with = |(flavour, chosen): &Chosen| {
        let control = changes.iter().filter(|change| change.name == CONTROL_ROW);
        let others = chosen.iter().filter(|change| change.name != CONTROL_ROW);
        (flavour.clone(), control.chain(others).cloned().collect())
    };
    chosen.iter().map(with).collect()
}

/// In which group a change is.
fn member(groups: &[ProofRow], change: &Change) -> Option<usize> {
    let has = |group: &ProofRow| group.change.split(", ").any(|name| name == change.name);
    groups.iter().position(has)
}

/// The changes in groups, each a change of its own. Knobs that contradict each other are in different groups.
fn groups(changes: &[Change]) -> Vec<Change> {
    let mut groups: Vec<Vec<&Change>> = Vec::new();
    for change in changes {
        let fits = |group: &&mut Vec<&Change>| group.len() < GROUP && agree(group, change);
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    let joined = |group: &Vec<&Change>, part: fn(&Change) -> &str, between: &str| {
        group.iter().map(|change| part(change)).collect::<Vec<_>>().join(between)
    };
    let group = |group: &Vec<&Change>| Change {
        name: joined(group, |change| &change.name, ", "),
        words: joined(group, |change| &change.words, " "),
        is_kernel: false,
    };
    groups.iter().map(group).collect()
}

fn agree(group: &[&Change], change: &Change) -> bool {
    let names: Vec<String> =
        group.iter().map(|change| &change.name).chain([&change.name]).cloned().collect();
    let knobs: BTreeSet<&str> = names.iter().map(|name| knob(name)).collect();
    let plan = super::cpus().ok().and_then(|cpus| Plan::default().with(&names, &cpus).ok());
    knobs.len() == names.len() && plan.is_some_and(|plan| plan.consistent().is_ok())
}

impl QuietGuests {
    fn measured(
        proving: &Proving,
        flavours: &[String],
        changes: &[Change],
    ) -> Result<QuietGuests, Failure> {
        let all = flavours.iter().map(|flavour| (flavour.clone(), changes.to_vec()));
        let experiment = super::experiment(&all.collect::<Vec<_>>(), |root| {
            root["loads"] = value(Array::from_iter(["idle"]));
            root["responders"] = value(Array::from_iter(LADDER));
            triggers(root);
        })?;
        let experiments = [experiment];
        let mut guests = BTreeMap::new();
        for (experiment, results) in proving.measured(&experiments)? {
            for (cell, result) in experiment.cells().zip(results) {
                let answers = result.map_err(|e| e.to_string());
                let answers = answers.and_then(|path| answers_of(&path));
                guests.insert(cell.flavour.to_string(), answers);
            }
        }
        Ok(QuietGuests(guests))
    }

    /// The guest with a change and the one without.
    fn compared(&self, flavour: &str, change: &Change) -> Result<Quiet, String> {
        let missing = || Err(format!("no quiet guest of {flavour} was measured"));
        let without = self.0.get(flavour).cloned().unwrap_or_else(missing)?;
        let with = self.0.get(&change.of(flavour)).cloned().unwrap_or_else(missing)?;
        let control = self.0.get(&Change::control().of(flavour));
        let control = control.and_then(|control| control.as_ref().ok());
        let control = control.filter(|_| change.name != CONTROL_ROW);
        Ok(Quiet::of(&without, &with, control))
    }
}

/// The figures of a run; or why it says nothing.
fn answers_of(path: &Path) -> Result<QuietAnswers, String> {
    let bundle = Bundle::open(path).map_err(|e| e.to_string())?;
    if let Some(why) = unsound(bundle.manifest()) {
        return Err(why);
    }
    let mut latencies: BTreeMap<usize, Vec<Nanos>> = BTreeMap::new();
    let each = |sample: Sample| {
        latencies.entry(sample.series.index()).or_default().push(sample.latency);
    };
    bundle.samples(each).map_err(|e| e.to_string())?;
    let mut answers = QuietAnswers::new();
    for (index, latencies) in latencies {
        let responder = bundle.manifest().series[index].responder.to_string();
        answers.extend(Quiet::median(latencies).map(|ns| (responder, ns)));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str) -> Change {
        Change { name: name.into(), words: name.into(), is_kernel: false }
    }

    #[test]
    fn groups_are_small_and_have_no_knob_twice_and_no_contradiction() {
        let names = ["nosmt", "threadirqs", "tsc=reliable", "vm.swappiness=10", "vm.swappiness=20"];
        let changes = names.map(change);
        let made = groups(&changes);
        assert_eq!(made.len(), 2);
        assert_eq!(made[0].name, "nosmt, threadirqs, tsc=reliable, vm.swappiness=10");
        assert_eq!(made[1].words, "vm.swappiness=20");
        let contradict =
            ["rcupdate.rcu_expedited=1", "rcupdate.rcu_normal_after_boot=1"].map(change);
        let knob = machine::find("rcupdate.rcu_expedited").unwrap();
        let do_contradict = knob.contradicts.iter().any(|k| k == "rcupdate.rcu_normal_after_boot");
        assert_eq!(groups(&contradict).len(), if do_contradict { 2 } else { 1 });
        let many: Vec<Change> = (1..=9).map(|n| change(&format!("hugepages={n}"))).collect();
        assert_eq!(groups(&many).len(), 9);
    }
}
