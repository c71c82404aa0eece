// SPDX-License-Identifier: GPL-2.0-or-later
//! One static binary, three roles: process 1 of the rig's guest, `repeat`, which load scripts use, and `probe`, which
//! measures on this machine or in that guest.

mod init;
mod measure;
mod ports;
mod probe;
mod repeat;
mod responder;

use std::path::Path;

fn main() {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if name == "repeat" {
        std::process::exit(repeat::run(arguments));
    }
    if std::process::id() == 1 {
        init::run();
    }
    if arguments.next().as_deref() == Some("probe") {
        std::process::exit(probe::run(arguments));
    }
    eprintln!("onset-agent is a part of onset, which starts it; see onset --help");
    std::process::exit(2);
}
