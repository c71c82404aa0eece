// SPDX-License-Identifier: GPL-2.0-or-later
//! A program in C that includes the driver's header writes the bytes that Rust reads.

#[path = "borders/c.rs"]
mod c;

use sample::{ALL_RESPONDERS, Disturbance, Responder};
use std::process::Command;
use wire::{Event, Reading, ports};

/// What the program prints; `None` where this machine cannot build it.
fn printed() -> Option<String> {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../../driver");
    let program = c::compiled("driver.c", &["-I", driver])?;
    let ran = Command::new(&program).output().expect("the program");
    std::fs::remove_file(&program).expect("it was there");
    Some(String::from_utf8(ran.stdout).expect("text"))
}

#[test]
fn records_and_numbers_of_the_driver_are_those_of_this_crate() {
    let Some(printed) = printed() else { return };
    let lines: Vec<&str> = printed.lines().collect();
    let [sample, loss, numbers @ ..] = lines.as_slice() else { panic!("{printed}") };
    let golden = include_str!("../golden/events.txt");
    for record in [sample, loss] {
        assert!(golden.lines().any(|line| line == *record), "{record}");
        let (_, hex) = record.split_once(": ").expect("a name");
        let bytes: Vec<u8> = (0..Event::BYTES)
            .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hexadecimal"))
            .collect();
        let event = Event::decode(bytes.as_slice().try_into().expect("32 bytes"));
        let of_its_pin = match event {
            Ok(Event::Reading(Reading::Sample { series, .. })) => series == Responder::Task as u16,
            Ok(Event::Reading(Reading::Loss { series, .. })) => series == Responder::Tasklet as u16,
            _ => false,
        };
        assert!(of_its_pin, "{record}: {event:?}");
    }
    let expected = [
        format!("responders {} losses 5", ALL_RESPONDERS.len()),
        format!(
            "port {:#x} irq {} disturbance {:#x} timers {}",
            ports::PARALLEL,
            ports::PARALLEL_IRQ,
            ports::DISTURBANCE,
            Disturbance::TIMERS_MAX
        ),
        format!("{} {:#x}", ports::DEVICE, ports::request(ports::ANSWER)),
        format!("{} {:#x}", ports::SAMPLES, ports::request(ports::STOP)),
    ];
    assert_eq!(numbers, expected);
}
