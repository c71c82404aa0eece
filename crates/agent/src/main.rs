// SPDX-License-Identifier: GPL-2.0-or-later
//! One static binary, two roles: process 1 of the rig's guest, and `repeat`, which load scripts use.

mod init;
mod marks;
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
    eprintln!("onset-agent is the init of the rig's guest; it does nothing elsewhere");
    std::process::exit(2);
}
