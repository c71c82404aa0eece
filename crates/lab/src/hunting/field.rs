// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs one trial: forks a guest that walks on, or restores it from its snapshot, triggers as a strategy says, and
//! watches. Only this module turns a hunt's deadline into the time that the rig waits.

use super::grounds::Grounds;
use super::seen::Seen;
use super::walkers::Walkers;
use crate::Error;
use crate::followed::Ready;
use hunt::{Encounter, EnteredStretch, GuestDeath, LateAnswer, Trial, TrialResult, longest, place};
use rig::{Ending, Follow, Following, Generator, Outcome};
use sample::{Insns, Losses, Nanos, Observation, ResponderSet, Sample};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;
use trace::{StackId, Symbols, is_interrupt_gate, named};
use wire::Event;

/// How long a trial waits for answers after the last trigger, and for a missing one until the next may come. It is as
/// long as in an experiment that does not set it. A trigger without an answer by then is a find of its own.
const GRACE: Nanos = Nanos::from_millis(1_000);

/// How many late answers of one responder are kept of a trial, each of another place. The number is chosen: fewer than
/// a hunt keeps of all, so that the list is not that of one trial alone.
const KEPT: usize = 8;

/// Of this many trials, one is forked and restored, and both have to come out the same: a check of the fork itself. The
/// number is chosen: a restored trial takes as long as a hundred forked ones. A find that is explained is checked
/// anyway, since its explanation restores the guest.
const CHECKED: u64 = 512;
/// The number of the first such trial: the first one that may be no scout.
const FIRST_CHECKED: u64 = 1;

/// Why a hunt forks no more after such a check.
pub const OTHERWISE: &str = "a trial came out otherwise in a fork than in a restored guest";

/// How much of the end of a guest's console is kept if the guest died in a trial: a hundred times an oops.
const CONSOLE_BYTES_MAX: usize = 64 << 10;

/// What all trials of a hunt have in common.
pub struct Field<'a, 'bench> {
    /// The guests, the places where trials begin, and their triggers except for the instants.
    pub grounds: &'a Grounds<'bench>,
    /// The view of each guest.
    pub views: Vec<View<'a>>,
    /// The guests that serve trials by forking.
    pub walkers: Walkers<Seen>,
}

/// How a guest is seen.
pub struct View<'a> {
    /// How the guest's kernel is followed.
    pub follow: &'a Follow,
    /// The names of addresses.
    pub symbols: &'a (dyn Symbols + Sync),
}

/// The result of an operation. `None` if it was to stop, which is no failure.
fn unless_stopped<T>(asked: Result<T, Error>) -> Result<Option<T>, Error> {
    match asked {
        Err(failure) if failure.is_interruption() => Ok(None),
        asked => asked.map(Some),
    }
}

/// Whether a trial came out otherwise in a fork than in a restored guest. A fork ends with its last answer, so it does
/// not see a guest that dies after that.
fn is_otherwise(forked: TrialResult, restored: &TrialResult) -> bool {
    let died = restored.died.clone().filter(|_| forked.died.is_some());
    forked != TrialResult { died, ..restored.clone() }
}

impl Field<'_, '_> {
    /// Runs a trial. `None` if it did not end by the deadline, or because somebody asked to stop.
    ///
    /// # Errors
    /// The errors of the rig. A guest that dies is no error, but a find.
    pub fn run(
        &self,
        trial: &Trial,
        deadline: Option<Instant>,
    ) -> Result<Option<TrialResult>, Error> {
        work::Cancel::current().part(deadline).during(|| self.run_to_its_end(trial))
    }

    fn run_to_its_end(&self, trial: &Trial) -> Result<Option<TrialResult>, Error> {
        let Some(ready) = unless_stopped(self.grounds.at(trial.begin))? else { return Ok(None) };
        let forked = match (trial.fires_from(), trial.looks_ahead()) {
            (Some(from), _) => unless_stopped(self.fork(trial, &ready, from))?,
            (None, Some(until)) => unless_stopped(self.scout(trial, &ready, until))?,
            (None, None) => Some(None),
        };
        let Some(forked) = forked else { return Ok(None) };
        let forked = forked.map(|made| self.result(trial, &ready, made));
        if forked.is_some() && trial.number % CHECKED != FIRST_CHECKED {
            return Ok(forked);
        }
        let Some(made) = unless_stopped(self.restore(trial, &ready))? else { return Ok(None) };
        match &made.0.ending {
            Ending::Interrupted => return Ok(None),
            Ending::Failed(why) => return Err(failed(trial.number, why)),
            Ending::Whole | Ending::Died(_) => {}
        }
        let mut restored = self.result(trial, &ready, made);
        if forked.is_some_and(|forked| is_otherwise(forked, &restored)) {
            restored.forked_otherwise = true;
            self.walkers.refuse(OTHERWISE.into());
        }
        Ok(Some(restored))
    }

