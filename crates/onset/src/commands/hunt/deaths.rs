// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests that died during a trial, or did not answer. For each, the hunt writes what the console said, and an
//! experiment that replays the death.

use crate::failure::Failure;
use experiment::{Experiment, Guest, GuestFile};
use hunt::{GuestDeath, Knowledge};
use lab::hunting::{About, DeathFiles, HIGH};
use sample::{Disturbance, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// No trial goes on for longer after its last trigger. So a guest that died in a trial has died by then.
const DEATH_AFTER: Nanos = Nanos::from_millis(60_000);
/// The keys that are copied from the hunt's experiment. Its flavours and loads are not copied, since only one of each
/// is meant. Its limits are not, since nothing judges a guest that died. Its probes are not, since they had no part
/// in the trial.
const KEPT: [&str; 9] =
    ["title", "target", "seed", "warm_up", "responders", "driver", "guest", "task", "load"];

/// Writes for each guest that died what its console said in the trial. If the trial had a trigger, also writes an
/// experiment with the same triggers, in which the guest dies again.
pub fn write(
    experiment: &Experiment,
    about: &About,
    known: &Knowledge,
    directory: &Path,
) -> Result<BTreeMap<u64, DeathFiles>, Failure> {
    let mut deaths = BTreeMap::new();
    for (trial, died) in &known.died {
        let mut death = DeathFiles::default();
        if !died.console.is_empty() {
            let path = directory.join(format!("died-{trial}.console"));
            crate::commands::write_file(&path, &died.console)?;
            death.console = Some(path);
        }
        if !died.instants.is_empty() {
            let path = directory.join(format!("died-{trial}.toml"));
            crate::commands::write_file(&path, &again(experiment, about, died)?)?;
            death.experiment = Some(path);
        }
        deaths.insert(*trial, death);
    }
    Ok(deaths)
}

/// The experiment in which the guest dies again.
fn again(experiment: &Experiment, about: &About, died: &GuestDeath) -> Result<String, Failure> {
    let mut root: DocumentMut = experiment.source.parse().expect("it was read before");
    let guest = &about.guests[died.begin.guest];
    root.retain(|key, _| KEPT.contains(&key));
    with_whole_paths(&mut root, &experiment.guest)?;
    root["flavours"] = value(Array::from_iter([&about.flavour]));
    root["loads"] = value(Array::from_iter([&guest.load]));
    let times = died.instants.iter().map(|at| format!("{}ns", at.0));
    let apart =
        died.instants.windows(2).map(|w| w[1] - w[0]).min().unwrap_or(Nanos::from_millis(1));
    let trigger = [
        ("times", value(Array::from_iter(times))),
        ("duty", value(HIGH.0 as f64 / apart.0 as f64)),
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
    let begin_after = experiment.guest.begin_after + died.begin.after;
    if begin_after > Nanos::ZERO {
        root["guest"]["begin_after"] = value(format!("{}ns", begin_after.0));
    }
    Ok(root.to_string())
}

/// Relative paths begin at the experiment's directory, and this experiment is in another directory.
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
