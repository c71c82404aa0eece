// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest where trials begin: at the warm-up's end, and at later times, saved when they are first asked for.

use crate::failure::Failure;
use crate::followed::Ready;
use sample::Nanos;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A guest that is being saved: whoever wants the same waits.
type Saving<'a> = Arc<Mutex<Option<Arc<Ready<'a>>>>>;

/// One guest at several times.
pub struct Grounds<'a> {
    first: Arc<Ready<'a>>,
    later: Mutex<BTreeMap<Nanos, Saving<'a>>>,
}

impl<'a> Grounds<'a> {
    /// Those of this guest, which is at the warm-up's end.
    pub fn new(first: Ready<'a>) -> Grounds<'a> {
        Grounds { first: Arc::new(first), later: Mutex::default() }
    }

    /// The guest at the warm-up's end.
    pub fn first(&self) -> &Ready<'a> {
        &self.first
    }

    /// The guest so long after the warm-up.
    ///
    /// # Errors
    /// Those of the rig, an interruption among them.
    pub fn at(&self, begin_after: Nanos) -> Result<Arc<Ready<'a>>, Failure> {
        if begin_after.0 == 0 {
            return Ok(Arc::clone(&self.first));
        }
        let saving = Arc::clone(lock(&self.later).entry(begin_after).or_default());
        let mut saved = lock(&saving);
        if let Some(ready) = &*saved {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(self.first.later(begin_after)?);
        *saved = Some(Arc::clone(&ready));
        Ok(ready)
    }
}

/// What a worker that panicked left is whole: there is a guest, or there is none.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
