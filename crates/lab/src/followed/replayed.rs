// SPDX-License-Identifier: GPL-2.0-or-later
//! Replays one latency: what the replay needs, how late the answer is, and the events around it.

use super::spans::{Marks, Spans, again};
use super::{Answer, Choice, EVENTS_KEPT, Named, Ready, Reproducer, STACKS_FROM, Subject, Watcher};
use crate::Error;
use rig::{Bench, Calls, Stimulus};
use sample::{Nanos, Sample, SeriesName, When};
use std::ops::ControlFlow;
use trace::{Event, Excerpt, History, Reader, What};
use vmlinux::Map;
use work::Progress;

/// How long before its trigger a trace begins. So the trace shows what was going on. It is half a period of most
/// schedules.
const BEFORE: Nanos = Nanos::from_micros(500);

/// A latency that can be replayed.
#[derive(Clone, Debug)]
pub struct Latency {
    /// What is run.
    pub subject: Subject,
    /// The latency in it.
    pub sample: Sample,
    /// The responder, or the series of the probe.
    pub series: SeriesName,
}

impl Latency {
    /// The chosen latency, with all that it needs: the longest answer to a trigger, or the answer with this rank in the
    /// run; and the same of the events of a probe.
    ///
    /// # Errors
    /// The errors of [`Named::samples`] and [`Named::subject`], and a rank that the run does not have.
    pub fn of(
        bench: &Bench,
        named: &Named,
        series: Option<&SeriesName>,
        asked: Option<Choice>,
    ) -> Result<Latency, Error> {
        let subject = named.subject(bench)?;
        if let (Stimulus::Probe(_), Named::Run(bundle)) = (&subject.stimulus, named) {
            let sample = chosen(named, series, asked)?;
            let series = bundle.manifest().series[sample.series.index()].responder.clone();
            return Ok(Latency { subject, sample, series });
        }
        let find = reproducer(bench, named, series, asked)?;
        let (sample, series) = (find.sample(), find.answer.responder.into());
        Ok(Latency { subject: find.subject(bench)?, sample, series })
    }
}

/// The results of the replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The first answer that was another one. `Some(None)` if there was no answer, `None` if all were identical.
    pub first_other: Option<Option<Sample>>,
    /// How often the answer was identical.
    pub identical: u64,
}

/// Replays the latency `times` times.
///
/// # Errors
/// The errors of [`Ready::run`].
pub fn replay(
    ready: &Ready,
    wanted: Sample,
    times: u64,
    progress: &dyn Fn(Progress),
) -> Result<Replayed, Error> {
    let mut replayed = Replayed { first_other: None, identical: 0 };
    for _ in 0..times {
        let answer = match ready.stimulus() {
            // Work has no answers: the wait ends with it.
            Stimulus::Triggers(_) | Stimulus::Work(_) => {
                let mut wait = Wait { wanted, answer: None };
                ready.run(None, &mut wait, progress)?;
                wait.answer
            }
            Stimulus::Probe(run) => again(ready, run, &wanted, progress)?,
        };
        if answer.is_some_and(|a| (a.latency, a.path) == (wanted.latency, wanted.path)) {
            replayed.identical += 1;
        } else {
            replayed.first_other.get_or_insert(answer);
        }
    }
    Ok(replayed)
}

/// The events around an answer, and everything that names them.
pub struct Recorded {
    /// The events from half a millisecond before the latency to its end.
    pub excerpt: Excerpt,
    /// The reader with its knowledge at the end: tasks and stacks.
    pub reader: Reader,
    /// The names of the guest's code.
    pub map: Map<Vec<u8>>,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
}

/// Makes the run once more, followed. `functions` says whether each call of a function is wanted.
///
/// # Errors
/// If the latency is longer than the events that are kept. Also the errors of [`Ready::run`].
pub fn record(
    ready: &Ready,
    wanted: Sample,
    functions: bool,
    progress: &dyn Fn(Progress),
) -> Result<Recorded, Error> {
    let (map, mut follow) = ready.follow(STACKS_FROM, Calls::All)?;
    let (at, marks) = match ready.stimulus() {
        Stimulus::Triggers(_) | Stimulus::Work(_) => (wanted.at, None),
        Stimulus::Probe(run) => {
            let only = [((wanted.trigger, wanted.series), wanted)].into();
            let spans = Spans::find(ready, run, &only, progress)?;
            let from = spans.all[0].from.since(spans.origin).unwrap_or_default();
            (from, Some(spans.marks()))
        }
    };
    if functions {
        follow = follow.telling_functions(at.saturating_sub(BEFORE));
    }
    let wait = Wait { wanted, answer: None };
    let mut tape = Tape { wait, marks, history: History::new(EVENTS_KEPT), excerpt: None };
    let reader = ready.run(Some(&follow), &mut tape, progress)?;
    let too_long = || {
        Error::Unfit(
            "the trace has no room for the whole latency, which is longer than two million events"
                .into(),
        )
    };
    let excerpt = tape.excerpt.ok_or_else(too_long)?;
    Ok(Recorded { excerpt, reader, map, missing: follow.missing })
}

