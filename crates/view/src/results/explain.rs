// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset explain --json` prints.

use lab::followed::{Explained, Explanations, Spending};
use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explain<'a> {
    /// Number of this format.
    schema: u32,
    /// The run; null for a find.
    run: Option<&'a str>,
    /// What onset cannot see in this kernel, and why.
    missing: &'a [String],
    /// The explanations, the longest latency first.
    explanations: &'a [Explained],
}

impl<'a> Explain<'a> {
    /// Version of the format (docs/explain.schema.json).
    pub const SCHEMA: u32 = 3;

    /// The explanations of a run's latencies, or of a find.
    pub fn of(run: Option<&'a str>, seen: &'a Explanations) -> Self {
        let Explanations { missing, explained } = seen;
        Explain { schema: Self::SCHEMA, run, missing, explanations: explained }
    }
}

/// The whole output for a run of the probe `cost`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainCosts<'a> {
    /// Number of this format.
    schema: u32,
    /// The run.
    run: Option<&'a str>,
    /// Its costs, in the order of its series.
    costs: &'a [Spending],
    /// The run that it is shown against; null without one.
    against_run: Option<&'a str>,
    /// The costs of that run.
    against: Option<&'a [Spending]>,
}

impl<'a> ExplainCosts<'a> {
    /// Version of the format (docs/explain-costs.schema.json).
    pub const SCHEMA: u32 = 1;

    /// The costs of a run, and those of another one.
    pub fn of(
        (run, against_run): (Option<&'a str>, Option<&'a str>),
        costs: &'a [Spending],
        against: Option<&'a [Spending]>,
    ) -> Self {
        ExplainCosts { schema: Self::SCHEMA, run, costs, against_run, against }
    }
}
