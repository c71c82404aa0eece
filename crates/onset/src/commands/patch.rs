// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset patch`: onset's own preemption points. The script beside the patches builds kernels, and prints what the
//! compiler says.

use super::prove;
use crate::arguments::{Patch, PatchBuild, PatchCommand};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use rig::Cache;
use std::process::Command;
use view::visible::tell;

pub fn run(arguments: &Patch) -> Result<Exit, Failure> {
    match &arguments.command {
        PatchCommand::List => ended(script(&["list".into()])?),
        PatchCommand::Build(PatchBuild { series, patches }) => build(series, patches),
        PatchCommand::Prove(arguments) => {
            let planned = prove::planned(arguments)?;
            for patches in planned.kernels() {
                match build(&arguments.series, patches)? {
                    Exit::Success => {}
                    other => return Ok(other),
                }
            }
            prove::patches(planned)
        }
    }
}

/// Builds the kernel without a patch and the one with these, or with all of the series, unless they are there.
fn build(series: &str, patches: &[String]) -> Result<Exit, Failure> {
    let mut command = script(&[&["build".to_owned(), series.to_owned()], patches].concat())?;
    // The sources are in the archive's suites that the kernels are of, which the machine itself may not use.
    if let Ok(settings) = Cache::of_user()?.kernels()?.archive_settings(&|what| tell!("{what}")) {
        command.env("APT_CONFIG", settings);
    }
    ended(command)
}

/// The script beside the patches.
fn script(words: &[String]) -> Result<Command, Failure> {
    let onset = std::env::current_exe().map_err(Failure::unavailable)?;
    let mut command = Command::new("sh");
    command.arg(Installation::find()?.patches()).args(words).env("ONSET", onset);
    Ok(command)
}

/// Runs the script to its end.
fn ended(mut command: Command) -> Result<Exit, Failure> {
    let ended = command.status();
    let ended = ended.map_err(|e| Failure::unavailable(format!("sh: {e}")))?;
    match ended.success() {
        // The script has said why, by the same terminal.
        _ if work::is_cancelled() => Ok(Exit::Interrupted),
        true => Ok(Exit::Success),
        false => Err(Failure::unavailable("the kernels were not built; the lines above say why")),
    }
}
