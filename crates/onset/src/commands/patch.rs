// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset patch`: onset's own preemption points. The script beside the patches builds kernels, and prints what the
//! compiler says.

use super::prove;
use crate::arguments::{Patch, PatchBuild, PatchCommand, PatchProve};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use rig::Cache;
use std::process::Command;
use view::visible::tell;

pub fn run(arguments: &Patch) -> Result<Exit, Failure> {
    match &arguments.command {
        PatchCommand::List => script(&["list".into()]),
        PatchCommand::Build(PatchBuild { series, patches }) => build(series, patches),
        PatchCommand::Prove(arguments) => {
            let planned = prove::planned(arguments)?;
            match build_all(arguments)? {
                Exit::Success => prove::patches(planned),
                other => Ok(other),
            }
        }
    }
}

/// Builds the kernels of a proof: one for each patch, and one for all of them.
fn build_all(arguments: &PatchProve) -> Result<Exit, Failure> {
    let PatchProve { series, patches, .. } = arguments;
    let alone = patches.iter().map(std::slice::from_ref).filter(|_| patches.len() > 1);
    for set in alone.chain([patches.as_slice()]) {
        match build(series, set)? {
            Exit::Success => {}
            other => return Ok(other),
        }
    }
    Ok(Exit::Success)
}

/// Builds the kernel without a patch and the one with these, or with all of the series, unless they are there.
fn build(series: &str, patches: &[String]) -> Result<Exit, Failure> {
    script(&[&["build".to_owned(), series.to_owned()], patches].concat())
}

/// Runs the script beside the patches.
fn script(words: &[String]) -> Result<Exit, Failure> {
    let script = Installation::find()?.patches();
    let onset = std::env::current_exe().map_err(Failure::unavailable)?;
    let mut command = Command::new("sh");
    command.arg(&script).args(words).env("ONSET", onset);
    // The sources are in the archive's suites that the kernels are of, which the machine itself may not use.
    if let [verb, ..] = words
        && verb == "build"
        && let Ok(settings) = Cache::of_user()?.kernels()?.archive_settings(&|what| tell!("{what}"))
    {
        command.env("APT_CONFIG", settings);
    }
    let ended = command.status();
    let ended = ended.map_err(|e| Failure::unavailable(format!("sh {}: {e}", script.display())))?;
    match ended.success() {
        // The script has said why, by the same terminal.
        _ if work::is_cancelled() => Ok(Exit::Interrupted),
        true => Ok(Exit::Success),
        false => Err(Failure::unavailable("the kernels were not built; the lines above say why")),
    }
}
