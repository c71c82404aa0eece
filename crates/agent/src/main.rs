// SPDX-License-Identifier: GPL-2.0-or-later
//! One static binary, several roles: process 1 of the rig's guest, `repeat`, which load scripts use, and on a machine
//! the supervisor of a load and the first process of its namespace.

mod init;
mod marks;
mod repeat;
mod responder;
mod supervisor;

use agent::confinement;
use std::path::Path;

fn main() {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().and_then(|n| n.to_str()).unwrap_or_default();
    match name {
        "repeat" => std::process::exit(repeat::run(arguments)),
        confinement::SUPERVISOR => std::process::exit(supervisor::run()),
        confinement::FIRST => std::process::exit(supervisor::first::run(arguments)),
        _ if std::process::id() == 1 => init::run(),
        _ => {}
    }
    eprintln!("onset-agent is the init of the rig's guest; it does nothing elsewhere");
    std::process::exit(2);
}
