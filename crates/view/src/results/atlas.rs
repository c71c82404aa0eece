// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset atlas --json` prints, and `atlas.json` holds.

use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Atlas<'a> {
    /// Number of this format.
    schema: u32,
    #[serde(flatten)]
    atlas: &'a lab::atlas::Atlas,
}

impl<'a> Atlas<'a> {
    /// Version of the format (docs/atlas.schema.json).
    pub const SCHEMA: u32 = 1;

    /// What onset found.
    pub fn of(atlas: &'a lab::atlas::Atlas) -> Self {
        Atlas { schema: Self::SCHEMA, atlas }
    }
}
