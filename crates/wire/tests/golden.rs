// SPDX-License-Identifier: GPL-2.0-or-later
//! The bytes of every event, of a plan and of arguments are those of `golden/`, and the driver's header is what this
//! crate makes. A format that changes shows here, and is changed by hand there: both ends of a border have to be
//! built anew then.

#[path = "borders/bytes.rs"]
mod bytes;

use bytes::{golden, hex};
use sample::*;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use wire::plan::{Count, Place, Plan, Stack, TaskFields, Watch};
use wire::*;

fn at() -> At {
    At { time: Stamp::from_ns(0x0102_0304_0506_0708), insns: Insns(0x1112_1314_1516_1718), cpu: 3 }
}

fn sample() -> Reading {
    let (at, latency) = (Stamp::from_ns(0x0102_0304_0506_0708), Nanos(0x1112_1314_1516_1718));
    Reading::Sample { series: 7, number: 0x2122_2324_2526_2728, at, latency }
}

fn loss() -> Reading {
    Reading::Loss { series: 2, loss: Loss::Dropped, count: 0x2122_2324_2526_2728 }
}

/// Of the port, of probes, and of their witness.
fn reported() -> Vec<(&'static str, Event)> {
    let (at, level, control, raised) = (at(), 0xb6a5, 0x1c, 0x2122_2324_2526_2728);
    let mark = |mark| Event::Mark { at, mark, control, level, raised };
    let requested = Some(Stamp::from_ns(0x3132));
    vec![
        ("trigger", Event::Trigger { at, level, number: raised }),
        ("pins", Event::Pins { at, level, raised }),
        ("disturbance", Event::Disturbance { at, timers: 64, level, raised }),
        ("mark warm_up", mark(Mark::WarmUp)),
        ("mark measuring", mark(Mark::Measuring)),
        ("mark done", mark(Mark::Done)),
        ("end", Event::End { at, control, level, raised }),
        ("reached", Event::Reached { at }),
        ("sample", Event::Reading(sample())),
        ("loss", Event::Reading(loss())),
        ("probe_end", Event::ProbeEnd),
        ("clock", Event::Clock { at, width: Nanos(80), read: Stamp::from_ns(0x3132) }),
        ("call", Event::Call { at, call: 230, thread: 5, requested }),
        ("wake", Event::Wake { at, call: 230, thread: 5, own: Insns(60) }),
        ("batch", Event::Batch { at, series: 3, number: 7, counts: true, ends: false }),
        ("spent", Event::Spent { function: 0xffff_ffff_8100_0010, insns: Insns(0x3132) }),
    ]
}

/// Of a follower.
fn followed() -> Vec<(&'static str, Event)> {
    let (at, address, stack_pointer) = (at(), 0xffff_ffff_8100_0010, 0x8123_4560);
    let (stack, opened) = (Some(StackId(0x4142)), Some(StackId(0x5152)));
    let (task, name) = (TaskId(0xffff_8880_0300_0000), *b"irq/7-onset\0\0\0\0\0");
    let occurrence = Occurrence { kind: Stretch::PreemptOff, key: 0x6162_6364, ordinal: 9 };
    let kinds = [Stretch::IrqsOff, Stretch::Unscheduled].into_iter().collect();
    let unscheduled = Insns(0x3132);
    vec![
        ("frame", Event::Frame { at, stack: StackId(0x4142), index: 2, address }),
        ("masked", Event::Masked { at, by: address }),
        ("unmasked", Event::Unmasked { at, stack, opened }),
        ("preempt", Event::Preempt { at, count: 0x0001_0000, stack, opened }),
        ("task", Event::Task { task, pid: 77, prio: 49, name }),
        ("run", Event::Run { at, task, pid: 77 }),
        ("enter", Event::Enter { at, watch: 4, taken: address, stack }),
        ("close", Event::Close { at, watch: 4, taken: 0x200, stack, opened }),
        ("aimed", Event::Aimed { at, kind: Stretch::Unscheduled, stack }),
        ("leave", Event::Leave { at, user: true, to: address }),
        ("stretch", {
            let (opened, cpu, length) = (at.time, at.cpu, at.insns);
            Event::Stretch { opened, cpu, length, occurrence }
        }),
        ("inside", Event::Inside { at, kinds, unscheduled, stack }),
        ("function", Event::Function { at, address, stack_pointer }),
        ("return", Event::Return { at, address, stack_pointer }),
    ]
}

