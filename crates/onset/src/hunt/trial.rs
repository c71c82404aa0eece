// SPDX-License-Identifier: GPL-2.0-or-later
//! One trial: the guest restored from its snapshot, triggered as a strategy says, watched.

use super::Strategy;
use super::coincidences::{Coincidence, Timeline};
use super::finding::{Died, Encounter, Entered, Late, Tried, place};
use super::foresight::{self, Foreseen};
use super::grounds::{Begin, Grounds};
use crate::failure::{Exit, Failure};
use ::rig::{Ending, Fault, Follow, Following, Generator, Outcome};
use sample::{
    AIMED, Aim, Disturbance, Insns, Kind, Losses, Nanos, Observation, Occurrence, Record,
    ResponderSet, Rule, Sample, Stamp, Stretch, Virtual, When,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use trace::{Symbols, is_interrupt_gate, named};

/// Answers are waited for this long after the last trigger, and a missing one until the next may come: as long as in an
/// experiment that says nothing of it. What is not answered by then is a find of its own.
const GRACE: Nanos = Nanos::from_millis(1_000);

/// Late answers of one responder that are kept of a trial, each of another place.
const KEPT: usize = 8;

/// An interrupt that comes so soon after interrupts were unmasked had waited for that.
const AT_ONCE: Insns = Insns(2);

/// The end of what a guest's console said in a trial, of which so much is kept where it died: a hundred times an oops.
const CONSOLE_BYTES_MAX: usize = 64 << 10;

/// What all trials of a hunt have in common.
pub struct Field<'a, 'bench> {
    /// The guests, where trials begin, and their triggers but for when they come.
    pub grounds: &'a Grounds<'bench>,
    /// What is seen of each guest.
    pub views: Vec<View<'a>>,
}

/// What is seen of a guest.
pub struct View<'a> {
    /// How its kernel is followed.
    pub follow: &'a Follow,
    /// Names of addresses.
    pub symbols: &'a (dyn Symbols + Sync),
}

/// What to do in a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its number.
    pub number: u64,
    /// Who chose.
    pub strategy: Strategy,
    /// Where it begins.
    pub begin: Begin,
    /// When to trigger, from there.
    pub when: When,
    /// What disturbs meanwhile.
    pub disturbances: Vec<Disturbance>,
    /// What the first trigger comes into as it opens, where a scout saw that.
    pub enters: Option<Foreseen>,
    /// What the first trigger meets, where a scout saw that.
    pub meets: Option<Coincidence>,
}

impl Trial {
    /// How far it looks, where it is a scout.
    fn looks_ahead(&self) -> Option<Nanos> {
        match &self.when {
            When::Aimed(Aim { rule: Rule::Scout, until, .. }) => Some(*until),
            _ => None,
        }
    }
}

/// A trial that did not come to its end because the user asked to stop, or because the hunt's time was up.
#[derive(Debug)]
pub struct Stopped;

/// What was asked for, or that it was to stop, which is no failure.
fn unless_stopped<T>(asked: Result<T, Failure>) -> Result<Result<T, Stopped>, Failure> {
    match asked {
        Err(failure) if failure.exit == Exit::Interrupted => Ok(Err(Stopped)),
        asked => asked.map(Ok),
    }
}

/// What the follower said, as far as a hunt needs it.
#[derive(Default)]
struct Seen {
    /// Virtual nanoseconds per instruction, as a power of two.
    shift: u8,
    stacks: HashMap<u32, Vec<u64>>,
    openers: BTreeSet<u32>,
    /// The stack of each aimed trigger, in their order.
    aimed: Vec<u32>,
    triggers: Vec<Stamp<Virtual>>,
    /// What a scout tells.
    foreseen: Vec<Foreseen>,
    /// Of these, what had interrupts masked until now, or until an interrupt that had waited for its end; with the instructions
    /// until it opened.
    followed: Vec<(usize, Insns)>,
    /// Instructions until interrupts were masked.
    masked: Insns,
    /// Until when they were.
    unmasked: Option<Stamp<Virtual>>,
    /// What a scout sees of interrupts.
    timeline: Timeline,
    /// When measuring began.
    origin: Option<Stamp<Virtual>>,
    last: Option<Stamp<Virtual>>,
}

