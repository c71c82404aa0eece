// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes man pages and shell completions, generated from the argument parser.

use crate::arguments;
use crate::failure::{Exit, Failure};
use clap_complete::Shell;
use std::path::Path;

/// The shells for which there are completions: those of Debian's users.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

pub fn run(directory: &Path) -> Result<Exit, Failure> {
    let failed = |e| Failure::unavailable(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(arguments::command(), directory).map_err(failed)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut arguments::command(), "onset", directory)
            .map_err(failed)?;
    }
    Ok(Exit::Success)
}
