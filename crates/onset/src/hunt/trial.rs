// SPDX-License-Identifier: GPL-2.0-or-later
//! One trial: the guest restored from its snapshot, triggered as a strategy says, watched.

use super::Strategy;
use super::finding::{Died, Late, Tried, place};
use super::foresight::{self, Foreseen};
use super::grounds::{Begin, Grounds};
use crate::failure::{Exit, Failure};
use ::rig::{Ending, Follow, Following, Generator};
use sample::{
    AIMED, Aim, Disturbance, Insns, Kind, Nanos, Observation, Occurrence, Record, ResponderSet,
    Rule, Sample, Stamp, Stretch, Virtual, When,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use trace::{Symbols, named};

/// Answers are waited for this long after the last trigger, and a lost one until the next may come.
const GRACE: Nanos = Nanos::from_millis(30);

/// Late answers of one responder that are kept of a trial, each of another place.
const KEPT: usize = 8;

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
}

/// A trial that did not come to its end because the user asked to stop.
#[derive(Debug)]
pub struct Stopped;

/// What the follower said, as far as a hunt needs it.
#[derive(Default)]
struct Seen {
    stacks: HashMap<u32, Vec<u64>>,
    openers: BTreeSet<u32>,
    /// The stack of each aimed trigger, in their order.
    aimed: Vec<u32>,
    triggers: Vec<Stamp<Virtual>>,
    /// What a scout tells.
    foreseen: Vec<Foreseen>,
    /// When measuring began.
    origin: Option<Stamp<Virtual>>,
    last: Option<Stamp<Virtual>>,
}

impl Seen {
    fn record(&mut self, record: &Record) {
        match record.kind {
            Kind::Stack => self.stacks.entry(record.value).or_default().push(record.number),
            Kind::Irqs if record.pins == 0 => self.opener(record.number as u32),
            Kind::Preempt => self.opener((record.number >> 32) as u32),
            Kind::Enter if record.pins == AIMED => self.aimed.push(record.value),
            Kind::Trigger => self.triggers.push(record.at),
            Kind::Mark => self.origin = Some(record.at),
            Kind::Stretch => self.foreseen.extend(self.foreseen(record)),
            _ => {}
        }
        if matches!(record.kind, Kind::Trigger | Kind::Pins | Kind::Irqs | Kind::End) {
            self.last = Some(record.at);
        }
    }

    fn foreseen(&self, record: &Record) -> Option<Foreseen> {
        let (key, ordinal) = (record.number, record.value);
        Some(Foreseen {
            occurrence: Occurrence { kind: Stretch::from_bit(record.pins)?, key, ordinal },
            length_insns: record.insns,
            at_ns: self.since_origin(record.at),
        })
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
        let ready = match self.grounds.at(trial.begin) {
            Err(failure) if failure.exit == Exit::Interrupted => return Ok(Err(Stopped)),
            ready => ready?,
        };
        let view = &self.views[trial.begin.guest];
        let when = trial.when.clone();
        let disturbances = trial.disturbances.clone();
        let generator = Generator { when, grace: GRACE, disturbances, ..ready.generator().clone() };
        let responders = generator.responders;
        let mut seen = Seen::default();
        let mut see = |record: &Record| seen.record(record);
        let mut samples: Vec<Sample> = Vec::new();
        let mut observe = |observation| {
            if let Observation::Sample(sample) = observation {
                samples.push(sample);
            }
            ControlFlow::Continue(())
        };
        let following = Following { follow: view.follow, see: &mut see };
        let outcome = ready.fire(generator, &mut observe, Some(following), &|_| ())?;
        let died = match outcome.ending {
            Ending::Whole => None,
            Ending::Interrupted => return Ok(Err(Stopped)),
            Ending::Died(text) => Some(text),
        };
        Ok(Ok(view.tried(trial, &seen, &samples, responders, died)))
    }
}

impl View<'_> {
    fn tried(
        &self,
        trial: &Trial,
        seen: &Seen,
        samples: &[Sample],
        responders: ResponderSet,
        died: Option<String>,
    ) -> Tried {
        let instants: Vec<Nanos> = seen.triggers.iter().map(|at| seen.since_origin(*at)).collect();
        let is_scout = matches!(&trial.when, When::Aimed(Aim { rule: Rule::Scout, .. }));
        let mut late = BTreeMap::new();
        for (rank, responder) in responders.iter().enumerate() {
            let own = samples.iter().filter(|s| usize::from(s.series.0) == rank);
            let own = self.latest(own, seen);
            if !own.is_empty() {
                late.insert(responder.name().to_string(), own);
            }
        }
        let until = late.values().flatten().map(|late| late.triggers as usize).max();
        Tried {
            number: trial.number,
            strategy: trial.strategy,
            begin: trial.begin,
            triggers: seen.triggers.len() as u64,
            virtual_ns: seen.last.map_or(Nanos(0), |at| seen.since_origin(at)),
            disturbances: trial.disturbances.clone(),
            instants: instants[..until.unwrap_or(0).min(instants.len())].to_vec(),
            late,
            seen: self.hashes(seen, &seen.openers),
            fired: self.hashes(seen, &seen.aimed.iter().copied().collect()),
            scouted: is_scout.then(|| foresight::longest(seen.foreseen.clone())),
            died: died.map(|text| Died {
                text,
                begin: trial.begin,
                instants: instants.clone(),
                disturbances: trial.disturbances.clone(),
            }),
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
