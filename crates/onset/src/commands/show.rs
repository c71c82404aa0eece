// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset show`: shows the results of one run, and checks its bundle on request.

use super::{open, print, print_json};
use crate::failure::{Exit, Failure};
use std::path::Path;
use view::results::Show;
use view::terminal;

pub fn run(run: &str, store: &Path, json: bool, verify: bool) -> Result<Exit, Failure> {
    let bundle = open(run, store)?;
    let verified = verify.then(|| bundle.verify()).transpose()?;
    if json {
        print_json(&Show::of(bundle.manifest()))?;
        return Ok(Exit::Success);
    }
    let bundles = [bundle];
    print(&terminal::ladders(&bundles)?)?;
    print(&terminal::paths(bundles[0].manifest()))?;
    print(&terminal::configuration(bundles[0].manifest()))?;
    print(&format!("Bundle\n  {}\n", bundles[0].path().display()))?;
    if let Some(verified) = verified {
        print(&format!("\nVerified\n{verified}"))?;
    }
    Ok(Exit::Success)
}
