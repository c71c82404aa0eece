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
    /// The time from which on the trial may trigger or disturb. Until then its guest is as if there were no trial.
    /// `None` if the trial is a scout, which tells of the guest itself.
    pub fn fires_from(&self) -> Option<Nanos> {
        let first = match &self.when {
            When::Planned(schedule) => schedule.due(0).unwrap_or_default(),
            When::Aimed(Aim { rule: Rule::Scout, .. }) | When::Commanded => return None,
            When::Aimed(Aim { rule: Rule::Listed(_), .. }) => {
                let entered = self.enters.map(|stretch| stretch.at_ns);
                entered.unwrap_or_default()
            }
            When::Aimed(_) => Nanos(0),
        };
        let disturbed = self.disturbances.first().map(|disturbance| disturbance.at);
        Some(disturbed.map_or(first, |at| at.min(first)))
    }

    /// How far the trial looks, if it is a scout.
    pub fn looks_ahead(&self) -> Option<Nanos> {
        match &self.when {
            When::Aimed(Aim { rule: Rule::Scout, until, .. }) => Some(*until),
            _ => None,
        }
    }
}
