// SPDX-License-Identifier: GPL-2.0-or-later
//! The finds of a hunt. Each find has the causes that made its answer so late, and a file to replay it with.

use super::grounds::Grounds;
use super::journal::Say;
use super::workers::{at_once, lock};
use crate::Error;
use crate::followed::{self, Answer, CauseShare, Named, Ready, Reproducer};
use hunt::{Discovery, Knowledge, Recipe, functions};
use rig::{Bench, Generator};
use sample::{Nanos, Responder};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The worst of each responder is explained. Others are explained as long as the guest runs for no longer than this in
/// all of them together. A virtual second that is followed takes up to ten of wall time, so they take a minute at the
/// most.
const TOGETHER: Nanos = Nanos::from_millis(6_000);
/// A find whose first trigger comes later than this gets a beginning of its own, this long before the trigger. So a
/// replay takes milliseconds instead of seconds. Both are chosen: a second takes up to ten of wall time, and the guest
/// need not settle. Only a find that came out the same from there begins there.
const FAR: Nanos = Nanos::from_millis(1_000);
const LEAD: Nanos = Nanos::from_millis(60);
/// How many functions identify a cause: the innermost ones of its stack. The number is chosen: one less than those of a
/// place (`hunt::place`), since a cause has a kind besides.
const FUNCTIONS: usize = 3;

/// After how many explained finds the hunt says how many are explained. The number is chosen: seldom enough to be read.
const TOLD: usize = 5;

/// The error that the user asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// The files that are kept of a guest that died.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeathFiles {
    /// The experiment in which the guest dies again. `None` if it died before any trigger.
    pub experiment: Option<PathBuf>,
    /// The text on its console in the trial. `None` if there was none.
    pub console: Option<PathBuf>,
}

/// One find.
#[derive(Clone, Debug)]
pub struct Find {
    /// The responder.
    pub responder: Responder,
    /// The answer, and the trial that found it.
    pub found: Discovery,
    /// Where the answer's time went, the longest first. Empty if this is not known.
    pub causes: Vec<CauseShare>,
    /// The find's file, once it is written.
    pub path: Option<PathBuf>,
    /// The content of the file.
    pub reproducer: Reproducer,
    /// The same find with a beginning of its own, if its first trigger comes long after where its trial began.
    moved: Option<Box<Moved>>,
}

/// A find that begins shortly before its first trigger.
#[derive(Clone, Debug)]
struct Moved {
    answer: Recipe,
    reproducer: Reproducer,
    /// The time for which the guest has to be let run to the find's beginning, from a saved one.
    way: Nanos,
}

/// The find with a beginning shortly before its first trigger if that comes long after its beginning, and if the way
/// there begins at that place. `before` is where the guest's warm-up ends for the hunt. With the length of the way.
fn begin_later(answer: &Recipe, before: Nanos) -> Option<(Recipe, Nanos)> {
    let disturbed = answer.disturbances.iter().map(|disturbance| disturbance.at);
    let first = answer.instants.iter().copied().chain(disturbed).min().unwrap_or_default();
    let way = first.saturating_sub(LEAD);
    let begin = before + answer.begin.after;
    if first < FAR || rig::stage_before(begin + way) != Some(begin) {
        return None;
    }
    let mut answer = answer.clone();
    answer.begin.after += way;
    answer.snapshot = rig::key_after(&answer.snapshot, way);
    answer.instants.iter_mut().for_each(|at| *at -= way);
    answer.disturbances.iter_mut().for_each(|disturbance| disturbance.at -= way);
    Some((answer, way))
}

impl Find {
    /// The finds of `known` for these responders, the latest of each first. After them come the latest disturbed
    /// ones.
    pub fn all(grounds: &Grounds, known: &Knowledge, responders: &[Responder]) -> Vec<Find> {
        let mut finds = Vec::new();
        for responder in responders {
            let calm = known.finds.get(responder.name()).into_iter().flatten();
            let disturbed = known.disturbed.get(responder.name()).and_then(|f| f.first());
            for found in calm.chain(disturbed) {
                let first = grounds.first_of(found.answer.begin.guest);
                finds.push(Find::new(*responder, found.clone(), first));
            }
        }
        finds
    }

    /// A find that begins where its trial began.
    fn new(responder: Responder, found: Discovery, first: &Ready) -> Find {
        let before = first.guest().begin_after;
        let moved = begin_later(&found.answer, before).map(|(answer, way)| {
            let reproducer = Find::reproducer(responder, &answer, first);
            Box::new(Moved { answer, reproducer, way })
        });
        let reproducer = Find::reproducer(responder, &found.answer, first);
        Find { moved, ..Find::of(responder, found, reproducer) }
    }

