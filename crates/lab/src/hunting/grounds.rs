// SPDX-License-Identifier: GPL-2.0-or-later
//! The guests at the places where trials begin: at the end of the warm-up, and at later times. A guest at a later time
//! is saved when it is first asked for.

use super::workers::lock;
use crate::Error;
use crate::followed::Ready;
use hunt::{Begin, is_stage};
use sample::Nanos;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

// A scout leaves its guest saved where the next scout begins.
const _: () = assert!(hunt::FIRST_STAGE.0 == rig::FIRST_STAGE.0);

/// A guest that is being saved. Everybody who wants the same guest waits.
type Saving<'a> = Arc<Mutex<Option<Arc<Ready<'a>>>>>;

/// The guests of a hunt at several times.
pub struct Grounds<'a> {
    first: Vec<Arc<Ready<'a>>>,
    later: Mutex<BTreeMap<Begin, Saving<'a>>>,
}

impl<'a> Grounds<'a> {
    /// The places of these guests, which are at the end of the warm-up.
    pub fn new(first: impl IntoIterator<Item = Ready<'a>>) -> Grounds<'a> {
        Grounds { first: first.into_iter().map(Arc::new).collect(), later: Mutex::default() }
    }

    /// The guests at the end of the warm-up.
    pub fn first(&self) -> impl Iterator<Item = &Ready<'a>> {
        self.first.iter().map(|ready| &**ready)
    }

    /// A guest at the end of its warm-up.
    pub fn first_of(&self, guest: usize) -> &Ready<'a> {
        &self.first[guest]
    }

    /// Whether a guest that stands `by` later than `begin` is made from there, without a stage in between. In this case
    /// a scout that looks this far ahead leaves the guest saved.
    pub fn leads(&self, begin: Begin, by: Nanos) -> bool {
        let at = self.first_of(begin.guest).guest().begin_after + begin.after;
        rig::stage_before(at + by) == Some(at)
    }

    /// The virtual time for which the guest has to be let run to `begin`. It is 0 if a scout of the hunt was there
    /// before.
    pub fn way(&self, ready: &Ready, begin: Begin) -> Nanos {
        let from = rig::stage_before(begin.after).filter(|_| is_stage(begin.after));
        let is_scouted =
            from.is_some_and(|from| self.leads(Begin { after: from, ..begin }, begin.after - from));
        if is_scouted { Nanos(0) } else { ready.way() }
    }

    /// A guest that stands at `begin`.
    ///
    /// # Errors
    /// The errors of the rig, an interruption among them.
    pub fn at(&self, begin: Begin) -> Result<Arc<Ready<'a>>, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_hunt_are_those_at_which_the_rig_saves_guests() {
        for after in [0, 1, 199, 200, 201, 300, 400, 600, 800, 1_600, 25_600, 51_200, 51_201] {
            let after = Nanos::from_millis(after);
            let is_saved = rig::stage_before(after + Nanos(1)) == Some(after);
            assert_eq!(is_stage(after), is_saved, "{after}");
        }
    }
}
