// SPDX-License-Identifier: GPL-2.0-or-later
//! The frames of the generator protocol have the bytes of `golden/generator.txt`, and say what
//! `golden/generator-read.txt` says: to Rust, to `reader.c` beside this, and to `web/test/generator.test.ts`.

#[path = "../borders/bytes.rs"]
mod bytes;
#[path = "../borders/c.rs"]
mod c;
mod firmware;
mod reading;
mod session;

use bytes::{golden, hex};
use reading::read;
use sample::{ALL_RESPONDERS, Losses, Responder, ResponderSet};
use session::{Who, session};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::process::{Command as Process, Stdio};
use wire::generator::*;

/// Numbers of which each byte is another one.
const A: u64 = 0x0102_0304_0506_0708;
const B: u64 = 0x1112_1314_1516_1718;

fn run() -> Run {
    Run(NonZeroU32::new(0x2122_2324).expect("above 0"))
}

fn settings() -> Settings {
    Settings::new([125_000, 12_500, 22, u64::MAX, 1_000, A, 0, 0x481, 1_250_000, 12_500_000])
}

fn limits() -> Limits {
    let to_a_minute = |least| Range::new(least, 7_500_000_000);
    let ranges = [
        Range { least: 1_250, most: 7_812_500, step: 2 },
        Range::new(125, 7_812_000),
        Range::new(1, 22),
        Range::new(1, u64::MAX),
        to_a_minute(0),
        Range::new(0, u64::MAX),
        to_a_minute(0),
        Range::new(1, 0x48f),
        to_a_minute(125),
        to_a_minute(125_000),
    ];
    Limits { ranges, train: 4_096, gap: Ticks(1_250) }
}

fn identity() -> Identity {
    let mut pins = [None; PINS];
    let wired = [Responder::Hardirq, Responder::ThreadedIrq, Responder::Tasklet, Responder::Task];
    pins.iter_mut().zip(wired).for_each(|(pin, responder)| *pin = Some(responder));
    pins[7] = Some(Responder::BhWork);
    pins[15] = Some(Responder::Waitqueue);
    let mut name = [0; Identity::NAME];
    let text = b"a generator of golden bytes";
    name[..text.len()].copy_from_slice(text);
    let whole = |n| NonZeroU32::new(n).expect("above 0");
    Identity {
        clock: Clock::Counter,
        running: Some(run()),
        tick: Tick { nanos: whole(1_000), per: whole(125) },
        accuracy_ppb: Some(30_000),
        resolution: Ticks(2),
        pins,
        held: 3,
        limits: limits(),
        settings: settings(),
        name,
    }
}

fn tallies() -> Tallies {
    let mut tallies = Tallies::new(ResponderSet::ALL.at(0x481));
    let losses =
        Losses { unanswered: 1, superseded: 2, spurious: 3, tainted: 4, dropped: 5, overrun: 6 };
    *tallies.get_mut(Responder::Hardirq).expect("a member") = Tally { measured: A, losses };
    tallies.get_mut(Responder::Waitqueue).expect("a member").measured = B;
    tallies
}

fn measurements() -> [Measurement; 2] {
    let of = |trigger, responder, latency| Measurement {
        trigger,
        at: Ticks(B),
        responder,
        latency: Ticks(latency),
    };
    [of(A, Responder::Waitqueue, 0x0031_3233_3435_3637), of(0, Responder::Hardirq, 0)]
}

