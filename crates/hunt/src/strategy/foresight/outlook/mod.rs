// SPDX-License-Identifier: GPL-2.0-or-later
//! Plans what foresight does next from the places where trials begin: look further ahead, or fire.
//!
//! Each scout begins where the scout before it ended. Trials fire from there into the stretches that the scout sees
//! soon after, and into a longer one wherever it comes.

use super::firing::ENTRIES;
use crate::ahead::Lookahead;
use crate::begin::Begin;
use crate::coincidence::Coincidence;
use crate::foreseen::{self, ForeseenStretch};
use crate::ground::Ground;
use crate::knowledge::Knowledge;
use sample::{Insns, Nanos, Responder, Stretch};
use std::cmp::Reverse;

/// How much longer than all near stretches of its kind a stretch must be to be *outstanding*, in thousandths of these.
/// The number is chosen: a twentieth longer. The steps by which hunts grow late are of some per cent (docs/hunting.md,
/// how the worst grew).
const WORTH: u64 = 1_050;

/// How many trials of foresight fire in a round while its scout looks ahead, if looking ahead does not take long. The
/// number is chosen: the fewest, since the scout most often sees something better.
const MEANWHILE: usize = 1;
/// A trigger this soon before or after another one meets the same as the other. The time is chosen: a third of the
/// shortest answer's, 291 instructions (docs/hunting.md, what comes together).
const ALIKE: Nanos = Nanos(100);

/// The next trial of foresight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It looks this far ahead from there.
    Scout(Begin, Nanos),
    /// It fires from there into this stretch alone, in one of several ways ([`super::firing::entering`]).
    Enter(Begin, ForeseenStretch, usize),
    /// It fires from there as this stretch opens, and then into others.
    Fire(Begin, ForeseenStretch),
    /// It fires from there so that the trigger meets several delays.
    Meet(Begin, Coincidence),
    /// Nothing is known to come.
    Blind,
}

/// Plans the trials of a round, from the knowledge before it and from what the round's earlier trials will do.
pub struct Outlook<'a> {
    known: &'a Knowledge,
    guest: usize,
    /// How far foresight has looked ahead in the guest.
    ahead: Lookahead,
    responders: &'a [Responder],
    /// If the round has a scout: how many of the round's earlier trials fire before it looks ahead, and whether the
    /// rest of the round waits for what it sees.
    scouted: Option<(usize, bool)>,
    /// The round's earlier trials that fire.
    fires: Vec<Fires>,
}

/// A trial that fires.
struct Fires {
    begin: Begin,
    /// When it fires first, since the trial began.
    at: Nanos,
    /// The stretch that it fires into as the stretch opens.
    first: Option<ForeseenStretch>,
}

/// A stretch that may be fired into: how late the answer would be, from where, and the stretch.
type Candidate = (Insns, Begin, ForeseenStretch);

/// The order of candidates. The latest answer is the best; of equal ones the longer stretch, and then the earlier one.
fn latest((late, begin, f): &Candidate) -> impl Ord + use<> {
    (*late, f.length_insns, Reverse((*begin, f.at_ns)))
}

