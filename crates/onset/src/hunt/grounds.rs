// SPDX-License-Identifier: GPL-2.0-or-later
//! The guests where trials begin: at the warm-up's end, and at later times, saved when they are first asked for.

use super::outlook::is_stage;
use crate::failure::Failure;
use crate::followed::Ready;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Where a trial begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Begin {
    /// Which of the hunt's guests.
    pub guest: usize,
    /// How long after its warm-up.
    #[serde(rename = "begin_after_ns")]
    pub after: Nanos,
}

impl Begin {
    /// At the end of a guest's warm-up.
    pub fn first(guest: usize) -> Begin {
        Begin { guest, after: Nanos(0) }
    }

    /// Whether this is later than the warm-up's end.
    pub fn is_later(self) -> bool {
        self.after.0 > 0
    }
}

/// A guest that is being saved: whoever wants the same waits.
type Saving<'a> = Arc<Mutex<Option<Arc<Ready<'a>>>>>;

/// The guests of a hunt at several times.
pub struct Grounds<'a> {
    first: Vec<Arc<Ready<'a>>>,
    later: Mutex<BTreeMap<Begin, Saving<'a>>>,
}

impl<'a> Grounds<'a> {
    /// Those of these guests, which are at the warm-up's end.
    pub fn new(first: impl IntoIterator<Item = Ready<'a>>) -> Grounds<'a> {
        Grounds { first: first.into_iter().map(Arc::new).collect(), later: Mutex::default() }
    }

    /// The guests at the warm-up's end.
    pub fn first(&self) -> impl Iterator<Item = &Ready<'a>> {
        self.first.iter().map(|ready| &**ready)
    }

    /// A guest at its warm-up's end.
    pub fn first_of(&self, guest: usize) -> &Ready<'a> {
        &self.first[guest]
    }

    /// Whether a guest that stands so long after there is made from there, by way of nothing else: a scout that looks so far
    /// ahead leaves it saved.
    pub fn leads(&self, begin: Begin, by: Nanos) -> bool {
        let at = Nanos(self.first_of(begin.guest).guest().begin_after.0 + begin.after.0);
        rig::stage_before(Nanos(at.0 + by.0)) == Some(at)
    }

    /// Virtual time for which the guest has to be let run to there: none where a scout of the hunt was before.
    pub fn way(&self, ready: &Ready, begin: Begin) -> Nanos {
        let from = rig::stage_before(begin.after).filter(|_| is_stage(begin.after));
        let is_scouted = from.is_some_and(|from| {
            self.leads(Begin { after: from, ..begin }, Nanos(begin.after.0 - from.0))
        });
        if is_scouted { Nanos(0) } else { ready.way() }
    }

    /// A guest that stands there.
    ///
    /// # Errors
    /// Those of the rig, an interruption among them.
    pub fn at(&self, begin: Begin) -> Result<Arc<Ready<'a>>, Failure> {
        let first = &self.first[begin.guest];
        if !begin.is_later() {
            return Ok(Arc::clone(first));
        }
        let saving = Arc::clone(lock(&self.later).entry(begin).or_default());
        let mut saved = lock(&saving);
        if let Some(ready) = &*saved {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(first.later(begin.after)?);
        *saved = Some(Arc::clone(&ready));
        Ok(ready)
    }
}

/// What a worker that panicked left is whole: there is a guest, or there is none.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