    fn result(&self, trial: &Trial, ready: &Ready, (outcome, seen, answers): Made) -> TrialResult {
        let way = self.grounds.way(ready, trial.begin);
        self.views[trial.begin.guest].result(trial, way, &seen, answers, outcome)
    }

    fn generator(&self, trial: &Trial, ready: &Ready) -> Generator {
        let (when, disturbances) = (trial.when.clone(), trial.disturbances.clone());
        Generator { when, grace: GRACE, disturbances, ..ready.generator().clone() }
    }

    /// Makes the trial in a copy of a guest that walks. `None` if a run from the snapshot has to make it.
    fn fork(&self, trial: &Trial, ready: &Ready, from: Nanos) -> Result<Option<Made>, Error> {
        let generator = self.generator(trial, ready);
        let mut answers = Answered::of(generator.responders);
        let follow = self.views[trial.begin.guest].follow;
        let following = (Some(follow), Seen::new(ready.guest().shift));
        let fires = (&generator, from);
        let mut observe = |observation| answers.take(observation);
        let run = self.walkers.run(trial.begin, ready, following, fires, &mut observe)?;
        Ok(run.map(|(outcome, seen)| (outcome, seen, answers)))
    }

    /// Lets the guest that walks go on as a scout. `None` if a scout from the snapshot has to look.
    fn scout(&self, trial: &Trial, ready: &Ready, until: Nanos) -> Result<Option<Made>, Error> {
        let view = &self.views[trial.begin.guest];
        let following = (view.follow, Seen::new(ready.guest().shift));
        let see = &mut |seen: &mut Seen, event: &Event| view.scout(seen, event);
        let run = self.walkers.scout(trial.begin, ready, following, until, see)?;
        let answers = Answered::of(ready.generator().responders);
        Ok(run.map(|(outcome, seen)| (outcome, seen, answers)))
    }

    /// Makes the trial from the snapshot.
    fn restore(&self, trial: &Trial, ready: &Ready) -> Result<Made, Error> {
        let generator = self.generator(trial, ready);
        let view = &self.views[trial.begin.guest];
        let mut seen = Seen::new(ready.guest().shift);
        let mut see = |event: &Event| match trial.looks_ahead() {
            Some(_) => view.scout(&mut seen, event),
            None => seen.see(event),
        };
        let mut answers = Answered::of(generator.responders);
        let mut observe = |observation| answers.take(observation);
        let following = Following { follow: view.follow, see: &mut see };
        let outcome = match trial.looks_ahead() {
            Some(until) if self.grounds.leads(trial.begin, until) => {
                ready.advance(until, generator, following)
            }
            _ => ready.fire(generator, &mut observe, Some(following), &|_| ()),
        }?;
        Ok((outcome, seen, answers))
    }
}

/// A trial that was made: its outcome, what the follower saw, and who answered.
type Made = (Outcome, Seen, Answered);

/// The answers and the losses of the responders.
struct Answered {
    responders: ResponderSet,
    samples: Vec<Sample>,
    losses: BTreeMap<String, Losses>,
}

impl Answered {
    fn of(responders: ResponderSet) -> Answered {
        Answered { responders, samples: Vec::new(), losses: BTreeMap::new() }
    }

