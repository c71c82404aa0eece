// SPDX-License-Identifier: GPL-2.0-or-later
//! Explains chosen answers of a run while it goes on.

use super::Watcher;
use crate::Error;
use sample::{Responder, Sample, SeriesId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{Event, Explanation, FELT_FOR, History, Reader, What};

/// The most events that are kept, in some 100 MB. A busy guest makes a few thousand in a virtual millisecond. So an
/// answer within some hundred milliseconds is explained.
pub const EVENTS_KEPT: usize = 1 << 21;

/// The answers to explain, by trigger and series, as they were measured before.
pub type Wanted = BTreeMap<(u64, SeriesId), Sample>;

/// Hands each wanted answer with its explanation to `each`, and ends the run after the last one.
pub struct Explainer<F> {
    responders: Vec<Responder>,
    history: History,
    wanted: Wanted,
    /// The wanted triggers that were raised, and how many of their answers are still to come.
    awaited: BTreeMap<u64, usize>,
    failure: Option<Error>,
    each: F,
}

impl<F: FnMut(&Sample, &Explanation, &Reader)> Explainer<F> {
    /// An explainer for a run in which these responders answer, in the order of their series.
    pub fn new(responders: &[Responder], wanted: Wanted, each: F) -> Self {
        Explainer {
            responders: responders.into(),
            history: History::new(EVENTS_KEPT),
            wanted,
            awaited: BTreeMap::new(),
            failure: None,
            each,
        }
    }

    /// Whether an answer came otherwise than before, or could not be explained. No later answer will tell more.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Checks, after the run, that every wanted answer came as it was measured before.
    ///
    /// # Errors
    /// The first answer that did not, or that could not be explained.
    pub fn finish(self) -> Result<(), Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.wanted.keys().next() {
            None => Ok(()),
            Some((trigger, series)) => {
                let responder = self.responders[series.index()];
                let how = format!("{responder} did not answer trigger {trigger} this time");
                Err(Error::CameOutOtherwise { how })
            }
        }
    }

    fn explain(&mut self, sample: &Sample, reader: &Reader) -> Result<(), Error> {
        let key = (sample.trigger, sample.series);
        let Some(before) = self.wanted.remove(&key) else { return Ok(()) };
        let responder = self.responders[sample.series.index()];
        if (before.latency, before.path) != (sample.latency, sample.path) {
            let Sample { trigger, latency, .. } = sample;
            let then = before.latency.0;
            let how = format!(
                "{responder} answered trigger {trigger} after {} ns and not after {then} ns",
                latency.0
            );
            return Err(Error::CameOutOtherwise { how });
        }
        let explained = self.history.explain(sample.trigger, responder.pin(), reader.tasks());
        let explanation = explained.map_err(|e| Error::Unexplained {
            what: format!("the answer of {responder} to trigger {}", sample.trigger),
            why: e.to_string(),
        })?;
        (self.each)(sample, &explanation, reader);
        if let Some(left) = self.awaited.get_mut(&sample.trigger) {
            *left -= 1;
            if *left == 0 {
                self.awaited.remove(&sample.trigger);
            }
        }
        Ok(())
    }
}

impl<F: FnMut(&Sample, &Explanation, &Reader)> Watcher for Explainer<F> {
    fn event(&mut self, event: &Event, _: &Reader) {
        self.history.push(*event);
        let What::Trigger { number, .. } = event.what else { return };
        let of_trigger = (number, SeriesId(0))..=(number, SeriesId(u16::MAX));
        let answers = self.wanted.range(of_trigger).count();
        if answers > 0 {
            self.awaited.insert(number, answers);
        }
        let oldest = self.awaited.keys().next().copied().unwrap_or(number);
        self.history.forget_before(oldest, FELT_FOR);
    }

    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()> {
        if let Err(failure) = self.explain(sample, reader) {
            self.failure.get_or_insert(failure);
            return ControlFlow::Break(());
        }
        if self.wanted.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{At, Insns, Nanos, Stamp};
    use wire::Event as Told;

    const HARDIRQ: SeriesId = SeriesId(0);

    fn sample(trigger: u64, latency: u64) -> Sample {
        let (at, latency, path) = (Nanos(0), Nanos(latency), Some(Insns(latency)));
        Sample { series: HARDIRQ, trigger, at, latency, path }
    }

    /// The explanation of an answer. Trigger `number` is raised at 100, and D0 answers it at 140.
    fn explained(wanted: &[Sample], number: u64) -> (Vec<u64>, Result<(), Error>) {
        let mut told = Vec::new();
        let wanted = wanted.iter().map(|s| ((s.trigger, s.series), *s)).collect();
        let each = |_: &Sample, e: &Explanation, _: &Reader| told.push(e.latency().time.0);
        let mut explainer = Explainer::new(&[Responder::Hardirq], wanted, each);
        let mut reader = Reader::new(&[]);
        let at = |ns| At::new(Stamp::from_ns(ns), Insns(ns));
        for told in [
            Told::Trigger { at: at(100), level: 0, number },
            Told::Pins { at: at(140), level: 1, raised: number },
        ] {
            let event = reader.read(&told).expect("an event");
            explainer.event(&event, &reader);
        }
        let _ = explainer.answer(&sample(number, 40), &reader);
        let finished = explainer.finish();
        (told, finished)
    }

    #[test]
    fn an_answer_that_came_as_before_is_explained() {
        let (told, finished) = explained(&[sample(3, 40)], 3);
        assert_eq!((told, finished.is_ok()), (vec![40], true));
    }

    #[test]
    fn an_answer_that_came_otherwise_or_not_at_all_is_told() {
        let (told, finished) = explained(&[sample(3, 41)], 3);
        let failure = finished.expect_err("another latency");
        assert!(told.is_empty(), "{told:?}");
        let Error::CameOutOtherwise { how } = failure else { panic!("{failure}") };
        assert!(how.contains("after 40 ns and not after 41 ns"), "{how}");
        let (_, finished) = explained(&[sample(2, 40)], 3);
        let message = finished.expect_err("no answer").to_string();
        assert!(message.contains("hardirq did not answer trigger 2"), "{message}");
    }
}