impl Seen {
    fn record(&mut self, record: &Record) {
        match record.kind {
            Kind::Stack => self.stacks.entry(record.value).or_default().push(record.number),
            Kind::Irqs if record.pins == 0 => {
                self.opener(record.number as u32);
                self.unmasked(record);
            }
            Kind::Irqs => self.masked(record),
            Kind::Preempt => self.opener((record.number >> 32) as u32),
            Kind::Enter if record.pins == AIMED => self.aimed.push(record.value),
            Kind::Trigger => self.triggers.push(record.at),
            Kind::Mark => self.origin = Some(record.at),
            Kind::Stretch => self.foresee(record),
            _ => {}
        }
        if matches!(record.kind, Kind::Trigger | Kind::Pins | Kind::Irqs | Kind::End) {
            self.last = Some(record.at);
        }
    }

    fn foresee(&mut self, record: &Record) {
        let Some(kind) = Stretch::from_bit(record.pins) else { return };
        let (key, ordinal) = (record.number, record.value);
        if kind == Stretch::IrqsOff {
            self.followed.push((self.foreseen.len(), self.masked));
        }
        self.foreseen.push(Foreseen {
            occurrence: Occurrence { kind, key, ordinal },
            length_insns: record.insns,
            at_ns: self.since_origin(record.at),
        });
    }

    /// Interrupts are masked from then on: if by one that waited for it, those stretches go on that ended just before.
    fn masked(&mut self, record: &Record) {
        self.masked = record.insns;
        // By the clock, which also goes on where the guest waits for an interrupt.
        let at_once = Nanos(AT_ONCE.0 << self.shift);
        let waited = |end: Stamp<Virtual>| record.at.since(end).is_some_and(|gap| gap <= at_once);
        if !self.unmasked.is_some_and(waited) {
            self.followed.clear();
        }
    }

    fn unmasked(&mut self, record: &Record) {
        self.unmasked = Some(record.at);
        for (index, opened) in &self.followed {
            let stretch = &mut self.foreseen[*index];
            let until_now = Insns(record.insns.0.saturating_sub(opened.0));
            stretch.length_insns = until_now.max(stretch.length_insns);
        }
    }

    fn since_origin(&self, at: Stamp<Virtual>) -> Nanos {
        self.origin.and_then(|origin| at.since(origin)).unwrap_or_default()
    }

    /// What had opened the stretch that this trigger was aimed at; empty for one that was not.
    fn stack_of(&self, trigger: u64) -> &[u64] {
        let stack = self.aimed.get(trigger as usize).and_then(|stack| self.stacks.get(stack));
        stack.map_or(&[], Vec::as_slice)
    }

    /// How many triggers there were until then, since measuring began.
    fn triggers_until(&self, end_ns: u64) -> u64 {
        let until = |at: &&Stamp<Virtual>| self.since_origin(**at).0 <= end_ns;
        self.triggers.iter().take_while(until).count() as u64
    }

    fn opener(&mut self, stack: u32) {
        if stack != 0 {
            self.openers.insert(stack);
        }
    }

    /// Stands for a stack in any guest of the same kernel: their modules may lie elsewhere, so it is made of names.
    fn hash(&self, stack: u32, symbols: &dyn Symbols) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for frame in self.stacks.get(&stack).into_iter().flatten() {
            hasher.update(named(symbols, *frame).as_bytes()).update(b"\n");
        }
        let bytes = hasher.finalize();
        u64::from_le_bytes(*bytes.as_bytes().first_chunk().expect("it has 32 bytes"))
    }
}

impl Field<'_, '_> {
    /// Runs it.
    ///
    /// # Errors
    /// Those of the rig; a guest that dies is none, but what was found.
    pub fn run(&self, trial: &Trial) -> Result<Result<Tried, Stopped>, Failure> {
        let Ok(ready) = unless_stopped(self.grounds.at(trial.begin))? else {
            return Ok(Err(Stopped));
        };
        let view = &self.views[trial.begin.guest];
        let when = trial.when.clone();
        let disturbances = trial.disturbances.clone();
        let generator = Generator { when, grace: GRACE, disturbances, ..ready.generator().clone() };
        let responders = generator.responders;
        let shift = ready.guest().shift;
        let mut seen = Seen { shift, timeline: Timeline::new(shift), ..Seen::default() };
        let is_interrupt = |at| is_interrupt_gate(&named(view.symbols, at));
        let mut see = |record: &Record| {
            seen.record(record);
            if trial.looks_ahead().is_some() {
                seen.timeline.record(record, is_interrupt);
            }
        };
        let mut answers = Answered::default();
        let mut observe = |observation| {
            match observation {
                Observation::Sample(sample) => answers.samples.push(sample),
                Observation::Loss(series, loss, n) => {
                    let responder = responders.iter().nth(series.index());
                    let name = responder.map_or_else(String::new, |r| r.name().into());
                    answers.losses.entry(name).or_default().count(loss, n);
                }
            }
            ControlFlow::Continue(())
        };
        let following = Following { follow: view.follow, see: &mut see };
        let done = match trial.looks_ahead() {
            Some(until) if self.grounds.leads(trial.begin, until) => {
                ready.advance(until, generator, following)
            }
            _ => ready.fire(generator, &mut observe, Some(following), &|_| ()),
        };
        let Ok(outcome) = unless_stopped(done)? else { return Ok(Err(Stopped)) };
        match &outcome.ending {
            Ending::Interrupted => return Ok(Err(Stopped)),
            Ending::Failed(why) => return Err(failed(trial.number, why)),
            Ending::Whole | Ending::Died(_) => {}
        }
        let way = self.grounds.way(&ready, trial.begin);
        Ok(Ok(view.tried(trial, way, &seen, answers, responders, outcome)))
    }
}

