// SPDX-License-Identifier: GPL-2.0-or-later
//! Who has the next trial: each strategy its part of the time, in each guest.

use super::Hunt;
use super::finding::{Known, Share};
use super::outlook::Next;
use super::strategy::{ALL, Strategy};
use sample::Nanos;
use std::collections::BTreeMap;

/// What a trial takes besides its virtual time, in that: restoring its guest, and translating its code anew.
pub(super) const RESTORE: Nanos = Nanos::from_millis(50);

/// Deals the trials of a round.
pub struct Deal<'a> {
    hunt: &'a Hunt,
    known: &'a Known,
    /// Who takes part.
    to: Vec<Strategy>,
    /// Who has the next one, whatever it had.
    next: Option<Strategy>,
    /// How many turns each had, and how much time in this guest.
    had: BTreeMap<Strategy, (u64, u64)>,
}

impl<'a> Deal<'a> {
    /// At the beginning of a round in this guest.
    pub fn new(hunt: &'a Hunt, guest: usize, known: &'a Known) -> Deal<'a> {
        let is_new = !known.dealt.keys().any(|(of, _)| *of == guest);
        let all = || ALL.into_iter().filter(|s| hunt.strategies.contains(s));
        // A guest's first is foresight's, which knows nothing of it until that has ended; nor are there finds of it to begin from.
        let next = all().find(|s| is_new && *s == Strategy::Foresight);
        let needs_more = |s: &Strategy| {
            is_new && matches!(s, Strategy::Refine | Strategy::Disturb | Strategy::Foresight)
                || known.dealt.get(&(guest, *s)).is_some_and(|had| s.is_idle(had))
        };
        let mut to: Vec<Strategy> = all().filter(|s| !needs_more(s)).collect();
        if to.is_empty() {
            to = all().collect();
        }
        let had = had(hunt, guest, known);
        Deal { hunt, known, to, next, had }
    }

    /// Whose turn trial `number` is: that strategy's which will then have had the least time for its weight.
    pub fn due(&self, number: u64) -> Option<Strategy> {
        let after = |s: Strategy| self.had[&s].1 + self.usual(number, s).0 + RESTORE.0;
        self.next.or_else(|| self.to.iter().copied().min_by_key(|s| after(*s) / s.weight()))
    }

    /// Gives it this turn: how often it was its turn before, in all guests.
    pub fn take(&mut self, number: u64, strategy: Strategy, next: &Next) -> u64 {
        let takes = match next {
            Next::Scout(_, until) => *until,
            _ => self.usual(number, strategy),
        };
        self.next = None;
        let (turns, spent) = self.had.entry(strategy).or_default();
        let turn = *turns;
        (*turns, *spent) = (turn + 1, *spent + takes.0 + RESTORE.0);
        turn
    }

    /// About how much virtual time its trial takes, by which turns are dealt before it is made.
    fn usual(&self, number: u64, strategy: Strategy) -> Nanos {
        let (turns, _) = self.had[&strategy];
        strategy.usual(number, self.known.best(&self.hunt.responders, turns))
    }
}

/// How many turns each strategy had, and how much time in this guest. What begins from a find goes to that one's guest,
/// whosever round it is, so that its time counts alike in all of them.
fn had(hunt: &Hunt, guest: usize, known: &Known) -> BTreeMap<Strategy, (u64, u64)> {
    let shared = known.by_strategy();
    let time = |had: &Share| had.virtual_ns.0 + had.trials * RESTORE.0;
    let had = |strategy: &Strategy| {
        let all = shared.get(strategy);
        let spent = match strategy {
            Strategy::Refine | Strategy::Disturb => {
                all.map(|had| time(had) / hunt.guests.max(1) as u64)
            }
            _ => known.dealt.get(&(guest, *strategy)).map(time),
        };
        (*strategy, (all.map_or(0, |had| had.trials), spent.unwrap_or_default()))
    };
    hunt.strategies.iter().map(had).collect()
}
