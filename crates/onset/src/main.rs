// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`.

use onset::arguments;
use onset::commands;
use std::process::ExitCode;
use view::screen;
use view::visible::tell_line;
use work::Cancel;

fn main() -> ExitCode {
    let arguments = arguments::parsed();
    screen::look(arguments.color);
    let cancel = Cancel::default();
    let asked = cancel.clone();
    if let Err(e) = ctrlc::set_handler(move || asked.ask()) {
        tell_line(&format!("onset: cannot handle signals: {e}"));
    }
    match cancel.during(|| commands::run(arguments.command)) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            // The messages about an experiment have a heading of their own, as those of a compiler.
            let heading = if failure.message.starts_with("error: ") { "" } else { "onset: " };
            tell_line(&format!("{heading}{}", failure.message));
            ExitCode::from(failure.exit as u8)
        }
    }
}
