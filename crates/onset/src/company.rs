// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the runs of a comparison answered their triggers in the same company. All responders of a run answer the same
//! trigger, one after the other on one processor, so each of them is later by what the others do before it: a kernel that lacks
//! one looks better than one that has it.

use crate::bundle::Manifest;
use sample::SeriesName;
use serde::Serialize;

/// Runs that did not answer with the same responders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// The experiment's title.
    pub experiment: String,
    /// Flavours that lack some, in the order of the runs, with what they lack.
    pub lacking: Vec<Lacking>,
    /// The responders that every run has, in the order of the first.
    pub common: Vec<SeriesName>,
    /// What makes the experiment with those alone, on the command line of `onset run`.
    pub setting: String,
}

/// A flavour without some responders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lacking {
    /// Which.
    pub flavour: String,
    /// What it lacks.
    pub responders: Vec<SeriesName>,
}

/// How the triggered runs of one experiment, or two that are compared, differ in who answered; `None` where they do not.
pub fn unequal<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Option<Unequal> {
    let triggered = |m: &&Manifest| m.about.experiment.trigger.is_some();
    let runs: Vec<&Manifest> = manifests.into_iter().filter(triggered).collect();
    let has = |run: &Manifest, name: &SeriesName| run.series.iter().any(|s| s.responder == *name);
    let mut all: Vec<&SeriesName> = Vec::new();
    for series in runs.iter().flat_map(|run| &run.series) {
        if !all.contains(&&series.responder) {
            all.push(&series.responder);
        }
    }
    let mut lacking: Vec<Lacking> = Vec::new();
    for run in &runs {
        let flavour = &run.about.flavour;
        let missing: Vec<SeriesName> =
            all.iter().filter(|name| !has(run, name)).map(|name| (*name).clone()).collect();
        if !missing.is_empty() && !lacking.iter().any(|l| l.flavour == *flavour) {
            lacking.push(Lacking { flavour: flavour.clone(), responders: missing });
        }
    }
    let experiment = runs.first()?.about.title.clone();
    let in_all = |name: &&&SeriesName| runs.iter().all(|run| has(run, name));
    let common: Vec<SeriesName> = all.iter().filter(in_all).map(|name| (*name).clone()).collect();
    let names: Vec<String> = common.iter().map(|name| format!("\"{name}\"")).collect();
    let setting = format!("--set 'responders=[{}]'", names.join(", "));
    (!lacking.is_empty()).then_some(Unequal { experiment, lacking, common, setting })
}

/// The same for runs of several experiments, each by itself, in the order of their first runs.
pub fn unequal_by_experiment<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Vec<Unequal> {
    let mut experiments: Vec<(&str, Vec<&Manifest>)> = Vec::new();
    for manifest in manifests {
        let title = manifest.about.title.as_str();
        match experiments.iter_mut().find(|(known, _)| *known == title) {
            Some((_, runs)) => runs.push(manifest),
            None => experiments.push((title, vec![manifest])),
        }
    }
    experiments.into_iter().filter_map(|(_, runs)| unequal(runs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::tests::manifest_of;

    #[test]
    fn a_run_that_lacks_a_responder_is_named_with_the_set_that_all_have() {
        let old = manifest_of("6.1", &["hardirq", "task"]);
        let new = manifest_of("6.12", &["hardirq", "bh_work", "task"]);
        let found = unequal([&old, &new]).unwrap();
        let bh_work: SeriesName = "bh_work".parse().unwrap();
        assert_eq!(found.lacking, [Lacking { flavour: "6.1".into(), responders: vec![bh_work] }]);
        assert_eq!(found.setting, "--set 'responders=[\"hardirq\", \"task\"]'");
        assert_eq!(unequal([&new, &old]).unwrap().common, found.common);
        assert_eq!(unequal([&new, &new]), None);
        assert_eq!(unequal([]), None);
    }

    #[test]
    fn runs_of_other_experiments_are_not_held_against_each_other() {
        let old = manifest_of("6.1", &["hardirq"]);
        let mut new = manifest_of("6.12", &["hardirq", "bh_work"]);
        assert_eq!(unequal_by_experiment([&old, &new].into_iter()).len(), 1);
        new.about.title = "another".into();
        assert!(unequal_by_experiment([&old, &new].into_iter()).is_empty());
    }
}
