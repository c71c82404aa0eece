// SPDX-License-Identifier: GPL-2.0-or-later
//! Loads that a search may change: a genome is a load, and each of its genes is a stressor of stress-ng, with when it
//! begins and for how long it works.

use crate::dice::Dice;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How long a genome is looked at, from the beginning of measuring on. It is chosen: some times as long as a stressor
/// takes to begin.
pub const SPAN: Nanos = Nanos::from_millis(400);
// A scout that looks as far as a stage leaves its guest saved there, and this guest has other work than its key says.
const _: () = assert!(SPAN.0 != crate::begin::FIRST_STAGE.0);
/// No gene begins later than this, so that its stressor works before the span ends.
const BEGINS_MS: u64 = 200;
/// The shortest and the longest time for which a gene works.
const WORKS_MS: (u64, u64) = (50, 400);
/// The most genes of a genome. More of them hardly get the one processor within the span.
const GENES_MAX: usize = 4;
/// How many changes a child has at most.
const CHANGES_MAX: u64 = 3;

/// One stressor of a load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gene {
    /// The name of the stressor.
    pub stressor: String,
    /// When it begins, in ms since measuring began.
    pub from_ms: u32,
    /// For how long it works, in ms.
    pub for_ms: u32,
    /// What it draws its random numbers from.
    pub seed: u32,
}

/// A load that is made of genes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Genome {
    /// The genes, in the order in which they begin. At least one.
    pub genes: Vec<Gene>,
}

impl fmt::Display for Gene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gene { stressor, from_ms, for_ms, .. } = self;
        write!(f, "{stressor} {from_ms}–{} ms", from_ms.saturating_add(*for_ms))
    }
}

impl fmt::Display for Genome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let genes: Vec<String> = self.genes.iter().map(Gene::to_string).collect();
        f.write_str(&genes.join(" + "))
    }
}

impl Gene {
    fn drawn(stressors: &[String], dice: &mut Dice) -> Gene {
        let (least, most) = WORKS_MS;
        Gene {
            stressor: stressors[dice.below(stressors.len() as u64) as usize].clone(),
            from_ms: dice.below(BEGINS_MS) as u32,
            for_ms: (least + dice.below(most - least)) as u32,
            seed: dice.next() as u32,
        }
    }
}

impl Genome {
    fn of(mut genes: Vec<Gene>) -> Genome {
        genes.sort_by_key(|gene| (gene.from_ms, gene.stressor.clone(), gene.seed));
        genes.truncate(GENES_MAX);
        Genome { genes }
    }

    /// Whether the search could have made it of these stressors. One that was read from a file may be anything.
    pub fn is_sound(&self, stressors: &[String]) -> bool {
        let (least, most) = WORKS_MS;
        let is_sound = |gene: &Gene| {
            u64::from(gene.from_ms) < BEGINS_MS
                && (least..most).contains(&u64::from(gene.for_ms))
                && stressors.contains(&gene.stressor)
        };
        (1..=GENES_MAX).contains(&self.genes.len()) && self.genes.iter().all(is_sound)
    }

    /// A genome without parents.
    pub(crate) fn drawn(stressors: &[String], dice: &mut Dice) -> Genome {
        let count = 1 + dice.below(GENES_MAX as u64 - 1);
        Genome::of((0..count).map(|_| Gene::drawn(stressors, dice)).collect())
    }

    /// A child that differs from its parent in something.
    pub(crate) fn changed(&self, stressors: &[String], dice: &mut Dice) -> Genome {
        let mut genes = self.genes.clone();
        for _ in 0..=dice.below(CHANGES_MAX) {
            let place = dice.below(genes.len() as u64) as usize;
            let new = Gene::drawn(stressors, dice);
            let (count, gene) = (genes.len(), &mut genes[place]);
            match dice.below(6) {
                0 => gene.stressor = new.stressor,
                1 => gene.from_ms = new.from_ms,
                2 => gene.for_ms = new.for_ms,
                3 => gene.seed = new.seed,
                4 if count > 1 => drop(genes.remove(place)),
                _ if count < GENES_MAX => genes.push(new),
                _ => *gene = new,
            }
        }
        Genome::of(genes)
    }

    /// A child that has genes of both parents.
    pub(crate) fn crossed(&self, other: &Genome, dice: &mut Dice) -> Genome {
        let mut genes: Vec<Gene> = self.genes.iter().chain(&other.genes).cloned().collect();
        // At least one of each parent stays, since the first and the last are never dropped.
        while genes.len() > GENES_MAX || (genes.len() > 2 && dice.below(2) == 0) {
            let inner = genes.len() as u64 - 2;
            genes.remove(1 + dice.below(inner) as usize);
        }
        Genome::of(genes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> Vec<String> {
        ["fork", "mmap", "pipe"].map(String::from).into()
    }

    proptest! {
        #[test]
        fn children_are_as_sound_as_their_parents(seed: u64, number in 0u64..1_000) {
            let mut dice = Dice::new(seed, number);
            let [a, b] = [(); 2].map(|()| Genome::drawn(&names(), &mut dice));
            let child = a.crossed(&b, &mut dice);
            let of = |genome: &Genome| child.genes.iter().any(|gene| genome.genes.contains(gene));
            prop_assert!(of(&a) && of(&b));
            for genome in [&a, &b, &child, &child.changed(&names(), &mut dice)] {
                prop_assert!(genome.is_sound(&names()), "{genome}");
                prop_assert!(genome.genes.is_sorted_by_key(|gene| gene.from_ms));
            }
        }
    }

    #[test]
    fn a_genome_says_what_it_does_and_when() {
        let gene = |stressor: &str, from_ms| Gene {
            stressor: stressor.into(),
            from_ms,
            for_ms: 100,
            seed: 1,
        };
        let genome = Genome::of(vec![gene("mmap", 30), gene("fork", 0)]);
        assert_eq!(genome.to_string(), "fork 0–100 ms + mmap 30–130 ms");
        assert!(genome.is_sound(&names()));
        assert!(!genome.is_sound(&names()[1..]) && !Genome::default().is_sound(&names()));
        assert!(!Genome::of(vec![gene("fork", 5_000)]).is_sound(&names()));
    }
}
