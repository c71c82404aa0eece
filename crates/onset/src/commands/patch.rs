// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset patch`: onset's own preemption points. The script beside the patches does the work, and prints what the
//! compiler says.

use crate::arguments::{Patch, PatchBuild, PatchCommand};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use std::process::Command;

pub fn run(arguments: &Patch) -> Result<Exit, Failure> {
    let script = Installation::find()?.patches();
    let onset = std::env::current_exe().map_err(Failure::unavailable)?;
    let mut command = Command::new("sh");
    command.arg(&script).env("ONSET", onset);
    match &arguments.command {
        PatchCommand::List => command.arg("list"),
        PatchCommand::Build(PatchBuild { series, patches }) => {
            command.arg("build").arg(series).args(patches)
        }
    };
    let ended = command.status();
    let ended = ended.map_err(|e| Failure::unavailable(format!("sh {}: {e}", script.display())))?;
    match ended.success() {
        // The script has said why, by the same terminal.
        _ if work::is_cancelled() => Ok(Exit::Interrupted),
        true => Ok(Exit::Success),
        false => Err(Failure::unavailable("the kernels were not built; the lines above say why")),
    }
}
