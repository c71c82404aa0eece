// SPDX-License-Identifier: GPL-2.0-or-later
//! How far foresight has looked ahead in a guest, and how late the answers were to triggers that fired into what it
//! saw.

use crate::begin::{FIRST_STAGE, stage};
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::result::TrialResult;
use sample::{Insns, Nanos, Responder, Stretch};
use std::collections::BTreeMap;

/// How many trials of foresight follow each scout before the next one, which looks twice as far. The first seven scouts
/// together look 12.8 s ahead, a fifth of what there is to see. The last three take most of the time, so many more
/// trials fire before them. The numbers are chosen (docs/hunting.md, where trials begin).
const PACE: [u64; 9] = [32, 32, 32, 32, 32, 32, 192, 384, 384];
/// How far foresight looks: as far as the random minute goes with which hunts are compared.
const HORIZON: Nanos = Nanos::from_secs(60);
/// Scouts that come after at most this many trials do not take long. Below: this many trials that fired into what the
/// scout before saw are enough. Both are chosen. docs/hunting.md says how soon hunts that look ahead in this way are as
/// late as a random minute.
const BRISK: u64 = 32;
const ENOUGH: u64 = 16;
/// This many answers that did not wait for their stretches, without one that did, say that stretches of this kind make
/// nobody late. With one answer, a hunt no longer fired into a stretch of 1.4 ms on preempt=full, because another
/// stretch of its kind made nobody late.
const NOT_LATE: usize = 2;
/// The assumed length of an answer's path while no path is known. It is chosen: the middle of the paths for which
/// coincidences are kept. The first answers correct it.
const PATH: Insns = Insns(5_000);

/// The answers to triggers that came into stretches of one kind as the stretches opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meetings {
    /// The longest time from the end of a stretch to an answer that waited for this end. `None` while no answer waited.
    beyond: Option<Insns>,
    /// For each opener, how late an answer was that did not wait for the end of the stretch.
    before: BTreeMap<u64, Insns>,
}

impl Meetings {
    /// How late an answer to a trigger in this stretch may be.
    fn expected(&self, stretch: &ForeseenStretch) -> Insns {
        let length = stretch.length_insns;
        let latest = || self.before.values().max().copied().filter(|_| !self.makes_late());
        match self.before.get(&stretch.occurrence.key).copied().or_else(latest) {
            Some(before) => length.min(before),
            None => length + self.beyond.unwrap_or_default(),
        }
    }

    fn makes_late(&self) -> bool {
        self.beyond.is_some() || self.before.len() < NOT_LATE
    }
}

/// How far foresight has looked ahead in a guest, and the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookahead {
    /// The number of scouts that looked on from the end of the scout before them.
    pub scouts: u32,
    /// The number of trials of foresight since the last scout.
    since: u64,
    /// The number of those trials that fired from where the last scout looked.
    since_from_there: u64,
    /// Whether a scout saw the guest die. Nothing can be seen after this.
    dies: bool,
    /// The meetings, by responder and kind of stretch.
    met: BTreeMap<String, BTreeMap<Stretch, Meetings>>,
    /// For each responder, the lengths of its answers' paths without what they met, rising.
    paths: BTreeMap<String, Vec<Insns>>,
}

impl Lookahead {
    /// Adds the result of a trial of foresight.
    pub fn take(&mut self, result: &TrialResult) {
        self.since += 1;
        self.since_from_there += u64::from(self.is_last(result.begin.after));
        if result.scouted.is_some() {
            self.dies |= result.died.is_some();
            if result.begin.after == self.stage() {
                self.scouts += 1;
                (self.since, self.since_from_there) = (0, 0);
            }
        }
        if let Some(encounter) = &result.encounter {
            for (responder, latency) in &encounter.answered_insns {
                let path = encounter.coincidence.path(*latency);
                let paths = self.paths.entry(responder.clone()).or_default();
                paths.insert(paths.partition_point(|known| *known < path), path);
            }
        }
        if let Some(entered) = &result.entered {
            let ForeseenStretch { occurrence, length_insns: length, .. } = entered.stretch;
            for (responder, latency) in &entered.answered_insns {
                let of = self.met.entry(responder.clone()).or_default();
                let met = of.entry(occurrence.kind).or_default();
                // An answer in the second half of the stretch waited for most of it: for the end of another stretch
                // inside.
                if *latency >= length / 2 {
                    let beyond = latency.saturating_sub(length);
                    met.beyond = met.beyond.max(Some(beyond));
                    met.before.remove(&occurrence.key);
                } else {
                    met.before.insert(occurrence.key, *latency);
                }
            }
        }
    }

    /// How late this responder may answer a trigger that meets this. Its path is assumed as long as three of four known
    /// ones.
    pub fn expected_of(&self, responder: Responder, coincidence: &Coincidence) -> Insns {
        let known = self.paths.get(responder.name());
        let path = known.and_then(|known| known.get(known.len() * 3 / 4)).copied().unwrap_or(PATH);
        coincidence.adds(path) + path
    }

    /// The time after the warm-up at which the next scout begins. It is a stage on the way to later times, so the guest
    /// is saved there anyway.
    fn stage(&self) -> Nanos {
        stage(self.scouts)
    }

    /// Where the next scout begins and how far it looks. `None` if there is nothing more to see.
    pub fn next(&self) -> Option<(Nanos, Nanos)> {
        let is_over = self.dies || self.scouts as usize > PACE.len();
        let begin = self.stage();
        (!is_over).then(|| (begin, begin.max(FIRST_STAGE).min(HORIZON - begin)))
    }

    /// Whether the last scout looked from this time.
    pub fn is_last(&self, after: Nanos) -> bool {
        self.scouts.checked_sub(1).map(stage) == Some(after)
    }

    /// Whether the next scout is due, whatever else foresight could do. `more` trials of foresight come before it, and
    /// `more_from_there` of them fire from where the last scout looked.
    pub fn is_due(&self, more: u64, more_from_there: u64) -> bool {
        let is_enough = self.since_from_there + more_from_there >= ENOUGH;
        self.since + more >= self.pace() || self.is_brisk() && is_enough
    }

    /// Whether the next scout does not take long.
    pub fn is_brisk(&self) -> bool {
        self.pace() <= BRISK
    }

    fn pace(&self) -> u64 {
        let pace = self.scouts.checked_sub(1).and_then(|before| PACE.get(before as usize));
        pace.copied().unwrap_or_default()
    }

    /// Whether it is known how late this responder answers triggers that come into stretches of this kind.
    pub fn has_met(&self, responder: Responder, kind: Stretch) -> bool {
        self.met(responder, kind).is_some()
    }

    fn met(&self, responder: Responder, kind: Stretch) -> Option<&Meetings> {
        self.met.get(responder.name())?.get(&kind)
    }

    /// How late this responder may answer a trigger that comes into this stretch as it opens. The answer comes as long
    /// after the stretch's end as after any other of its kind. If the responder did not wait for the ends of such
    /// stretches, or for that of another stretch of the same opener, it will not wait for this one's.
    pub fn expected(&self, responder: Responder, stretch: &ForeseenStretch) -> Insns {
        let met = self.met(responder, stretch.occurrence.kind);
        met.map_or(stretch.length_insns, |met| met.expected(stretch))
    }
}
