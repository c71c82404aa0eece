// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset show`: one run.

use super::{open, print, print_json};
use crate::bundle::Manifest;
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde::Serialize;
use std::path::Path;

/// What `--json` prints: the manifest, and what follows from it.
#[derive(Serialize)]
struct Printed<'a> {
    instrument: &'static str,
    #[serde(flatten)]
    manifest: &'a Manifest,
}

pub fn run(run: &str, store: &Path, json: bool, verify: bool) -> Result<Exit, Failure> {
    let bundle = open(run, store)?;
    let verified = verify.then(|| bundle.verify()).transpose()?;
    if json {
        let manifest = bundle.manifest();
        print_json(&Printed { instrument: manifest.about.experiment.instrument(), manifest })?;
        return Ok(Exit::Success);
    }
    let bundles = [bundle];
    print(&terminal::ladders(&bundles)?)?;
    print(&terminal::configuration(bundles[0].manifest()))?;
    print(&format!("Bundle\n  {}\n", bundles[0].path().display()))?;
    if let Some(verified) = verified {
        print(&format!("\nVerified\n{verified}"))?;
    }
    Ok(Exit::Success)
}
