// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds C programs for tests.

use crate::{Finished, Lab};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The program of this source, built with `more` options of the compiler in the lab's directory.
pub fn compiled(lab: &Lab, source: &Path, more: &[&str]) -> PathBuf {
    let name = source.file_stem().expect("a source has a name");
    let built = lab.path().join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .args(more)
        .arg("-I")
        .arg(repository().join("driver"));
    gcc.arg("-o").arg(&built).arg(source);
    Finished::of(&mut gcc).exits(0);
    built
}
