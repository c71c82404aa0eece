// SPDX-License-Identifier: GPL-2.0-or-later
//! Replays one latency: what the replay needs, how late the answer is, and the events around it.

use super::{Answer, Choice, EVENTS_KEPT, Named, Ready, Reproducer, STACKS_FROM, Subject, Watcher};
use crate::Error;
use rig::{Bench, Calls};
use sample::{Nanos, Responder, Sample, When};
use std::ops::ControlFlow;
use trace::{Event, Excerpt, History, Reader};
use vmlinux::Map;
use work::Progress;

/// How long before its trigger a trace begins. So the trace shows what was going on. It is half a period of most
/// schedules.
const BEFORE: Nanos = Nanos::from_micros(500);

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
    reproducer: &Reproducer,
    times: u64,
    progress: &dyn Fn(Progress),
) -> Result<Replayed, Error> {
    let wanted = reproducer.sample();
    let mut replayed = Replayed { first_other: None, identical: 0 };
    for _ in 0..times {
        let mut wait = Wait { wanted, answer: None };
        ready.run(None, &mut wait, progress)?;
        if wait.answer.is_some_and(|a| (a.latency, a.path) == (wanted.latency, wanted.path)) {
            replayed.identical += 1;
        } else {
            replayed.first_other.get_or_insert(wait.answer);
        }
    }
    Ok(replayed)
}

/// The events around an answer, and everything that names them.
pub struct Recorded {
    /// The events from half a millisecond before the trigger to the answer.
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
    reproducer: &Reproducer,
    functions: bool,
    progress: &dyn Fn(Progress),
) -> Result<Recorded, Error> {
    let wanted = reproducer.sample();
    let (map, mut follow) = ready.follow(STACKS_FROM, Calls::All)?;
    if functions {
        follow = follow.telling_functions(wanted.at.saturating_sub(BEFORE));
    }
    let wait = Wait { wanted, answer: None };
    let mut tape = Tape { wait, history: History::new(EVENTS_KEPT), excerpt: None };
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
    responder: Option<Responder>,
    asked: Option<Choice>,
) -> Result<Reproducer, Error> {
    let choice = asked.unwrap_or(Choice::Worst(1));
    let samples = named.samples(responder, asked)?;
    if let Named::Find(find) = named {
        return Ok((**find).clone());
    }
    // The last of that many of the worst. Of several answers to one trigger, the longest.
    let sample = match choice {
        Choice::Worst(rank) => samples.get(rank - 1),
        Choice::Trigger(_) => samples.first(),
    };
    let Some(sample) = sample else {
        let count = samples.len();
        return Err(Error::Unfit(format!("there are only {count} answers; lower --worst")));
    };
    of_run(&named.subject(bench)?, sample)
}

/// The answer of a run, without the triggers that came after it.
fn of_run(subject: &Subject, sample: &Sample) -> Result<Reproducer, Error> {
    let Subject { guest, generator, made_with } = subject;
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

/// Keeps the events around one answer.
struct Tape {
    wait: Wait,
    history: History,
    excerpt: Option<Excerpt>,
}

impl Watcher for Tape {
    fn event(&mut self, event: &Event, _: &Reader) {
        self.history.push(*event);
    }

    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()> {
        let flow = self.wait.answer(sample, reader);
        if flow.is_break() {
            self.excerpt = self.history.excerpt(sample.trigger, BEFORE);
        }
        flow
    }
}
