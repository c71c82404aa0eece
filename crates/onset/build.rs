// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes down the commit that the command is built from.

use std::process::Command;

fn main() {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output();
    let revision = output.ok().filter(|o| o.status.success());
    let revision = revision.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    println!("cargo::rustc-env=ONSET_REVISION={}", revision.as_deref().unwrap_or("unknown"));
    for path in ["../../.git/HEAD", "../../.git/index"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
