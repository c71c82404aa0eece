// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset explain --json` prints.

use lab::followed::{Explained, Explanations};
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