    /// A find that is not explained, and in no file. It begins where `reproducer` says.
    pub fn of(responder: Responder, found: Discovery, reproducer: Reproducer) -> Find {
        Find { responder, found, causes: Vec::new(), path: None, reproducer, moved: None }
    }

    /// All that it takes to have an answer again.
    fn reproducer(responder: Responder, best: &Recipe, first: &Ready) -> Reproducer {
        let answer = Answer {
            responder,
            trigger: best.trigger,
            latency_ns: best.latency_ns,
            insns: best.latency_insns,
        };
        let guest = first.guest_later(best.begin.after);
        let made_with = first.made_with_snapshot(&best.snapshot);
        let times = best.instants.clone();
        let disturbances = best.disturbances.clone();
        let generator = Generator { disturbances, ..first.generator().clone() };
        Reproducer::of(&guest, &generator, &made_with, times, answer)
    }

    /// For how long the guest runs until its answer, from a saved one.
    fn runs(&self) -> Nanos {
        let way = self.moved.as_ref().map_or(Nanos(0), |moved| moved.way);
        let answer = self.moved.as_ref().map_or(&self.found.answer, |moved| &moved.answer);
        answer.instants.last().map_or(way, |at| *at + way)
    }

    /// Where its time went, by a run of it. If it may have a beginning of its own, this run decides that: the guest
    /// that is saved on the way draws other random numbers, and may go another way.
    ///
    /// # Errors
    /// If it does not come out as it says from either beginning, and those of the rig.
    fn explained(&self, bench: &Bench, say: Say) -> Result<Explained, Error> {
        if let Some(moved) = &self.moved {
            match causes(bench, &moved.reproducer) {
                Ok(causes) => return Ok((causes, true)),
                Err(failure) if failure.is_interruption() => return Err(failure),
                Err(failure) => say(&format!(
                    "! a find keeps the beginning of its trial, since it does not come again from a later one: {failure}"
                )),
            }
        }
        causes(bench, &self.reproducer).map(|causes| (causes, false))
    }

    /// Lets the find begin where it may, now that it came out the same from there.
    fn begin_there(&mut self) {
        if let Some(moved) = self.moved.take() {
            let Moved { answer, reproducer, .. } = *moved;
            self.found.answer = answer;
            self.reproducer = reproducer;
        }
    }

    /// What tells the find from others of the same responder, if this is known.
    fn cause(&self) -> Option<(&str, &str, Vec<String>)> {
        let CauseShare { cause, .. } = self.causes.first()?;
        Some((&cause.cause, &cause.who, functions(&cause.stack, FUNCTIONS)))
    }
}

