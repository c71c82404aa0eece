// SPDX-License-Identifier: GPL-2.0-or-later
//! Leaves out of a find, or of a run's latency, the load, the triggers and the disturbances that its latency does not
//! need.
//!
//! This is delta debugging: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
//! Transactions on Software Engineering 28(2), 2002, algorithm ddmin. The paper's failure is a late answer here. Each
//! candidate is a fork of a guest that walked to its first trigger. The find itself, and what is left of it, are run
//! from the snapshot. A candidate works if the answer to the same trigger, by the same responder,
//! takes at least [`ENOUGH_PERCENT`] of the find's latency. The result is minimal in the sense that no further single
//! trigger can be left out; a smaller result may exist.

mod load;

pub use load::under_less;

use crate::Error;
use crate::followed::{Answer, Ready, Reproducer, Subject};
use crate::hunting::{Blind, Grounds, Journal, Say, SearchResult, Walkers};
use hunt::Hunt;
use rig::{Ending, Generator};
use sample::{Disturbance, Insns, Nanos, Observation, Sample, Schedule, When};
use serde::Serialize;
use std::ops::ControlFlow;

/// The part of the find's latency that a candidate has to have. Leaving a trigger out moves everything after it by some
/// instructions, so hardly any candidate is late to the instruction. The number is chosen: a hundredth of 5 µs is fifty
/// instructions.
const ENOUGH_PERCENT: u64 = 99;

/// How much a find has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Size {
    /// What keeps the guest busy.
    pub load: &'static str,
    /// Triggers.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub triggers: u64,
    /// What disturbs.
    pub disturbances: u64,
    /// From the one that is answered late to the answer.
    pub latency_ns: Nanos,
    /// Instructions in it.
    pub insns: Insns,
}

impl Size {
    /// The size of a find.
    pub fn of(find: &Reproducer) -> Size {
        let Answer { latency_ns, insns, .. } = find.answer;
        let (triggers, disturbances) = (find.times_ns.len(), find.disturbances.len());
        Size {
            load: find.load.name(),
            triggers: triggers as u64,
            disturbances: disturbances as u64,
            latency_ns,
            insns,
        }
    }
}

/// The steps that are needed besides the rig to look for less load.
pub struct Steps<'a, 'b> {
    /// Makes a guest ready.
    pub prepare: &'a dyn Fn(Subject) -> Result<Ready<'b>, Error>,
    /// Hunts in guests.
    pub search: &'a dyn Fn(&Hunt, &Grounds<'b>, &mut Journal) -> SearchResult,
    /// Hears what was tried.
    pub say: Say<'a>,
}

/// The rest of a find.
#[derive(Debug)]
pub struct Smaller {
    /// The smaller find.
    pub find: Reproducer,
    /// The number of candidates that were run.
    pub trials: u64,
    /// Whether no single further trigger can be left out. This is not known if somebody asked to stop.
    pub minimal: bool,
    /// Whether the smaller find was run once more and came out the same. This is false if somebody asked to stop.
    pub replayed: bool,
}

/// Leaves out of a find what its latency does not need. `found` hears of each smaller find, with the number of
/// candidates that were run, and `say` how the candidates are made, if that takes longer than it should.
///
/// # Errors
/// If the find does not come out as it says. Also the errors of the rig, except an interruption.
pub fn minimise(
    ready: &Ready,
    find: &Reproducer,
    found: &dyn Fn(u64, Size),
    say: Say,
) -> Result<Smaller, Error> {
    let walkers = Walkers::default();
    let mut search = Search { ready, find, best: find.clone(), trials: 0, found, walkers };
    search.confirm(find)?;
    let minimal = reached(search.minimise())?;
    if let Some(news) = search.walkers.news() {
        say(&format!("! {news}"));
    }
    let replayed = minimal && reached(search.confirm(&search.best))?;
    Ok(Smaller { find: search.best, trials: search.trials, minimal, replayed })
}

/// Whether an answer is late enough to stand for another.
fn enough(latency: Nanos, of: Nanos) -> bool {
    u128::from(latency.0) * 100 >= u128::from(of.0) * u128::from(ENOUGH_PERCENT)
}

