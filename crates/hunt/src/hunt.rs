// SPDX-License-Identifier: GPL-2.0-or-later
//! The settings of a hunt, and the ways in which it ends.

use crate::budget::Budget;
use crate::knowledge::{Knowledge, Recipe};
use crate::name::StrategyName;
use sample::{Nanos, Responder};
use serde::{Deserialize, Serialize};

/// The settings of a hunt.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The number of guests, at least one.
    pub guests: usize,
    /// The responders whose worst answer is searched.
    pub responders: Vec<Responder>,
    /// The strategies that share the virtual time, at least one.
    pub strategies: Vec<StrategyName>,
    /// The seed of everything random.
    pub seed: u64,
    /// The finds of other hunts from which this one starts. Their trials come before all others.
    pub corpus: Vec<Recipe>,
    /// How long the hunt goes on; see [`Budget`].
    pub budget: Budget,
    /// The number of machines that run at once.
    pub jobs: usize,
    /// The hunt ends with the round in which one of the responders was as late as this.
    pub enough: Option<Nanos>,
}

/// Why a hunt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HuntEnd {
    /// The budget was used up.
    Budget,
    /// Nothing new came any more.
    Stale,
    /// An answer was as late as asked for.
    Enough,
    /// The user asked to stop.
    Interrupted,
    /// The rig failed, or the journal could not be written.
    Failed,
}

/// A failure that has ended a hunt. It is an error of the code that carries out trials.
#[derive(Debug)]
pub struct HuntFailure<E> {
    /// The knowledge of the hunt until then.
    pub known: Box<Knowledge>,
    /// The failure.
    pub failure: E,
}

impl<E> From<E> for HuntFailure<E> {
    /// A failure before anything was known.
    fn from(failure: E) -> HuntFailure<E> {
        HuntFailure { known: Box::default(), failure }
    }
}
