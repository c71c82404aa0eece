// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the programs for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use testbench::{Finished, Lab};

/// The program of this source, built with `more` options of the compiler in the lab's directory.
pub fn program(lab: &Lab, source: &str, more: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = lab.path().join(source).with_extension("");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .args(more)
        .arg("-I")
        .arg(root.join("../driver"));
    gcc.arg("-o").arg(&built).arg(root.join("rig/programs").join(source));
    Finished::of(&mut gcc).exits(0);
    built
}
