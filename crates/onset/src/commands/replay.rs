// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset replay`: one latency again, to the instruction, and its trace.

use super::report::write_chosen;
use super::{bench, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use crate::followed::{
    Answer, Choice, EVENTS_KEPT, Named, Ready, Reproducer, STACKS_FROM, Subject, Watcher,
};
use crate::terminal::Shown;
use crate::visible::tell;
use rig::{Bench, Calls, Progress};
use sample::{Insns, Nanos, Sample, When};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use trace::{Event, Excerpt, History, Reader};

/// Version of the JSON that is printed (docs/replay.schema.json).
const SCHEMA: u32 = 1;
/// A trace begins this long before its trigger: what was going on is then seen, and it is half a period of most schedules.
const BEFORE: Nanos = Nanos::from_micros(500);

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    run: Option<&'a str>,
    responder: &'static str,
    trigger: u64,
    expected_ns: Nanos,
    expected_insns: Insns,
    latency_ns: Option<Nanos>,
    insns: Option<Insns>,
    identical: bool,
    times: u64,
    identical_times: u64,
}

pub fn run(arguments: &arguments::Replay) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = Named::find(&arguments.latencies.run, &arguments.latencies.store.store)?;
    let arguments::Replay { latencies, sample, worst, .. } = arguments;
    let reproducer = reproducer(&bench, &named, latencies, *sample, *worst)?;
    let (first_other, identical) =
        Shown::during(named.title(), ["replayed", "not replayed"], |progress| {
            replay(&bench, &reproducer, arguments, progress)
        })?;
    let (wanted, times) = (reproducer.sample(), arguments.times.get());
    let same = identical == times;
    let answer = first_other.unwrap_or(Some(wanted));
    let printed = Printed {
        schema: SCHEMA,
        run: named.run(),
        responder: reproducer.answer.responder.name(),
        trigger: wanted.trigger,
        expected_ns: wanted.latency,
        expected_insns: reproducer.answer.insns,
        latency_ns: answer.map(|a| a.latency),
        insns: answer.and_then(|a| a.path),
        identical: same,
        times,
        identical_times: identical,
    };
    if arguments.json {
        print_json(&printed)?;
    } else {
        print(&text(&printed))?;
    }
    Ok(if same { Exit::Success } else { Exit::Exceeded })
}

/// Runs it as often as asked, and writes the traces where it was identical each time. The first answer that was another, with
/// `None` for none at all, and how often it was identical.
fn replay(
    bench: &Bench,
    reproducer: &Reproducer,
    arguments: &arguments::Replay,
    progress: &dyn Fn(Progress),
) -> Result<(Option<Option<Sample>>, u64), Failure> {
    let ready = Ready::new(bench, reproducer.subject(bench)?, progress)?;
    let wanted = reproducer.sample();
    let times = arguments.times.get();
    let (mut first_other, mut identical) = (None, 0);
    for _ in 0..times {
        let mut wait = Wait { wanted, answer: None };
        ready.run(None, &mut wait, progress)?;
        if wait.answer.is_some_and(|a| (a.latency, a.path) == (wanted.latency, wanted.path)) {
            identical += 1;
        } else {
            first_other.get_or_insert(wait.answer);
        }
    }
    if identical == times && (arguments.trace.is_some() || arguments.vcd.is_some()) {
        write_traces(&ready, wanted, arguments, progress)?;
    }
    Ok((first_other, identical))
}

/// What a person reads.
fn text(printed: &Printed) -> String {
    let Printed { responder, trigger, expected_ns, identical_times, times, .. } = printed;
    let mut text = format!(
        "{responder} answers trigger {trigger} after {expected_ns} ({} ns, {} instructions): {identical_times} of {times} times identical\n",
        expected_ns.0, printed.expected_insns.0
    );
    if !printed.identical {
        let insns = printed.insns.map_or("no count of".into(), |insns| insns.0.to_string());
        text += &match printed.latency_ns {
            Some(Nanos(ns)) => {
                format!("  the first that is another: {ns} ns, {insns} instructions\n")
            }
            None => "  the first that is another: no answer\n".into(),
        };
    }
    text
}

/// The latency that is meant, with all that it takes: the longest answer to a trigger, or the one of that rank in the run.
pub(super) fn reproducer(
    bench: &Bench,
    named: &Named,
    latencies: &arguments::Latencies,
    trigger: Option<u64>,
    worst: Option<NonZeroUsize>,
) -> Result<Reproducer, Failure> {
    let rank = worst.map_or(1, |n| n.get());
    let asked = trigger.is_some() || worst.is_some();
    let choice = trigger.map_or(Choice::Worst(rank), Choice::Trigger);
    let samples = named.samples(latencies.responder, asked.then_some(choice))?;
    if let Named::Find(find) = named {
        return Ok((**find).clone());
    }
    // The last of so many of the worst; of several answers to one trigger the longest.
    let sample = match choice {
        Choice::Worst(rank) => samples.get(rank - 1),
        Choice::Trigger(_) => samples.first(),
    };
    let Some(sample) = sample else {
        let count = samples.len();
        return Err(Failure::usage(format!("there are only {count} answers; lower --worst")));
    };
    of_run(&named.subject(bench)?, sample)
}

/// The answer of a run, without the triggers that came after it.
fn of_run(subject: &Subject, sample: &Sample) -> Result<Reproducer, Failure> {
    let Subject { guest, generator, made_with } = subject;
    let (When::Planned(schedule), Some(made_with), Some(insns)) =
        (&generator.when, made_with, sample.path)
    else {
        return Err(Failure::unavailable(
            "the run's instructions were not counted; take a run of the rig",
        ));
    };
    let until = sample.at.0.saturating_add(sample.latency.0);
    let due = (0..).map_while(|n| schedule.due(n));
    let times: Vec<Nanos> = due.take_while(|due| due.0 <= until).collect();
    let responder = generator.responders.iter().nth(sample.series.index()).ok_or_else(|| {
        Failure::unavailable("the run's samples are of more responders than it has; its bundle is damaged: onset show --verify")
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

/// Runs it once more, followed, and writes what was asked for.
fn write_traces(
    ready: &Ready,
    wanted: Sample,
    arguments: &arguments::Replay,
    progress: &dyn Fn(rig::Progress),
) -> Result<(), Failure> {
    let (map, mut follow) = ready.follow(STACKS_FROM, Calls::All)?;
    // The dump has no calls.
    if arguments.trace.is_some() {
        let from = wanted.at.0.saturating_sub(BEFORE.0);
        follow = follow.telling_functions(Nanos(from));
    }
    for missing in &follow.missing {
        tell!("! not seen in this kernel: {missing}");
    }
    let wait = Wait { wanted, answer: None };
    let mut tape = Tape { wait, history: History::new(EVENTS_KEPT), excerpt: None };
    let reader = ready.run(Some(&follow), &mut tape, progress)?;
    let Some(excerpt) = &tape.excerpt else {
        return Err(Failure::unavailable(
            "the trace has no room for the whole latency, which is longer than two million events",
        ));
    };
    if let Some(path) = &arguments.trace {
        let bytes = trace::perfetto(excerpt, reader.tasks(), reader.stacks(), &map);
        write_chosen(path, &bytes)?;
    }
    if let Some(path) = &arguments.vcd {
        write_chosen(path, trace::vcd(excerpt).as_bytes())?;
    }
    Ok(())
}