#[test]
fn events_have_the_bytes_that_they_had() {
    let mut text = String::new();
    for (name, event) in reported().into_iter().chain(followed()) {
        let bytes = event.encode();
        assert_eq!(Event::decode(&bytes), Ok(event), "{name}");
        writeln!(text, "{name}: {}", hex(&bytes)).unwrap();
    }
    assert_eq!(text, golden("events.txt"), "crates/wire/golden/events.txt");
}

fn plan() -> Plan {
    let watch = |place, take, stack| Watch { place, take, stack };
    Plan {
        map: Some("/a map".into()),
        stacks_from: Insns(1_000),
        inside_from: Insns(4_000),
        inside_kinds: Stretches::from_mask(7),
        numbers: true,
        gates: vec![0xff00..0xff01, 0xff20..0xffa0],
        preempt: Some(Count { offset: 0x33c88, counts_irqs: true }),
        current: Some(0x33c80),
        task: TaskFields { pid: 2456, comm: 3000, prio: 100 },
        points: [0x90, 0x80].into(),
        holds: Some(0x78),
        releases: Some(0x79),
        functions_from: Some(Nanos(250)),
        counter: Some(0x4c0),
        watches: vec![
            watch(Place::Address(0x10), Take::First, Stack::Always),
            watch(Place::Address(0x11), Take::Second, Stack::Never),
            watch(Place::Address(0x11), Take::Top, Stack::Never),
            watch(Place::Address(0x12), Take::Word(24), Stack::Opens(2)),
            watch(Place::Address(0x13), Take::Count, Stack::Closes(2)),
            watch(Place::Rises, Take::Nothing, Stack::Opens(3)),
            watch(Place::Falls, Take::Nothing, Stack::Closes(3)),
        ],
    }
}

#[test]
fn a_plan_has_the_lines_that_it_had() {
    assert_eq!(plan().to_string(), golden("plan.txt"), "crates/wire/golden/plan.txt");
    assert_eq!(golden("plan.txt").parse(), Ok(plan()));
}

#[test]
fn commands_have_the_bytes_that_they_had() {
    let at = Nanos(0x0102_0304_0506_0708);
    let all = [
        ("trigger", Command::Trigger { at, high: Nanos(0x1112) }),
        ("run", Command::Run { until: at }),
        ("end", Command::End),
    ];
    let mut text = String::new();
    for (name, command) in all {
        writeln!(text, "{name}: {}", hex(&command.encode())).unwrap();
        assert_eq!(Command::decode(&command.encode()), command);
    }
    assert_eq!(text, golden("commands.txt"), "crates/wire/golden/commands.txt");
}

#[test]
fn requests_and_replies_have_the_bytes_that_they_had() {
    let at = Nanos(0x0102_0304_0506_0708);
    let mut text = String::new();
    let requests =
        [("walk", WalkRequest::Walk { until: at }), ("fork", WalkRequest::Fork { slot: 0x1112 })];
    for (name, request) in requests {
        writeln!(text, "{name}: {}", hex(&request.encode())).unwrap();
    }
    let replies = [
        ("stands", WalkReply::Stands { at }),
        ("forked", WalkReply::Forked { process: 0x2122 }),
        ("refused", WalkReply::Refused { errno: 12 }),
    ];
    for (name, reply) in replies {
        writeln!(text, "{name}: {}", hex(&reply.encode())).unwrap();
    }
    assert_eq!(text, golden("requests.txt"), "crates/wire/golden/requests.txt");
}

