// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset doctor --json` prints.

use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Doctor<'a> {
    /// Number of this format.
    schema: u32,
    /// Whether the rig runs on this machine.
    rig: bool,
    /// The checks of what the rig needs.
    checks: &'a [Check],
    /// The checks of settings on which the latencies of this machine depend.
    latency: &'a [Check],
}

/// One check.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What was checked.
    pub what: &'static str,
    /// The state in which it is.
    pub state: State,
    /// What the check found.
    pub found: String,
    /// What to do; null if the state is good.
    pub remedy: Option<String>,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Something works badly or not at all, but the rig runs.
    Limited,
    /// The rig does not run.
    Missing,
}

impl<'a> Doctor<'a> {
    /// Version of the format (docs/doctor.schema.json).
    pub const SCHEMA: u32 = 1;

    /// What the check found.
    pub fn of(checks: &'a [Check], latency: &'a [Check]) -> Self {
        let rig = checks.iter().all(|c| c.state != State::Missing);
        Doctor { schema: Self::SCHEMA, rig, checks, latency }
    }

    /// Whether the rig runs on this machine.
    pub fn rig_runs(&self) -> bool {
        self.rig
    }
}