impl<'a> Outlook<'a> {
    /// Begins a round in this guest. It searches the worst answer of these responders.
    pub fn new(known: &'a Knowledge, guest: usize, responders: &'a [Responder]) -> Outlook<'a> {
        let ahead = known.ahead.get(&guest).cloned().unwrap_or_default();
        Outlook { known, guest, ahead, responders, scouted: None, fires: Vec::new() }
    }

    /// The places where trials in this guest begin.
    fn grounds(&self) -> impl Iterator<Item = (Begin, &Ground)> {
        let own = self.known.grounds.iter().filter(|(begin, _)| begin.guest == self.guest);
        own.map(|(begin, ground)| (*begin, ground))
    }

    /// The round's next trial. `None` while it has to wait for what the round's scout will see. Foresight looks on if
    /// nothing known promises a later answer than the finds, and now and then even if something does. A rare stretch is
    /// entered before that: looking on takes seconds, and entering the stretch takes milliseconds.
    pub fn plan(&mut self) -> Option<Next> {
        let looks_on = self.ahead.next();
        let fires = self.fire(looks_on.is_none());
        if let Some((before, true)) = self.scouted
            && self.fires.len() >= before + MEANWHILE
        {
            return None;
        }
        if self.scouted.is_none() {
            let from_there =
                self.fires.iter().filter(|fires| self.ahead.is_last(fires.begin.after));
            let (more, from_there) = (self.fires.len() as u64, from_there.count() as u64);
            let is_due = fires.is_none() || self.ahead.is_due(more, from_there);
            if let Some((after, until)) = looks_on.filter(|_| is_due && !self.is_to_enter()) {
                self.scouted = Some((self.fires.len(), self.ahead.is_brisk()));
                return Some(Next::Scout(Begin { guest: self.guest, after }, until));
            }
        }
        // Outstanding stretches go first, because they promise the most.
        let next = self.enter().or(fires);
        let fires = |begin: &Begin, at, first| Fires { begin: *begin, at, first };
        match &next {
            Some(Next::Enter(begin, stretch, way)) => {
                let first = (*way == 0).then_some(*stretch);
                self.fires.push(fires(begin, stretch.at_ns, first));
            }
            Some(Next::Fire(begin, stretch)) => {
                self.fires.push(fires(begin, stretch.at_ns, Some(*stretch)));
            }
            Some(Next::Meet(begin, coincidence)) => {
                self.fires.push(fires(begin, coincidence.at_ns, None));
            }
            Some(Next::Scout(..) | Next::Blind) => {}
            None => return looks_on.is_none().then_some(Next::Blind),
        }
        next
    }

    /// How many trials have fired from there, or will fire.
    fn fired(&self, begin: Begin, ground: &Ground) -> usize {
        ground.fired + self.fires.iter().filter(|fires| fires.begin == begin).count()
    }

    /// Enters the outstanding stretch that was entered least.
    fn enter(&self) -> Option<Next> {
        let each = self.grounds().filter_map(|(begin, _)| Some((begin, self.outstanding(begin)?)));
        let (begin, (stretch, way)) =
            each.min_by_key(|(begin, (_, way))| (*way, Reverse(*begin)))?;
        Some(Next::Enter(begin, stretch, way))
    }

    /// Whether there is an outstanding stretch that no trial has entered yet.
    fn is_to_enter(&self) -> bool {
        self.grounds().any(|(begin, _)| matches!(self.outstanding(begin), Some((_, 0))))
    }

    /// In how many ways this stretch was entered, or will be.
    fn ways(&self, begin: Begin, ground: &Ground, f: &ForeseenStretch) -> usize {
        // An instruction takes a nanosecond or more, so all ways are within this time.
        let within = f.at_ns..=f.at_ns + Nanos(f.length_insns.0);
        let planned = |fires: &&Fires| fires.begin == begin && within.contains(&fires.at);
        ground.tried.range(within.clone()).count() + self.fires.iter().filter(planned).count()
    }

    /// Fires into a known stretch or at a coincidence at which no trial fired first. It takes the one that would be
    /// answered latest, if that is later than all answers before. If there is none, it may take a stretch `anyway`. The
    /// responders take turns, beginning with the last one, which has the most ways of being late.
    fn fire(&self, anyway: bool) -> Option<Next> {
        let turn: usize = self.grounds().map(|(begin, ground)| self.fired(begin, ground)).sum();
        let count = self.responders.len();
        // A stretch sometimes promises much more than a coincidence, and a coincidence is more certain than a stretch.
        // So they take turns, too.
        let is_for_stretches = (turn / count.max(1)).is_multiple_of(2);
        let responders = (turn..turn + count).map(|turn| self.responders[count - 1 - turn % count]);
        let next = |responder: Responder| {
            let kinds = foreseen::kinds(responder);
            let expected = |f: &ForeseenStretch| self.ahead.expected(responder, f);
            let of = |kinds: &[Stretch]| {
                let each = kinds.iter().filter_map(|kind| self.candidate(*kind, expected));
                each.max_by_key(latest)
            };
            let (met, not_met): (Vec<Stretch>, Vec<Stretch>) =
                kinds.iter().partition(|kind| self.ahead.has_met(responder, **kind));
            // One stretch of a kind of which nothing is known yet will say enough about the others.
            let new: Vec<Stretch> = not_met.into_iter().filter(|k| !self.fires_into(*k)).collect();
            let promising = of(&met).filter(|(late, ..)| *late > self.latest(responder));
            let any = || of(kinds).filter(|_| anyway);
            let into = |(_, begin, stretch): Candidate| Next::Fire(begin, stretch);
            if let Some(new) = of(&new) {
                return Some(into(new));
            }
            let together =
                self.together(responder).filter(|(late, ..)| *late > self.found(responder));
            match (promising, together) {
                (Some(stretch), Some(_)) if is_for_stretches => Some(into(stretch)),
                (_, Some((_, begin, coincidence))) => Some(Next::Meet(begin, coincidence.clone())),
                (promising, None) => promising.or_else(any).map(into),
            }
        };
        responders.filter_map(next).next()
    }

    /// Whether no trial fires from there at that time, or has fired.
    fn is_new(&self, at: Nanos, begin: Begin, ground: &Ground) -> bool {
        let alike = at.saturating_sub(ALIKE)..=at + ALIKE;
        let planned = |fires: &Fires| fires.begin == begin && alike.contains(&fires.at);
        ground.tried.range(alike.clone()).next().is_none() && !self.fires.iter().any(planned)
    }

    /// The coincidence at which no trial has fired and that would be answered latest.
    fn together(&self, responder: Responder) -> Option<(Insns, Begin, &Coincidence)> {
        let each = self.grounds().flat_map(|(begin, ground)| {
            let is_new = move |c: &&Coincidence| self.is_new(c.at_ns, begin, ground);
            let new = ground.together.iter().filter(is_new);
            new.map(move |c| (self.ahead.expected_of(responder, c), begin, c))
        });
        each.max_by_key(|(late, begin, c)| (*late, Reverse((*begin, c.at_ns))))
    }

    /// Whether an earlier trial of the round fires first into a stretch of this kind.
    fn fires_into(&self, kind: Stretch) -> bool {
        let mut first = self.fires.iter().filter_map(|fires| fires.first);
        first.any(|first| first.occurrence.kind == kind)
    }

    /// The stretch of this kind that no trial has fired into first and that would be answered latest.
    fn candidate(
        &self,
        kind: Stretch,
        expected: impl Fn(&ForeseenStretch) -> Insns,
    ) -> Option<Candidate> {
        let of = |(begin, ground): (Begin, &Ground)| {
            let is_new = |f: &ForeseenStretch| self.is_new(f.at_ns, begin, ground);
            let new = foreseen::ranked(&ground.near, kind).into_iter().filter(is_new);
            new.map(|f| (expected(&f), begin, f)).max_by_key(latest)
        };
        self.grounds().filter_map(of).max_by_key(latest)
    }

    /// Whether a trigger that comes into this stretch could be answered later than all answers before.
    fn promises(&self, stretch: &ForeseenStretch) -> bool {
        self.responders.iter().any(|responder| {
            foreseen::kinds(*responder).contains(&stretch.occurrence.kind)
                && self.ahead.expected(*responder, stretch) > self.latest(*responder)
        })
    }

    /// The latest answer that was found, or that is expected of the round's earlier trials.
    fn latest(&self, responder: Responder) -> Insns {
        let kinds = foreseen::kinds(responder);
        let fires = self.fires.iter().filter_map(|fires| fires.first);
        let fires = fires.filter(|first| kinds.contains(&first.occurrence.kind));
        let expected = fires.map(|first| self.ahead.expected(responder, &first));
        expected.chain([self.found(responder)]).max().unwrap_or_default()
    }

    /// The latest answer that was found.
    fn found(&self, responder: Responder) -> Insns {
        let worst = self.known.worst(responder.name());
        worst.map(|found| found.answer.latency_insns).unwrap_or_default()
    }

    /// The outstanding stretch that is seen from this ground: the longest in comparison with all of its kind near other
    /// grounds of the guest. It has to be longer than those, and it has to promise a later answer than the finds. With
    /// the number of ways in which it was entered, which are not all.
    fn outstanding(&self, begin: Begin) -> Option<(ForeseenStretch, usize)> {
        let others = self.grounds().filter(|(other, _)| *other != begin);
        let others = others.map(|(_, ground)| ground).filter(|ground| !ground.near.is_empty());
        let mut others = others.peekable();
        others.peek()?;
        let usual = Usual::of(others);
        let ground = self.known.grounds.get(&begin)?;
        let is_outstanding = |f: &&ForeseenStretch| usual.times(f) > WORTH && self.promises(f);
        let each = ground.near.iter().chain(&ground.far).filter(is_outstanding);
        let each = each.map(|f| (*f, self.ways(begin, ground, f))).filter(|(_, n)| *n < ENTRIES);
        each.max_by_key(|(f, _)| (usual.times(f), Reverse((f.at_ns, f.occurrence))))
    }
}

/// The longest near stretch of each kind, on any ground.
struct Usual([(Stretch, Insns); Stretch::ALL.len()]);

impl Usual {
    fn of<'a>(grounds: impl Iterator<Item = &'a Ground>) -> Usual {
        let mut longest = Stretch::ALL.map(|kind| (kind, Insns(0)));
        for near in grounds.flat_map(|ground| &ground.near) {
            let own = longest.iter_mut().find(|(kind, _)| *kind == near.occurrence.kind);
            own.into_iter().for_each(|(_, length)| *length = near.length_insns.max(*length));
        }
        Usual(longest)
    }

    /// The length of a stretch in thousandths of the longest of its kind. Without such a one, in thousandths of one
    /// instruction.
    fn times(&self, f: &ForeseenStretch) -> u64 {
        let own = self.0.iter().find(|(kind, _)| *kind == f.occurrence.kind);
        f.length_insns * 1000 / own.map_or(Insns(1), |(_, n)| (*n).max(Insns(1)))
    }
}

#[cfg(test)]
mod tests;