/// Says where the time of the finds went, and leaves out those whose main cause is that of a later answer. Up to `jobs`
/// machines run at once. `say` hears how far the work is.
///
/// # Errors
/// An interruption. The finds that were explained until then keep their causes. A find that cannot be explained stays,
/// and `say` hears of it.
pub fn explain_finds(
    bench: &Bench,
    finds: &mut Vec<Find>,
    jobs: usize,
    say: Say,
) -> Result<(), Interrupted> {
    let is_worst = |n: usize| n == 0 || finds[n - 1].responder != finds[n].responder;
    let mut together = 0;
    let mut is_affordable = |n: usize| {
        let run = finds[n].runs().0;
        let affordable = together + run <= TOGETHER.0;
        together += if affordable { run } else { 0 };
        affordable
    };
    let mut wanted: Vec<usize> =
        (0..finds.len()).filter(|n| is_affordable(*n) || is_worst(*n)).collect();
    // A hunt that is interrupted now is asked for the worst finds first.
    wanted.sort_by_key(|n| !is_worst(*n));
    say(&format!("explaining {} finds", wanted.len()));
    let explained = Mutex::new(Vec::new());
    let interrupted = AtomicBool::new(false);
    at_once(jobs, wanted.len(), |n| {
        let index = wanted[n];
        match finds[index].explained(bench, say) {
            Ok(found) => {
                let mut explained = lock(&explained);
                explained.push((index, found));
                if explained.len().is_multiple_of(TOLD) {
                    say(&format!("explained {} of {} finds", explained.len(), wanted.len()));
                }
            }
            Err(failure) if failure.is_interruption() => {
                interrupted.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
            Err(failure) => say(&format!("! a find is not explained: {failure}")),
        }
        ControlFlow::Continue(())
    });
    for (index, (causes, later)) in explained.into_inner().unwrap_or_else(|p| p.into_inner()) {
        finds[index].causes = causes;
        if later {
            finds[index].begin_there();
        }
    }
    leave_out_repetitions(finds);
    if interrupted.into_inner() { Err(Interrupted) } else { Ok(()) }
}

/// The causes of a find, and whether it came out the same from its own beginning.
type Explained = (Vec<CauseShare>, bool);

fn causes(bench: &Bench, find: &Reproducer) -> Result<Vec<CauseShare>, Error> {
    let named = Named::Find(Box::new(find.clone()));
    let samples = named.samples(None, None)?;
    let explanations = followed::explain(bench, &named, &samples, &|_| ())?;
    Ok(explanations.explained.into_iter().next().map_or_else(Vec::new, |e| e.causes))
}

fn leave_out_repetitions(finds: &mut Vec<Find>) {
    let mut kept: Vec<Find> = Vec::new();
    for find in finds.drain(..) {
        let same = |known: &Find| {
            known.responder == find.responder
                && known.found.answer.disturbances.is_empty()
                    == find.found.answer.disturbances.is_empty()
                && known.cause().is_some_and(|cause| find.cause() == Some(cause))
        };
        if !kept.iter().any(same) {
            kept.push(find);
        }
    }
    *finds = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use hunt::Begin;
    use sample::Disturbance;
    use trace::{CauseReport, Sum};

    fn find(responder: Responder, latency: u64, cause: &str, stack: &[&str]) -> Find {
        let cause = CauseReport {
            cause: cause.into(),
            who: String::new(),
            stack: stack.iter().map(|frame| frame.to_string()).collect(),
        };
        let answer = Recipe { latency_ns: Nanos(latency), ..Recipe::default() };
        let known = !cause.cause.is_empty();
        let causes =
            known.then_some(CauseShare { cause, sum: Sum::of(Nanos(latency)), share: 1.0 });
        Find {
            responder,
            found: Discovery { trial: 0, strategy: "random".parse().expect("a strategy"), answer },
            causes: causes.into_iter().collect(),
            path: None,
            reproducer: Reproducer::example(),
            moved: None,
        }
    }

    #[test]
    fn a_find_whose_trigger_comes_late_begins_shortly_before_it_where_a_stage_leads_there() {
        let ms = Nanos::from_millis;
        let far = |after, first| Recipe {
            begin: Begin { guest: 1, after },
            instants: vec![first, first + Nanos(5)],
            snapshot: "key".into(),
            ..Recipe::default()
        };
        let late = far(ms(3_200), ms(1_800));
        let there = Recipe { snapshot: rig::key_after("key", ms(1_740)), ..far(ms(4_940), ms(60)) };
        assert_eq!(begin_later(&late, Nanos(0)), Some((there, ms(1_740))));
        let mut disturbed = far(ms(3_200), ms(1_800));
        disturbed.disturbances = vec![Disturbance { at: ms(1_760), timers: 1 }];
        let (disturbed, way) = begin_later(&disturbed, Nanos(0)).expect("it is far");
        assert_eq!((way, disturbed.instants[0]), (ms(1_700), ms(100)));
        assert_eq!(disturbed.disturbances[0].at, ms(60));
        // It is near, and the guest began between two stages.
        for (after, first, before) in [(3_200, 999, 0), (3_200, 1_800, 300), (0, 1_800, 0)] {
            assert_eq!(begin_later(&far(ms(after), ms(first)), ms(before)), None);
        }
    }

    #[test]
    fn of_finds_with_one_cause_the_latest_stays_and_those_of_unknown_cause_stay_all() {
        let (hardirq, task) = (Responder::Hardirq, Responder::Task);
        let stack = ["lock+0x9", "null+0x1 [null_blk]", "flush+0x5", "x+0x1"];
        let elsewhere = ["lock+0x7", "null+0x2 [null_blk]", "flush+0x6", "y+0x8"];
        let mut finds = vec![
            find(hardirq, 9, "irqs_off", &stack),
            find(task, 90, "irqs_off", &stack),
            find(task, 80, "irqs_off", &elsewhere),
            find(task, 70, "preempt_off", &stack),
            find(task, 60, "", &[]),
            find(task, 50, "", &[]),
        ];
        leave_out_repetitions(&mut finds);
        let kept: Vec<u64> = finds.iter().map(|f| f.found.answer.latency_ns.0).collect();
        assert_eq!(kept, [9, 90, 70, 60, 50]);
    }
}
