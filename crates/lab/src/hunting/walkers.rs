// SPDX-License-Identifier: GPL-2.0-or-later
//! The guests that walk on from the places where trials begin, and serve trials by forking.

use super::seen::Seen;
use crate::Error;
use crate::followed::Ready;
use hunt::Begin;
use rig::{Follow, ForkedTrial, Generator, Outcome, Walker};
use sample::{Nanos, Observer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many guests walk at once. Each has up to some gigabytes of memory. Most trials of a round begin at two places:
/// the end of the warm-up, and where foresight looks.
const WALKERS_MAX: usize = 3;
/// How many guests may fail before none walks any more. One fails by itself only where QEMU cannot fork, or if somebody
/// kills it.
const FAILURES_MAX: u32 = 3;

/// A guest that walks. `None` before it was restored, and after it failed.
type Walking = Arc<Mutex<Option<Walker<Seen>>>>;

/// The walking guests of a hunt.
#[derive(Default)]
pub struct Walkers {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The guests, by where they began, with the number of uses before the last one.
    guests: BTreeMap<Begin, (u64, Walking)>,
    uses: u64,
    failures: u32,
    /// Why no guest walks any more.
    refused: Option<String>,
}

impl Walkers {
    /// Why trials are restored and not forked, if they are.
    pub fn refused(&self) -> Option<String> {
        lock(&self.inner).refused.clone()
    }

    /// Lets no guest walk any more.
    pub fn refuse(&self, why: String) {
        let mut inner = lock(&self.inner);
        inner.guests.clear();
        inner.refused.get_or_insert(why);
    }

    /// Runs a trial that fires nothing before `from`, after `begin`. Returns its outcome with what was seen. `None` if
    /// it did not end as usual, or cannot be forked: a run from the snapshot says what happens.
    ///
    /// # Errors
    /// If the user asks to stop.
    pub fn run(
        &self,
        begin: Begin,
        (ready, follow): (&Ready, &Follow),
        (generator, from): (Generator, Nanos),
        observe: &mut Observer,
    ) -> Result<Option<(Outcome, Seen)>, Error> {
        let Some(walking) = self.of(begin) else { return Ok(None) };
        let Some(mut trial) = self.begin(&walking, (ready, follow), (generator, from))? else {
            return Ok(None);
        };
        let measured = trial.measure(observe);
        let seen = trial.seen().clone();
        if let Some(walker) = &mut *lock(&walking) {
            walker.ended(trial);
        }
        match measured.map_err(Error::from) {
            Err(failure) => self.failed(failure).map(|()| None),
            Ok(outcome) => Ok(outcome.map(|outcome| (outcome, seen))),
        }
    }

    fn begin(
        &self,
        walking: &Walking,
        (ready, follow): (&Ready, &Follow),
        (generator, from): (Generator, Nanos),
    ) -> Result<Option<ForkedTrial<Seen>>, Error> {
        let mut walking = lock(walking);
        let walker = match walking.take() {
            Some(walker) => Ok(walker),
            None => ready.walker(Some(follow), Seen::new(ready.guest().shift)),
        };
        let begun = walker.and_then(|walker| {
            let walker = walking.insert(walker);
            Ok(walker.begin(&generator, from)?)
        });
        begun.or_else(|failure| {
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
            inner.refused.get_or_insert(failure.to_string());
        }
        Ok(())
    }

    /// The guest that walks from `begin`. The one that was not used for longest ends if there are too many.
    fn of(&self, begin: Begin) -> Option<Walking> {
        let mut inner = lock(&self.inner);
        if inner.refused.is_some() {
            return None;
        }
        inner.uses += 1;
        let uses = inner.uses;
        if !inner.guests.contains_key(&begin) && inner.guests.len() >= WALKERS_MAX {
            let oldest = inner.guests.iter().min_by_key(|(_, (used, _))| *used);
            // Its processes end when the last trial in it has ended.
            let oldest = oldest.map(|(begin, _)| *begin);
            oldest.map(|begin| inner.guests.remove(&begin));
        }
        let (used, walking) = inner.guests.entry(begin).or_default();
        *used = uses;
        Some(Arc::clone(walking))
    }
}

/// The state after a worker panicked is whole: a guest walks, or none does.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
