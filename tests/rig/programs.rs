// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the programs for tests.

use std::path::PathBuf;
use testbench::{Lab, compiled, repository};

/// The program of this source, built with `more` options of the compiler in the lab's directory.
pub fn program(lab: &Lab, source: &str, more: &[&str]) -> PathBuf {
    compiled(lab, &repository().join("tests/rig/programs").join(source), more)
}
