// SPDX-License-Identifier: GPL-2.0-or-later
//! Fires when a stretch opens that is known to be long, or where several delays are known to come together. A trial
//! without triggers, a *scout*, has seen them. Trials begin from snapshots and the rig is deterministic. So a scout
//! sees what the kernel will do, and later trials fire into what it saw.

mod firing;
mod outlook;

use super::aimed::GAP;
use super::window_start::WindowStart;
use super::{Planner, Strategy, Turn};
use crate::begin::{Begin, FIRST_STAGE};
use crate::foreseen::ForeseenStretch;
use crate::knowledge::{Knowledge, Share};
use crate::name::StrategyName;
use crate::result::TrialResult;
use crate::trial::Trial;
use outlook::{Next, Outlook};
use sample::{Nanos, Responder, Schedule, When};

pub struct Foresight;

impl Strategy for Foresight {
    fn name(&self) -> StrategyName {
        StrategyName::new(5, "foresight")
    }

    fn weight(&self) -> u64 {
        51
    }

    fn opens(&self) -> bool {
        true
    }

    /// Foresight is never idle: a scout fires nothing, and is useful all the same.
    fn is_idle(&self, _: &Share) -> bool {
        false
    }

    /// The time that the first scout takes.
    fn usual(&self, _: &Turn) -> Nanos {
        FIRST_STAGE
    }

    /// The triggers if nothing is known to come.
    fn when(&self, turn: &Turn) -> When {
        WindowStart.when(turn)
    }

    fn learn(&self, knowledge: &mut Knowledge, result: &TrialResult) {
        knowledge.grounds.entry(result.begin).or_default().take(result);
        knowledge.ahead.entry(result.begin.guest).or_default().take(result);
    }

    fn planner<'a>(
        &'a self,
        knowledge: &'a Knowledge,
        guest: usize,
        responders: &'a [Responder],
    ) -> Option<Box<dyn Planner + 'a>> {
        Some(Box::new(Outlook::new(knowledge, guest, responders)))
    }
}

/// A trial that looks ahead until this time, from the end of the warm-up.
pub(crate) fn scout(number: u64, until: Nanos) -> Trial {
    trial(number, firing::scouting(until), None)
}

/// A trial that fires as this stretch opens, and at no other time.
pub(crate) fn enter(number: u64, stretch: ForeseenStretch) -> Trial {
    let [opens, ..] = firing::entering(&stretch, GAP);
    trial(number, opens, Some(stretch))
}

fn trial(number: u64, when: When, enters: Option<ForeseenStretch>) -> Trial {
    let (strategy, begin) = (Foresight.name(), Begin::first(0));
    Trial { number, strategy, begin, when, disturbances: Vec::new(), enters, meets: None }
}

impl Planner for Outlook<'_> {
    fn next(&mut self, turn: &Turn) -> Option<Trial> {
        let blind = || Foresight.trial(turn);
        let (begin, when, enters, meets) = match self.plan()? {
            Next::Scout(begin, until) => (begin, firing::scouting(until), None, None),
            Next::Enter(begin, stretch, way) => {
                let [opens, further @ ..] = firing::entering(&stretch, GAP);
                match way.checked_sub(1) {
                    None => (begin, opens, Some(stretch), None),
                    Some(further_in) => (begin, further[further_in].clone(), None, None),
                }
            }
            Next::Fire(begin, first) => {
                let near = &turn.knowledge.grounds[&begin].near;
                let when = firing::firing(near, first, GAP, &mut turn.dice());
                (begin, when, Some(first), None)
            }
            Next::Meet(begin, coincidence) => {
                let at = coincidence.at_ns;
                let when = When::Planned(Schedule::Explicit(vec![at]));
                (begin, when, None, Some(coincidence))
            }
            Next::Blind => return Some(blind()),
        };
        Some(Trial { begin, when, enters, meets, ..blind() })
    }
}
