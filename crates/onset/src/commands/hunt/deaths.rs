// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests that died under fire, kept as experiments in which they die again.

use super::HIGH;
use crate::experiment::Experiment;
use crate::failure::Failure;
use crate::hunt::{About, Known};
use sample::{Disturbance, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// No trial goes on for longer after its last trigger, so that a guest that died in one has died by then.
const DEATH_AFTER: Nanos = Nanos::from_millis(60_000);

/// Writes an experiment for each guest that died after a trigger: the same triggers, after which it dies again, with all that
/// its console says in the bundle.
pub fn write(
    experiment: &Experiment,
    about: &About,
    known: &Known,
    directory: &Path,
) -> Result<BTreeMap<u64, PathBuf>, Failure> {
    let mut deaths = BTreeMap::new();
    for (trial, died) in known.died.iter().filter(|(_, died)| !died.instants.is_empty()) {
        let mut root: DocumentMut = experiment.source.parse().expect("it was read before");
        let guest = &about.guests[died.begin.guest];
        // They may be of flavours and loads that are left out here; and nobody judges the dead.
        root.remove("limits");
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
        let path = directory.join(format!("died-{trial}.toml"));
        super::write(&path, &root.to_string())?;
        deaths.insert(*trial, path);
    }
    Ok(deaths)
}
