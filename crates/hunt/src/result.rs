// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of a trial: late answers, losses, stacks, what a scout saw, a death. It holds events, not records of the
//! follower. A journal has a line for each result ([`TrialResult`]); the keys of the line are the names of these
//! fields.

use crate::begin::Begin;
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::name::StrategyName;
use sample::{Disturbance, Insns, Losses, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The functions by which a place is known: the innermost of the stack that was fired into. Chosen: the innermost
/// alone, as `_raw_spin_lock_irqsave`, says little; its caller and the two above that tell apart who took which lock
/// for what.
const PLACE: usize = 4;

/// A late answer of one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateAnswer {
    /// How late.
    pub latency_ns: Nanos,
    /// The same in instructions.
    pub latency_insns: Insns,
    /// Which trigger was answered so late.
    pub trigger: u64,
    /// How many there were until the answer.
    pub triggers: u64,
    /// What had opened the stretch that the trigger was aimed at, innermost first; empty for one that was not aimed.
    pub stack: Vec<String>,
}

/// What came of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Its number in the hunt, from 0 on.
    pub number: u64,
    /// Who chose its triggers.
    pub strategy: StrategyName,
    /// Where it began.
    #[serde(flatten)]
    pub begin: Begin,
    /// Key of the snapshot there.
    pub snapshot: String,
    /// Virtual time from the last stage before that to there, which the guest was let run for once; 0 at the warm-up's
    /// end, and where a scout came by.
    pub way_ns: Nanos,
    /// How many there were.
    pub triggers: u64,
    /// Virtual time that measuring took.
    pub virtual_ns: Nanos,
    /// What disturbed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
    /// The triggers until the last of the answers in `late`, since it began.
    pub instants: Vec<Nanos>,
    /// By responder the latest answer of each place, the latest first.
    pub late: BTreeMap<String, Vec<LateAnswer>>,
    /// By responder what is no answer, where there was any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub losses: BTreeMap<String, Losses>,
    /// Hashes of the stacks that opened a stretch.
    pub seen: BTreeSet<u64>,
    /// Of those, what was fired into.
    pub fired: BTreeSet<u64>,
    /// For a scout, the longest stretches that it saw, by time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scouted: Option<Vec<ForeseenStretch>>,
    /// For a scout, what it saw come together soon, by time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub coincidences: Vec<Coincidence>,
    /// What the first trigger came into as it opened, where a scout had seen that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entered: Option<EnteredStretch>,
    /// What the first trigger met, where a scout had seen that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encounter: Option<Encounter>,
    /// Why the guest ended before it was asked to, if it did, and the triggers until then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub died: Option<GuestDeath>,
}

/// A stretch that was fired into as it opened, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredStretch {
    /// The stretch.
    #[serde(flatten)]
    pub stretch: ForeseenStretch,
    /// By responder how late that trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// An instant that was fired at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encounter {
    /// What was to be met there.
    #[serde(flatten)]
    pub coincidence: Coincidence,
    /// By responder how late that trigger was answered, in instructions.
    pub answered_insns: BTreeMap<String, Insns>,
}

/// A guest that did not survive: a find in itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDeath {
    /// What is known of it.
    pub text: String,
    /// What its console said in the trial: the end of it, where that was much.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub console: String,
    /// Where measuring began.
    #[serde(flatten)]
    pub begin: Begin,
    /// The triggers until then.
    pub instants: Vec<Nanos>,
    /// What disturbed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
}

/// What stands for the place that a trigger was aimed at: its functions and their modules, whatever calls them.
pub fn place(stack: &[String]) -> Vec<String> {
    functions(stack, PLACE)
}

/// The innermost functions of a stack with their modules, without the places in them.
pub fn functions(stack: &[String], many: usize) -> Vec<String> {
    stack.iter().take(many).map(|frame| trace::without_place(frame)).collect()
}
