// SPDX-License-Identifier: GPL-2.0-or-later
//! What a trial is told: where it begins, when it triggers, and what disturbs the guest meanwhile.

use crate::begin::Begin;
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::name::StrategyName;
use sample::{Aim, Disturbance, Nanos, Rule, When};

/// What to do in a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its number.
    pub number: u64,
    /// Who chose.
    pub strategy: StrategyName,
    /// Where it begins.
    pub begin: Begin,
    /// When to trigger, from there.
    pub when: When,
    /// What disturbs meanwhile.
    pub disturbances: Vec<Disturbance>,
    /// What the first trigger comes into as it opens, where a scout saw that.
    pub enters: Option<ForeseenStretch>,
    /// What the first trigger meets, where a scout saw that.
    pub meets: Option<Coincidence>,
}

impl Trial {
    /// How far it looks, where it is a scout.
    pub fn looks_ahead(&self) -> Option<Nanos> {
        match &self.when {
            When::Aimed(Aim { rule: Rule::Scout, until, .. }) => Some(*until),
            _ => None,
        }
    }
}
