// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset replay --json` prints.

use sample::{Insns, Nanos};
use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay<'a> {
    /// Number of this format: [`Replay::SCHEMA`].
    pub schema: u32,
    /// The run; null for a find.
    pub run: Option<&'a str>,
    /// The responder that answered; of a probe, the series.
    pub responder: &'a str,
    /// Number of the trigger, or of the probe's event, from 0.
    pub trigger: u64,
    /// The latency in the run or the find.
    pub expected_ns: Nanos,
    /// How many instructions this latency has. Null for a probe, of whose samples nobody counts them.
    pub expected_insns: Option<Insns>,
    /// The latency of the replay. If a replay differs, this is the first one that does. Null if there was no answer.
    pub latency_ns: Option<Nanos>,
    /// How many instructions this latency has.
    pub insns: Option<Insns>,
    /// Whether every replay had the latency and the instructions of the run or the find.
    pub identical: bool,
    /// How many times the command replayed it.
    pub times: u64,
    /// How many of these replays were identical.
    pub identical_times: u64,
}

impl Replay<'_> {
    /// Version of the format (docs/replay.schema.json).
    pub const SCHEMA: u32 = 1;
}
