// SPDX-License-Identifier: GPL-2.0-or-later
//! From triggers and pin edges to samples and losses.
//!
//! The rule. A responder toggles its pin once per answer. An edge answers **every** trigger that the
//! responder had been told of and not answered: the *oldest* of them gives the sample (so that a wait
//! over several periods is reported at its full length), the younger ones count as `superseded`. What a
//! responder has been told of is what the hard handler had taken, which the `hardirq` pin shows; where
//! that responder is not active, every trigger raised before the edge is assumed to have been taken,
//! and an answer to one that was not shows as a `spurious` edge.
//!
//! What it cannot see: whether an edge was made by the mechanism that owns the pin.

use crate::{
    ALL_RESPONDERS, At, Insns, Nanos, Quantity, Responder, ResponderSet, SeriesId, Stamp, Virtual,
};
use core::ops::ControlFlow;

/// One measured latency: when, whose, and how long. In a series of another quantity it is one number of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<Q = Nanos> {
    /// Who answered.
    pub series: SeriesId,
    /// Number of the trigger that was answered, from 0.
    pub trigger: u64,
    /// When the trigger was raised, since the beginning of the measuring phase.
    pub at: Nanos,
    /// From the trigger to the edge; in a series of another quantity the number that was measured.
    pub latency: Q,
    /// Instructions that the vCPU completed in between; less than the latency where it slept. `None` where
    /// nobody counts them: on the clocks `monotonic` and `tsc`.
    pub path: Option<Insns>,
}

impl Sample {
    /// The same sample of a series of quantity `Q`. Borders carry the bare number alone.
    pub fn measuring<Q: Quantity>(self) -> Sample<Q> {
        let Sample { series, trigger, at, latency, path } = self;
        Sample { series, trigger, at, latency: Q::from_raw(latency.0), path }
    }
}

/// What was not measured, by kind. The discriminant is its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Loss {
    /// The trigger was never answered before the run ended.
    Unanswered = 0,
    /// The trigger was answered together with an older one whose latency is the sample; for a probe, a
    /// period that passed while an earlier one was still being answered (an overrun).
    Superseded = 1,
    /// An edge with no trigger to answer.
    Spurious = 2,
    /// The edge came before its trigger, or fewer instructions had been completed, or a clock went
    /// backwards: impossible.
    Tainted = 3,
    /// The channel had no room.
    Dropped = 4,
    /// A period or an event passed without a measurement of its own, and nothing bounds what it would have
    /// been: the probe itself was kept from measuring. Not `Superseded`, whose delay is at most that of the
    /// sample which stands for it.
    Overrun = 5,
}

impl Loss {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Loss; 6] = [
        Loss::Unanswered,
        Loss::Superseded,
        Loss::Spurious,
        Loss::Tainted,
        Loss::Dropped,
        Loss::Overrun,
    ];
}

/// Counts of every kind of loss of one responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Losses {
    /// Triggers without an answer when the run ended.
    pub unanswered: u64,
    /// Triggers or periods answered together with an older one, whose latency is the sample; of a probe also events
    /// that it left out (docs/methods/probes.md).
    pub superseded: u64,
    /// Edges with no trigger to answer.
    pub spurious: u64,
    /// Answers with an impossible time, kept out and counted.
    pub tainted: u64,
    /// Periods that passed without a measurement of their own, late by an unknown time.
    pub overrun: u64,
    /// Records that the channel had no room for; known for the run, so the same for each responder.
    pub dropped: u64,
}

