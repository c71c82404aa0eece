// SPDX-License-Identifier: GPL-2.0-or-later
//! A *ground*: a place where trials begin, with what a scout saw after it and what trials have fired at since.

use crate::coincidence::Coincidence;
use crate::foreseen::{ForeseenStretch, NEAR};
use crate::result::TrialResult;
use sample::Nanos;
use std::collections::BTreeSet;

/// Where trials begin, and what a scout saw to come from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// What is near enough to be fired into.
    pub near: Vec<ForeseenStretch>,
    /// What is not.
    pub far: Vec<ForeseenStretch>,
    /// What comes together soon.
    pub together: Vec<Coincidence>,
    /// Trials of foresight that fired from here.
    pub fired: usize,
    /// When they fired first.
    pub tried: BTreeSet<Nanos>,
}

impl Ground {
    /// Adds what a trial of foresight saw or did.
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
            }
        }
    }
}
