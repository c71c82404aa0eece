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

/// A guest that walks. `None` before it was restored, and where it could not be.
type Walking = Arc<Mutex<Option<Walker<Seen>>>>;

/// The walking guests of a hunt.
#[derive(Default)]
pub struct Walkers {
    walking: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The guests, by where they began, with the number of uses before the last one.
    guests: BTreeMap<Begin, (u64, Walking)>,
    uses: u64,
    /// Why no guest walks any more: QEMU cannot fork here.
    refused: Option<String>,
}

impl Walkers {
    /// Why trials are restored and not forked, if QEMU cannot fork here.
    pub fn refused(&self) -> Option<String> {
        lock(&self.walking).refused.clone()
    }

    /// Runs a trial that fires nothing before `from`, after `begin`. Returns its outcome with what was seen. `None` if
    /// it did not end as usual, or cannot be forked: a run from the snapshot says what happens.
    ///
    /// # Errors
    /// If the user asks to stop.
    pub fn run(
        &self,
        begin: Begin,
        ready: &Ready,
        follow: &Follow,
        (generator, from): (Generator, Nanos),
        observe: &mut Observer,
    ) -> Result<Option<(Outcome, Seen)>, Error> {
        let Some(walking) = self.of(begin) else { return Ok(None) };
        let begun = self.begin(&mut lock(&walking), ready, follow, (generator, from));
        let mut trial = match begun {
            Ok(trial) => trial,
            Err(failure) if failure.is_interruption() => return Err(failure),
            Err(failure) => {
                *lock(&walking) = None;
                lock(&self.walking).refused = Some(failure.to_string());
                return Ok(None);
            }
        };
        let measured = trial.measure(observe);
        let seen = trial.seen().clone();
        if let Some(walker) = &mut *lock(&walking) {
            walker.ended(trial);
        }
        Ok(measured?.map(|outcome| (outcome, seen)))
    }

    fn begin(
        &self,
        walking: &mut Option<Walker<Seen>>,
        ready: &Ready,
        follow: &Follow,
        (generator, from): (Generator, Nanos),
    ) -> Result<ForkedTrial<Seen>, Error> {
        let walker = match walking {
            Some(walker) => walker,
            None => walking.insert(ready.walker(Some(follow), Seen::new(ready.guest().shift))?),
        };
        Ok(walker.begin(generator, from)?)
    }

    /// The guest that walks from `begin`. The one that was not used for longest ends if there are too many.
    fn of(&self, begin: Begin) -> Option<Walking> {
        let mut inner = lock(&self.walking);
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
