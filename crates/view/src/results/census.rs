// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset census --json` prints.

use lab::census::Counted;
use serde::Serialize;

/// The whole output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Census {
    /// Number of this format: [`Census::SCHEMA`].
    pub schema: u32,
    /// The flavour and the load.
    pub title: String,
    /// The responder that answered.
    pub responder: &'static str,
    /// The distribution over the window, and what follows from it.
    #[serde(flatten)]
    pub counted: Counted,
}

impl Census {
    /// Version of the format (docs/census.schema.json).
    pub const SCHEMA: u32 = 1;
}
