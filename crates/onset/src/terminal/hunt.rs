// SPDX-License-Identifier: GPL-2.0-or-later
//! What a hunt found, as text.

use super::table::{Align, Table};
use crate::hunt::{About, Ended, Known};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Frames of a stack that are shown; all of them are in the JSON.
const FRAMES: usize = 6;

/// One line after each round.
pub fn progress(known: &Known) -> String {
    let worst: Vec<String> = known
        .worst
        .iter()
        .map(|(name, found)| format!("{name} {}", found.best.latency_ns))
        .collect();
    format!(
        "{} trials, {} triggers, {} of virtual time, fired into {} stacks; worst: {}",
        known.trials,
        known.triggers,
        known.virtual_ns,
        known.fired.len(),
        worst.join(", ")
    )
}

/// The conclusion.
pub fn hunted(
    about: &About,
    (known, finds, deaths): (&Known, &BTreeMap<String, PathBuf>, &BTreeMap<u64, PathBuf>),
    ended: Ended,
    directory: &Path,
) -> String {
    let mut text = format!("{} · {}   hunt, seed {}\n", about.flavour, about.load, about.seed);
    let why = match ended {
        Ended::Budget => "the budget was used up",
        Ended::Stale => "nothing new came any more",
        Ended::Interrupted => "interrupted",
    };
    let line = format!(
        "{} trials with {} triggers in {} of virtual time; fired into {} of {} stacks that opened a stretch; {why}\n",
        known.trials,
        known.triggers,
        known.virtual_ns,
        known.fired.len(),
        known.seen.union(&known.fired).count(),
    );
    text += &line;
    let _ = writeln!(text, "{}", directory.display());
    text += &worst(about, known, finds);
    text += &strategies(about, known);
    for (trial, died) in &known.died {
        let _ = writeln!(text, "\nThe guest died in trial {trial}: {}", died.text);
        if let Some(experiment) = deaths.get(trial) {
            let _ = writeln!(text, "      onset run {}", experiment.display());
        }
    }
    text
}

fn worst(about: &About, known: &Known, finds: &BTreeMap<String, PathBuf>) -> String {
    let mut text = String::new();
    for name in &about.responders {
        let Some(found) = known.worst.get(name) else {
            let _ = writeln!(text, "\n  {name}: no answer");
            continue;
        };
        let _ = writeln!(
            text,
            "\n  {name}: {} by {}, trial {}",
            found.best.latency_ns, found.strategy, found.trial
        );
        if let Some(find) = finds.get(name) {
            let _ = writeln!(text, "      onset replay {}", find.display());
        }
        for frame in found.best.stack.iter().take(FRAMES) {
            let _ = writeln!(text, "      {frame}");
        }
    }
    text
}

/// The strategies against each other.
fn strategies(about: &About, known: &Known) -> String {
    let mut columns = vec![("strategy", Align::Left), ("trials", Align::Right)];
    columns.extend([("triggers", Align::Right), ("virtual", Align::Right)]);
    columns.extend(about.responders.iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for (strategy, share) in &known.shares {
        let mut row = vec![
            strategy.to_string(),
            share.trials.to_string(),
            share.triggers.to_string(),
            share.virtual_ns.to_string(),
        ];
        row.extend(
            about.responders.iter().map(|name| {
                share.worst_ns.get(name).map_or_else(|| "–".into(), ToString::to_string)
            }),
        );
        table.row(row);
    }
    let lines = table.lines().iter().map(|line| format!("  {line}\n")).collect::<String>();
    format!("\n{lines}")
}