/// The chosen latency, with all that it needs: the longest answer to a trigger, or the answer with this rank in the
/// run.
///
/// # Errors
/// The errors of [`Named::samples`] and [`Named::subject`], and a rank that the run does not have.
pub fn reproducer(
    bench: &Bench,
    named: &Named,
    series: Option<&SeriesName>,
    asked: Option<Choice>,
) -> Result<Reproducer, Error> {
    if let Named::Find(find) = named {
        named.samples(series, asked)?;
        return Ok((**find).clone());
    }
    of_run(&named.subject(bench)?, &chosen(named, series, asked)?)
}

/// The one sample that is meant.
fn chosen(
    named: &Named,
    series: Option<&SeriesName>,
    asked: Option<Choice>,
) -> Result<Sample, Error> {
    let choice = asked.unwrap_or(Choice::Worst(1));
    let samples = named.samples(series, asked)?;
    // The last of that many of the worst. Of several answers to one trigger, the longest.
    let sample = match choice {
        Choice::Worst(rank) => samples.get(rank - 1),
        Choice::Trigger(_) => samples.first(),
    };
    sample.copied().ok_or_else(|| {
        let count = samples.len();
        Error::Unfit(format!("there are only {count} answers; lower --worst"))
    })
}

/// The answer of a run, without the triggers that came after it.
fn of_run(subject: &Subject, sample: &Sample) -> Result<Reproducer, Error> {
    let Subject { guest, made_with, .. } = subject;
    let generator = subject.generator().ok_or_else(|| {
        Error::Unfit("a probe measured the run, so that there are no triggers to leave out; take a run with [trigger]".into())
    })?;
    let (When::Planned(schedule), Some(made_with), Some(insns)) =
        (&generator.when, made_with, sample.path)
    else {
        let why = "the run's instructions were not counted; take a run of the rig";
        return Err(Error::Unfit(why.into()));
    };
    let until = sample.at.saturating_add(sample.latency);
    let due = (0..).map_while(|n| schedule.due(n));
    let times: Vec<Nanos> = due.take_while(|due| *due <= until).collect();
    let responder = generator.responders.iter().nth(sample.series.index()).ok_or_else(|| {
        Error::File("the run's samples are of more responders than it has; its bundle is damaged: onset show --verify".into())
    })?;
    let (trigger, latency_ns) = (sample.trigger, sample.latency);
    let answer = Answer { responder, trigger, latency_ns, insns };
    Ok(Reproducer::of(guest, generator, made_with, times, answer))
}

/// Waits for one answer.
struct Wait {
    wanted: Sample,
    answer: Option<Sample>,
}

impl Watcher for Wait {
    fn event(&mut self, _: &Event, _: &Reader) {}

    fn answer(&mut self, sample: &Sample, _: &Reader) -> ControlFlow<()> {
        if (sample.trigger, sample.series) != (self.wanted.trigger, self.wanted.series) {
            return ControlFlow::Continue(());
        }
        self.answer = Some(*sample);
        ControlFlow::Break(())
    }
}

/// Keeps the events around one latency.
struct Tape {
    wait: Wait,
    /// The instants of the sample of a probe.
    marks: Option<Marks>,
    history: History,
    excerpt: Option<Excerpt>,
}

impl Watcher for Tape {
    fn event(&mut self, event: &Event, _: &Reader) {
        if self.excerpt.is_some() {
            return;
        }
        while let Some(mark) = self.marks.as_mut().and_then(|marks| marks.before(event)) {
            self.history.push(mark);
            if let What::Done { number } = mark.what {
                self.excerpt = self.history.excerpt(number, BEFORE);
                return;
            }
        }
        if let Some(marks) = &mut self.marks {
            marks.after(event);
        }
        self.history.push(*event);
    }

    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()> {
        if self.marks.is_some() {
            return ControlFlow::Continue(());
        }
        let flow = self.wait.answer(sample, reader);
        if flow.is_break() {
            self.excerpt = self.history.excerpt(sample.trigger, BEFORE);
        }
        flow
    }
}
