// SPDX-License-Identifier: GPL-2.0-or-later
//! The search for the load under which answers come latest: a population of genomes, of which each had its trials. As a
//! fuzzer keeps inputs that reach new code, the population's parents are the genomes that saw new stacks, and those
//! with the latest answers.

use crate::dice::Dice;
use crate::foreseen::{ForeseenStretch, apart, by_length, kinds};
use crate::genome::{Genome, SPAN};
use crate::strategy::foresight::{enter, scout};
use crate::trial::Trial;
use sample::{Nanos, Responder};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The genomes of a round. The number is chosen, as that of the trials in a hunt's round: with it a few workers share a
/// round, and none waits long.
pub const ROUND: u64 = 8;
/// How many stretches of a genome are fired into, each in a trial of its own.
const FIRED: usize = 16;
/// The first genomes are drawn, and have no parents.
const DRAWN: u64 = 8;
/// Of this many later genomes, one is drawn.
const FRESH: u64 = 8;
/// Of this many children, one has two parents.
const CROSSED: u64 = 4;
/// From how many of the best genomes a parent is drawn.
const PARENTS: usize = 12;

/// The settings of the search.
#[derive(Clone, Debug)]
pub struct Breeding {
    /// The seed of everything random.
    pub seed: u64,
    /// The stressors that genes may have, at least one.
    pub stressors: Vec<String>,
    /// The responders whose worst answer is searched, at least one.
    pub responders: Vec<Responder>,
    /// Genomes of earlier searches, with which this one begins.
    pub corpus: Vec<Genome>,
}

/// What became of a genome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lived {
    /// Its number, from 0 on.
    pub number: u64,
    /// The genome.
    pub genome: Genome,
    /// The hashes of the stacks that opened a stretch in its trials.
    pub stacks: BTreeSet<u64>,
    /// The latest answer of each responder that answered.
    pub late: BTreeMap<String, Nanos>,
    /// How many trials it had.
    pub trials: u64,
}

/// All genomes that had their trials.
#[derive(Clone, Debug, Default)]
pub struct Population {
    lived: Vec<Individual>,
    stacks: BTreeSet<u64>,
    /// How many trials they had together.
    pub trials: u64,
}

#[derive(Clone, Debug)]
struct Individual {
    genome: Genome,
    /// How many stacks nobody before it saw.
    new: usize,
    late: BTreeMap<String, Nanos>,
}

impl Population {
    /// Adds a genome. They are added by their numbers.
    pub fn take(&mut self, lived: &Lived) {
        let new = lived.stacks.difference(&self.stacks).count();
        self.stacks.extend(&lived.stacks);
        self.trials += lived.trials;
        let (genome, late) = (lived.genome.clone(), lived.late.clone());
        self.lived.push(Individual { genome, new, late });
    }

    /// Adds a genome if it saw a stack that none before it saw, or if one of its answers is later than all before it.
    /// Says whether it did.
    pub fn take_if_new(&mut self, lived: &Lived) -> bool {
        let latest = |name: &String| self.lived.iter().filter_map(|one| one.late.get(name)).max();
        let is_later = lived.late.iter().any(|(name, ns)| Some(ns) > latest(name));
        let is_new = is_later || !lived.stacks.is_subset(&self.stacks);
        if is_new {
            self.take(lived);
        }
        is_new
    }

    /// How many genomes there are.
    pub fn count(&self) -> u64 {
        self.lived.len() as u64
    }

    /// How many different stacks they saw.
    pub fn stacks(&self) -> usize {
        self.stacks.len()
    }

    /// The latest answer of a responder.
    pub fn latest(&self, responder: Responder) -> Option<Nanos> {
        self.lived.iter().filter_map(|one| one.late.get(responder.name()).copied()).max()
    }

    /// The best by a measure, the best first. Of genomes that are as good, an earlier one is better. Those that the
    /// measure refuses are not among them.
    fn best<K: Ord>(&self, measure: impl Fn(&Individual) -> Option<K>) -> Vec<&Genome> {
        let measured = self.lived.iter().enumerate();
        let mut measured: Vec<_> =
            measured.filter_map(|(n, one)| Some((Reverse(measure(one)?), n, one))).collect();
        measured.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        measured.into_iter().take(PARENTS).map(|(.., one)| &one.genome).collect()
    }
}

impl Breeding {
    /// The genome with this number. It depends on the seed and on the population before its round.
    pub fn genome(&self, number: u64, population: &Population) -> Genome {
        if let Some(known) = self.corpus.get(number as usize) {
            return known.clone();
        }
        let mut dice = Dice::new(self.seed, number);
        let begun = number.saturating_sub(self.corpus.len() as u64);
        let is_drawn = begun < DRAWN || dice.below(FRESH) == 0;
        let parent = if is_drawn { None } else { self.parent(population, &mut dice) };
        let Some(parent) = parent else { return Genome::drawn(&self.stressors, &mut dice) };
        if dice.below(CROSSED) == 0
            && let Some(other) = self.parent(population, &mut dice)
        {
            return parent.crossed(other, &mut dice);
        }
        parent.changed(&self.stressors, &mut dice)
    }

