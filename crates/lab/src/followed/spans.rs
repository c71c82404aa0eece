// SPDX-License-Identifier: GPL-2.0-or-later
//! Explains chosen samples of a probe. Each is a span of virtual time, from the instant at which a task was due to the
//! instant at which the task read its clock.
//!
//! The run is made twice more. The first time a witness watches, and nobody follows the kernel. The probe's own report,
//! the guest's readings of its clock and the witness then tell when each span began and ended. The second time the
//! kernel is followed, and the spans are explained. Both times the probe has to report the samples that are known.
//!
//! The instants are times of the guest's clock. They become times of virtual time by a line ([`rig::ClockLine`]) that
//! is off by some ten nanoseconds, alike for all instants of a run. A span is exactly as long as its sample.

use super::ready::plan;
use super::{EVENTS_KEPT, Ready, Wanted, Watcher};
use crate::{Error, edges, truth};
use probes::{Plan, Sampled};
use rig::{ClockLine, Outcome, ProbeRun};
use sample::{At, Insns, Monotonic, Observation, Sample, SeriesName, Stamp, Virtual};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use trace::{Event, Explanation, FELT_FOR, History, Reader, What};
use work::Progress;

/// A sample, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The sample, as the run has it.
    pub sample: Sample,
    /// When the task was due.
    pub from: Stamp<Virtual>,
    /// When it read its clock.
    pub to: Stamp<Virtual>,
}

/// The spans of chosen samples of a run.
pub(super) struct Spans {
    names: Vec<SeriesName>,
    /// The spans in the order of their beginnings. The place in this list is the number under which the events have a
    /// span.
    pub all: Vec<Span>,
    /// When measuring began.
    pub origin: Stamp<Virtual>,
    /// The chosen samples as the probe itself reports them. Of pulses, the run has what the port saw.
    reported: Wanted,
    /// The virtual time of an instruction, as a power of two.
    shift: u8,
}

impl Spans {
    /// Makes the run once more with a witness, and finds the wanted samples in it.
    ///
    /// # Errors
    /// The errors of running. Also a sample that is another one than then, and one whose instants nothing tells.
    pub fn find(
        ready: &Ready,
        run: &ProbeRun,
        wanted: &Wanted,
        progress: &dyn Fn(Progress),
    ) -> Result<Spans, Error> {
        let plan = plan(run)?;
        let (observations, outcome) = once_more(ready, run, progress)?;
        let told = Told::of(&plan, ready.series(), &observations, &outcome)?;
        let seen = told.seen(&observations, &outcome);
        let names = ready.series().to_vec();
        compare(wanted, &seen, &names)?;
        let mut all = told.spans(wanted, &outcome)?;
        all.sort_by_key(|span| (span.from, span.to, span.sample.series, span.sample.trigger));
        let reported =
            samples(&observations).filter(|s| wanted.contains_key(&(s.trigger, s.series)));
        let reported = reported.map(|s| ((s.trigger, s.series), s)).collect();
        let origin = outcome.witness.levels.first().map_or(Stamp::from_ns(0), |level| level.at);
        Ok(Spans { names, all, origin, reported, shift: ready.guest().shift })
    }

    /// A watcher that explains the spans, and hands each sample with its explanation to `each`.
    pub fn explained_by<F: FnMut(&Sample, &Explanation, &Reader)>(self, each: F) -> Explaining<F> {
        let marks = Marks::of(&self.all, self.shift);
        Explaining {
            marks,
            spans: self,
            history: History::new(EVENTS_KEPT),
            open: BTreeSet::new(),
            failure: None,
            each,
        }
    }

    /// The instants of the spans, for a watcher of its own.
    pub fn marks(&self) -> Marks {
        Marks::of(&self.all, self.shift)
    }

    fn name(&self, sample: &Sample) -> String {
        named(sample, &self.names)
    }
}

fn named(sample: &Sample, names: &[SeriesName]) -> String {
    format!("sample {} of {}", sample.trigger, names[sample.series.index()])
}

/// Makes the run once more with a witness. Returns what the probe reported.
fn once_more(
    ready: &Ready,
    run: &ProbeRun,
    progress: &dyn Fn(Progress),
) -> Result<(Vec<Observation>, Outcome), Error> {
    let mut observations = Vec::new();
    let mut observe = |observation| {
        observations.push(observation);
        ControlFlow::Continue(())
    };
    let outcome = ready.probe(run, &mut observe, progress)?;
    Ok((observations, outcome))
}