impl Losses {
    /// Counts one loss.
    pub fn count(&mut self, loss: Loss, n: u64) {
        let count = match loss {
            Loss::Unanswered => &mut self.unanswered,
            Loss::Superseded => &mut self.superseded,
            Loss::Spurious => &mut self.spurious,
            Loss::Tainted => &mut self.tainted,
            Loss::Dropped => &mut self.dropped,
            Loss::Overrun => &mut self.overrun,
        };
        // What somebody else wrote may say anything.
        *count = count.saturating_add(n);
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.named().iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Adds those of another shard of the same measurement.
    pub fn merge(&mut self, more: &Losses) {
        Loss::ALL.into_iter().zip(more.of_all()).for_each(|(loss, n)| self.count(loss, n));
    }

    /// Counts in the order of [`Loss::ALL`].
    pub fn of_all(&self) -> [u64; 6] {
        let Losses { unanswered, superseded, spurious, tainted, dropped, overrun } = *self;
        [unanswered, superseded, spurious, tainted, dropped, overrun]
    }

    /// Names and counts in a fixed order, for tables.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("unanswered", self.unanswered),
            ("superseded", self.superseded),
            ("spurious", self.spurious),
            ("tainted", self.tainted),
            ("overrun", self.overrun),
            ("dropped", self.dropped),
        ]
    }
}

/// What the matching of one edge yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// An answer.
    Sample(Sample),
    /// Something lost, with how often.
    Loss(SeriesId, Loss, u64),
}

/// Takes observations, until it breaks.
pub type Observer<'a> = dyn FnMut(Observation) -> ControlFlow<()> + 'a;

/// The matcher's state. Of a fixed size, however many triggers wait for an answer: of those that an edge
/// answers only the oldest is measured.
#[derive(Clone)]
pub struct Answers {
    active: ResponderSet,
    origin: Stamp<Virtual>,
    pins: u16,
    /// Triggers raised so far.
    raised: u64,
    /// Triggers below this number have been taken by the hard handler.
    taken: u64,
    /// Trigger number `taken`, where it has been raised.
    untaken: Option<At>,
    /// Per pin.
    waits: [Wait; ALL_RESPONDERS.len()],
}

/// What a responder has not answered.
#[derive(Clone, Copy, Default)]
struct Wait {
    /// Number of the first such trigger.
    first: u64,
    /// That trigger, where it has been raised.
    trigger: Option<At>,
}

impl Answers {
    /// A matcher for the `active` responders, whose series are numbered by their
    /// [rank](ResponderSet::rank). Times are reported since `origin`; `pins` is the level of
    /// the data pins at that point.
    pub fn new(active: ResponderSet, origin: Stamp<Virtual>, pins: u16) -> Self {
        let waits = [Wait::default(); ALL_RESPONDERS.len()];
        Answers { active, origin, pins, raised: 0, taken: 0, untaken: None, waits }
    }

    /// Begins anew where something is missing: what was waiting then cannot be matched. The data pins have this
    /// `level`, and the next trigger is number `raised`.
    pub fn resume(&mut self, level: u16, raised: u64) {
        self.pins = level;
        (self.raised, self.taken, self.untaken) = (raised, raised, None);
        self.waits = [Wait { first: raised, trigger: None }; ALL_RESPONDERS.len()];
    }

    /// The line was raised. Triggers and levels come in the order of time.
    pub fn raise(&mut self, at: At) {
        self.untaken.get_or_insert(at);
        for wait in &mut self.waits {
            wait.trigger.get_or_insert(at);
        }
        self.raised += 1;
    }

    /// The data pins were written, with this `level`; hands on what that means.
    pub fn write(&mut self, at: At, level: u16, mut each: impl FnMut(Observation)) {
        let edges = self.active.at(self.pins ^ level);
        self.pins = level;
        // Pin order: an edge of the hard handler counts for those written with it.
        for responder in edges.iter() {
            self.answer(responder, at, &mut each);
        }
    }

    fn answer(&mut self, responder: Responder, edge: At, each: &mut impl FnMut(Observation)) {
        if responder == Responder::Hardirq || !self.active.contains(Responder::Hardirq) {
            (self.taken, self.untaken) = (self.raised, None);
        }
        let series = self.active.rank(responder);
        let Wait { first, trigger } = self.waits[responder.pin() as usize];
        let trigger = match trigger {
            Some(trigger) if first < self.taken => trigger,
            _ => return each(Observation::Loss(series, Loss::Spurious, 1)),
        };
        each(match (edge.since(trigger), trigger.time.since(self.origin)) {
            (Some((latency, path)), Some(at)) => Observation::Sample(Sample {
                series,
                trigger: first,
                at,
                latency,
                path: Some(path),
            }),
            _ => Observation::Loss(series, Loss::Tainted, 1),
        });
        let younger = self.taken - first - 1;
        if younger > 0 {
            each(Observation::Loss(series, Loss::Superseded, younger));
        }
        self.waits[responder.pin() as usize] = Wait { first: self.taken, trigger: self.untaken };
    }

