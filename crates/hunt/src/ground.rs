// SPDX-License-Identifier: GPL-2.0-or-later
//! A *ground*: a place where trials begin, with the things that a scout saw after it and the trials that fired from it.

use crate::coincidence::Coincidence;
use crate::foreseen::{ForeseenStretch, NEAR};
use crate::result::TrialResult;
use sample::Nanos;
use std::collections::BTreeSet;

/// A place where trials begin, and the things that a scout saw to come from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// The stretches that are near enough to be fired into from here.
    pub near: Vec<ForeseenStretch>,
    /// The stretches that are too far for that, unless they are outstanding.
    pub far: Vec<ForeseenStretch>,
    /// The coincidences that come soon.
    pub together: Vec<Coincidence>,
    /// How far the guest has been let run from here without triggers, by a scout and for the trials that fire later.
    pub walked: Nanos,
    /// The number of foresight's trials that fired from here.
    pub fired: usize,
    /// The instants at which these trials fired first.
    pub tried: BTreeSet<Nanos>,
}

impl Ground {
    /// Adds the result of a trial of foresight.
    pub fn take(&mut self, result: &TrialResult) {
        match &result.scouted {
            Some(scouted) => {
                let is_near = |f: &ForeseenStretch| f.at_ns <= NEAR;
                (self.near, self.far) = scouted.iter().copied().partition(is_near);
                self.together.clone_from(&result.coincidences);
            }
            None => {
                self.fired += 1;
                self.tried.extend(result.entered.iter().map(|entered| entered.stretch.at_ns));
                self.tried.extend(result.encounter.iter().map(|met| met.coincidence.at_ns));
                if result.entered.is_none() && result.encounter.is_none() {
                    let died = result.died.as_ref().and_then(|died| died.instants.first());
                    self.tried.extend(result.instants.first().or(died));
                }
            }
        }
    }
}