/// Makes the run once more, and returns the sample that has the place of `then` in it.
///
/// # Errors
/// The errors of running.
pub(super) fn again(
    ready: &Ready,
    run: &ProbeRun,
    then: &Sample,
    progress: &dyn Fn(Progress),
) -> Result<Option<Sample>, Error> {
    let plan = plan(run)?;
    let (observations, outcome) = once_more(ready, run, progress)?;
    let told = Told::of(&plan, ready.series(), &observations, &outcome)?;
    let seen = told.seen(&observations, &outcome);
    let is_same = |s: &Sample| (s.trigger, s.series) == (then.trigger, then.series);
    Ok(samples(&seen).find(is_same))
}

/// Checks that the wanted samples are among those that were seen.
fn compare(wanted: &Wanted, seen: &[Observation], names: &[SeriesName]) -> Result<(), Error> {
    let now: Wanted = samples(seen).map(|s| ((s.trigger, s.series), s)).collect();
    for (key, then) in wanted {
        let name = named(then, names);
        let how = match now.get(key) {
            Some(now) if now.latency == then.latency => continue,
            Some(now) => format!("{name} is {} ns and not {} ns", now.latency.0, then.latency.0),
            None => format!("{name} is missing this time"),
        };
        return Err(Error::CameOutOtherwise { how });
    }
    Ok(())
}

fn samples(observations: &[Observation]) -> impl Iterator<Item = Sample> {
    observations.iter().filter_map(|observation| match observation {
        Observation::Sample(sample) => Some(*sample),
        Observation::Loss(..) => None,
    })
}

/// What a run of a probe tells of its instants.
struct Told<'a> {
    plan: &'a Plan,
    names: &'a [SeriesName],
    reported: Vec<Sample>,
    /// The instant from which the samples' times count.
    origin: Stamp<Monotonic>,
    line: ClockLine,
}

impl<'a> Told<'a> {
    fn of(
        plan: &'a Plan,
        names: &'a [SeriesName],
        observations: &[Observation],
        outcome: &Outcome,
    ) -> Result<Told<'a>, Error> {
        let untold = |what: &str| Error::Unexplained {
            what: format!("the samples of {}", plan.probe.name()),
            why: format!("{what}, so that nothing tells when its tasks were due"),
        };
        let counters = outcome.report.as_ref().map(|report| &report.counters);
        let origin = counters.and_then(|counters| counters.get("origin_ns"));
        let origin = *origin.ok_or_else(|| untold("the probe does not say when it began"))?;
        let line = outcome.witness.clock_line();
        let line = line.ok_or_else(|| untold("the guest did not tell its clock"))?;
        let (origin, reported) = (Stamp::from_ns(origin), samples(observations).collect());
        Ok(Told { plan, names, reported, origin, line })
    }

    /// The observations as the run has them: of pulses, those of the port.
    fn seen(&self, reported: &[Observation], outcome: &Outcome) -> Vec<Observation> {
        match edges::width(&self.plan.probe) {
            Some(width) => {
                let origin = Some(self.origin);
                edges::judge(self.names, width, reported, origin, &outcome.witness).observations
            }
            None => reported.to_vec(),
        }
    }

    fn spans(&self, wanted: &Wanted, outcome: &Outcome) -> Result<Vec<Span>, Error> {
        let sampled = |name: &SeriesName| self.plan.probe.sampled(name.as_str());
        let by_calls = match self.names.iter().any(|name| sampled(name) == Sampled::WakeUps) {
            true => self.by_calls(outcome),
            false => BTreeMap::new(),
        };
        let span = |sample: &Sample| {
            let due = match sampled(&self.names[sample.series.index()]) {
                Sampled::WakeUps => by_calls.get(&(sample.series.index(), sample.trigger)).copied(),
                _ => self.origin.checked_add(sample.at),
            };
            let from = due.and_then(|due| self.line.to_virtual(due));
            let to = from.and_then(|from| Some((from, from.checked_add(sample.latency)?)));
            let (from, to) = to.ok_or_else(|| Error::Unexplained {
                what: named(sample, self.names),
                why: "the witness did not see its wake-up, so that nothing tells when it was due; take another sample".into(),
            })?;
            Ok(Span { sample: *sample, from, to })
        };
        wanted.values().map(span).collect()
    }

    /// When each event was due by the calls that the witness saw, by series and number.
    fn by_calls(&self, outcome: &Outcome) -> BTreeMap<(usize, u64), Stamp<Monotonic>> {
        let wakes = &outcome.witness.wakes;
        let onsets = truth::onsets(self.plan, &self.reported, self.origin, &self.line, wakes);
        let of_series = onsets.into_iter().enumerate();
        of_series
            .flat_map(|(series, onsets)| {
                onsets.into_iter().map(move |onset| ((series, onset.number), onset.due))
            })
            .collect()
    }
}