type Named = (&'static str, Vec<u8>);

fn commands() -> Vec<Named> {
    let times = [0, 1_250, B].map(Ticks);
    let train = |first, times| Command::Train(Train { first, times });
    let all = [
        ("identify", Command::Identify { oldest: 1, newest: 3 }),
        ("set", Command::Set { setting: Setting::Seed, value: A }),
        ("train", train(0x0102_0304, List::new(&times).expect("three"))),
        ("train, none", train(0, List::EMPTY)),
        ("start", Command::Start(Timing::Periodic)),
        ("start a train", Command::Start(Timing::Train)),
        ("stop", Command::Stop),
        ("test", Command::Test),
    ];
    all.into_iter()
        .zip(0x0101..)
        .map(|((name, command), number)| {
            let mut out = [0; STUFFED_MAX];
            (name, command.encode(number, &mut out).to_vec())
        })
        .collect()
}

/// A refusal of each reason that a generator finds by what is here.
fn refusals() -> [(&'static str, Refused); 6] {
    let limits = limits();
    let of = |setting, value| limits.check(setting, value).expect_err("it is outside");
    let no_train = limits.check_start(&settings(), Timing::Train, Held::default());
    [
        ("refused, version", negotiate(3, 4).expect_err("it is newer")),
        ("refused, outside", of(Setting::Period, 1_249)),
        ("refused, not a step", of(Setting::Period, 1_251)),
        ("refused, no train", no_train.expect_err("none is held")),
        ("refused, unknown", Unreadable::Unknown(Kind(0x3f)).refusal(0x3f).expect("it is told")),
        ("refused, setting", Unreadable::Setting(11).refusal(2).expect("it is told")),
    ]
}

fn reports() -> Vec<Named> {
    let accepted = |command, setting, value| Report::Accepted(Accepted { command, setting, value });
    let some = measurements();
    let batch = |measurements| {
        let (run, tallies) = (run(), tallies());
        Report::Batch(Batch { run, first: A, triggers: B, at: Ticks(A), tallies, measurements })
    };
    let stopped = |ended| {
        let (run, tallies) = (run(), tallies());
        Report::Stopped(Stopped { run, ended, triggers: B, at: Ticks(A), tallies })
    };
    let (settings, train) = (settings(), 0x0102_0304);
    let late = Ticks(0x0304);
    let test = SelfTest { triggers: A, offset: Ticks(B), jitter: Ticks(0x0102), late };
    let mut all = vec![
        ("identity", Report::Identity(identity())),
        ("accepted, set", accepted(Kind::SET, Some(Setting::Seed), A)),
        ("accepted, stop", accepted(Kind::STOP, None, 0)),
    ];
    all.extend(refusals().map(|(name, refused)| (name, Report::Refused(refused))));
    all.extend([
        (
            "started",
            Report::Started(Started { run: run(), timing: Timing::Train, train, settings }),
        ),
        ("batch", batch(List::new(&some).expect("two"))),
        ("batch, none", batch(List::EMPTY)),
        ("stopped, asked", stopped(Ended::Asked)),
        ("stopped, complete", stopped(Ended::Complete)),
        ("stopped, fault", stopped(Ended::Fault(0x4142))),
        ("stopped, clock ends", stopped(Ended::ClockEnds)),
        ("self-test", Report::SelfTest(test)),
    ]);
    all.into_iter()
        .zip(0xfff8..)
        .map(|((name, report), number): (_, u32)| {
            let mut out = [0; STUFFED_MAX];
            (name, report.encode(number as u16, &mut out).to_vec())
        })
        .collect()
}

/// Streams in which more lies than whole frames of known kinds.
fn streams() -> Vec<Named> {
    let frame = |version, kind, payload: &[u8]| {
        let mut out = [0; STUFFED_MAX];
        Frame { version, kind, number: 7, payload }.encode(&mut out).to_vec()
    };
    let stop = frame(VERSION, Kind::STOP.0, &[]);
    let mut flipped = stop.clone();
    flipped[2] ^= 0x10;
    let long = frame(VERSION, 0x7f, &[0x5a; PAYLOAD_MAX]);
    let too_long = [vec![0xff; FRAME_MAX + 100], vec![0]].concat();
    vec![
        ("garbage, then a frame", [&b"\x12\x34garbage"[..], &[0], &stop].concat()),
        ("a torn frame takes the next one along", [&stop[..5], &stop, &stop].concat()),
        ("a flipped bit", [&flipped[..], &stop].concat()),
        ("more than a frame has", [too_long, stop.clone()].concat()),
        ("delimiters alone", vec![0; 5]),
        ("a kind to pass over, as long as a frame may be", [&long[..], &stop].concat()),
        ("a kind to refuse", frame(VERSION, 0x3f, &[1, 2])),
        ("another version", frame(VERSION + 1, Kind::BATCH.0, &[1, 2])),
        ("a payload that is too long", frame(VERSION, Kind::STOP.0, &[0])),
    ]
}

fn all() -> Vec<Named> {
    let of = |who| session().into_iter().filter(move |(by, _)| *by == who);
    let spoken = |who| of(who).flat_map(|(_, bytes)| bytes).collect();
    let session = [("session, host", spoken(Who::Host)), ("session, device", spoken(Who::Device))];
    [commands(), reports(), streams(), session.into()].concat()
}

#[test]
fn frames_have_the_bytes_that_they_had() {
    let line = |(name, bytes): Named| format!("{name}: {}\n", hex(&bytes));
    let text: String = all().into_iter().map(line).collect();
    assert!(text == golden("generator.txt"), "crates/wire/golden/generator.txt:\n{text}");
}

#[test]
fn frames_say_what_they_said() {
    let line = |(name, bytes): Named| format!("{name}: {}\n", read(&bytes));
    let text: String = all().into_iter().map(line).collect();
    assert!(text == golden("generator-read.txt"), "crates/wire/golden/generator-read.txt:\n{text}");
}

/// What the C program makes of the golden bytes; `None` where this machine cannot build it.
fn read_by_c() -> Option<String> {
    let program = c::compiled("generator/reader.c", &["-std=c99", "-Wextra"])?;
    let mut reader = Process::new(&program);
    reader.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut reader = reader.spawn().expect("the program");
    let bytes = golden("generator.txt");
    let mut input = reader.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || input.write_all(bytes.as_bytes()));
    let read = reader.wait_with_output().expect("the program");
    writer.join().expect("no panic").expect("the program reads all");
    std::fs::remove_file(&program).expect("it was there");
    Some(String::from_utf8(read.stdout).expect("text"))
}

#[test]
fn a_program_in_c_reads_the_same() {
    let Some(read) = read_by_c() else { return };
    for (read, said) in read.lines().zip(golden("generator-read.txt").lines()) {
        assert_eq!(read, said);
    }
    assert_eq!(read.lines().count(), all().len());
}

#[test]
fn the_longest_batch_fits_a_frame() {
    let mut tallies = Tallies::new(ALL_RESPONDERS.into_iter().collect());
    for responder in ALL_RESPONDERS {
        tallies.get_mut(responder).expect("a member").measured = A;
    }
    let all = [measurements()[0]; BATCH_MAX];
    let measurements = List::new(&all).expect("they fit");
    let batch = Batch { run: run(), first: A, triggers: B, at: Ticks(A), tallies, measurements };
    let mut out = [0; STUFFED_MAX];
    let bytes = Report::Batch(batch).encode(1, &mut out);
    let mut deframer = Deframer::new();
    let frame = deframer.next(&mut &*bytes).expect("one").expect("whole");
    assert_eq!(Report::decode(&frame), Ok(Report::Batch(batch)));
}
