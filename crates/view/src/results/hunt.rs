// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset hunt --json` prints, and `hunt.json` holds.

use hunt::{GrowthStep, HuntEnd, Knowledge, Share, StrategyName};
use lab::followed::CauseShare;
use lab::hunting::{About, DeathFiles, Find};
use sample::{Disturbance, Losses, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hunt<'a> {
    /// Number of this format.
    schema: u32,
    /// The directory that holds the finds and the journal.
    directory: String,
    #[serde(flatten)]
    about: &'a About,
    /// Why the hunt ended. If the rig failed, the finds are not explained.
    ended: HuntEnd,
    /// How many trials the hunt made.
    trials: u64,
    /// How many triggers all trials had together.
    triggers: u64,
    /// The virtual time of all trials, with the time in which the guest ran up to the place where a trial begins.
    virtual_ns: Nanos,
    /// By responder, the triggers without an answer of their own, by kind. Responders without any are absent.
    losses: &'a BTreeMap<String, Losses>,
    /// Call stacks that opened a stretch with interrupts or preemption off, as far as onset knows them. The follower
    /// takes the stack of a stretch of at least 5,000 instructions, and of every stretch at which a trigger is aimed.
    /// Stacks that opened only shorter stretches, at which no trigger was aimed, are in neither number.
    coverage: Coverage,
    /// The longest latencies of each responder of the hunt, in the order of the responders, the longest first. There is
    /// one for each place at which a trigger was aimed. A find with the same main cause as a longer one is absent.
    worst: Vec<WorstFind<'a>>,
    /// What each strategy did by itself, by its name. A strategy that had no turn is absent.
    by_strategy: BTreeMap<&'static str, Share>,
    /// What the hunt did in each guest, in the order of `guests`.
    by_guest: Vec<Share>,
    /// Each time that the longest latency of a responder grew, in the order of trials.
    growth: &'a [GrowthStep],
    /// Guests that died: they ended by themselves before the trial was over, or their kernel reported during the trial
    /// that something broke. A guest in which a responder did not answer within a second counts as dead, too.
    died: Vec<DeadGuest<'a>>,
    /// Trials that came out otherwise in a fork than in a restored guest, which is a fault of onset. Empty if all is
    /// well. The hunt (or its shard) forked no more after the first of them. The trials before may be wrong, until
    /// their finds are replayed.
    forked_otherwise: &'a [u64],
}

/// Numbers of call stacks that opened stretches.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Coverage {
    /// Different stacks that opened a stretch of at least 5,000 instructions, or one at which a trigger was aimed.
    stacks_seen: usize,
    /// Those of them at which a trigger was aimed. Both numbers grow as the hunt goes on. Their quotient is not a share
    /// of the kernel.
    stacks_fired_into: usize,
}

/// One of the longest latencies.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorstFind<'a> {
    /// The responder that answered.
    responder: &'static str,
    /// The latency.
    latency_ns: Nanos,
    /// The file that `onset replay` takes.
    find: Option<String>,
    /// The strategy that chose the instant of the trigger.
    at_strategy: StrategyName,
    /// Number of the trial, from 0.
    trial: u64,
    /// The guest: its index in `guests`.
    guest: usize,
    /// When measuring began, counted from the end of the warm-up.
    begin_after_ns: Nanos,
    /// The call stack that opened the stretch at which the trigger was aimed, innermost first. If the trigger had no
    /// aim, this is the stack of the first cause that has one. Empty if no cause has one.
    stack: &'a [String],
    /// The disturbances until the answer; empty except for finds of the strategy disturb.
    disturbances: &'a [Disturbance],
    /// Where the time of the latency went, by cause, the longest first. Empty if onset did not explain the find.
    causes: &'a [CauseShare],
}

/// A guest that died.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeadGuest<'a> {
    /// Number of the trial.
    trial: u64,
    /// The guest: its index in `guests`.
    guest: usize,
    /// What is known of the death: the first lines that the kernel printed, if it printed any.
    text: &'a str,
    /// The experiment with the same triggers, for `onset run`; null if the guest died before any trigger.
    experiment: Option<String>,
    /// The file with the console's output in that trial; of more than 64 KiB it has the end. Null if the console
    /// printed nothing.
    console: Option<String>,
}

impl<'a> Hunt<'a> {
    /// Version of the format (docs/hunt.schema.json).
    pub const SCHEMA: u32 = 9;

    /// The output about a hunt.
    pub fn of(
        about: &'a About,
        directory: &Path,
        known: &'a Knowledge,
        (finds, deaths): (&'a [Find], &BTreeMap<u64, DeathFiles>),
        ended: HuntEnd,
    ) -> Hunt<'a> {
        let died = known.died.iter().map(|(trial, died)| {
            let DeathFiles { experiment, console } = deaths.get(trial).cloned().unwrap_or_default();
            let shown = |path: PathBuf| path.display().to_string();
            DeadGuest {
                trial: *trial,
                guest: died.begin.guest,
                text: &died.text,
                experiment: experiment.map(shown),
                console: console.map(shown),
            }
        });
        let mut by_guest = known.by_guest();
        Hunt {
            schema: Self::SCHEMA,
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
            by_strategy: known
                .by_strategy()
                .into_iter()
                .map(|(s, own)| (s.as_str(), own))
                .collect(),
            growth: &known.growth,
            died: died.collect(),
            forked_otherwise: &known.forked_otherwise,
        }
    }
}

/// The call stack for which the find was late: the stack that opened the stretch at which the trigger was aimed. For a
/// trigger without an aim it is the stack of its first cause that has one.
fn stack(find: &Find) -> &[String] {
    let causes = find.causes.iter().map(|cause| &cause.cause.stack);
    let known = std::iter::once(&find.found.answer.stack).chain(causes);
    known.into_iter().find(|stack| !stack.is_empty()).map_or(&[], Vec::as_slice)
}

fn printed(find: &Find) -> WorstFind<'_> {
    let found = &find.found;
    WorstFind {
        responder: find.responder.name(),
        latency_ns: found.answer.latency_ns,
        find: find.path.as_ref().map(|path| path.display().to_string()),
        at_strategy: found.strategy,
        trial: found.trial,
        guest: found.answer.begin.guest,
        begin_after_ns: found.answer.begin.after,
        stack: stack(find),
        disturbances: &found.answer.disturbances,
        causes: &find.causes,
    }
}
