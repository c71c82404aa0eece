// SPDX-License-Identifier: GPL-2.0-or-later
//! All strategies, one in each line. Two things need all of them: reading a name back, and letting each strategy learn
//! from its own results. Those that share the time of a hunt are one list; the finds from which a hunt starts are not
//! among them.

use crate::knowledge::{Knowledge, Share, added_up};
use crate::name::StrategyName;
use crate::result::TrialResult;
use crate::strategy::{
    Strategy, corpus, coverage, disturb, foresight, neighbour, random, stage_aware, window_chain,
    window_start,
};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The strategies that share the time. If two are equally due, the first one has the turn.
pub const STRATEGIES: &[&dyn Strategy] = &[
    &foresight::Foresight,
    &window_start::WindowStart,
    &window_chain::WindowChain,
    &stage_aware::StageAware,
    &coverage::Coverage,
    &neighbour::Neighbour,
    &disturb::Disturb,
    &random::Random,
];

/// The strategy that makes the finds again from which a hunt starts.
pub(crate) const CORPUS: &dyn Strategy = &corpus::Corpus;

/// All strategies that a trial may be of.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Strategy> {
    STRATEGIES.iter().copied().chain([CORPUS])
}

impl StrategyName {
    /// The strategy with this name.
    pub fn strategy(self) -> &'static dyn Strategy {
        all().find(|strategy| strategy.name() == self).expect("each name is a strategy's")
    }
}

/// Reads the name of a strategy that shares the time.
impl FromStr for StrategyName {
    type Err = String;

    fn from_str(name: &str) -> Result<StrategyName, String> {
        let all = || STRATEGIES.iter().map(|strategy| strategy.name());
        let known = || all().map(StrategyName::as_str).collect::<Vec<_>>().join(", ");
        let found = all().find(|known| known.as_str() == name);
        found.ok_or_else(|| format!("no strategy is called {name:?}; there are {}", known()))
    }
}

impl<'de> Deserialize<'de> for StrategyName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<StrategyName, D::Error> {
        let name = String::deserialize(from)?;
        match CORPUS.name() {
            corpus if corpus.as_str() == name => Ok(corpus),
            _ => name.parse().map_err(de::Error::custom),
        }
    }
}

impl Knowledge {
    /// Folds the result of the next trial in.
    pub fn take(&mut self, result: &TrialResult) {
        self.add(result);
        result.strategy.strategy().learn(self, result);
    }

    /// The shares of each guest. A disturbed answer counts as nobody's worst.
    pub fn by_guest(&self) -> BTreeMap<usize, Share> {
        let calm = |by: StrategyName, share: &Share| match by.strategy().disturbs() {
            true => Share { worst_ns: BTreeMap::new(), ..share.clone() },
            false => share.clone(),
        };
        added_up(self.dealt.iter().map(|((guest, by), share)| (*guest, calm(*by, share))))
    }
}
