// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests a host that speaks to the fake session, byte by byte.

use super::fake::{experiment, responders};
use super::*;
use crate::target::fake::Fake;
use crate::target::{Lead, Target};
use experiment::Experiment;
use wire::generator::{self as protocol, Receipt, STUFFED_MAX, Stopped, Timing};

/// Everything that a host has heard.
#[derive(Default)]
struct Heard {
    answers: Vec<String>,
    receipt: Option<Receipt>,
    latencies: Vec<(u64, u64)>,
    stopped: Option<Stopped>,
    missing: u64,
}

struct Host {
    deframer: Deframer,
    number: u16,
    heard: Heard,
}

impl Host {
    fn new() -> Host {
        Host { deframer: Deframer::new(), number: 0, heard: Heard::default() }
    }

    /// Sends a command, and hears the answer.
    fn say(&mut self, generator: &mut Generator<'_>, command: protocol::Command<'_>, now: u64) {
        self.number += 1;
        let mut out = [0; STUFFED_MAX];
        let bytes = command.encode(self.number, &mut out);
        // The bytes may be cut anywhere.
        for mut piece in bytes.chunks(3) {
            generator.hear(&mut piece, Nanos(now));
        }
        self.listen(generator);
    }

    fn set(&mut self, generator: &mut Generator<'_>, setting: Setting, value: u64) {
        self.say(generator, protocol::Command::Set { setting, value }, 0);
    }

    fn listen(&mut self, generator: &mut Generator<'_>) {
        let (deframer, heard) = (&mut self.deframer, &mut self.heard);
        let mut bytes = Vec::new();
        generator.say(|said| {
            bytes.extend(said);
            said.len()
        });
        let mut bytes = bytes.as_slice();
        while let Some(frame) = deframer.next(&mut bytes) {
            match Report::decode(&frame.expect("whole")).expect("known") {
                Report::Started(started) => {
                    heard.receipt = Some(Receipt::new(started.run, responders()));
                }
                Report::Batch(batch) => {
                    let receipt = heard.receipt.as_mut().expect("it has started");
                    heard.missing += receipt.take(&batch).expect("consistent");
                    heard
                        .latencies
                        .extend(batch.measurements.iter().map(|m| (m.trigger, m.latency.0)));
                }
                Report::Stopped(stopped) => {
                    let receipt = heard.receipt.as_mut().expect("it has started");
                    heard.missing += receipt.stop(&stopped).expect("consistent");
                    heard.stopped = Some(stopped);
                }
                Report::Refused(refused) => heard.answers.push(refused.to_string()),
                other => heard.answers.push(format!("{:#04x}", other.kind().0)),
            }
        }
    }
}

/// A host, and a generator that has been identified.
fn pair<'a>(fake: &'a Fake, experiment: &'a Experiment) -> (Host, Generator<'a>) {
    let cell = experiment.cells().next().expect("a cell");
    let session = fake.begin(experiment, cell, Lead::Commands, &|_| ()).expect("it begins");
    let mut generator = Generator::new(session, responders(), "a fake");
    let mut host = Host::new();
    host.say(
        &mut generator,
        protocol::Command::Identify { oldest: protocol::VERSION, newest: protocol::VERSION },
        0,
    );
    assert_eq!(host.heard.answers.pop().as_deref(), Some("0x81"));
    (host, generator)
}

const MS: u64 = 1_000_000;

#[test]
fn a_run_comes_when_its_time_has_come_outside_and_all_of_it_is_told() {
    let (fake, experiment) = (Fake::default(), experiment());
    let (mut host, mut generator) = pair(&fake, &experiment);
    host.set(&mut generator, Setting::Period, 10 * MS);
    host.set(&mut generator, Setting::Count, 5);
    host.set(&mut generator, Setting::Batch, 2);
    host.say(&mut generator, protocol::Command::Start(Timing::Periodic), 7 * MS);
    // It is 18 ms after the start. With the time that the guest may run ahead: the triggers at 0, 10 and 20 ms.
    for _ in 0..20 {
        generator.turn(Nanos(25 * MS)).expect("it goes on");
    }
    host.listen(&mut generator);
    assert_eq!(generator.fired().len(), 3);
    assert_eq!(host.heard.latencies.len(), 6);
    for _ in 0..20 {
        generator.turn(Nanos(90 * MS)).expect("it goes on");
    }
    host.listen(&mut generator);
    let stopped = host.heard.stopped.expect("five triggers");
    assert_eq!((stopped.ended, stopped.triggers), (Ended::Complete, 5));
    assert_eq!((host.heard.latencies.len(), host.heard.missing), (10, 0));
    let receipt = host.heard.receipt.expect("it has started");
    assert!(receipt.is_whole());
    assert!(!host.heard.answers.iter().any(|answer| answer.contains("refuses")));
}