fn triggered(when: When) -> Stimulus {
    let at = |at, timers| Disturbance { at: Nanos(at), timers };
    Stimulus::Triggers(Triggers {
        when,
        high: Nanos(500),
        grace: Nanos(99),
        responders: ResponderSet::ALL.at(0x81),
        disturbances: vec![at(0x0102_0304, 0), at(0x0102_0305, 64)],
        work: None,
    })
}

fn arguments() -> Vec<(&'static str, Arguments)> {
    let told = |stimulus| Arguments {
        ring_fd: 5,
        commands_fd: None,
        start: Start::Restore,
        stimulus,
        witness: false,
        functions: None,
        follow: None,
        registers: (1, 16),
        forking: None,
    };
    let (phase, period, jitter) = (Nanos(10), Nanos(1_000), Nanos(3));
    let periodic = Schedule::Periodic { phase, period, jitter, seed: 9, count: 7 };
    let explicit = Schedule::Explicit(vec![Nanos(0x0102), Nanos(0x0103_0000_0000)]);
    let listed = Occurrence { kind: Stretch::BhHeld, key: 0x6162_6364_6566_6768, ordinal: 0x7172 };
    let aim = |rule| Aim { rule, kinds: 3, gap: Nanos(5), count: 7, until: Nanos(9), seed: 1 };
    let boot = Arguments { start: Start::Boot, ..told(triggered(When::Planned(periodic))) };
    let advance = Start::Advance(Nanos(70));
    let scout = triggered(When::Aimed(aim(Rule::Scout)));
    let list = triggered(When::Aimed(aim(Rule::Listed(vec![listed]))));
    let probe = told(Stimulus::Probe(b"{}".to_vec()));
    vec![
        ("booted, periodic", boot),
        ("explicit", told(triggered(When::Planned(explicit)))),
        ("advanced, scout", {
            Arguments { start: advance, follow: Some(Plan::default()), ..told(scout) }
        }),
        ("listed", Arguments { follow: Some(Plan::default()), ..told(list) }),
        ("probe", Arguments { witness: true, ..probe.clone() }),
        ("probe, counted", {
            let starts = vec![(0xffff_ffff_8100_0000, true), (0xffff_ffff_8200_0000, false)];
            let functions = Some(FunctionStarts { fault: 0xffff_ffff_8100_0010, starts });
            Arguments { witness: true, functions, ..probe }
        }),
        ("commanded", Arguments { commands_fd: Some(6), ..told(triggered(When::Commanded)) }),
        ("walked", {
            let nothing = triggered(When::Planned(Schedule::Explicit(Vec::new())));
            let forking = Some(Forking { requests_fd: 7, directory: "/scratch".into() });
            Arguments { start: Start::Walk, forking, ..told(nothing) }
        }),
    ]
}

#[test]
fn arguments_have_the_words_and_files_that_they_had() {
    let mut text = String::new();
    for (name, told) in arguments() {
        let mut files = BTreeMap::new();
        let words = told.words(|name, bytes| {
            files.insert(name.to_string(), bytes.to_vec());
            Ok::<_, Infallible>(name.to_string())
        });
        let words = words.unwrap();
        writeln!(text, "{name}: {}", words.join(" ")).unwrap();
        for (file, bytes) in &files {
            writeln!(text, "  {file}: {}", hex(bytes)).unwrap();
        }
        let read = |path: &str| files.get(path).cloned().ok_or("no such file");
        assert_eq!(Arguments::parse(words.iter().map(String::as_str), read), Ok(told), "{name}");
    }
    assert_eq!(text, golden("arguments.txt"), "crates/wire/golden/arguments.txt");
}

#[test]
fn the_drivers_header_is_what_this_crate_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../driver/onset_wire.h");
    let header = std::fs::read_to_string(path).expect("the driver's header");
    assert!(
        header == wire::header::c_header(),
        "driver/onset_wire.h is stale: cargo run -p onset-wire --example header >driver/onset_wire.h"
    );
}
