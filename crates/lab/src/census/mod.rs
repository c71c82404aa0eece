// SPDX-License-Identifier: GPL-2.0-or-later
//! Takes a census: the latency of a trigger at each instant of a window, one trial for each instant.
//!
//! A measurement draws triggers from all instants, and estimates how late answers are. A census leaves none out. The
//! trials have the guest's run up to the window in common, so each is a fork of a guest that walked there
//! ([`rig::Walker`]). The distribution of the latency over the window is then known, and not estimated.

mod opened;
mod part;
mod report;

pub use opened::{Opened, Stretches, stretches};
pub use part::Part;
pub use report::{Counted, Estimate, ExactQuantiles, Luck, OffShare};

use crate::Error;
use crate::followed::{self, Ready, Reproducer};
use crate::hunting::{Blind, Walkers, at_once, lock};
use rig::{Ending, Generator, Outcome};
use sample::{Nanos, Observation, Schedule, When};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::{Mutex, mpsc};
use work::Progress;

/// The most trials of a census. They take a day or so.
const TRIALS_MAX: u64 = 1_000_000;
/// How many trials are told as progress at once.
const TOLD: u64 = 50;

/// The instants of a census, since measuring began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first instant.
    pub from: Nanos,
    /// No instant comes after this.
    pub until: Nanos,
    /// How far apart two instants are.
    pub every: Nanos,
}

impl Window {
    /// The window of this length, whose middle is the find's trigger. It begins after the find's earlier triggers.
    ///
    /// # Errors
    /// If the window has too many instants, or only one.
    pub fn around(find: &Reproducer, length: Nanos, every: Nanos) -> Result<Window, Error> {
        let at = find.sample().at;
        // The line is low again before it rises.
        let earliest =
            earlier(find).last().map_or(Nanos(0), |last| *last + find.high_ns + Nanos(1));
        let from = at.saturating_sub(length / 2).max(earliest);
        let window = Window { from, until: at.saturating_add(length / 2), every };
        match window.count() {
            _ if every.0 == 0 => Err(Error::Unfit(
                "a census needs some time between two instants; give --every 1ns or more".into(),
            )),
            count if count < 2 => Err(Error::Unfit(format!(
                "a window of {length} has no two instants that are {every} apart; give --around a longer time, or --every a shorter one"
            ))),
            count if count > TRIALS_MAX => Err(Error::Unfit(format!(
                "the window has {count} instants, and a census takes {TRIALS_MAX} at the most; give --every a longer time"
            ))),
            _ => Ok(window),
        }
    }

    /// How many instants there are.
    pub fn count(&self) -> u64 {
        (self.until - self.from).0.checked_div(self.every.0).map_or(u64::MAX, |steps| steps + 1)
    }

    /// The instants, rising.
    pub fn instants(&self) -> impl Iterator<Item = Nanos> + use<> {
        let Window { from, every, .. } = *self;
        (0..self.count()).map(move |n| from + every * n)
    }
}

/// The triggers before the one that the find is about.
fn earlier(find: &Reproducer) -> &[Nanos] {
    &find.times_ns[..find.answer.trigger as usize]
}

/// The find's triggers, but the last at `at`.
fn triggered(ready: &Ready, find: &Reproducer, at: Nanos) -> Generator {
    let times = earlier(find).iter().copied().chain([at]).collect();
    let when = When::Planned(Schedule::Explicit(times));
    Generator { when, ..ready.generator().clone() }
}

/// The trials of a census, in a guest that walks from window to window.
pub struct Census<'a> {
    ready: &'a Ready<'a>,
    find: &'a Reproducer,
    walkers: Walkers<Blind>,
}

