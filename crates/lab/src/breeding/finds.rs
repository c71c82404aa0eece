// SPDX-License-Identifier: GPL-2.0-or-later
//! The finds of a search for loads: the latest answers of all genomes, each with the causes that made it so late.

use super::{Kept, Late};
use crate::followed::Reproducer;
use crate::hunting::Find;
use hunt::{Discovery, Genome, Recipe, place};
use sample::Responder;
use std::cmp::Reverse;

/// How many finds of a responder are explained, each of another place.
const EXPLAINED: usize = 6;

/// A find, and the genome under which it came.
#[derive(Clone, Debug)]
pub struct BredFind {
    /// The number of the genome.
    pub number: u64,
    /// The genome.
    pub genome: Genome,
    /// The find.
    pub find: Find,
}

/// The latest answers of each responder, the latest first, each of another place. `explain` gets them all, and may
/// leave out those whose main cause is that of a later one.
pub fn finds(
    kept: &[Kept],
    responders: &[Responder],
    explain: impl FnOnce(&mut Vec<Find>),
) -> Vec<BredFind> {
    let mut chosen: Vec<Find> = Vec::new();
    for responder in responders {
        let mut all: Vec<(u64, &Late)> = kept
            .iter()
            .flat_map(|one| one.finds.iter().map(|late| (one.lived.number, late)))
            .filter(|(_, late)| late.find.answer.responder == *responder)
            .collect();
        all.sort_by_key(|(number, late)| (Reverse(late.find.answer.latency_ns), *number));
        let mut places: Vec<Vec<String>> = Vec::new();
        for (number, late) in all {
            if places.len() < EXPLAINED && !places.contains(&place(&late.stack)) {
                places.push(place(&late.stack));
                chosen.push(find(number, late));
            }
        }
    }
    explain(&mut chosen);
    let of = |find: Find| {
        let number = find.found.trial;
        let one = kept.iter().find(|one| one.lived.number == number).expect("it is one of them");
        BredFind { number, genome: one.lived.genome.clone(), find }
    };
    chosen.into_iter().map(of).collect()
}

/// The answer as a find of a hunt whose trial is the genome.
fn find(number: u64, Late { stack, find }: &Late) -> Find {
    let Reproducer { answer, times_ns, snapshot, .. } = find;
    let recipe = Recipe {
        latency_ns: answer.latency_ns,
        latency_insns: answer.insns,
        snapshot: snapshot.clone(),
        instants: times_ns.clone(),
        trigger: answer.trigger,
        stack: stack.clone(),
        ..Recipe::default()
    };
    let strategy = "foresight".parse().expect("a strategy");
    let found = Discovery { trial: number, strategy, answer: recipe };
    Find::of(answer.responder, found, find.clone())
}
