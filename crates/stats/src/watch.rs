// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts how often the events of a series miss a deadline, while the samples arrive.
//!
//! Events are numbered from 0, and a lost event has a number too, so a number without a sample is a lost event. Which
//! kind of loss it is follows from the counts of losses alone, and these are known at the end. Each series of events is
//! therefore counted in three [views](Views) at once: lost events missed, met where the answer that stands for them met
//! the deadline, and all met. At the end the losses say which of them is the worst and which the best that can be true.
//!
//! Memory is constant. Samples may come before those of up to [`EARLY_MAX`] others that have smaller numbers.

use crate::Worst;
use crate::deadline::{Deadline, FIRM_MAX, Tolerance};
use sample::{Losses, Nanos, Quantity, Sample, SeriesName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How many samples are kept that came before one with a smaller number.
pub const EARLY_MAX: usize = 4096;

/// Consecutive events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Passage {
    /// The number of the first of them.
    pub from: u64,
    /// How many of them miss the deadline.
    pub missed: u64,
}

/// Counts misses of events that come in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    events: u64,
    missed: u64,
    first: Option<u64>,
    /// The consecutive misses up to the last one.
    row: Passage,
    /// The first of the longest rows.
    longest: Option<Passage>,
    window: Option<Window>,
}

impl Run {
    fn new(tolerance: Tolerance) -> Run {
        let window = match tolerance {
            Tolerance::Firm { of, .. } => Some(Window::new(of.min(FIRM_MAX))),
            _ => None,
        };
        let row = Passage { from: 0, missed: 0 };
        Run { events: 0, missed: 0, first: None, row, longest: None, window }
    }

    /// Adds so many events that all met or all missed the deadline.
    fn push(&mut self, n: u64, is_missed: bool) {
        if n == 0 {
            return;
        }
        let at = self.events;
        // What a damaged file says may add up to more than there can be.
        self.events = at.saturating_add(n);
        if !is_missed {
            return;
        }
        self.missed = self.missed.saturating_add(n);
        self.first.get_or_insert(at);
        if self.row.from + self.row.missed != at {
            self.row = Passage { from: at, missed: 0 };
        }
        self.row.missed += self.events - at;
        if self.longest.is_none_or(|longest| self.row.missed > longest.missed) {
            self.longest = Some(self.row);
        }
        if let Some(window) = &mut self.window {
            window.miss(at, self.events);
        }
    }

    /// The worst that happened, by what the tolerance is about.
    fn worst(&self) -> Option<Passage> {
        match &self.window {
            Some(window) => window.worst,
            None => self.longest,
        }
    }
}

/// The misses among the last `k` events.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    k: u64,
    /// Rows of misses, from and to (without it), in the order of time.
    rows: VecDeque<(u64, u64)>,
    /// How many misses they are.
    inside: u64,
    /// `k` events with the most misses.
    worst: Option<Passage>,
}

impl Window {
    fn new(k: u64) -> Window {
        Window { k, rows: VecDeque::new(), inside: 0, worst: None }
    }

    /// Adds the misses of the events `from` to `to` (without it), all after those before.
    fn miss(&mut self, from: u64, to: u64) {
        match self.rows.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.rows.push_back((from, to)),
        }
        self.inside += to - from;
        let row = self.rows.back().map_or(from, |row| row.0);
        let begin = to.saturating_sub(self.k);
        while let Some(first) = self.rows.front_mut() {
            let gone = first.1.min(begin).saturating_sub(first.0);
            self.inside -= gone;
            first.0 += gone;
            if first.0 < first.1 {
                break;
            }
            self.rows.pop_front();
        }
        // As misses are added one by one, the number inside does not fall: each that leaves makes room for one.
        if self.worst.is_none_or(|worst| self.inside > worst.missed) {
            let from = if self.inside == self.k { row } else { begin };
            self.worst = Some(Passage { from, missed: self.inside });
        }
    }
}

/// The events as they may have been.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Views {
    /// Every lost event missed the deadline.
    missed: Run,
    /// A lost event met it if the sample before it did. This is so of an event that was superseded: it was answered
    /// together with that sample, and waited less.
    covered: Run,
    /// Every lost event met it.
    met: Run,
}

impl Views {
    fn answered(&mut self, is_late: bool) {
        for run in [&mut self.missed, &mut self.covered, &mut self.met] {
            run.push(1, is_late);
        }
    }

    fn lost(&mut self, n: u64, is_covered: bool) {
        self.missed.push(n, true);
        self.covered.push(n, !is_covered);
        self.met.push(n, false);
    }
}

/// Counts how often a deadline is missed.
#[derive(Clone, Debug)]
pub struct MissCounter<Q = Nanos> {
    deadline: Deadline<Q>,
    /// The number of the next event that no view has.
    next: u64,
    /// Samples that came before one with a smaller number: whether they are late.
    early: BTreeMap<u64, bool>,
    /// Samples whose number came before, or so late that it was taken for lost.
    disordered: u64,
    /// Whether the last sample met the deadline.
    is_covered: bool,
    answered: u64,
    lost: u64,
    views: Views,
    latest: Option<Worst<Q>>,
}

impl<Q: Quantity> MissCounter<Q> {
    /// A counter of no event.
    pub fn new(deadline: Deadline<Q>) -> Self {
        let run = || Run::new(deadline.tolerance);
        let views = Views { missed: run(), covered: run(), met: run() };
        MissCounter {
            deadline,
            next: 0,
            early: BTreeMap::new(),
            disordered: 0,
            is_covered: false,
            answered: 0,
            lost: 0,
            views,
            latest: None,
        }
    }