    /// A genome that saw what none before it saw, or one with a late answer.
    fn parent<'a>(&self, population: &'a Population, dice: &mut Dice) -> Option<&'a Genome> {
        let responder = self.responders[dice.below(self.responders.len() as u64) as usize];
        let best = match dice.below(2) {
            0 => population.best(|one| (one.new > 0).then_some(one.new)),
            _ => population.best(|one| one.late.get(responder.name()).copied()),
        };
        let place = dice.below(best.len().max(1) as u64) as usize;
        best.get(place).copied()
    }

    /// The trial that looks at a genome, before others fire into what it sees.
    pub fn scout(&self, number: u64) -> Trial {
        scout(number, SPAN)
    }

    /// Trials that fire into the longest stretches that a scout saw, each into one.
    pub fn fires(&self, scouted: &[ForeseenStretch], first: u64) -> Vec<Trial> {
        let may = |stretch: &ForeseenStretch| {
            let kind = stretch.occurrence.kind;
            self.responders.iter().any(|responder| kinds(*responder).contains(&kind))
        };
        let chosen = apart(Vec::new(), &by_length(scouted, may), FIRED);
        (first..).zip(chosen).map(|(number, stretch)| enter(number, stretch)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::second;
    use crate::foreseen::APART;
    use sample::Stretch;

    fn breeding(corpus: Vec<Genome>) -> Breeding {
        let stressors = ["fork", "mmap", "pipe", "switch"].map(String::from).into();
        Breeding { seed: 3, stressors, responders: vec![Responder::Task], corpus }
    }

    /// A world in which answers are late if `fork` and `switch` begin close together.
    fn lived(number: u64, genome: Genome) -> Lived {
        let begins = |name: &str| {
            genome.genes.iter().find(|gene| gene.stressor == name).map(|gene| gene.from_ms)
        };
        let late = match (begins("fork"), begins("switch")) {
            (Some(a), Some(b)) => 1_000 - u64::from(a.abs_diff(b)),
            _ => 10,
        };
        let stacks = genome.genes.iter().map(|gene| u64::from(gene.seed % 100)).collect();
        let late = [("task".to_string(), Nanos(late))].into();
        Lived { number, genome, stacks, late, trials: 5 }
    }

    fn bred(breeding: &Breeding, genomes: u64) -> (Population, Vec<Genome>) {
        let (mut population, mut all) = (Population::default(), Vec::new());
        while population.count() < genomes {
            let first = population.count();
            let round: Vec<Lived> = (first..first + ROUND)
                .map(|number| lived(number, breeding.genome(number, &population)))
                .collect();
            for one in &round {
                population.take(one);
                all.push(one.genome.clone());
            }
        }
        (population, all)
    }

    #[test]
    fn a_seed_breeds_the_same_and_children_come_later_than_what_is_drawn() {
        let (population, all) = bred(&breeding(Vec::new()), 400);
        assert_eq!(bred(&breeding(Vec::new()), 400).1, all);
        let late = |genomes: &[Genome]| {
            let latest = |genome: &Genome| lived(0, genome.clone()).late["task"];
            genomes.iter().map(|genome| latest(genome).0).sum::<u64>() / genomes.len() as u64
        };
        // Were they drawn, one of eight would be late.
        let drawn = breeding(Vec::new());
        let drawn: Vec<Genome> =
            (0..400).map(|n| Genome::drawn(&drawn.stressors, &mut Dice::new(9, n))).collect();
        let (drawn, bred) = (late(&drawn), late(&all[200..]));
        assert!(bred > 2 * drawn, "{bred} {drawn}");
        assert!(population.latest(Responder::Task) > Some(Nanos(990)));
        assert_eq!(population.trials, 2_000);
        assert!(population.stacks() > 50);
    }

    #[test]
    fn a_corpus_comes_first() {
        let (_, all) = bred(&breeding(Vec::new()), 24);
        let corpus = all[20..23].to_vec();
        let (_, again) = bred(&breeding(corpus.clone()), 24);
        assert_eq!(again[..3], corpus);
        assert_ne!(again[3..], all[3..]);
    }

    #[test]
    fn the_longest_stretches_that_can_make_a_responder_late_are_fired_into() {
        let fires = breeding(Vec::new()).fires(&second(), 7);
        assert_eq!((fires.len(), fires[0].number), (FIRED, 7));
        let entered = |trial: &Trial| trial.enters.expect("a stretch");
        let times: Vec<Nanos> = fires.iter().map(|trial| entered(trial).at_ns).collect();
        for (n, at) in times.iter().enumerate() {
            assert!(times[..n].iter().all(|before| before.abs_diff(*at) >= APART));
        }
        let hard = Breeding { responders: vec![Responder::Hardirq], ..breeding(Vec::new()) };
        let fires = hard.fires(&second(), 0);
        let kinds = fires.iter().map(|trial| entered(trial).occurrence.kind);
        assert!(!fires.is_empty() && kinds.into_iter().all(|kind| kind == Stretch::IrqsOff));
    }
}
