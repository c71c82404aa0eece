// SPDX-License-Identifier: GPL-2.0-or-later
//! What to do in a trial: where it begins, when it triggers, and what disturbs the guest meanwhile.

use crate::begin::Begin;
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::name::StrategyName;
use sample::{Aim, Disturbance, Nanos, Rule, When};

/// What to do in a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The trial's number.
    pub number: u64,
    /// The strategy that chose the triggers.
    pub strategy: StrategyName,
    /// The place where the trial begins.
    pub begin: Begin,
    /// When to trigger, from that place on.
    pub when: When,
    /// The disturbances meanwhile.
    pub disturbances: Vec<Disturbance>,
    /// The stretch into which the first trigger comes as the stretch opens, if a scout saw it.
    pub enters: Option<ForeseenStretch>,
    /// The coincidence that the first trigger meets, if a scout saw it.
    pub meets: Option<Coincidence>,
}

impl Trial {
    /// How far the trial looks, if it is a scout.
    pub fn looks_ahead(&self) -> Option<Nanos> {
        match &self.when {
            When::Aimed(Aim { rule: Rule::Scout, until, .. }) => Some(*until),
            _ => None,
        }
    }
}