/// The instants at which spans begin and end, in their order. They are entered between the events of a follower.
pub(super) struct Marks {
    /// The instants that are to come, the last one first.
    to_come: Vec<(Stamp<Virtual>, What)>,
    /// The last event.
    last: Option<At>,
    shift: u8,
}

impl Marks {
    fn of(spans: &[Span], shift: u8) -> Marks {
        let mut to_come: Vec<(Stamp<Virtual>, What)> = (0..)
            .zip(spans)
            .flat_map(|(number, span)| {
                [(span.from, What::Due { number }), (span.to, What::Done { number })]
            })
            .collect();
        // Where one span ends and another one begins at the same instant, the order is that of the numbers, and a span
        // begins before it ends.
        let order = |(at, what): &(Stamp<Virtual>, What)| match *what {
            What::Due { number } => (*at, number, 0),
            What::Done { number } => (*at, number, 1),
            _ => (*at, u64::MAX, 2),
        };
        to_come.sort_by_key(|mark| std::cmp::Reverse(order(mark)));
        Marks { to_come, last: None, shift }
    }

    /// The next instant before this event.
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let (time, what) = *self.to_come.last()?;
        if time >= event.at.time {
            return None;
        }
        self.to_come.pop();
        let last = self.last.unwrap_or(event.at);
        // Before the first event the processor may have done anything.
        let time = time.max(last.time.min(event.at.time));
        // The CPU sleeps before what wakes it, so that instructions are counted back from the event.
        let back = event.at.time.since(time).map_or(0, |time| time.0 >> self.shift);
        let insns =
            Insns(event.at.insns.0.saturating_sub(back)).max(last.insns.min(event.at.insns));
        let at = At::new(time, insns);
        self.last = Some(at);
        Some(Event { at, what })
    }

    /// Learns that this event comes after all instants before it.
    pub fn after(&mut self, event: &Event) {
        self.last = Some(event.at);
    }

    /// Whether all instants have passed.
    pub fn are_over(&self) -> bool {
        self.to_come.is_empty()
    }
}

/// Explains spans while their run goes on.
pub(super) struct Explaining<F> {
    spans: Spans,
    marks: Marks,
    history: History,
    /// The numbers of the spans that have begun and not ended.
    open: BTreeSet<u64>,
    failure: Option<Error>,
    each: F,
}

impl<F: FnMut(&Sample, &Explanation, &Reader)> Explaining<F> {
    /// Checks, after the run, that every sample came again and was explained.
    ///
    /// # Errors
    /// The first one that was not.
    pub fn finish(self) -> Result<(), Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let missing = self.spans.reported.values().next();
        let unseen = self.spans.all.last().filter(|_| !self.marks.are_over());
        match missing.or(unseen.map(|span| &span.sample)) {
            None => Ok(()),
            Some(sample) => {
                let how = format!("{} is missing this time", self.spans.name(sample));
                Err(Error::CameOutOtherwise { how })
            }
        }
    }

    fn mark(&mut self, mark: Event, reader: &Reader) -> Result<(), Error> {
        self.history.push(mark);
        match mark.what {
            What::Due { number } => {
                self.open.insert(number);
                let oldest = self.open.first().copied().unwrap_or(number);
                self.history.forget_before(oldest, FELT_FOR);
            }
            What::Done { number } => {
                self.open.remove(&number);
                let sample = self.spans.all[number as usize].sample;
                let explained = self.history.explain_due(number, reader.tasks());
                let explanation = explained.map_err(|why| Error::Unexplained {
                    what: self.spans.name(&sample),
                    why: why.to_string(),
                })?;
                let explanation = Explanation { trigger: sample.trigger, ..explanation };
                (self.each)(&sample, &explanation, reader);
            }
            _ => {}
        }
        Ok(())
    }
}

