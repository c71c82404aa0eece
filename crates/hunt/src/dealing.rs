// SPDX-License-Identifier: GPL-2.0-or-later
//! Decides which strategy has the next trial. Each strategy has its share of the time, in each guest.

use crate::hunt::Hunt;
use crate::knowledge::{Knowledge, Share};
use crate::name::StrategyName;
use crate::registry::{CORPUS, STRATEGIES};
use crate::strategy::{Strategy, Turn};
use crate::trial::Trial;
use sample::Nanos;
use std::collections::BTreeMap;

/// The cost of a trial besides what its guest executes, a nanosecond an instruction, if it may trigger at once: the
/// guest's code is translated anew (docs/hunting.md, who has the next trial: a second has 5.1 restores with a short
/// run).
const RESTORE: Nanos = Nanos::from_millis(50);
/// The same for a trial whose first trigger comes later. Such a trial is forked from a guest that walked there. A
/// second has 47 trials of a millisecond (`make bench`), and a busy guest takes ten seconds for a virtual one.
const FORK: Nanos = Nanos::from_millis(3);
/// How long such a trial goes on after its first trigger. It is chosen: the latest answers of a busy guest.
const ANSWERED: Nanos = Nanos::from_millis(2);

/// Deals the trials of a round to the strategies.
pub struct Deal<'a> {
    hunt: &'a Hunt,
    guest: usize,
    known: &'a Knowledge,
    /// The strategies that take part.
    to: Vec<&'static dyn Strategy>,
    /// The strategy that has the next trial, whatever it has had.
    next: Option<&'static dyn Strategy>,
    /// How many turns each strategy has had, and how much time in this guest.
    had: BTreeMap<StrategyName, (u64, Nanos)>,
}

impl<'a> Deal<'a> {
    /// Begins a round in this guest.
    pub fn new(hunt: &'a Hunt, guest: usize, known: &'a Knowledge) -> Deal<'a> {
        let is_new = !known.dealt.keys().any(|(of, by)| *of == guest && *by != CORPUS.name());
        let all = || STRATEGIES.iter().copied().filter(|s| hunt.strategies.contains(&s.name()));
        // The strategy that opens knows nothing of a guest until its first trial has ended. There are no finds to begin
        // from, either.
        let next = all().find(|s| is_new && s.opens());
        let needs_more = |s: &&dyn Strategy| {
            is_new && (s.opens() || s.begins_from_find())
                || known.dealt.get(&(guest, s.name())).is_some_and(|had| s.is_idle(had))
        };
        let mut to: Vec<&dyn Strategy> = all().filter(|s| !needs_more(s)).collect();
        if to.is_empty() {
            to = all().collect();
        }
        let had = had(hunt, guest, known);
        Deal { hunt, guest, known, to, next, had }
    }

    /// The strategy that has trial `number`: the one that will then have had the least time for its weight. Before that
    /// the hunt makes the finds again from which it starts.
    pub fn due(&self, number: u64) -> Option<&'static dyn Strategy> {
        if number < self.hunt.corpus.len() as u64 {
            return Some(CORPUS);
        }
        let after =
            |s: &dyn Strategy| self.had[&s.name()].1 + s.usual(&self.turn(number, s)) + RESTORE;
        self.next.or_else(|| self.to.iter().copied().min_by_key(|s| after(*s) / s.weight()))
    }

    /// What this strategy may know if it has trial `number`.
    pub fn turn(&self, number: u64, strategy: &dyn Strategy) -> Turn<'a> {
        let (turns, _) = self.had[&strategy.name()];
        let best = self.known.best(&self.hunt.responders, turns);
        let (guest, seed, knowledge) = (self.guest, self.hunt.seed, self.known);
        Turn { number, turns, guest, seed, best, knowledge, corpus: &self.hunt.corpus }
    }

    /// Gives the strategy this turn, for this trial.
    pub fn take(&mut self, strategy: &dyn Strategy, trial: &Trial) {
        let is_on_the_way = trial.fires_from().is_some_and(|from| from > Nanos(0));
        let takes = match trial.looks_ahead() {
            Some(until) => until + RESTORE,
            None if is_on_the_way => ANSWERED + FORK,
            None => strategy.usual(&self.turn(trial.number, strategy)) + RESTORE,
        };
        self.next = None;
        let (turns, spent) = self.had.entry(strategy.name()).or_default();
        (*turns, *spent) = (*turns + 1, *spent + takes);
    }
}

/// The time that these trials took, as if each instruction took a nanosecond. A guest that idles takes no time: QEMU
/// leaves out what it sleeps.
pub(crate) fn time(had: &Share) -> Nanos {
    Nanos(had.worked.0) + FORK * had.on_the_way + RESTORE * (had.trials - had.on_the_way)
}

/// How many turns each strategy has had, and how much time in this guest. A trial that begins from a find runs in the
/// find's guest, whichever guest the round is about. So its time counts equally in all guests.
fn had(hunt: &Hunt, guest: usize, known: &Knowledge) -> BTreeMap<StrategyName, (u64, Nanos)> {
    let shared = known.by_strategy();
    let had = |name: &StrategyName| {
        let all = shared.get(name);
        let spent = match name.strategy().begins_from_find() {
            true => all.map(|had| time(had) / hunt.guests.max(1) as u64),
            false => known.dealt.get(&(guest, *name)).map(time),
        };
        (*name, (all.map_or(0, |had| had.trials), spent.unwrap_or_default()))
    };
    hunt.strategies.iter().chain([&CORPUS.name()]).map(had).collect()
}
