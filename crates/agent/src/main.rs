// SPDX-License-Identifier: GPL-2.0-or-later
//! One static binary, several roles: process 1 of the rig's guest, `repeat` and `play`, which load scripts use,
//! `probe`, which measures on this machine or in that guest, and on a machine the supervisor of a load and the first
//! process of its namespace.

mod counter;
mod init;
mod measure;
mod play;
mod probe;
mod repeat;
mod responder;
mod supervisor;
mod work;
mod x86_64;

use agent::confinement;
use std::path::Path;

fn main() {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().and_then(|n| n.to_str()).unwrap_or_default();
    match name {
        "play" => std::process::exit(play::run(arguments)),
        "repeat" => std::process::exit(repeat::run(arguments)),
        confinement::SUPERVISOR => std::process::exit(supervisor::run()),
        confinement::FIRST => std::process::exit(supervisor::first::run(arguments)),
        _ if std::process::id() == 1 => init::run(),
        _ => {}
    }
    if arguments.next().as_deref() == Some("probe") {
        std::process::exit(probe::run(arguments));
    }
    eprintln!("onset-agent is a part of onset, which starts it; see onset --help");
    std::process::exit(2);
}
