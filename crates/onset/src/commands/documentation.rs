// SPDX-License-Identifier: GPL-2.0-or-later
//! Man pages and completions, from the argument parser.

use crate::arguments::Arguments;
use crate::failure::{Exit, Failure};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// The shells that Debian's users have.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

pub fn run(directory: &Path) -> Result<Exit, Failure> {
    let failed = |e| Failure::unavailable(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), directory).map_err(failed)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Arguments::command(), "onset", directory)
            .map_err(failed)?;
    }
    Ok(Exit::Success)
}
