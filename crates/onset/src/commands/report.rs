// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset report`: a self-contained page.

use super::{SystemClock, open, print};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::matrix::WallClock;
use crate::report::{self, ReportError};
use std::io::Write;
use std::path::Path;

pub fn run(runs: &[String], output: &Path, store: &Path) -> Result<Exit, Failure> {
    let viewer = Installation::find()?.viewer()?;
    let bundles = runs.iter().map(|r| open(r, store)).collect::<Result<Vec<_>, _>>()?;
    let page = report::page(&viewer, &bundles, SystemClock.now()).map_err(|e| match e {
        ReportError::Bundle(e) => e.into(),
        ReportError::Clocks(..) => Failure::usage(e),
        ReportError::Viewer => Failure::unavailable(e),
    })?;
    write_whole(output, page.as_bytes()).map_err(|e| {
        Failure::unavailable(format!(
            "cannot write {}: {e}; choose another file with -o",
            output.display()
        ))
    })?;
    let path = output.canonicalize().unwrap_or_else(|_| output.into());
    print(&format!("{}\n", path.display()));
    Ok(Exit::Success)
}

/// The whole file or none of it.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    let mut file = file.permissions(permissions).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
