// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes the finds again from which the hunt starts, one in each trial. All strategies go on from there. It has no
//! share of the time: its trials come first.

use super::{Strategy, Turn};
use crate::begin::Begin;
use crate::knowledge::Recipe;
use crate::name::StrategyName;
use sample::{Disturbance, Nanos, Schedule, When};

pub struct Corpus;

impl Corpus {
    fn find<'a>(turn: &Turn<'a>) -> Option<&'a Recipe> {
        turn.corpus.get(usize::try_from(turn.number).ok()?)
    }
}

impl Strategy for Corpus {
    fn name(&self) -> StrategyName {
        StrategyName::new(8, "corpus")
    }

    fn weight(&self) -> u64 {
        0
    }

    fn begins_from_find(&self) -> bool {
        true
    }

    fn usual(&self, turn: &Turn) -> Nanos {
        let last = Corpus::find(turn).and_then(|find| find.instants.last());
        last.copied().unwrap_or_default()
    }

    fn begin(&self, turn: &Turn) -> Begin {
        Corpus::find(turn).map(|find| find.begin).unwrap_or_default()
    }

    fn when(&self, turn: &Turn) -> When {
        let instants = Corpus::find(turn).map(|find| find.instants.clone());
        When::Planned(Schedule::Explicit(instants.unwrap_or_default()))
    }

    fn disturbances(&self, turn: &Turn) -> Vec<Disturbance> {
        Corpus::find(turn).map(|find| find.disturbances.clone()).unwrap_or_default()
    }
}