    /// Whether every active responder has answered every trigger raised so far.
    pub fn complete(&self) -> bool {
        self.active.iter().all(|r| self.waits[r.pin() as usize].first == self.raised)
    }

    /// Ends the run: what is still waiting was never answered.
    pub fn finish(self, mut each: impl FnMut(Observation)) {
        for responder in self.active.iter() {
            let n = self.raised - self.waits[responder.pin() as usize].first;
            if n > 0 {
                each(Observation::Loss(self.active.rank(responder), Loss::Unanswered, n));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn set(rs: &[Responder]) -> ResponderSet {
        rs.iter().copied().collect()
    }

    #[test]
    fn losses_add_up_by_kind_and_more_than_can_be_counted_stay_the_most() {
        let mut losses = Losses::default();
        Loss::ALL.into_iter().zip(1..).for_each(|(loss, n)| losses.count(loss, n));
        losses.merge(&losses.clone());
        let sums = [losses.unanswered, losses.superseded, losses.spurious, losses.tainted];
        assert_eq!(sums, [2, 4, 6, 8]);
        assert_eq!((losses.dropped, losses.overrun, losses.total()), (10, 12, 42));
        losses.count(Loss::Overrun, u64::MAX);
        losses.merge(&losses.clone());
        assert_eq!((losses.overrun, losses.total()), (u64::MAX, u64::MAX));
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Trigger,
        Pins,
    }

    type Event = (Kind, At, u16);

    fn event(kind: Kind, ns: u64, pins: u16) -> Event {
        (kind, At::new(Stamp::from_ns(ns), Insns(ns)), pins)
    }

    fn observe(answers: &mut Answers, event: &Event, note: impl FnMut(Observation)) {
        match *event {
            (Kind::Trigger, at, _) => answers.raise(at),
            (Kind::Pins, at, level) => answers.write(at, level, note),
        }
    }

    /// Feeds `T` (trigger) and pin levels; returns (responder, trigger, latency) and losses.
    fn play(active: &[Responder], events: &[Event]) -> (Vec<(Responder, u64, u64)>, [Losses; 11]) {
        let responder = |series: SeriesId| set(active).iter().nth(series.index()).expect("active");
        let mut answers = Answers::new(set(active), Stamp::from_ns(0), 0);
        let (mut samples, mut losses) = (Vec::new(), [Losses::default(); 11]);
        let mut note = |o| match o {
            Observation::Sample(s) => samples.push((responder(s.series), s.trigger, s.latency.0)),
            Observation::Loss(s, loss, n) => losses[responder(s).pin() as usize].count(loss, n),
        };
        for e in events {
            observe(&mut answers, e, &mut note);
        }
        answers.finish(&mut note);
        (samples, losses)
    }

    use Kind::{Pins, Trigger as T};
    use Responder::{Hardirq, Task, Waitqueue};

    #[test]
    fn each_responder_answers_with_its_own_latency() {
        let events = [event(T, 100, 0), event(Pins, 103, 0x01), event(Pins, 120, 0x81)];
        let (samples, losses) = play(&[Hardirq, Task], &events);
        assert_eq!(samples, [(Hardirq, 0, 3), (Task, 0, 20)]);
        assert!(losses.iter().all(|l| l.total() == 0));
    }

    #[test]
    fn a_pin_of_the_second_register_answers_as_one_of_the_first() {
        let events = [event(T, 100, 0), event(Pins, 103, 0x001), event(Pins, 120, 0x401)];
        let (samples, losses) = play(&[Hardirq, Task, Waitqueue], &events);
        assert_eq!(samples, [(Hardirq, 0, 3), (Waitqueue, 0, 20)]);
        assert_eq!((losses[7].unanswered, losses[10].total()), (1, 0));
    }

    #[test]
    fn a_wait_over_several_periods_is_reported_at_its_full_length() {
        let events = [
            event(T, 100, 0),
            event(Pins, 101, 0x01),
            event(T, 200, 0),
            event(Pins, 201, 0x00),
            event(Pins, 250, 0x80),
        ];
        let (samples, losses) = play(&[Hardirq, Task], &events);
        assert_eq!(samples, [(Hardirq, 0, 1), (Hardirq, 1, 1), (Task, 0, 150)]);
        assert_eq!(losses[7], Losses { superseded: 1, ..Losses::default() });
    }

    #[test]
    fn a_trigger_not_yet_taken_is_not_answered_by_an_edge_that_comes_first() {
        // Trigger 1 is raised while the task's answer to trigger 0 is already on its way.
        let events = [
            event(T, 100, 0),
            event(Pins, 101, 0x01),
            event(T, 200, 0),
            event(Pins, 202, 0x81),
            event(Pins, 205, 0x80),
            event(Pins, 230, 0x00),
        ];
        let (samples, losses) = play(&[Hardirq, Task], &events);
        assert_eq!(samples, [(Hardirq, 0, 1), (Task, 0, 102), (Hardirq, 1, 5), (Task, 1, 30)]);
        assert_eq!(losses[7].total(), 0);
    }

    #[test]
    fn an_edge_without_a_trigger_is_spurious_and_a_trigger_without_an_edge_unanswered() {
        let (samples, losses) = play(&[Task], &[event(Pins, 50, 0x80), event(T, 100, 0)]);
        assert!(samples.is_empty());
        assert_eq!(losses[7], Losses { spurious: 1, unanswered: 1, ..Losses::default() });
    }

    #[test]
    fn an_answer_from_before_its_trigger_is_tainted_not_clamped() {
        let (samples, losses) = play(&[Task], &[event(T, 100, 0), event(Pins, 99, 0x80)]);
        assert!(samples.is_empty());
        assert_eq!(losses[7], Losses { tainted: 1, ..Losses::default() });
    }

    #[test]
    fn after_a_gap_nothing_from_before_it_is_measured() {
        let mut answers = Answers::new(set(&[Hardirq, Task]), Stamp::from_ns(0), 0);
        let mut samples = Vec::new();
        let mut note = |o| {
            if let Observation::Sample(s) = o {
                samples.push((s.series, s.trigger, s.latency.0));
            }
        };
        observe(&mut answers, &event(T, 100, 0), &mut note);
        // Triggers 1 to 6 and all edges until then are missing.
        answers.resume(0x81, 7);
        for later in [event(T, 800, 0x81), event(Pins, 803, 0x80), event(Pins, 820, 0x00)] {
            observe(&mut answers, &later, &mut note);
        }
        assert!(answers.complete());
        assert_eq!(samples, [(SeriesId(0), 7, 3), (SeriesId(1), 7, 20)]);
    }

    #[test]
    fn pins_of_inactive_responders_are_not_looked_at() {
        let (samples, losses) = play(&[Task], &[event(T, 1, 0), event(Pins, 2, 0x7f)]);
        assert!(samples.is_empty());
        assert_eq!(losses[7].unanswered, 1);
        assert_eq!(losses[0].total(), 0);
    }

    proptest! {
        /// Every trigger ends as exactly one of: sample, superseded, unanswered, tainted.
        #[test]
        fn triggers_are_conserved(events in prop::collection::vec((any::<bool>(), any::<u16>(), 0u64..50), 0..400)) {
            let mut now = 0;
            let events: Vec<_> = events.into_iter().map(|(t, pins, dt)| {
                now += dt;
                event(if t { T } else { Pins }, now, pins)
            }).collect();
            let raised = events.iter().filter(|e| e.0 == T).count() as u64;
            let active = crate::ALL_RESPONDERS;
            let (samples, losses) = play(&active, &events);
            for r in active {
                let answered = samples.iter().filter(|s| s.0 == r).count() as u64;
                let l = losses[r.pin() as usize];
                prop_assert_eq!(answered + l.superseded + l.unanswered + l.tainted, raised);
            }
        }
    }
}
