// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset show --json` prints. It has the version of the manifest (docs/bundles.md).

use bundle::Manifest;
use serde::Serialize;

/// The manifest, and figures that are computed from it.
#[derive(Serialize)]
pub struct Show<'a> {
    instrument: &'static str,
    #[serde(flatten)]
    manifest: &'a Manifest,
}

impl<'a> Show<'a> {
    /// One run.
    pub fn of(manifest: &'a Manifest) -> Self {
        Show { instrument: manifest.about.instrument(), manifest }
    }
}
