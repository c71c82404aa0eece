// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset tune prove`: what each knob does and what it costs. Pairs show it: of guests in the rig, of blocks here.

mod blocks;
mod kept;
mod machine;
mod patches;
mod rig;

pub use kept::towards;
pub use patches::{patches, planned};

use super::{print, print_json, report};
use crate::arguments::TuneProve;
use crate::failure::{Exit, Failure};
use stats::{Effect, Statistic};
use view::results::{Proof, ProofRow};
use view::terminal;
use view::visible::tell;

/// The name of the row of what changes nothing.
const CONTROL_ROW: &str = "control";
/// The name of the row of several knobs at once.
const TOGETHER: &str = "together";

pub fn run(arguments: &TuneProve) -> Result<Exit, Failure> {
    // The check comes first, not after an hour of measuring.
    arguments.report.as_deref().map_or(Ok(()), report::check_chosen)?;
    let proof = match arguments.flavours.is_empty() {
        true => machine::prove(arguments)?,
        false => rig::prove(arguments)?,
    };
    match arguments.json {
        true => print_json(&proof)?,
        false => print(&terminal::proof(&proof))?,
    }
    if let Some(output) = &arguments.report {
        // This goes to stderr, since stdout may be JSON.
        tell!("the report is in {}", report::write_proof(&proof, output)?.display());
    }
    Ok(exit(&proof))
}

/// Success if every knob could be judged. Undecided, too, if the control has an effect: then something else has one.
fn exit(proof: &Proof) -> Exit {
    let is_told = |row: &ProofRow| {
        let effect = row.latency.as_ref().map(|latency| latency.effect);
        match (row.change.as_str(), effect) {
            (CONTROL_ROW, effect) => !matches!(effect, Some(Effect::Helps | Effect::Harms)),
            // The group is judged in its stead.
            (_, None) => row.group.is_some(),
            (_, Some(Effect::CannotTell { .. })) => false,
            (_, Some(_)) => true,
        }
    };
    let mut rows = proof.kernels.iter().flat_map(|kernel| kernel.rows.iter().chain(&kernel.groups));
    match rows.all(is_told) {
        true => Exit::Success,
        false => Exit::Undecided,
    }
}

/// The name of a knob in `NAME=VALUE`.
fn knob(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Whose answers are judged, and by which statistic, from `RESPONDER.STATISTIC`.
fn goal(text: &str) -> Result<(String, Statistic), Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--goal {text}: write RESPONDER.STATISTIC, as in task.p99 or hardirq.max"
        ))
    };
    // Names of series have dots, and so have those of quantiles.
    let dots = text.match_indices('.').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let mut named = dots.filter_map(|(name, statistic)| Some((name, statistic.parse().ok()?)));
    let (responder, statistic) = named.next().ok_or_else(wrong)?;
    Ok((responder.into(), statistic))
}
