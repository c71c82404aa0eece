// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of a trial: late answers, losses, stacks, the things that a scout saw, a death. It holds events, not
//! records of the follower. A journal has a line for each result ([`TrialResult`]), and the keys of the line are the
//! names of these fields.

use crate::begin::Begin;
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::name::StrategyName;
use sample::{Disturbance, Insns, Losses, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many functions identify a place: the innermost ones of the stack that was fired into. The number is chosen. The
/// innermost function alone says little, for example `_raw_spin_lock_irqsave`. Its caller and the two above tell who
/// took which lock for what.
const PLACE: usize = 4;

/// A late answer of one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateAnswer {
    /// How late the answer was.
    pub latency_ns: Nanos,
    /// The same latency in instructions.
    pub latency_insns: Insns,
    /// The number of the trigger that was answered this late.
    pub trigger: u64,
    /// The number of triggers until the answer.
    pub triggers: u64,
    /// The stack that opened the stretch at which the trigger was aimed, innermost first. Empty for a trigger that was
    /// not aimed.
    pub stack: Vec<String>,
}

/// The result of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The trial's number in the hunt, from 0 on.
    pub number: u64,
    /// The strategy that chose the triggers.
    pub strategy: StrategyName,
    /// The place where the trial began.
    #[serde(flatten)]
    pub begin: Begin,
    /// The key of the snapshot at that place.
    pub snapshot: String,
    /// The virtual time from the last stage to the beginning, for which the guest was let run once. 0 at the end of the
    /// warm-up, and if a scout came by.
    pub way_ns: Nanos,
    /// The virtual time before the first trigger or disturbance. The trials from one place have this way in common, so
    /// one guest walks it for all of them. 0 if the trial may trigger at once, and for a scout.
    pub undisturbed_ns: Nanos,
    /// The instructions that the guest executed after that way: what the trial cost.
    pub worked_insns: Insns,
    /// The number of triggers.
    pub triggers: u64,
    /// The virtual time that measuring took, from the place where the trial began.
    pub virtual_ns: Nanos,
    /// The disturbances.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
    /// The triggers until the last of the answers in `late`, since the trial began.
    pub instants: Vec<Nanos>,
    /// For each responder the latest answer of each place, the latest first.
    pub late: BTreeMap<String, Vec<LateAnswer>>,
    /// The losses of each responder that had any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub losses: BTreeMap<String, Losses>,
    /// The hashes of the stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// The hashes of those stacks that were fired into.
    pub fired: BTreeSet<u64>,
    /// For a scout, the longest stretches that it saw, by time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scouted: Option<Vec<ForeseenStretch>>,
    /// For a scout, the coincidences that it saw to come soon, by time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub coincidences: Vec<Coincidence>,
    /// The stretch into which the first trigger came as the stretch opened, if a scout had seen it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entered: Option<EnteredStretch>,
    /// The coincidence that the first trigger met, if a scout had seen it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encounter: Option<Encounter>,
    /// If the guest ended before it was asked to: the reason, and the triggers until then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub died: Option<GuestDeath>,
    /// Whether the trial came out otherwise in a fork of a guest that walked than in a restored guest, which this
    /// result is of. It may never be so.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forked_otherwise: bool,
}

/// A stretch that was fired into as it opened, with the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredStretch {
    /// The stretch.
    #[serde(flatten)]
    pub stretch: ForeseenStretch,
    /// For each responder how late the trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// An instant that was fired at, with the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encounter {
    /// The delays that were expected there.
    #[serde(flatten)]
    pub coincidence: Coincidence,
    /// For each responder how late the trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// A guest that did not survive. This is a find in itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDeath {
    /// The known facts about the death.
    pub text: String,
    /// The text on the guest's console in the trial. If there was much, only the end of it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub console: String,
    /// The place where measuring began.
    #[serde(flatten)]
    pub begin: Begin,
    /// The triggers until the death.
    pub instants: Vec<Nanos>,
    /// The disturbances.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
}

/// The identity of the place that a trigger was aimed at: its functions and their modules, whatever calls them.
pub fn place(stack: &[String]) -> Vec<String> {
    functions(stack, PLACE)
}

/// The innermost functions of a stack with their modules, without the places inside the functions.
pub fn functions(stack: &[String], many: usize) -> Vec<String> {
    stack.iter().take(many).map(|frame| trace::without_place(frame)).collect()
}