/// Whether the search came to its end, or somebody asked to stop before.
fn reached(ended: Result<(), Error>) -> Result<bool, Error> {
    match ended {
        Ok(()) => Ok(true),
        Err(e) if e.is_interruption() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Tries candidates, and keeps the smallest one that works.
struct Search<'a> {
    ready: &'a Ready<'a>,
    find: &'a Reproducer,
    best: Reproducer,
    trials: u64,
    found: &'a dyn Fn(u64, Size),
    walkers: Walkers<Blind>,
}

impl Search<'_> {
    /// Minimises. Disturbances come first: for those that stay, it has to hold that no further single trigger can be
    /// left out.
    fn minimise(&mut self) -> Result<(), Error> {
        let all = self.find.disturbances.clone();
        let triggers: Vec<u64> = (0..self.find.times_ns.len() as u64).collect();
        if !all.is_empty() && !self.works(&triggers, &[])? {
            minimal(all, &mut |kept| self.works(&triggers, kept)).map(drop)?;
        }
        let disturbances = self.best.disturbances.clone();
        let late = self.find.answer.trigger;
        let others: Vec<u64> =
            (0..self.find.times_ns.len() as u64).filter(|n| *n != late).collect();
        // Most often the trigger that is answered late is enough.
        if others.is_empty() || self.works(&[], &disturbances)? {
            return Ok(());
        }
        minimal(others, &mut |kept| self.works(kept, &disturbances)).map(drop)
    }

    /// Whether the answer is late enough with these triggers, the answered one and these disturbances. If so, this is
    /// the best.
    fn works(&mut self, others: &[u64], disturbances: &[Disturbance]) -> Result<bool, Error> {
        let (times, trigger) = with(&self.find.times_ns, others, self.find.answer.trigger);
        self.trials += 1;
        let answer = match self.forked(&times, disturbances, trigger)? {
            Some(answer) => answer,
            None => self.answer(&times, disturbances, trigger)?,
        };
        let enough = |s: &Sample| enough(s.latency, self.find.answer.latency_ns);
        let Some((sample, insns)) = answer.filter(enough).and_then(|s| Some((s, s.path?))) else {
            return Ok(false);
        };
        let answer = Answer { trigger, latency_ns: sample.latency, insns, ..self.find.answer };
        let disturbances = disturbances.to_vec();
        self.best = Reproducer { times_ns: times, disturbances, answer, ..self.find.clone() };
        (self.found)(self.trials, Size::of(&self.best));
        Ok(true)
    }

    /// Runs a find, which has to come out as it says.
    fn confirm(&self, find: &Reproducer) -> Result<(), Error> {
        let Answer { responder, trigger, latency_ns, insns } = find.answer;
        let answer = self.answer(&find.times_ns, &find.disturbances, trigger)?;
        let answer = answer.map(|s| (s.latency, s.path));
        if answer == Some((latency_ns, Some(insns))) {
            return Ok(());
        }
        let now = answer.map_or("does not answer".into(), |(ns, _)| format!("takes {} ns", ns.0));
        Err(Error::FindDiffers(format!(
            "{responder} {now} and should take {} ns: the find does not come out as it \
             says, so nothing was written; `onset replay` of it tells whether it ever does",
            latency_ns.0
        )))
    }

    fn generator(&self, times: &[Nanos], disturbances: &[Disturbance]) -> Generator {
        let when = When::Planned(Schedule::Explicit(times.into()));
        let disturbances = disturbances.to_vec();
        Generator { when, disturbances, ..self.ready.generator().clone() }
    }

    /// Takes the answer of the find's responder to the trigger with this number.
    fn take(
        &self,
        observation: Observation,
        trigger: u64,
        answer: &mut Option<Sample>,
    ) -> ControlFlow<()> {
        let responders = self.ready.responders();
        match observation {
            Observation::Sample(s)
                if s.trigger == trigger
                    && responders[s.series.index()] == self.find.answer.responder =>
            {
                *answer = Some(s);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// The same as [`Search::answer`], in a fork. `None` if a run from the snapshot has to tell it.
    fn forked(
        &self,
        times: &[Nanos],
        disturbances: &[Disturbance],
        trigger: u64,
    ) -> Result<Option<Option<Sample>>, Error> {
        let mut answer = None;
        // A fork that nobody hears to its end counts as one that did not end as usual.
        let mut observe = |observation| {
            let _ = self.take(observation, trigger, &mut answer);
            ControlFlow::Continue(())
        };
        let generator = self.generator(times, disturbances);
        let run = self.walkers.fire(self.ready, &generator, times[0], &mut observe)?;
        Ok(run.map(|_| answer))
    }

    /// The answer of the find's responder to the trigger with that number, if these triggers are raised. `None` if it
    /// is superseded or unanswered, or if the guest dies.
    fn answer(
        &self,
        times: &[Nanos],
        disturbances: &[Disturbance],
        trigger: u64,
    ) -> Result<Option<Sample>, Error> {
        let mut answer = None;
        let mut observe = |observation| self.take(observation, trigger, &mut answer);
        let generator = self.generator(times, disturbances);
        let outcome = self.ready.fire(generator, &mut observe, None, &|_| ())?;
        match outcome.ending {
            _ if answer.is_some() => Ok(answer),
            Ending::Interrupted => Err(Error::Interrupted),
            Ending::Failed(why) => Err(Error::MachineFailed(format!("the machine failed: {why}"))),
            Ending::Whole | Ending::Died(_) => Ok(None),
        }
    }
}

/// The times of the triggers `others` and `late`, each once, in their order, and the new number of `late`.
fn with(times: &[Nanos], others: &[u64], late: u64) -> (Vec<Nanos>, u64) {
    let mut numbers = others.to_vec();
    numbers.push(late);
    numbers.sort_unstable();
    numbers.dedup();
    let number = numbers.iter().filter(|n| **n < late).count() as u64;
    let time = |n: &u64| times[*n as usize];
    (numbers.iter().map(time).collect(), number)
}

/// The rest of `kept`, which works, if nothing more can be taken away: ddmin. The caller has to have tried before
/// whether nothing at all works.
fn minimal<T: Copy, E>(
    mut kept: Vec<T>,
    works: &mut dyn FnMut(&[T]) -> Result<bool, E>,
) -> Result<Vec<T>, E> {
    let mut parts = 2;
    while kept.len() > 1 {
        let size = kept.len().div_ceil(parts);
        let subsets = kept.chunks(size).map(<[T]>::to_vec);
        // With two parts, each is what the other one leaves.
        let count = if parts > 2 { kept.len().div_ceil(size) } else { 0 };
        let without = |n: usize| [&kept[..n * size], &kept[((n + 1) * size).min(kept.len())..]];
        let complements = (0..count).map(|n| without(n).concat());
        let mut smaller = None;
        for (index, candidate) in subsets.chain(complements).enumerate() {
            if works(&candidate)? {
                let parts = if index < kept.len().div_ceil(size) { 2 } else { (parts - 1).max(2) };
                smaller = Some((candidate, parts));
                break;
            }
        }
        match smaller {
            Some(next) => (kept, parts) = next,
            None if parts >= kept.len() => break,
            None => parts = (2 * parts).min(kept.len()),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_late_trigger_keeps_its_place_among_those_that_are_left() {
        let times = [10, 20, 30, 40].map(Nanos);
        assert_eq!(with(&times, &[], 2), (vec![Nanos(30)], 0));
        assert_eq!(with(&times, &[3, 0], 2), ([10, 30, 40].map(Nanos).to_vec(), 1));
        assert_eq!(with(&times, &[0, 1, 2, 3], 2), (times.to_vec(), 2));
    }

    #[test]
    fn a_search_that_is_stopped_says_so() {
        let mut left = 3;
        let stopped = minimal((0..50).collect(), &mut |_: &[u64]| {
            left -= 1;
            if left == 0 { Err("stop") } else { Ok(false) }
        });
        assert_eq!(stopped, Err("stop"));
    }

    proptest! {
        #[test]
        fn exactly_what_is_needed_is_left(
            count in 1u64..80, needed in prop::collection::btree_set(0u64..80, 1..6)
        ) {
            let needed: BTreeSet<u64> = needed.into_iter().map(|n| n % count).collect();
            let mut works = |kept: &[u64]| {
                Ok::<_, ()>(needed.iter().all(|n| kept.contains(n)))
            };
            let left = minimal((0..count).collect(), &mut works);
            prop_assert_eq!(left, Ok(needed.iter().copied().collect()));
        }

        #[test]
        fn without_any_one_of_what_is_left_it_does_not_work(
            count in 2u64..40, seed in any::<u64>()
        ) {
            // The rule may be any, also one that works with less and not with more.
            let rule = |kept: &[u64]| {
                let mix = |sum: u64, n: &u64| (sum ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                kept.len() as u64 == count || kept.iter().fold(seed, mix) >> 62 == 0
            };
            let left = minimal((0..count).collect(), &mut |k: &[u64]| Ok::<_, ()>(rule(k)));
            let left = left.expect("never stopped");
            prop_assert!(rule(&left));
            if left.len() > 1 {
                for index in 0..left.len() {
                    let mut less = left.clone();
                    less.remove(index);
                    prop_assert!(!rule(&less), "{left:?} without {index}");
                }
            }
        }
    }
}
