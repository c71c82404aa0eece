// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset report`: a self-contained page.

use super::{SystemClock, open, print};
use crate::bundle::Bundle;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::matrix::WallClock;
use crate::report::{self, ReportError};
use std::io::Write;
use std::path::{Path, PathBuf};

pub fn run(runs: &[String], output: &Path, store: &Path) -> Result<Exit, Failure> {
    let bundles = runs.iter().map(|r| open(r, store)).collect::<Result<Vec<_>, _>>()?;
    print(&format!("{}\n", write(&bundles, output)?.display()));
    Ok(Exit::Success)
}

/// Writes the report of `bundles` and returns where it is.
pub fn write(bundles: &[Bundle], output: &Path) -> Result<PathBuf, Failure> {
    let viewer = Installation::find()?.viewer()?;
    let page = report::page(&viewer, bundles, SystemClock.now()).map_err(|e| match e {
        ReportError::Bundle(e) => e.into(),
        ReportError::Clocks(..) => Failure::usage(e),
        ReportError::Viewer => Failure::unavailable(e),
    })?;
    write_whole(output, page.as_bytes()).map_err(|e| {
        let output = output.display();
        Failure::unavailable(format!("cannot write {output}: {e}; choose another file"))
    })?;
    Ok(output.canonicalize().unwrap_or_else(|_| output.into()))
}

/// The whole file or none of it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    let mut file = file.permissions(permissions).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
