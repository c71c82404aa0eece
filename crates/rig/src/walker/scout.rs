// SPDX-License-Identifier: GPL-2.0-or-later
//! Lets the process that restored the guest go on as a scout. It leaves places on its way, so nobody else has to walk
//! there for the trials that fire into what the scout saw.

use super::slot::Slot;
use super::{Failed, Place, Sees, Tried, Walker, asked_to_fork, stands};
use crate::boot::{Advanced, wait_for_end};
use crate::collect::Seer;
use crate::run::Outcome;
use crate::snapshot::Snapshot;
use crate::{Bench, Guest, Result, console};
use sample::Nanos;
use wire::{Start, WalkRequest};

/// Into how many equal parts the places divide a scout's way, and its beginning, where most trials fire. Both are
/// chosen: the places of both leave room for trials, and for the places that these need.
const PARTS: u64 = 8;
const BEGINNING: Nanos = Nanos::from_millis(800);

impl<S: Sees> Walker<S> {
    /// What looked at the guest up to the instant where it was restored.
    pub fn seen(&self) -> &S {
        &self.places[0].past.seen
    }

    /// Lets the guest of `from` go on to `until`, as the scout with which the walker began. It leaves places on the
    /// way, and saves the guest at its end as [`Bench::advance_followed`] does, if the way to this time begins at the
    /// guest ([`crate::stage_before`]). `see` takes what the follower reports. `None` if the guest has gone on before,
    /// if it does not get there, or if there is no room: a scout from the snapshot says what happens.
    ///
    /// # Errors
    /// If QEMU has ended, if a process says nonsense, if the guest cannot be saved, or if the user asks to stop. The
    /// walker is of no use then.
    pub fn scout(
        &mut self,
        bench: &Bench,
        (guest, from): (&Guest, &(Snapshot, String)),
        until: Nanos,
        see: &mut Seer<'_>,
    ) -> Result<Option<Outcome>> {
        let gone = self.go_on(until, see).and_then(|mut first| {
            let scratch = self.scratch.path();
            let way = Advanced { from, guest, time: until, scratch };
            let registers = wait_for_end(&mut self.running, &mut first.channel, until, see)?;
            bench.keep_stage(&way, &mut self.running, registers)?;
            let outcome = way.outcome(self.running.console(), &first.channel, None);
            self.gone_on = Some(first);
            Ok(outcome)
        });
        self.no_room = None;
        match gone {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Failed::NotThere | Failed::Lost(_)) => Ok(None),
            Err(Failed::NoRoom(why)) => {
                self.no_room = Some(why);
                Ok(None)
            }
            Err(Failed::Error(e)) => Err(self.why(e)),
        }
    }

    /// Goes on to `until`, and asks the machine to stop there. Returns the slot of the process that did it.
    fn go_on(&mut self, until: Nanos, see: &mut Seer<'_>) -> Tried<Slot> {
        if self.gone_on.is_some() {
            return Err(Failed::NotThere);
        }
        let mut first = self.depart()?;
        let walked = halts(until).into_iter().try_for_each(|to| {
            first.slot.request(WalkRequest::Walk { until: to });
            let at = stands(&mut first.slot, &mut first.past, see)?;
            first.at = at.ok_or(Failed::NotThere)?;
            first.past.said = console::read(&self.console(first.slot.number));
            if to == until {
                first.slot.request(WalkRequest::Stop);
                return Ok(());
            }
            match self.leave(&mut first) {
                // Trials walk there from the place before.
                Err(Failed::NoRoom(_) | Failed::NotThere) => Ok(()),
                left => left,
            }
        });
        match walked {
            Ok(()) => Ok(first.slot),
            Err(failed) => {
                self.gone_on = Some(first.slot);
                Err(failed)
            }
        }
    }

    /// Takes the process that restored the guest from its place, and leaves a copy there.
    fn depart(&mut self) -> Tried<Place<S>> {
        let mut first = self.places.swap_remove(0);
        let gone = match self.leave(&mut first) {
            Ok(()) => Ok(first),
            Err(failed) => {
                self.places.push(first);
                Err(failed)
            }
        };
        // One of both was added last.
        let last = self.places.len() - 1;
        self.places.swap(0, last);
        gone
    }

    /// Leaves a copy of a process that stands, as a place.
    fn leave(&mut self, standing: &mut Place<S>) -> Tried<()> {
        let mut slot = self.slot(standing.at)?;
        let mut past = standing.past.clone();
        let told = self.tell(&slot, &self.undisturbed, Start::Walk).map_err(Failed::from);
        let left = told
            .and_then(|()| asked_to_fork(&mut standing.slot, standing.at, &mut slot))
            .and_then(|()| Ok(stands(&mut slot, &mut past, &mut |_| ())?));
        match left {
            Ok(Some(at)) => {
                self.place(slot, at, past);
                Ok(())
            }
            failed => {
                self.give_back(slot);
                Err(failed.err().unwrap_or(Failed::NotThere))
            }
        }
    }
}

/// Where a scout that goes to `until` stands still on its way, and there.
fn halts(until: Nanos) -> Vec<Nanos> {
    let beginning = until.min(BEGINNING);
    let parts = |of: Nanos| (1..=PARTS).map(move |part| of * part / PARTS);
    let later = parts(until).filter(|at| *at > beginning);
    parts(beginning).chain(later).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scout_halts_often_where_most_trials_fire_and_ends_where_it_is_to() {
        let ms = |halts: Vec<Nanos>| halts.iter().map(|at| at.0 / 1_000_000).collect::<Vec<_>>();
        let to = |until| ms(halts(Nanos::from_millis(until)));
        assert_eq!(to(200), [25, 50, 75, 100, 125, 150, 175, 200]);
        assert_eq!(to(800), [100, 200, 300, 400, 500, 600, 700, 800]);
        let beginning = [100, 200, 300, 400, 500, 600, 700, 800];
        assert_eq!(
            to(3_200),
            [&beginning[..], &[1_200, 1_600, 2_000, 2_400, 2_800, 3_200]].concat()
        );
        assert_eq!(to(25_600)[8..], [3_200, 6_400, 9_600, 12_800, 16_000, 19_200, 22_400, 25_600]);
    }
}
