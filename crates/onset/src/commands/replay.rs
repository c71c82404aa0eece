// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset replay`: replays one latency, with the same instructions, and writes its trace.

use super::report::write_chosen;
use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::{Choice, Latency, Ready, Replayed, record, replay};
use rig::Bench;
use sample::{Insns, Nanos, Sample};
use view::results;
use view::terminal::Shown;
use view::visible::tell;
use work::Progress;

pub fn run(arguments: &arguments::Replay) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    let worst = arguments.worst.map(|rank| Choice::Worst(rank.get()));
    let choice = arguments.sample.map(Choice::Trigger).or(worst);
    let latency = Latency::of(&bench, &named, arguments.latencies.series.as_ref(), choice)?;
    let Replayed { first_other, identical } =
        Shown::during(named.title(), ["replayed", "not replayed"], |progress| {
            replayed(&bench, &latency, arguments, progress)
        })?;
    let (wanted, times) = (latency.sample, arguments.times.get());
    let same = identical == times;
    let answer = first_other.unwrap_or(Some(wanted));
    let printed = results::Replay {
        schema: results::Replay::SCHEMA,
        run: named.run(),
        responder: latency.series.as_str(),
        trigger: wanted.trigger,
        expected_ns: wanted.latency,
        expected_insns: wanted.path,
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
    latency: &Latency,
    arguments: &arguments::Replay,
    progress: &dyn Fn(Progress),
) -> Result<Replayed, Failure> {
    let ready = Ready::new(bench, latency.subject.clone(), progress)?;
    let times = arguments.times.get();
    let replayed = replay(&ready, latency.sample, times, progress)?;
    if replayed.identical == times && (arguments.trace.is_some() || arguments.vcd.is_some()) {
        write_traces(&ready, latency.sample, arguments, progress)?;
    }
    Ok(replayed)
}

/// Replays the latency once more with the follower, and writes the traces that the user asked for.
fn write_traces(
    ready: &Ready,
    wanted: Sample,
    arguments: &arguments::Replay,
    progress: &dyn Fn(Progress),
) -> Result<(), Failure> {
    // The dump of the pins has no calls of functions.
    let recorded = record(ready, wanted, arguments.trace.is_some(), progress)?;
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
    // Only of answers to triggers the instructions are counted.
    let insns =
        |insns: Option<Insns>| insns.map_or("".into(), |n| format!(", {} instructions", n.0));
    let what = match printed.expected_insns {
        Some(_) => format!("{responder} answers trigger {trigger} after {expected_ns}"),
        None => format!("sample {trigger} of {responder} is {expected_ns}"),
    };
    let counted = insns(printed.expected_insns);
    let mut text = format!(
        "{what} ({} ns{counted}): {identical_times} of {times} times identical\n",
        expected_ns.0
    );
    if !printed.identical {
        text += &match printed.latency_ns {
            Some(Nanos(ns)) => {
                format!("  the first replay that differs: {ns} ns{}\n", insns(printed.insns))
            }
            None => "  the first replay that differs: no answer\n".into(),
        };
    }
    text
}
