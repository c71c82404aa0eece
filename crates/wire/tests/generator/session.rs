// SPDX-License-Identifier: GPL-2.0-or-later
//! The session that docs/generator-protocol.md shows.

use crate::hex;
use sample::{Nanos, Responder, Schedule};
use std::fmt::Write;
use wire::generator::*;

#[derive(Clone, Copy, PartialEq)]
pub enum Who {
    Host,
    Device,
}

/// Who answers in the example session: in virtual time, with two responders.
fn example() -> Identity {
    let mut pins = [None; PINS];
    (pins[0], pins[7]) = (Some(Responder::Hardirq), Some(Responder::Task));
    let mut name = [0; Identity::NAME];
    name[..7].copy_from_slice(b"example");
    let mut ranges = [Range::new(0, u64::MAX); Setting::COUNT];
    ranges[0] = Range::new(10_000, 62_500_000);
    ranges[1] = Range::new(1, 62_499_999);
    ranges[2] = Range::new(1, 22);
    ranges[3] = Range::new(1, u64::MAX);
    ranges[7] = Range::new(1, 0x81);
    Identity {
        clock: Clock::Virtual,
        running: None,
        tick: Tick::NANOSECOND,
        accuracy_ppb: Some(0),
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits { ranges, train: 100_000, gap: Ticks(10_000) },
        settings: Settings::new([
            1_000_000,
            500,
            1,
            u64::MAX,
            0,
            1,
            0,
            0x81,
            1_000_000,
            100_000_000,
        ]),
        name,
    }
}

/// The session that docs/generator-protocol.md shows: what one side says, then what the other one does.
pub fn session() -> Vec<(Who, Vec<u8>)> {
    let (mut desk, mut said) = (Desk::new(example(), false), Vec::new());
    let set = |setting, value| Command::Set { setting, value };
    let commands = [
        Command::Identify { oldest: VERSION, newest: VERSION },
        set(Setting::Period, 5_000),
        set(Setting::Batch, 4),
        set(Setting::Count, 2),
        Command::Start(Timing::Periodic),
    ];
    for (number, command) in (1..).zip(commands) {
        let mut out = [0; STUFFED_MAX];
        said.push((Who::Host, command.encode(number, &mut out).to_vec()));
        let mut deframer = Deframer::new();
        let mut bytes = said.last().expect("just said").1.as_slice();
        let frame = deframer.next(&mut bytes).expect("one").expect("whole");
        let answer = desk.take(&frame).0.expect("each has one");
        said.push((Who::Device, answer.encode(number, &mut out).to_vec()));
    }
    let run = desk.identity().running.expect("it started");
    let mut batcher = Batcher::new(run, desk.identity().responders(), 4);
    let of = |trigger, responder, latency| Measurement {
        trigger,
        at: Ticks(1_000_000 * trigger),
        responder,
        latency: Ticks(latency),
    };
    batcher.triggered();
    batcher.measured(of(0, Responder::Hardirq, 1_852), Ticks(1_852));
    batcher.triggered();
    batcher.measured(of(1, Responder::Hardirq, 1_839), Ticks(1_001_839));
    batcher.measured(of(0, Responder::Task, 1_004_321), Ticks(1_004_321));
    batcher.lost(Responder::Task, sample::Loss::Superseded, 1);
    let (at, mut out) = (Ticks(1_004_321), [0; STUFFED_MAX]);
    let batch = Report::Batch(batcher.batch(at)).encode(0, &mut out).to_vec();
    batcher.sent(at);
    let (triggers, tallies) = (batcher.triggers(), *batcher.tallies());
    let stopped = Stopped { run, ended: Ended::Complete, triggers, at, tallies };
    let stopped = Report::Stopped(stopped).encode(1, &mut out).to_vec();
    said.extend([(Who::Device, batch), (Who::Device, stopped)]);
    said
}

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generator-protocol.md");
    std::fs::read_to_string(page).expect("the page")
}

/// Every line of the page that begins with a side and bytes, or goes on with bytes.
fn session_of_the_page(page: &str) -> String {
    let (_, section) = page.split_once("## An example session").expect("the section");
    let mut text = String::new();
    for line in section.lines().take_while(|line| !line.starts_with("## ")) {
        let Some(line) = line.strip_prefix("    ") else { continue };
        let words = line.split_whitespace().collect::<Vec<_>>();
        let is_byte = |word: &&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
        text += &words.into_iter().filter(is_byte).collect::<String>();
    }
    text
}

#[test]
fn the_page_shows_the_bytes_of_the_session() {
    let page = page();
    let expected: String = session().iter().map(|(_, bytes)| hex(bytes)).collect();
    let mut shown = String::new();
    for (who, bytes) in session() {
        let who = if who == Who::Host { "host" } else { "device" };
        for (n, line) in bytes.chunks(24).enumerate() {
            let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(shown, "    {:8}{}", if n == 0 { who } else { "" }, line.join(" ")).unwrap();
        }
    }
    assert!(
        session_of_the_page(&page) == expected,
        "docs/generator-protocol.md has other bytes than\n{shown}"
    );
}

#[test]
fn the_page_shows_the_displacements_of_a_schedule() {
    let (phase, period, jitter) = (Nanos(0), Nanos(1 << 20), Nanos(1_000));
    let schedule = Schedule::Periodic { phase, period, jitter, seed: 1, count: 5 };
    let due = (0..).map_while(|n| schedule.due(n)).zip(0..);
    let displaced: Vec<String> = due.map(|(at, n)| (at.0 - (n << 20)).to_string()).collect();
    let expected = format!("`jitter` 1000 the first displacements are {}.", displaced.join(", "));
    assert!(page().contains(&expected), "docs/generator-protocol.md does not say: {expected}");
}

#[test]
fn a_host_accounts_for_every_trigger_of_the_session() {
    let mut receipt = None;
    let mut deframer = Deframer::new();
    let spoken: Vec<u8> =
        session().into_iter().filter(|(who, _)| *who == Who::Device).flat_map(|(_, b)| b).collect();
    let mut bytes = spoken.as_slice();
    while let Some(frame) = deframer.next(&mut bytes) {
        match Report::decode(&frame.expect("whole")).expect("it is read") {
            Report::Started(started) => {
                let all = started.settings.responders();
                receipt = Some(Receipt::new(started.run, all));
            }
            Report::Batch(batch) => {
                assert_eq!(receipt.as_mut().map(|receipt| receipt.take(&batch)), Some(Ok(0)));
            }
            Report::Stopped(stopped) => {
                assert_eq!(receipt.as_mut().map(|receipt| receipt.stop(&stopped)), Some(Ok(0)));
            }
            _ => {}
        }
    }
    let receipt = receipt.expect("a run");
    assert!(receipt.is_whole());
    assert_eq!(receipt.losses(Responder::Task).map(|losses| losses.superseded), Some(1));
}
