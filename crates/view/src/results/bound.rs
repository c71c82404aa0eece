// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset bound --json` prints.

use lab::bound::Bounded;
use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bound<'a> {
    /// Number of this format.
    schema: u32,
    /// Whether every cell has a bound, and no answer exceeds it.
    holds: bool,
    /// The cells that onset watched, in the order of the experiment.
    cells: &'a [Bounded],
}

impl<'a> Bound<'a> {
    /// Version of the format (docs/bound.schema.json).
    pub const SCHEMA: u32 = 2;

    /// The bounds of cells.
    pub fn of(cells: &'a [Bounded]) -> Self {
        Bound { schema: Self::SCHEMA, holds: cells.iter().all(|c| c.holds == Some(true)), cells }
    }
}
