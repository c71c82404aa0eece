// SPDX-License-Identifier: GPL-2.0-or-later
//! The search for the worst case of a flavour. A hunt makes trial after trial from a few snapshots of one guest or
//! several. Each trial has other instants. Strategies choose the instants, share the virtual time, and learn from the
//! finds.
//!
//! The crate gets the results of trials. It knows neither guests nor files nor the records of the follower: the lab
//! carries trials out and keeps their journal.
//!
//! Trials are made in rounds. The trials of a round depend only on the hunt's seed and on the rounds before it. So
//! a hunt finds the same with any number of workers. A budget of time decides only after which trial the hunt
//! ends.

mod ahead;
mod begin;
mod breeding;
mod budget;
mod coincidence;
mod dealing;
mod dice;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
mod foreseen;
mod genome;
mod ground;
mod hunt;
mod knowledge;
mod name;
mod registry;
mod result;
mod search;
mod strategy;
#[cfg(test)]
mod tests;
mod trial;

pub use begin::{Begin, FIRST_STAGE, is_stage};
pub use breeding::{Breeding, Lived, Population, ROUND};
pub use budget::{Budget, NotABudget};
pub use coincidence::{AT_ONCE, Coincidence, ComingInterrupt, Timeline};
pub use foreseen::{ForeseenStretch, longest};
pub use genome::{Gene, Genome};
pub use hunt::{Hunt, HuntEnd, HuntFailure};
pub use knowledge::{Discovery, GrowthStep, Knowledge, Recipe, Share};
pub use name::StrategyName;
pub use registry::STRATEGIES;
pub use result::{
    Encounter, EnteredStretch, GuestDeath, LateAnswer, TrialResult, functions, place,
};
pub use search::{CarryOut, RoundResults};
pub use strategy::{Planner, Strategy, Turn};
pub use trial::Trial;