/// What the responders answered, and what not.
#[derive(Default)]
struct Answered {
    samples: Vec<Sample>,
    losses: BTreeMap<String, Losses>,
}

/// The end of a text, in whole lines, where it has more bytes than this.
fn end_of(text: &str, bytes_max: usize) -> &str {
    let Some(cut) = text.len().checked_sub(bytes_max).filter(|cut| *cut > 0) else { return text };
    let line = text.as_bytes()[cut - 1..].iter().position(|byte| *byte == b'\n');
    &text[line.map_or(text.len(), |line| cut + line)..]
}

/// A machine that failed says nothing of its guest, so that there is no trial.
fn failed(trial: u64, why: &str) -> Failure {
    Failure::unavailable(format!("the machine of trial {trial} failed, not its guest: {why}"))
}

/// Why a guest is not taken for well: it ended, its kernel said in this trial that something broke, or a responder is silent for as long as
/// is waited.
fn death(outcome: &Outcome, losses: &BTreeMap<String, Losses>) -> Option<String> {
    if let Ending::Died(text) = &outcome.ending {
        return Some(text.clone());
    }
    // What it had said before was none of this trial's doing.
    let faults = outcome.faults_since();
    if let Some(fault) = faults.iter().find(|f| !matches!(f, Fault::Warning(_))) {
        return Some(fault.text().into());
    }
    let silent = losses.iter().filter(|(_, losses)| losses.unanswered > 0);
    let silent: Vec<&str> = silent.map(|(name, _)| name.as_str()).collect();
    let hung = if outcome.guest_ended.is_err() { ", and the guest did not end" } else { "" };
    let silent = (!silent.is_empty()).then(|| silent.join(" and "));
    silent.map(|names| format!("{names} did not answer within {GRACE}{hung}"))
}

