// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset minimise --json` prints.

use lab::minimise::Size;
use serde::Serialize;
use std::path::PathBuf;

/// The whole output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Minimised {
    /// Number of this format: [`Minimised::SCHEMA`].
    pub schema: u32,
    /// The file that the command wrote: a find for `onset replay`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub find: PathBuf,
    /// The responder that answered.
    pub responder: &'static str,
    /// The size of the original.
    pub before: Size,
    /// The size of the result.
    pub after: Size,
    /// How many candidates the command ran.
    pub trials: u64,
    /// Whether the latency needs every trigger that is left. False if the user asked to stop before that was known.
    pub minimal: bool,
    /// Whether the command replayed the result and it came out the same. False if the user asked to stop.
    pub replayed: bool,
}

impl Minimised {
    /// Version of the format (docs/minimise.schema.json).
    pub const SCHEMA: u32 = 2;
}
