// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`.

use clap::Parser;
use onset::arguments::{self, Arguments};
use onset::commands;
use onset::visible::tell_line;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|e| arguments::explained(e).exit());
    if let Err(e) = ctrlc::set_handler(rig::tool::interrupt) {
        tell_line(&format!("onset: cannot handle signals: {e}"));
    }
    match commands::run(arguments.command) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            // Mistakes in an experiment are told as a compiler does, with a heading of their own.
            let heading = if failure.message.starts_with("error: ") { "" } else { "onset: " };
            tell_line(&format!("{heading}{}", failure.message));
            ExitCode::from(failure.exit as u8)
        }
    }
}