impl<F: FnMut(&Sample, &Explanation, &Reader)> Watcher for Explaining<F> {
    fn event(&mut self, event: &Event, reader: &Reader) {
        while let Some(mark) = self.marks.before(event).filter(|_| self.failure.is_none()) {
            self.failure = self.mark(mark, reader).err();
        }
        self.marks.after(event);
        self.history.push(*event);
    }

    fn answer(&mut self, sample: &Sample, _: &Reader) -> ControlFlow<()> {
        if let Some(then) = self.spans.reported.remove(&(sample.trigger, sample.series))
            && then.latency != sample.latency
        {
            let (name, now, then) = (self.spans.name(sample), sample.latency.0, then.latency.0);
            let how = format!("{name} is {now} ns and not {then} ns");
            self.failure.get_or_insert(Error::CameOutOtherwise { how });
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Nanos, SeriesId};

    fn span(number: u64, from: u64, to: u64) -> Span {
        let (series, at) = (SeriesId(0), Nanos(from));
        let sample = Sample { series, trigger: number, at, latency: Nanos(to - from), path: None };
        Span { sample, from: Stamp::from_ns(from), to: Stamp::from_ns(to) }
    }

    fn event(ns: u64, insns: u64) -> Event {
        Event { at: At::new(Stamp::from_ns(ns), Insns(insns)), what: What::Gap }
    }

    /// The instants that are entered between these events: time, instructions, and which.
    fn entered(spans: &[Span], shift: u8, events: &[(u64, u64)]) -> Vec<(u64, u64, What)> {
        let mut marks = Marks::of(spans, shift);
        let mut entered = Vec::new();
        for (ns, insns) in events {
            let event = event(*ns, *insns);
            while let Some(mark) = marks.before(&event) {
                entered.push((mark.at.time.ns(), mark.at.insns.0, mark.what));
            }
            marks.after(&event);
        }
        entered
    }

    #[test]
    fn instants_come_between_events_in_their_order_and_instructions_never_fall() {
        let [due, done] =
            [|number| What::Due { number }, |number| What::Done { number }] as [fn(u64) -> What; 2];
        // The CPU slept from 130 to 190, and executes an instruction a nanosecond else.
        let events = [(90, 50), (130, 90), (200, 100), (300, 200)];
        let spans = [span(7, 100, 250), span(8, 150, 195)];
        assert_eq!(
            entered(&spans, 0, &events),
            [(100, 60, due(0)), (150, 90, due(1)), (195, 95, done(1)), (250, 150, done(0))]
        );
        // At four nanoseconds an instruction.
        let slow = entered(&[span(7, 100, 180)], 2, &[(90, 50), (130, 60), (230, 85)]);
        assert_eq!(slow, [(100, 53, due(0)), (180, 73, done(0))]);
        // One that ends where another one begins, and one of no length.
        let spans = [span(1, 10, 20), span(2, 20, 20)];
        let order: Vec<_> =
            entered(&spans, 0, &[(5, 5), (50, 50)]).into_iter().map(|m| m.2).collect();
        assert_eq!(order, [due(0), done(0), due(1), done(1)]);
    }

    #[test]
    fn an_instant_at_an_event_comes_after_it() {
        let marks = entered(&[span(0, 100, 200)], 0, &[(100, 10), (200, 20), (201, 21)]);
        assert_eq!(marks.iter().map(|mark| mark.1).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn a_sample_that_came_otherwise_or_not_at_all_is_told() {
        let names = ["start".parse().expect("a name")];
        let then = span(3, 10, 40).sample;
        let wanted: Wanted = [((3, SeriesId(0)), then)].into();
        let told = |seen: &[Observation]| match compare(&wanted, seen, &names) {
            Ok(()) => String::new(),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(told(&[Observation::Sample(then)]), "");
        let other = Sample { latency: Nanos(31), ..then };
        let said = told(&[Observation::Sample(other)]);
        assert!(said.contains("sample 3 of start is 31 ns and not 30 ns"), "{said}");
        assert!(told(&[]).contains("is missing this time"));
    }
}
