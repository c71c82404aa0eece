// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of a search for loads, as text.

use super::count::several;
use super::hunt::{causes, other};
use hunt::{Lived, Population};
use lab::breeding::{About, BredFind, Kept};
use lab::followed::replay_of_find;
use std::fmt::Write;
use std::path::Path;

/// The line of a load that had its trials.
pub fn bred_load(kept: &Kept) -> String {
    let Lived { number, genome, late, .. } = &kept.lived;
    let late: Vec<String> = late.iter().map(|(name, ns)| format!("{name} {ns}")).collect();
    let died = if kept.died.is_some() { "; the guest died" } else { "" };
    let otherwise = match kept.forked_otherwise {
        true => {
            "\n! A trial of it came out otherwise in a fork than in a restored guest, which is a fault of onset. Replay the finds before you believe them: onset replay FIND"
        }
        false => "",
    };
    format!("load {number}: {genome}: {}{died}{otherwise}", late.join(", "))
}

/// The line after each round.
pub fn breeding_progress(population: &Population) -> String {
    let (loads, stacks) = (population.count(), population.stacks() as u64);
    format!("{}, which opened stretches by {}", several(loads, "load"), several(stacks, "stack"))
}

/// The results at the end.
pub fn bred(
    about: &About,
    directory: &Path,
    population: &Population,
    (finds, kept): (&[BredFind], &[Kept]),
) -> String {
    let mut text = format!(
        "{}   loads of stress-ng {}, seed {}\n",
        about.flavour, about.stress_ng, about.seed
    );
    let _ = writeln!(
        text,
        "{} with {}; {} opened a stretch\n{}",
        several(population.count(), "load"),
        several(population.trials, "trial"),
        several(population.stacks() as u64, "stack"),
        directory.display()
    );
    for name in &about.responders {
        let own: Vec<&BredFind> =
            finds.iter().filter(|bred| bred.find.responder.name() == *name).collect();
        let Some((first, others)) = own.split_first() else {
            let _ = writeln!(text, "\n  {name}: no find");
            continue;
        };
        let BredFind { number, genome, find } = first;
        let latency = find.found.answer.latency_ns;
        let _ = writeln!(text, "\n  {name}: {latency} under load {number}: {genome}");
        if let Some(path) = &find.path {
            let _ = writeln!(text, "      {}", replay_of_find(path));
        }
        text += &causes(find);
        for bred in others {
            text += &other(&bred.find);
            let _ = writeln!(text, "             under load {}: {}", bred.number, bred.genome);
        }
    }
    for one in kept {
        let Some(died) = &one.died else { continue };
        let Lived { number, genome, .. } = &one.lived;
        let _ = writeln!(text, "\nThe guest died under load {number} ({genome}): {died}");
    }
    text
}