    fn take(&mut self, observation: Observation) -> ControlFlow<()> {
        match observation {
            Observation::Sample(sample) => self.samples.push(sample),
            Observation::Loss(series, loss, n) => {
                let responder = self.responders.iter().nth(series.index());
                let name = responder.map_or_else(String::new, |r| r.name().into());
                self.losses.entry(name).or_default().count(loss, n);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The last whole lines of a text, if the text has more bytes than this.
fn end_of(text: &str, bytes_max: usize) -> &str {
    let Some(cut) = text.len().checked_sub(bytes_max).filter(|cut| *cut > 0) else { return text };
    let line = text.as_bytes()[cut - 1..].iter().position(|byte| *byte == b'\n');
    &text[line.map_or(text.len(), |line| cut + line)..]
}

/// The error of a failed machine. Such a machine says nothing of its guest, so there is no trial.
fn failed(trial: u64, why: &str) -> Error {
    Error::MachineFailed(format!("the machine of trial {trial} failed, not its guest: {why}"))
}

/// Why a guest counts as dead: it ended, its kernel said in this trial that something broke, or a responder was silent
/// for the whole wait.
fn death(outcome: &Outcome, losses: &BTreeMap<String, Losses>) -> Option<String> {
    if let Ending::Died(text) = &outcome.ending {
        return Some(text.clone());
    }
    // Faults from before the trial are not the trial's doing.
    let faults = outcome.faults_since();
    if let Some(fault) = faults.iter().find(|fault| fault.breaks()) {
        return Some(fault.text().into());
    }
    let silent = losses.iter().filter(|(_, losses)| losses.unanswered > 0);
    let silent: Vec<&str> = silent.map(|(name, _)| name.as_str()).collect();
    let hung = if outcome.guest_ended.is_err() { ", and the guest did not end" } else { "" };
    let silent = (!silent.is_empty()).then(|| silent.join(" and "));
    silent.map(|names| format!("{names} did not answer within {GRACE}{hung}"))
}

impl View<'_> {
    fn scout(&self, seen: &mut Seen, event: &Event) {
        seen.scout(event, |at| is_interrupt_gate(&named(self.symbols, at)));
    }

    fn result(
        &self,
        trial: &Trial,
        way_ns: Nanos,
        seen: &Seen,
        answered: Answered,
        outcome: Outcome,
    ) -> TrialResult {
        let Answered { responders, samples, losses } = answered;
        let instants: Vec<Nanos> = seen.triggers.iter().map(|at| seen.since_origin(*at)).collect();
        let died = death(&outcome, &losses).map(|text| GuestDeath {
            text,
            console: end_of(outcome.said(), CONSOLE_BYTES_MAX).into(),
            begin: trial.begin,
            instants: instants.clone(),
            disturbances: trial.disturbances.clone(),
        });
        let mut late = BTreeMap::new();
        for (rank, responder) in responders.iter().enumerate() {
            let own = samples.iter().filter(|s| usize::from(s.series.0) == rank);
            let own = self.latest(own, seen);
            if !own.is_empty() {
                late.insert(responder.name().to_string(), own);
            }
        }
        let until = late.values().flatten().map(|late| late.triggers as usize).max();
        let name = |s: &Sample| Some(responders.iter().nth(s.series.index())?.name().into());
        let first = || samples.iter().filter(|s| s.trigger == 0);
        let answered_insns = || first().filter_map(|s| Some((name(s)?, s.path?))).collect();
        let virtual_ns = seen.last.map_or(Nanos(0), |at| seen.since_origin(at));
        let undisturbed_ns = trial.fires_from().unwrap_or_default().min(virtual_ns);
        TrialResult {
            number: trial.number,
            strategy: trial.strategy,
            begin: trial.begin,
            snapshot: outcome.snapshot,
            way_ns,
            undisturbed_ns,
            worked_insns: seen.worked(undisturbed_ns > Nanos(0)),
            triggers: seen.triggers.len() as u64,
            virtual_ns,
            disturbances: trial.disturbances.clone(),
            instants: instants[..until.unwrap_or(0).min(instants.len())].to_vec(),
            late,
            losses,
            seen: self.hashes(seen, &seen.openers),
            fired: self.hashes(seen, &seen.aimed.iter().flatten().copied().collect()),
            entered: trial
                .enters
                .map(|stretch| EnteredStretch { stretch, answered_insns: answered_insns() }),
            encounter: trial
                .meets
                .clone()
                .map(|coincidence| Encounter { coincidence, answered_insns: answered_insns() }),
            scouted: trial.looks_ahead().map(|_| longest(seen.foreseen.clone())),
            coincidences: seen.timeline.coincidences(),
            died,
            forked_otherwise: false,
        }
    }

    fn hashes(&self, seen: &Seen, stacks: &BTreeSet<StackId>) -> BTreeSet<u64> {
        stacks.iter().map(|stack| seen.hash(*stack, self.symbols)).collect()
    }

    /// The latest answer of each place, the latest first.
    fn latest<'s>(
        &self,
        samples: impl Iterator<Item = &'s Sample>,
        seen: &Seen,
    ) -> Vec<LateAnswer> {
        let mut latest: BTreeMap<&[u64], &Sample> = BTreeMap::new();
        for sample in samples {
            let known = latest.entry(seen.stack_of(sample.trigger)).or_insert(sample);
            if (sample.latency, Reverse(sample.trigger)) > (known.latency, Reverse(known.trigger)) {
                *known = sample;
            }
        }
        let mut latest: Vec<(&[u64], &Sample)> = latest.into_iter().collect();
        latest.sort_by_key(|(_, s)| (Reverse(s.latency), s.trigger));
        let mut kept: Vec<LateAnswer> = Vec::new();
        for (stack, sample) in latest {
            if kept.len() >= KEPT {
                break;
            }
            let stack: Vec<String> = stack.iter().map(|at| named(self.symbols, *at)).collect();
            if kept.iter().any(|late| place(&late.stack) == place(&stack)) {
                continue;
            }
            kept.push(LateAnswer {
                latency_ns: sample.latency,
                latency_insns: sample.path.unwrap_or(Insns(0)),
                trigger: sample.trigger,
                triggers: seen.triggers_until(sample.at + sample.latency),
                stack,
            });
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rig::{Fault, Witness};
    use sample::Loss;

    /// The outcome of a guest that was restored, and whose kernel has printed `said` since.
    fn outcome(ending: Ending, said: &str, guest_ended: Result<(), String>) -> Outcome {
        let before = "[    1.0] Oops: 0002 [#1] of the load's set-up\n";
        Outcome {
            ending,
            dropped: 0,
            report: None,
            worked: None,
            witness: Witness::default(),
            context: BTreeMap::new(),
            counters: BTreeMap::new(),
            faults: vec![Fault::Oops(before.into())],
            console: format!("{before}{said}"),
            restored_at: before.len(),
            guest_ended,
            snapshot: "key".into(),
            first_answer: None,
        }
    }

    #[test]
    fn of_a_long_console_the_last_whole_lines_are_kept() {
        let text = "ä first\nsecond\nthird\n";
        assert_eq!(end_of(text, 100), text);
        assert_eq!(end_of(text, text.len()), text);
        for bytes in 13..text.len() {
            assert_eq!(end_of(text, bytes), "second\nthird\n", "{bytes}");
        }
        assert_eq!(end_of(text, 12), "third\n");
        assert_eq!(end_of("all in one line", 4), "");
    }

    fn losses(of: &[(&str, Loss)]) -> BTreeMap<String, Losses> {
        let mut losses: BTreeMap<String, Losses> = BTreeMap::new();
        of.iter()
            .for_each(|(name, loss)| losses.entry(name.to_string()).or_default().count(*loss, 1));
        losses
    }

    #[test]
    fn a_guest_that_ended_or_broke_or_is_silent_is_not_well_and_any_other_is() {
        let well = || outcome(Ending::Whole, "", Ok(()));
        let warned = || outcome(Ending::Whole, "WARNING: CPU: 0 PID: 1 at slow.c:1\n", Ok(()));
        let superseded = losses(&[("task", Loss::Superseded)]);
        assert_eq!(death(&well(), &losses(&[])), None);
        assert_eq!(death(&warned(), &superseded), None);
        let silent = losses(&[("task", Loss::Unanswered), ("hardirq", Loss::Unanswered)]);
        let said = death(&well(), &silent).expect("nobody answers");
        assert_eq!(said, "hardirq and task did not answer within 1.00 s");
        let hung = outcome(Ending::Whole, "", Err("it still ran".into()));
        assert_eq!(death(&hung, &silent), Some(said + ", and the guest did not end"));
        let broke = outcome(Ending::Whole, "Oops: 2\n", Ok(()));
        assert_eq!(death(&broke, &losses(&[])), Some("Oops: 2".into()));
        let ended = outcome(Ending::Died("panic".into()), "", Err("it ended".into()));
        assert_eq!(death(&ended, &silent), Some("panic".into()));
        // A machine that has no time and takes long to power off says nothing of the guest.
        let slow = outcome(Ending::Whole, "", Err("it still ran".into()));
        assert_eq!(death(&slow, &losses(&[])), None);
    }
}
