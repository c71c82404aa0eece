// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset live --json` prints.

use lab::live::Drift;
use sample::{Clock, Nanos};
use serde::Serialize;
use stats::Summary;
use std::path::Path;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// Number of this format.
    schema: u32,
    /// What the generator calls itself.
    generator: String,
    /// The clock of every time below.
    clock: Clock,
    /// How many triggers came.
    triggers: u64,
    /// How long the generator measured, without the time between its runs.
    #[serde(rename = "measured_ns")]
    measured: Nanos,
    /// How the generator's clock goes beside this machine's. Null of virtual time, and if no run was long enough.
    drift: Option<Drift>,
    /// The directory of the bundle, if the command recorded one.
    bundle: Option<String>,
    /// Frames that the line to the generator damaged. What was in them counts as dropped.
    damaged_frames: u64,
    /// The numbers of each responder, in the order of the generator's pins.
    series: Vec<Summary>,
}

impl Live {
    /// Version of the format (docs/live.schema.json).
    pub const SCHEMA: u32 = 1;

    /// How things stand in a conversation, of which this is the bundle.
    pub fn of(live: &lab::live::Live, bundle: Option<&Path>) -> Live {
        let series = live.channels().iter();
        Live {
            schema: Self::SCHEMA,
            generator: live.name(),
            clock: live.clock(),
            triggers: live.triggers(),
            measured: live.elapsed(),
            drift: live.drift(),
            bundle: bundle.map(|path| path.display().to_string()),
            damaged_frames: live.damaged(),
            series: series.map(|c| Summary { losses: c.losses, ..c.series.summary() }).collect(),
        }
    }
}
