// SPDX-License-Identifier: GPL-2.0-or-later
//! How far foresight has looked in a guest, and how late the answers were to triggers that fired into what it saw.

use crate::begin::{FIRST_STAGE, stage};
use crate::coincidence::Coincidence;
use crate::foreseen::ForeseenStretch;
use crate::result::TrialResult;
use sample::{Insns, Nanos, Responder, Stretch};
use std::collections::BTreeMap;

/// After each scout so many trials of foresight until the next, which looks twice as far: the last one to 51.2 s. The
/// first seven together look 12.8 s ahead, a quarter of that; so much longer is fired before the last two, which take
/// most. Chosen (docs/hunting.md, where trials begin).
const PACE: [u64; 8] = [4, 4, 4, 4, 4, 4, 24, 48];
/// Those that come as soon as this do not take long, and so many trials that fired into what the scout before saw are
/// enough. Chosen; how soon hunts that look ahead so are as late as a random minute is in docs/hunting.md.
const BRISK: u64 = 4;
const ENOUGH: u64 = 2;
/// So many answers that did not wait for their stretches, and none that did, say that those of this kind make nobody
/// late. After one alone, a stretch of 1.4 ms on preempt=full was not fired into any more: it was of one kind with a
/// stretch that made nobody late.
const NOT_LATE: usize = 2;
/// How long an answer's path is taken for, while none is known. Chosen: the middle of the paths for which coincidences
/// are kept; the first answers correct it.
const PATH: Insns = Insns(5_000);

/// What triggers met that came into stretches of a kind as those opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meetings {
    /// How much later than the end of its stretch one was answered, at the most; none, while none waited for that.
    beyond: Option<Insns>,
    /// By opener how late that one was answered which did not wait.
    before: BTreeMap<u64, Insns>,
}

impl Meetings {
    /// How late an answer may be.
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

/// How far foresight has looked in a guest, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookahead {
    /// How many scouts looked on from where the one before them ended.
    pub scouts: u32,
    /// Trials of foresight since the last of them.
    since: u64,
    /// Those of them that fired from where it looked.
    since_from_there: u64,
    /// Whether a scout saw the guest die: there is nothing to see behind that.
    dies: bool,
    /// By responder and kind of stretch.
    met: BTreeMap<String, BTreeMap<Stretch, Meetings>>,
    /// By responder how long the paths of answers were beside what they met, ascending.
    paths: BTreeMap<String, Vec<Insns>>,
}

impl Lookahead {
    /// Adds what a trial of foresight saw or did.
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
                // What is answered in its second half waited for most of it: for the end of another stretch inside.
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

    /// How late this responder may answer a trigger that meets this: its path is as long as three of four were.
    pub fn expected_of(&self, responder: Responder, coincidence: &Coincidence) -> Insns {
        let known = self.paths.get(responder.name());
        let path = known.and_then(|known| known.get(known.len() * 3 / 4)).copied().unwrap_or(PATH);
        coincidence.adds(path) + path
    }

    /// Where the next scout begins, after the warm-up: at a stage of the way to later times, so that the guest is saved
    /// there anyway.
    fn stage(&self) -> Nanos {
        stage(self.scouts)
    }

    /// Where the next scout begins and how far it looks; none where there is nothing more to see.
    pub fn next(&self) -> Option<(Nanos, Nanos)> {
        let is_over = self.dies || self.scouts as usize > PACE.len();
        (!is_over).then(|| (self.stage(), self.stage().max(FIRST_STAGE)))
    }

    /// Whether the last scout looked from there.
    pub fn is_last(&self, after: Nanos) -> bool {
        self.scouts.checked_sub(1).map(stage) == Some(after)
    }

    /// Whether that is due, whatever else foresight could do, after so many more of its trials, so many of which fire
    /// from where the last scout looked.
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

    /// Whether it is known how late this responder answers what comes into stretches of this kind.
    pub fn has_met(&self, responder: Responder, kind: Stretch) -> bool {
        self.met(responder, kind).is_some()
    }

    fn met(&self, responder: Responder, kind: Stretch) -> Option<&Meetings> {
        self.met.get(responder.name())?.get(&kind)
    }

    /// How late this responder may answer a trigger that comes into this stretch as it opens: as much later than its
    /// end as after any other of its kind. Where the responder did not wait for the ends of such stretches, or for that
    /// of another of the same opener, it will not for this one's.
    pub fn expected(&self, responder: Responder, stretch: &ForeseenStretch) -> Insns {
        let met = self.met(responder, stretch.occurrence.kind);
        met.map_or(stretch.length_insns, |met| met.expected(stretch))
    }
}