    /// Adds a sample. One that is beyond [`Quantity::LARGEST`] is none: its series counts it as tainted.
    pub fn record(&mut self, sample: &Sample<Q>) {
        let number = sample.latency.raw();
        if number > Q::LARGEST {
            return;
        }
        self.answered += 1;
        let (trigger, bound) = (sample.trigger, self.deadline.time.raw());
        let is_late = if Q::MORE_IS_BETTER { number < bound } else { number > bound };
        let this = Worst::from(sample);
        if is_late && self.latest.is_none_or(|latest| this.rank() < latest.rank()) {
            self.latest = Some(this);
        }
        if trigger < self.next {
            self.disordered += 1;
        } else if trigger == self.next && self.early.is_empty() {
            self.answer(trigger, is_late);
        } else {
            self.disordered += u64::from(self.early.insert(trigger, is_late).is_some());
            self.drain(EARLY_MAX);
        }
    }

    /// Hands on the samples whose turn it is, and more of them until no more than `kept` wait.
    fn drain(&mut self, kept: usize) {
        while let Some(first) = self.early.first_entry() {
            if *first.key() != self.next && self.early.len() <= kept {
                return;
            }
            let (number, is_late) = self.early.pop_first().expect("it has a first");
            self.answer(number, is_late);
        }
    }

    fn answer(&mut self, number: u64, is_late: bool) {
        let lost = number - self.next;
        self.lost += lost;
        self.views.lost(lost, self.is_covered);
        self.views.answered(is_late);
        self.is_covered = !is_late;
        self.next = number.saturating_add(1);
    }

    /// What was counted. `losses` are those of the series, in the whole run.
    pub fn tally(&self, responder: &SeriesName, losses: &Losses) -> MissTally<Q> {
        let mut all = self.clone();
        all.drain(0);
        let Losses { unanswered, superseded, overrun, tainted, .. } = *losses;
        let lost =
            [unanswered, superseded, overrun, tainted].into_iter().fold(0, u64::saturating_add);
        let trailing = lost.saturating_sub(all.lost);
        let late = MissCounts::of(&all.views.met);
        // What was never answered comes last: an answer after it would have answered it.
        let unanswered_at_the_end = unanswered.saturating_sub(all.lost).min(trailing);
        all.views.missed.push(trailing, true);
        all.views.covered.push(trailing, !all.is_covered);
        all.views.met.push(trailing - unanswered_at_the_end, false);
        all.views.met.push(unanswered_at_the_end, true);
        let at_worst = match lost == superseded {
            true => &all.views.covered,
            false => &all.views.missed,
        };
        let at_best = match lost == unanswered {
            true => &all.views.missed,
            false => &all.views.met,
        };
        MissTally {
            responder: responder.clone(),
            deadline: self.deadline,
            is_ordered: all.disordered == 0 && all.lost <= lost,
            answered: all.answered,
            late,
            // Wherever they were, those that were never answered missed it.
            at_best: MissCounts {
                missed: at_best.missed.max(late.missed.saturating_add(unanswered)),
                ..MissCounts::of(at_best)
            },
            at_worst: MissCounts::of(at_worst),
            first: at_worst.first,
            latest: all.latest,
        }
    }
}

/// What a view counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissCounts {
    /// Events.
    pub events: u64,
    /// Those that missed the deadline.
    pub missed: u64,
    /// The longest row of consecutive misses, the first of these; for an (m,k)-firm deadline the `k` events with the
    /// most misses.
    pub worst: Option<Passage>,
}

impl MissCounts {
    fn of(run: &Run) -> MissCounts {
        MissCounts { events: run.events, missed: run.missed, worst: run.worst() }
    }

    /// Whether these events miss the deadline more often than it tolerates. `events` are all of the run.
    pub fn exceed(&self, tolerance: Tolerance, events: u64) -> bool {
        let worst = self.worst.map_or(0, |worst| worst.missed);
        match tolerance {
            Tolerance::Misses { most } => self.missed > most,
            Tolerance::Share { most, of } => {
                u128::from(self.missed) * u128::from(of) > u128::from(most) * u128::from(events)
            }
            Tolerance::Consecutive { most } => worst > most,
            // No limit that is read has `least` above `of`, but a file may say anything.
            Tolerance::Firm { least, of } => worst > of.saturating_sub(least),
        }
    }
}

/// How often a series missed a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissTally<Q = Nanos> {
    /// Whose.
    pub responder: SeriesName,
    /// Which deadline.
    pub deadline: Deadline<Q>,
    /// Whether each sample has its place. It is not so if numbers came twice, or out of order from too far away, or if
    /// more numbers are missing than losses were counted.
    pub is_ordered: bool,
    /// The samples.
    pub answered: u64,
    /// The samples that came too late, and no loss.
    pub late: MissCounts,
    /// The fewest misses that can have been: a lost event met the deadline, unless it was never answered.
    pub at_best: MissCounts,
    /// The most misses that can have been. A lost event missed the deadline, unless it was answered together with one
    /// that met it.
    pub at_worst: MissCounts,
    /// The first event that missed it, at worst.
    pub first: Option<u64>,
    /// The latest of the late answers, the first of these.
    pub latest: Option<Worst<Q>>,
}