#[test]
fn what_is_outside_its_limits_is_refused_with_them_and_a_second_run_begins_after_the_first() {
    let (fake, experiment) = (Fake::default(), experiment());
    let (mut host, mut generator) = pair(&fake, &experiment);
    host.set(&mut generator, Setting::Period, 999);
    assert!(host.heard.answers.pop().expect("a refusal").contains("the limits are 1000 to"));
    host.set(&mut generator, Setting::Responders, 2);
    assert!(host.heard.answers.pop().expect("a refusal").contains("refuses responders"));
    host.say(&mut generator, protocol::Command::Start(Timing::Periodic), 0);
    (0..60).for_each(|_| generator.turn(Nanos(20 * MS)).expect("it goes on"));
    host.say(&mut generator, protocol::Command::Stop, 20 * MS);
    (0..60).for_each(|_| generator.turn(Nanos(20 * MS)).expect("it goes on"));
    host.listen(&mut generator);
    assert_eq!(host.heard.stopped.map(|s| s.ended), Some(Ended::Asked));
    let mut log = generator.fired();
    let first = log.len();
    host.set(&mut generator, Setting::High, 7_000);
    host.say(&mut generator, protocol::Command::Start(Timing::Periodic), 30 * MS);
    (0..60).for_each(|_| generator.turn(Nanos(31 * MS)).expect("it goes on"));
    log.extend(generator.fired());
    assert!(log[first].at > log[first - 1].at && log[first].high == Nanos(7_000));
    assert!(log.is_sorted_by_key(|fired| fired.at));
}

#[test]
fn a_host_that_reads_nothing_costs_batches_that_are_counted_and_holds_up_nobody() {
    let (fake, experiment) = (Fake::default(), experiment());
    let (mut host, mut generator) = pair(&fake, &experiment);
    host.set(&mut generator, Setting::Period, MS / 10);
    host.set(&mut generator, Setting::Count, 20_000);
    host.set(&mut generator, Setting::High, 1_000);
    host.say(&mut generator, protocol::Command::Start(Timing::Periodic), 0);
    let (mut turns, mut fired) = (0, 0);
    while fired < 20_000 || generator.run.is_some() {
        generator.turn(Nanos(9_000 * MS)).expect("it goes on");
        fired += generator.fired().len();
        turns += 1;
        assert!(turns < 100_000, "{fired} of 20,000 triggers");
    }
    host.listen(&mut generator);
    let stopped = host.heard.stopped.expect("it is told");
    assert_eq!(stopped.triggers, 20_000);
    let dropped: u64 = stopped.tallies.iter().map(|(_, tally)| tally.losses.dropped).sum();
    assert!(dropped > 0);
    assert_eq!(host.heard.missing, dropped);
    assert_eq!(host.heard.latencies.len() as u64 + dropped, 40_000);
}

#[test]
fn a_host_that_asks_without_reading_is_answered_each_time_when_it_reads_and_costs_no_memory() {
    let (fake, experiment) = (Fake::default(), experiment());
    let (_, mut generator) = pair(&fake, &experiment);
    // Answers to all of them are some megabytes, of which the outbox would hold a part.
    const ASKED: u16 = 10_000;
    let mut said = Vec::new();
    for number in 0..ASKED {
        let command =
            protocol::Command::Identify { oldest: protocol::VERSION, newest: protocol::VERSION };
        said.extend_from_slice(command.encode(number, &mut [0; STUFFED_MAX]));
    }
    let mut rest = said.as_slice();
    generator.hear(&mut rest, Nanos(0));
    let before = rest.len();
    generator.hear(&mut rest, Nanos(0));
    assert!(before > 0 && rest.len() == before, "it takes no command while an answer waits");
    assert!(generator.has_to_say());
    let (mut deframer, mut answered) = (Deframer::new(), 0);
    for _ in 0..ASKED {
        let mut bytes = Vec::new();
        // The line takes an answer in two parts, and the generator hears nothing in between.
        for most in [100, usize::MAX] {
            generator.say(|said| {
                bytes.extend_from_slice(&said[..said.len().min(most)]);
                said.len().min(most)
            });
            let before = rest.len();
            generator.hear(&mut rest, Nanos(0));
            assert!(most > 100 || rest.len() == before);
        }
        let mut bytes = bytes.as_slice();
        while let Some(frame) = deframer.next(&mut bytes) {
            assert_eq!(frame.expect("whole").number, answered);
            answered += 1;
        }
    }
    assert_eq!((answered, rest.len()), (ASKED, 0));
}
