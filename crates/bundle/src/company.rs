// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks whether the same responders answered in all runs of a comparison. All responders of a run answer the same
//! trigger, one after the other on one processor. So each of them is later by the time of the responders before it, and
//! a kernel that lacks a responder looks better than a kernel that has it.

use crate::Manifest;
use sample::SeriesName;
use serde::Serialize;

/// Runs in which not the same responders answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unequal {
    /// The experiment's title.
    pub experiment: String,
    /// The flavours that lack responders, in the order of the runs, with the responders that they lack.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub lacking: Vec<Lacking>,
    /// The responders that every run has, in the order of the first run.
    pub common: Vec<SeriesName>,
    /// The option of `onset run` that measures with only these responders.
    pub setting: String,
}

/// A flavour without some responders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lacking {
    /// The flavour.
    pub flavour: String,
    /// The responders that it lacks.
    pub responders: Vec<SeriesName>,
}

/// The difference between the responders of runs. The runs are those of `[trigger]` in one experiment, or two runs that
/// are compared. `None` if the responders do not differ.
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

/// The same as [`unequal`] for runs of several experiments. Each experiment counts by itself, in the order of first
/// runs.
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
    use crate::examples::manifest_of;

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
