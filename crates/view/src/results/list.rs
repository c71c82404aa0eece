// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset list --json` prints.

use bundle::store::{Entry, Headline};
use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct List<'a> {
    /// Number of this format.
    schema: u32,
    /// The runs, the newest first.
    runs: Vec<Listed<'a>>,
}

/// A run of the store.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Listed<'a> {
    /// The name of the run.
    run: &'a str,
    #[serde(flatten)]
    headline: Option<&'a Headline>,
    /// Why onset cannot read the bundle; then the run has no other keys than its name. Null if onset can read the
    /// bundle.
    damaged: Option<&'a str>,
}

impl<'a> List<'a> {
    /// Version of the format (docs/list.schema.json).
    pub const SCHEMA: u32 = 1;

    /// The runs of a store.
    pub fn of(entries: &'a [Entry]) -> Self {
        let runs = entries.iter().map(|entry| Listed {
            run: entry.run.as_str(),
            headline: entry.state.as_ref().ok(),
            damaged: entry.state.as_ref().err().map(String::as_str),
        });
        List { schema: Self::SCHEMA, runs: runs.collect() }
    }
}
