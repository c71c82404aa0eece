// SPDX-License-Identifier: GPL-2.0-or-later
//! The guests that walk on from the places where trials begin, and serve trials by forking.

use super::workers::lock;
use crate::Error;
use crate::followed::Ready;
use hunt::Begin;
use rig::{Follow, ForkedTrial, Generator, NoRoom, Outcome, Sees, Walker};
use sample::{Nanos, Observer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use wire::Event;

/// How many guests walk at once. Each has up to some gigabytes of memory. Most trials of a round begin at two places:
/// the end of the warm-up, and where foresight looks.
const WALKERS_MAX: usize = 3;
/// How many guests may fail one after the other before none walks any more. One fails by itself only where QEMU cannot
/// fork, or if somebody kills it.
const FAILURES_MAX: u32 = 3;

/// So many trials without room are worth a word, if they are more than one of so many. Both are chosen: some trials at
/// a bad moment are not.
const MANY: u64 = 8;
const MANY_OF: u64 = 10;

/// A guest that walks. `None` before it was restored, and after it failed.
type Walking<S> = Arc<Mutex<Option<Walker<S>>>>;

/// The walking guests of a hunt or of a census. `S` looks at those that are followed.
#[derive(Default)]
pub struct Walkers<S> {
    inner: Mutex<Inner<S>>,
}

/// Sees nothing of a guest that is not followed.
#[derive(Clone, Default)]
pub struct Blind;

impl Sees for Blind {
    fn see(&mut self, _: &Event) {}
}

impl Walkers<Blind> {
    /// Fires into a guest that is not followed, at `from` for the first time unless it was disturbed before. The rest
    /// is as in [`Walkers::run`].
    ///
    /// # Errors
    /// If the user asks to stop.
    pub fn fire(
        &self,
        ready: &Ready,
        generator: &Generator,
        from: Nanos,
        observe: &mut Observer,
    ) -> Result<Option<Outcome>, Error> {
        let disturbed = generator.disturbances.iter().map(|disturbance| disturbance.at);
        let from = disturbed.fold(from, Nanos::min);
        let fires = (generator, from);
        let run = self.run(Begin::default(), ready, (None, Blind), fires, observe)?;
        Ok(run.map(|(outcome, _)| outcome))
    }
}

#[derive(Default)]
struct Inner<S> {
    /// The guests, by where they began, with the number of uses before the last one.
    guests: BTreeMap<Begin, (u64, Walking<S>)>,
    uses: u64,
    /// Where the last scout began, if it walked.
    scouted: Option<Begin>,
    failures: u32,
    /// Why no guest walks any more.
    refused: Option<String>,
    /// How many trials were forked, how many scouts went on in a guest that walks, and how many trials and scouts did
    /// neither because there was no room.
    forked: u64,
    scouts: u64,
    without_room: u64,
    /// Why the last of these had none.
    no_room: Option<NoRoom>,
    /// How many forked trials go on now.
    under_way: u32,
    /// Whether people heard that no guest walks any more, and that many trials had no room.
    told: (bool, bool),
}

impl<S> Inner<S> {
    fn refuse(&mut self, why: String) {
        // Their processes end when the last trials in them have ended.
        self.guests.clear();
        self.refused.get_or_insert(why);
    }

    /// Counts a trial that was not forked because there was no room. Where the system refuses one fork after the other,
    /// and no other one takes the room, none is of use.
    fn lacks(&mut self, room: NoRoom) {
        self.without_room += 1;
        self.no_room = Some(room);
        if let NoRoom::Refused(_) = room
            && self.under_way == 0
        {
            self.failures += 1;
            if self.failures >= FAILURES_MAX {
                self.refuse(room.to_string());
            }
        }
    }
}

impl<S: Default> Walkers<S> {
    /// Those of a work after another one, in which no guest walked any more for this reason. People have heard it.
    pub fn after(refused: Option<String>) -> Walkers<S> {
        let told = (refused.is_some(), false);
        Walkers { inner: Mutex::new(Inner { refused, told, ..Inner::default() }) }
    }
}

impl<S: Sees> Walkers<S> {
    /// What people have not heard yet of how trials are made: none is forked any more, or many were not. Both make a
    /// work slow. Only where a fork came out [`otherwise`](super::OTHERWISE) earlier results are in doubt, and say so.
    pub fn news(&self) -> Option<String> {
        let mut inner = lock(&self.inner);
        let Inner { refused, forked, scouts, without_room: lacked, no_room, told, .. } =
            &mut *inner;
        if let Some(why) = refused.as_ref().filter(|_| !told.0) {
            told.0 = true;
            return Some(format!(
                "no more forks: each trial restores its guest, which takes longer: {why}"
            ));
        }
        let all = *forked + *scouts + *lacked;
        let why = no_room.filter(|_| !told.1 && *lacked >= MANY && *lacked * MANY_OF >= all)?;
        told.1 = true;
        Some(format!("{lacked} of {all} trials restored their guest, which takes longer: {why}"))
    }

    /// How many trials were forked.
    pub fn count(&self) -> u64 {
        lock(&self.inner).forked
    }

    /// Why no guest walks any more, if none does.
    pub fn refused(&self) -> Option<String> {
        lock(&self.inner).refused.clone()
    }

    /// Lets no guest walk any more.
    pub fn refuse(&self, why: String) {
        lock(&self.inner).refuse(why);
    }

    /// Runs a trial that fires nothing before `from`, after `begin`. `seen` looks at its guest from there on, if that
    /// is followed. Returns its outcome with what was seen. `None` if it did not end as usual, or cannot be forked: a
    /// run from the snapshot says what happens.
    ///
    /// # Errors
    /// If the user asks to stop.
    pub fn run(
        &self,
        begin: Begin,
        ready: &Ready,
        following: (Option<&Follow>, S),
        fires: (&Generator, Nanos),
        observe: &mut Observer,
    ) -> Result<Option<(Outcome, S)>, Error> {
        let Some(walking) = self.of(begin) else { return Ok(None) };
        let Some(mut trial) = self.begin(&walking, ready, following, fires)? else {
            return Ok(None);
        };
        lock(&self.inner).under_way += 1;
        let measured = trial.measure(observe);
        lock(&self.inner).under_way -= 1;
        let seen = trial.seen().clone();
        if let Some(walker) = &mut *lock(&walking) {
            walker.ended(trial);
        }
        match measured.map_err(Error::from) {
            Err(failure) => self.failed(failure).map(|()| None),
            Ok(outcome) => {
                if outcome.is_some() {
                    let mut inner = lock(&self.inner);
                    inner.failures = 0;
                    inner.forked += 1;
                }
                Ok(outcome.map(|outcome| (outcome, seen)))
            }
        }
    }

    /// Lets a followed guest go on from `begin` to `until` as a scout. `see` gets each event, beside what was seen of
    /// the guest so far. Returns the outcome with what was seen. `None` if the guest does not get there, or cannot be
    /// forked: a scout from the snapshot says what happens.
    ///
    /// # Errors
    /// If the user asks to stop.
    pub fn scout(
        &self,
        begin: Begin,
        ready: &Ready,
        (follow, seen): (&Follow, S),
        until: Nanos,
        see: &mut dyn FnMut(&mut S, &Event),
    ) -> Result<Option<(Outcome, S)>, Error> {
        let Some(walking) = self.of(begin) else { return Ok(None) };
        let scouted = self.with(&walking, ready, (Some(follow), seen), |walker| {
            let mut seen = walker.seen().clone();
            let outcome = ready.scout(walker, until, &mut |event| see(&mut seen, event))?;
            Ok(outcome.map(|outcome| (outcome, seen)))
        })?;
        if scouted.is_some() {
            let mut inner = lock(&self.inner);
            inner.scouted = Some(begin);
            inner.scouts += 1;
        }
        Ok(scouted)
    }

    fn begin(
        &self,
        walking: &Walking<S>,
        ready: &Ready,
        following: (Option<&Follow>, S),
        (generator, from): (&Generator, Nanos),
    ) -> Result<Option<ForkedTrial<S>>, Error> {
        self.with(walking, ready, following, |walker| Ok(walker.begin(generator, from)?))
    }

    /// Uses the guest, which is restored first if it does not walk yet.
    fn with<T>(
        &self,
        walking: &Walking<S>,
        ready: &Ready,
        (follow, seen): (Option<&Follow>, S),
        use_it: impl FnOnce(&mut Walker<S>) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut walking = lock(walking);
        let walker = match walking.take() {
            Some(walker) => Ok(walker),
            None => ready.walker(follow, seen),
        };
        let used = walker.and_then(|walker| {
            let walker = walking.insert(walker);
            let used = use_it(walker)?;
            if let Some(lacks) = walker.no_room().filter(|_| used.is_none()) {
                lock(&self.inner).lacks(lacks);
            }
            Ok(used)
        });
        used.or_else(|failure| {
            // The next trial makes it again.
            *walking = None;
            self.failed(failure).map(|()| None)
        })
    }

    /// Counts a failure. An interruption is none, and is given back.
    fn failed(&self, failure: Error) -> Result<(), Error> {
        if failure.is_interruption() {
            return Err(failure);
        }
        let mut inner = lock(&self.inner);
        inner.failures += 1;
        if inner.failures >= FAILURES_MAX {
            inner.refuse(failure.to_string());
        }
        Ok(())
    }

    /// The guest that walks from `begin`. The one that was not used for longest ends if there are too many. That of the
    /// last scout stays: it went furthest, and trials will fire from the places that it left.
    fn of(&self, begin: Begin) -> Option<Walking<S>> {
        let mut inner = lock(&self.inner);
        if inner.refused.is_some() {
            return None;
        }
        inner.uses += 1;
        let uses = inner.uses;
        if !inner.guests.contains_key(&begin) && inner.guests.len() >= WALKERS_MAX {
            let others = inner.guests.iter().filter(|(other, _)| inner.scouted != Some(**other));
            let oldest = others.min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(begin, _)| *begin) {
                // Its processes end when the last trial in it has ended.
                inner.guests.remove(&oldest);
            }
        }
        let (used, walking) = inner.guests.entry(begin).or_default();
        *used = uses;
        Some(Arc::clone(walking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(walkers: &Walkers<Blind>, room: NoRoom, many: u32) {
        (0..many).for_each(|_| lock(&walkers.inner).lacks(room));
    }

    #[test]
    fn people_hear_once_that_many_trials_had_no_room_and_that_none_is_forked_any_more() {
        let walkers = Walkers::default();
        lock(&walkers.inner).forked = 100;
        lacks(&walkers, NoRoom::Memory, 8);
        assert_eq!(walkers.news(), None, "8 of 108 are few");
        lacks(&walkers, NoRoom::Memory, 4);
        let news = walkers.news().expect("12 of 112 are many");
        assert!(news.contains("12 of 112 trials") && news.contains("little memory"), "{news}");
        lacks(&walkers, NoRoom::Memory, 100);
        assert_eq!((walkers.news(), walkers.refused()), (None, None));
        lacks(&walkers, NoRoom::Refused(12), FAILURES_MAX);
        let news = walkers.news().expect("no fork works");
        assert!(news.contains("no more forks") && news.contains("overcommit"), "{news}");
        assert_eq!(walkers.news(), None);
        let after = Walkers::<Blind>::after(walkers.refused());
        assert!(after.refused().is_some() && after.news().is_none());
    }

    #[test]
    fn a_fork_that_takes_the_room_of_others_keeps_the_guests_walking() {
        let walkers = Walkers::default();
        lock(&walkers.inner).under_way = 1;
        lacks(&walkers, NoRoom::Refused(11), 2 * FAILURES_MAX);
        assert_eq!(walkers.refused(), None);
        lock(&walkers.inner).under_way = 0;
        lacks(&walkers, NoRoom::Refused(11), FAILURES_MAX);
        assert!(walkers.refused().is_some());
    }
}
