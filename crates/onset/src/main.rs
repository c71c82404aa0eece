// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`.

use clap::Parser;
use onset::arguments::Arguments;
use onset::commands;
use onset::visible::tell_line;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(e) = ctrlc::set_handler(rig::tool::interrupt) {
        tell_line(&format!("onset: cannot handle signals: {e}"));
    }
    match commands::run(arguments.command) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            tell_line(&format!("onset: {}", failure.message));
            ExitCode::from(failure.exit as u8)
        }
    }
}