impl<'a> Census<'a> {
    /// The census of a find, before its first trial.
    pub fn new(ready: &'a Ready<'a>, find: &'a Reproducer) -> Census<'a> {
        Census { ready, find, walkers: Walkers::default() }
    }

    /// The latency of the find's responder at each of these instants. `None` where it did not answer, or where its
    /// answer was that to another trigger.
    ///
    /// # Errors
    /// If a guest dies, and the errors of the rig; an interruption among them.
    pub fn take(
        &self,
        instants: &[Nanos],
        jobs: usize,
        progress: &dyn Fn(Progress),
    ) -> Result<Vec<Option<Nanos>>, Error> {
        let count = instants.len();
        // More would find no room for a fork, and restore the guest.
        let jobs = jobs.min(rig::TRIALS_AT_ONCE);
        let taken = Mutex::new((vec![None; count], None));
        let (tell, told) = mpsc::channel();
        let cancel = &work::Cancel::current();
        std::thread::scope(|threads| {
            let work = |index: usize| {
                let latency = self.latency(instants[index]);
                let mut taken = lock(&taken);
                match latency {
                    Ok(latency) => taken.0[index] = latency,
                    Err(failure) => drop(taken.1.get_or_insert(failure)),
                }
                if taken.1.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            threads.spawn(move || {
                let tells = |index: usize| {
                    // Nobody hears it any more only if this whole census ends.
                    let _ = tell.send(());
                    work(index)
                };
                cancel.during(|| at_once(jobs, count, tells));
            });
            for (done, ()) in (1..).zip(told) {
                if done % TOLD == 0 {
                    progress(Progress::Measuring(done, count as u64));
                }
            }
        });
        let (latencies, failure) = taken.into_inner().unwrap_or_else(|p| p.into_inner());
        failure.map_or(Ok(latencies), Err)
    }

    /// What people have not heard yet of how its trials are made ([`Walkers::news`]).
    pub fn news(&self) -> Option<String> {
        self.walkers.news()
    }

    fn latency(&self, at: Nanos) -> Result<Option<Nanos>, Error> {
        let generator = triggered(self.ready, self.find, at);
        if let Some(latency) = self.forked(&generator, at)? {
            return Ok(latency);
        }
        let mut latency = None;
        let mut observe = |observation| self.hear(observation, &mut latency);
        let outcome = self.ready.fire(generator, &mut observe, None, &|_| ())?;
        check(&outcome, at)?;
        Ok(latency)
    }

    /// The latency in a fork. `None` if a run from the snapshot has to tell it.
    fn forked(&self, generator: &Generator, at: Nanos) -> Result<Option<Option<Nanos>>, Error> {
        let earlier = earlier(self.find).first().copied();
        let from = earlier.unwrap_or(at);
        let mut latency = None;
        let mut observe = |observation| self.hear(observation, &mut latency);
        let run = self.walkers.fire(self.ready, generator, from, &mut observe)?;
        Ok(run.map(|_| latency))
    }

    fn hear(&self, observation: Observation, latency: &mut Option<Nanos>) -> ControlFlow<()> {
        let of = self.find.sample();
        if let Observation::Sample(sample) = observation
            && (sample.trigger, sample.series) == (of.trigger, of.series)
        {
            *latency = Some(sample.latency);
        }
        ControlFlow::Continue(())
    }
}

/// Checks that the guest came to the end of its run.
fn check(outcome: &Outcome, at: Nanos) -> Result<(), Error> {
    match &outcome.ending {
        Ending::Died(why) => Err(Error::GuestDied(format!("by the trigger at {} ns: {why}", at.0))),
        _ => followed::check(outcome, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lies_around_the_find_and_after_its_earlier_triggers() {
        let mut find = Reproducer::example();
        let us = Nanos::from_micros;
        find.times_ns = vec![us(10), us(100)];
        let window = Window::around(&find, us(20), Nanos(10)).expect("a window");
        assert_eq!(window, Window { from: us(90), until: us(110), every: Nanos(10) });
        assert_eq!(window.count(), 2_001);
        let instants: Vec<Nanos> = window.instants().collect();
        assert_eq!((instants[0], instants[2_000], instants.len()), (us(90), us(110), 2_001));
        let wide = Window::around(&find, us(400), us(1)).expect("a window");
        assert_eq!((wide.from, wide.until), (us(10) + find.high_ns + Nanos(1), us(300)));
    }

    #[test]
    fn a_window_without_two_instants_or_with_too_many_is_refused() {
        let find = Reproducer::example();
        let refused = |length, every| {
            Window::around(&find, Nanos(length), Nanos(every)).unwrap_err().to_string()
        };
        assert!(refused(4, 10).contains("--around a longer time"));
        assert!(refused(4, 0).contains("--every 1ns or more"));
        assert!(refused(10_000_000, 1).contains("--every a longer time"));
    }
}
