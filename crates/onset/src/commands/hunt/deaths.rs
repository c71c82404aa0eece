// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests that died under fire, or did not answer: what their consoles said, and experiments in which they do so again.

use super::HIGH;
use crate::experiment::{Experiment, Guest, GuestFile};
use crate::failure::Failure;
use crate::hunt::{About, Death, Died, Known};
use sample::{Disturbance, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// No trial goes on for longer after its last trigger, so that a guest that died in one has died by then.
const DEATH_AFTER: Nanos = Nanos::from_millis(60_000);
/// What is taken from the hunt's experiment. Not its flavours and loads, of which only one is meant; not its limits, since nobody
/// judges the dead; and not its probes, which had no part in it.
const KEPT: [&str; 9] =
    ["title", "target", "seed", "warm_up", "responders", "driver", "guest", "task", "load"];

/// Writes for each guest that died what its console said in the trial, and where there was a trigger an experiment with the same
/// ones, after which it dies again.
pub fn write(
    experiment: &Experiment,
    about: &About,
    known: &Known,
    directory: &Path,
) -> Result<BTreeMap<u64, Death>, Failure> {
    let mut deaths = BTreeMap::new();
    for (trial, died) in &known.died {
        let mut death = Death::default();
        if !died.console.is_empty() {
            let path = directory.join(format!("died-{trial}.console"));
            super::write(&path, &died.console)?;
            death.console = Some(path);
        }
        if !died.instants.is_empty() {
            let path = directory.join(format!("died-{trial}.toml"));
            super::write(&path, &again(experiment, about, died)?)?;
            death.experiment = Some(path);
        }
        deaths.insert(*trial, death);
    }
    Ok(deaths)
}

/// The experiment in which it dies again.
fn again(experiment: &Experiment, about: &About, died: &Died) -> Result<String, Failure> {
    let mut root: DocumentMut = experiment.source.parse().expect("it was read before");
    let guest = &about.guests[died.begin.guest];
    root.retain(|key, _| KEPT.contains(&key));
    with_whole_paths(&mut root, &experiment.guest)?;
    root["flavours"] = value(Array::from_iter([&about.flavour]));
    root["loads"] = value(Array::from_iter([&guest.load]));
    let times = died.instants.iter().map(|at| format!("{}ns", at.0));
    let apart = died.instants.windows(2).map(|w| w[1].0 - w[0].0).min().unwrap_or(1_000_000);
    let trigger = [
        ("times", value(Array::from_iter(times))),
        ("duty", value(HIGH.0 as f64 / apart as f64)),
        ("grace", value(DEATH_AFTER.to_string())),
    ];
    let mut trigger = Table::from_iter(trigger);
    if !died.disturbances.is_empty() {
        let disturbances = died.disturbances.iter().map(Disturbance::to_string);
        trigger["disturbances"] = value(Array::from_iter(disturbances));
    }
    root["trigger"] = Item::Table(trigger);
    if guest.seed != experiment.guest.seed {
        root["guest"]["seed"] = value(i64::from(guest.seed));
    }
    let begin_after = experiment.guest.begin_after.0 + died.begin.after.0;
    if begin_after > 0 {
        root["guest"]["begin_after"] = value(format!("{begin_after}ns"));
    }
    Ok(root.to_string())
}

/// Relative paths begin at the experiment's directory, and this one has another.
fn with_whole_paths(root: &mut DocumentMut, guest: &Guest) -> Result<(), Failure> {
    let whole = |path: &PathBuf| {
        let whole = std::path::absolute(path).map(|path| path.display().to_string());
        whole.map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))
    };
    let Guest { modules, programs, files, .. } = guest;
    let file = |file: &GuestFile| Ok(format!("{}={}", whole(&file.host)?, file.guest.display()));
    let paths = |paths: &[PathBuf]| paths.iter().map(whole).collect::<Result<Vec<_>, _>>();
    let lists = [
        ("modules", paths(modules)?),
        ("programs", paths(programs)?),
        ("files", files.iter().map(file).collect::<Result<Vec<_>, Failure>>()?),
    ];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        root["guest"][key] = value(Array::from_iter(list));
    }
    Ok(())
}
