// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset replay`: replays one latency, with the same instructions, and writes its trace.

use super::report::write_chosen;
use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::{Choice, Ready, Replayed, Reproducer, record, replay, reproducer};
use rig::Bench;
use sample::Nanos;
use view::results;
use view::terminal::Shown;
use view::visible::tell;
use work::Progress;

pub fn run(arguments: &arguments::Replay) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    let worst = arguments.worst.map(|rank| Choice::Worst(rank.get()));
    let choice = arguments.sample.map(Choice::Trigger).or(worst);
    let reproducer = reproducer(&bench, &named, arguments.latencies.responder, choice)?;
    let Replayed { first_other, identical } =
        Shown::during(named.title(), ["replayed", "not replayed"], |progress| {
            replayed(&bench, &reproducer, arguments, progress)
        })?;
    let (wanted, times) = (reproducer.sample(), arguments.times.get());
    let same = identical == times;
    let answer = first_other.unwrap_or(Some(wanted));
    let printed = results::Replay {
        schema: results::Replay::SCHEMA,
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

/// Replays the latency as often as the user asked. Writes the traces if the latency was identical each time.
fn replayed(
    bench: &Bench,
    find: &Reproducer,
    arguments: &arguments::Replay,
    progress: &dyn Fn(Progress),
) -> Result<Replayed, Failure> {
    let ready = Ready::new(bench, find.subject(bench)?, progress)?;
    let times = arguments.times.get();
    let replayed = replay(&ready, find, times, progress)?;
    if replayed.identical == times && (arguments.trace.is_some() || arguments.vcd.is_some()) {
        write_traces(&ready, find, arguments, progress)?;
    }
    Ok(replayed)
}

/// Replays the latency once more with the follower, and writes the traces that the user asked for.
fn write_traces(
    ready: &Ready,
    find: &Reproducer,
    arguments: &arguments::Replay,
    progress: &dyn Fn(Progress),
) -> Result<(), Failure> {
    // The dump of the pins has no calls of functions.
    let recorded = record(ready, find, arguments.trace.is_some(), progress)?;
    for missing in &recorded.missing {
        tell!("! not seen in this kernel: {missing}");
    }
    let (excerpt, reader) = (&recorded.excerpt, &recorded.reader);
    if let Some(path) = &arguments.trace {
        let bytes = trace::perfetto(excerpt, reader.tasks(), reader.stacks(), &recorded.map);
        write_chosen(path, &bytes)?;
    }
    if let Some(path) = &arguments.vcd {
        write_chosen(path, trace::vcd(excerpt).as_bytes())?;
    }
    Ok(())
}

/// The result as text.
fn text(printed: &results::Replay) -> String {
    let results::Replay { responder, trigger, expected_ns, identical_times, times, .. } = printed;
    let mut text = format!(
        "{responder} answers trigger {trigger} after {expected_ns} ({} ns, {} instructions): {identical_times} of {times} times identical\n",
        expected_ns.0, printed.expected_insns.0
    );
    if !printed.identical {
        let insns = printed.insns.map_or("no count of".into(), |insns| insns.0.to_string());
        text += &match printed.latency_ns {
            Some(Nanos(ns)) => {
                format!("  the first replay that differs: {ns} ns, {insns} instructions\n")
            }
            None => "  the first replay that differs: no answer\n".into(),
        };
    }
    text
}
