// SPDX-License-Identifier: GPL-2.0-or-later
//! What a hunt is told, and how it ends.

use crate::budget::Budget;
use crate::knowledge::Knowledge;
use crate::name::StrategyName;
use sample::{Nanos, Responder};
use serde::{Deserialize, Serialize};

/// What a hunt is told.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// In how many guests; at least one.
    pub guests: usize,
    /// Whose worst answer is looked for.
    pub responders: Vec<Responder>,
    /// Who shares the virtual time; at least one.
    pub strategies: Vec<StrategyName>,
    /// Of everything random.
    pub seed: u64,
    /// See [`Budget`].
    pub budget: Budget,
    /// Machines at once.
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

/// A failure that has ended a hunt: an error of whoever carries out trials.
#[derive(Debug)]
pub struct HuntFailure<E> {
    /// What the hunt knew by then.
    pub known: Box<Knowledge>,
    /// The failure.
    pub failure: E,
}

impl<E> From<E> for HuntFailure<E> {
    /// Before anything was known.
    fn from(failure: E) -> HuntFailure<E> {
        HuntFailure { known: Box::default(), failure }
    }
}