impl View<'_> {
    fn tried(
        &self,
        trial: &Trial,
        way_ns: Nanos,
        seen: &Seen,
        answered: Answered,
        responders: ResponderSet,
        outcome: Outcome,
    ) -> Tried {
        let Answered { samples, losses } = answered;
        let instants: Vec<Nanos> = seen.triggers.iter().map(|at| seen.since_origin(*at)).collect();
        let died = death(&outcome, &losses).map(|text| Died {
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
        Tried {
            number: trial.number,
            strategy: trial.strategy,
            begin: trial.begin,
            snapshot: outcome.snapshot,
            way_ns,
            triggers: seen.triggers.len() as u64,
            virtual_ns: seen.last.map_or(Nanos(0), |at| seen.since_origin(at)),
            disturbances: trial.disturbances.clone(),
            instants: instants[..until.unwrap_or(0).min(instants.len())].to_vec(),
            late,
            losses,
            seen: self.hashes(seen, &seen.openers),
            fired: self.hashes(seen, &seen.aimed.iter().copied().collect()),
            entered: trial
                .enters
                .map(|stretch| Entered { stretch, answered_insns: answered_insns() }),
            encounter: trial
                .meets
                .clone()
                .map(|coincidence| Encounter { coincidence, answered_insns: answered_insns() }),
            scouted: trial.looks_ahead().map(|_| foresight::longest(seen.foreseen.clone())),
            coincidences: seen.timeline.coincidences(),
            died,
        }
    }

    fn hashes(&self, seen: &Seen, stacks: &BTreeSet<u32>) -> BTreeSet<u64> {
        stacks.iter().map(|stack| seen.hash(*stack, self.symbols)).collect()
    }

    /// The latest answer of each place, the latest first.
    fn latest<'s>(&self, samples: impl Iterator<Item = &'s Sample>, seen: &Seen) -> Vec<Late> {
        let mut latest: BTreeMap<&[u64], &Sample> = BTreeMap::new();
        for sample in samples {
            let known = latest.entry(seen.stack_of(sample.trigger)).or_insert(sample);
            if (sample.latency, Reverse(sample.trigger)) > (known.latency, Reverse(known.trigger)) {
                *known = sample;
            }
        }
        let mut latest: Vec<(&[u64], &Sample)> = latest.into_iter().collect();
        latest.sort_by_key(|(_, s)| (Reverse(s.latency), s.trigger));
        let mut kept: Vec<Late> = Vec::new();
        for (stack, sample) in latest {
            if kept.len() >= KEPT {
                break;
            }
            let stack: Vec<String> = stack.iter().map(|at| named(self.symbols, *at)).collect();
            if kept.iter().any(|late| place(&late.stack) == place(&stack)) {
                continue;
            }
            kept.push(Late {
                latency_ns: sample.latency,
                latency_insns: sample.path.unwrap_or(Insns(0)),
                trigger: sample.trigger,
                triggers: seen.triggers_until(sample.at.0 + sample.latency.0),
                stack,
            });
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::rig::Witness;
    use sample::Loss;

    /// Of a guest that was restored, and has said `said` since.
    fn outcome(ending: Ending, said: &str, guest_ended: Result<(), String>) -> Outcome {
        let before = "[    1.0] Oops: 0002 [#1] of the load's set-up\n";
        Outcome {
            ending,
            dropped: 0,
            report: None,
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
    fn an_interrupt_that_waited_for_the_end_of_a_stretch_is_part_of_it() {
        let irqs = |pins, at| Record { pins, ..record(Kind::Irqs, at) };
        let stretch = |from, ordinal, length| Record {
            pins: Stretch::IrqsOff as u8,
            value: ordinal,
            insns: Insns(length),
            ..record(Kind::Stretch, from)
        };
        let mut seen = Seen::default();
        let masked = [(1_000, 6_000), (6_001, 9_000), (9_003, 14_000)];
        seen.record(&record(Kind::Mark, 500));
        for (ordinal, (from, to)) in masked.into_iter().enumerate() {
            seen.record(&irqs(1, from));
            seen.record(&stretch(from, ordinal as u32, to - from));
            seen.record(&irqs(0, to));
        }
        let lengths = seen.foreseen.iter().map(|f| f.length_insns.0).collect::<Vec<_>>();
        assert_eq!(lengths, [8_000, 2_999, 4_997], "the third came too late to have waited");
        let begun = seen.foreseen.iter().map(|f| f.at_ns.0).collect::<Vec<_>>();
        assert_eq!(begun, [500, 5_501, 8_503]);
    }

    #[test]
    fn a_stretch_is_as_long_as_its_instructions_however_long_one_takes() {
        let mut seen = Seen { shift: 3, ..Seen::default() };
        // In instructions; the last interrupt had waited, the one before it came while the guest did nothing for a while.
        let stretches = [(100, 700, 0), (702, 900, 5_000), (902, 1_000, 5_000)];
        let told = |kind, pins, insns: u64, idle: u64| Record {
            pins,
            insns: Insns(insns),
            ..record(kind, (insns << 3) + idle)
        };
        seen.record(&told(Kind::Mark, 2, 50, 0));
        for (from, to, idle) in stretches {
            let stretch = told(Kind::Stretch, Stretch::IrqsOff as u8, from, idle);
            seen.record(&told(Kind::Irqs, 1, from, idle));
            seen.record(&Record { insns: Insns(to - from), ..stretch });
            seen.record(&told(Kind::Irqs, 0, to, idle));
        }
        let lengths = seen.foreseen.iter().map(|f| f.length_insns.0).collect::<Vec<_>>();
        assert_eq!(lengths, [600, 298, 98]);
        let begun = seen.foreseen.iter().map(|f| f.at_ns.0).collect::<Vec<_>>();
        assert_eq!(begun, [400, 5_216 + 5_000, 6_816 + 5_000]);
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

    fn record(kind: Kind, at: u64) -> Record {
        let at = Stamp::from_ns(at);
        Record { kind, pins: 0, value: 0, number: 0, at, insns: Insns(at.ns()) }
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
        // That a machine without time for it takes long to power off says nothing of the guest.
        let slow = outcome(Ending::Whole, "", Err("it still ran".into()));
        assert_eq!(death(&slow, &losses(&[])), None);
    }
}
