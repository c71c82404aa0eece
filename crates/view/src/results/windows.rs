// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset windows --json` prints.

use lab::windows::SeenWindows;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{Cuts, WindowKind, WindowRow};

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Windows<'a> {
    /// Number of this format.
    schema: u32,
    /// The windows of each cell, ranked as the user asked: the first ones of each kind.
    windows: Vec<Window<'a>>,
    /// The cells that were watched, in the order of the experiment.
    cells: Vec<Cell<'a>>,
}

/// All windows of one kind that one stack opened. For windows that an interrupt opened, the code that it interrupted
/// does not count. For windows of an interrupt or of softirqs, these are the windows in which one handler ran.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Window<'a> {
    /// Kernel and boot options (the flavour).
    flavour: &'a str,
    /// The load.
    load: &'a str,
    #[serde(flatten)]
    row: &'a WindowRow,
}

/// One flavour under one load.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Cell<'a> {
    #[serde(flatten)]
    seen: &'a SeenWindows,
    /// For each kind, the number of windows that have no length.
    cut: &'a BTreeMap<WindowKind, Cuts>,
}

impl<'a> Windows<'a> {
    /// Version of the format (docs/windows.schema.json).
    pub const SCHEMA: u32 = 2;

    /// What onset saw in cells.
    pub fn of(all: &'a [SeenWindows]) -> Self {
        let windows = all.iter().flat_map(|seen| {
            let row = |row| Window { flavour: &seen.flavour, load: &seen.load, row };
            seen.report.windows.iter().map(row)
        });
        let cell = |seen: &'a SeenWindows| Cell { seen, cut: &seen.report.cut };
        Windows {
            schema: Self::SCHEMA,
            windows: windows.collect(),
            cells: all.iter().map(cell).collect(),
        }
    }
}
