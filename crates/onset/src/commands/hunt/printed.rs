// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset hunt --json` prints, and `hunt.json` holds (docs/hunt.schema.json).

use crate::followed::CauseShare;
use crate::hunt::{About, Death, Ended, Find, Known, Share, Step, Strategy};
use sample::{Disturbance, Losses, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the format.
const SCHEMA: u32 = 6;

/// All of it.
#[derive(Serialize)]
pub struct Printed<'a> {
    schema: u32,
    directory: String,
    #[serde(flatten)]
    about: &'a About,
    ended: Ended,
    trials: u64,
    triggers: u64,
    virtual_ns: Nanos,
    losses: &'a BTreeMap<String, Losses>,
    coverage: Coverage,
    worst: Vec<PrintedFind<'a>>,
    by_strategy: BTreeMap<&'static str, Share>,
    by_guest: Vec<Share>,
    growth: &'a [Step],
    died: Vec<PrintedDeath<'a>>,
}

#[derive(Serialize)]
struct Coverage {
    stacks_seen: usize,
    stacks_fired_into: usize,
}

#[derive(Serialize)]
struct PrintedFind<'a> {
    responder: &'static str,
    latency_ns: Nanos,
    find: Option<String>,
    at_strategy: Strategy,
    trial: u64,
    guest: usize,
    begin_after_ns: Nanos,
    stack: &'a [String],
    disturbances: &'a [Disturbance],
    causes: &'a [CauseShare],
}

#[derive(Serialize)]
struct PrintedDeath<'a> {
    trial: u64,
    guest: usize,
    text: &'a str,
    experiment: Option<String>,
    console: Option<String>,
}

impl<'a> Printed<'a> {
    /// What is printed of a hunt.
    pub fn of(
        about: &'a About,
        directory: &Path,
        known: &'a Known,
        (finds, deaths): (&'a [Find], &BTreeMap<u64, Death>),
        ended: Ended,
    ) -> Printed<'a> {
        let died = known.died.iter().map(|(trial, died)| {
            let Death { experiment, console } = deaths.get(trial).cloned().unwrap_or_default();
            let shown = |path: PathBuf| path.display().to_string();
            PrintedDeath {
                trial: *trial,
                guest: died.begin.guest,
                text: &died.text,
                experiment: experiment.map(shown),
                console: console.map(shown),
            }
        });
        let mut by_guest = known.by_guest();
        Printed {
            schema: SCHEMA,
            directory: directory.display().to_string(),
            about,
            ended,
            trials: known.trials,
            triggers: known.triggers,
            virtual_ns: known.virtual_ns,
            losses: &known.losses,
            coverage: Coverage {
                stacks_seen: known.seen.union(&known.fired).count(),
                stacks_fired_into: known.fired.len(),
            },
            worst: finds.iter().map(printed).collect(),
            by_guest: (0..about.guests.len())
                .map(|n| by_guest.remove(&n).unwrap_or_default())
                .collect(),
            by_strategy: known.by_strategy().into_iter().map(|(s, own)| (s.name(), own)).collect(),
            growth: &known.growth,
            died: died.collect(),
        }
    }
}

/// What the find was late for: what opened the stretch that was fired into; of a trigger at an instant that was chosen before, by
/// what its first cause is known that has a stack.
fn stack(find: &Find) -> &[String] {
    let causes = find.causes.iter().map(|cause| &cause.cause.stack);
    let known = std::iter::once(&find.found.best.stack).chain(causes);
    known.into_iter().find(|stack| !stack.is_empty()).map_or(&[], Vec::as_slice)
}

fn printed(find: &Find) -> PrintedFind<'_> {
    let found = &find.found;
    PrintedFind {
        responder: find.responder.name(),
        latency_ns: found.best.latency_ns,
        find: find.path.as_ref().map(|path| path.display().to_string()),
        at_strategy: found.strategy,
        trial: found.trial,
        guest: found.best.begin.guest,
        begin_after_ns: found.best.begin.after,
        stack: stack(find),
        disturbances: &found.best.disturbances,
        causes: &find.causes,
    }
}
