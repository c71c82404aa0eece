// SPDX-License-Identifier: GPL-2.0-or-later
//! What frames say, in words that every language can print.

use sample::{Losses, Responder};
use std::fmt::Write;
use wire::generator::*;

/// What a whole stream says, in words that every language uses.
pub fn read(mut bytes: &[u8]) -> String {
    let (mut deframer, mut said) = (Deframer::new(), Vec::new());
    while let Some(frame) = deframer.next(&mut bytes) {
        let Ok(frame) = frame else { continue };
        let number = frame.number;
        let read = if frame.kind & 0x80 == 0 {
            Command::decode(&frame).map(|command| command_text(&command, number))
        } else {
            Report::decode(&frame).map(|report| report_text(&report, number))
        };
        said.push(read.unwrap_or_else(|e| match e {
            Unreadable::Version(version) => format!("version {version}"),
            Unreadable::Unknown(kind) => format!("unknown {:#04x}", kind.0),
            Unreadable::Optional(kind) => format!("passed over {:#04x}", kind.0),
            Unreadable::Setting(number) => format!("no setting {number}"),
            Unreadable::Malformed(kind) => format!("malformed {:#04x}", kind.0),
        }));
    }
    if deframer.damaged() > 0 {
        said.push(format!("damaged {}", deframer.damaged()));
    }
    said.join("; ")
}

fn command_text(command: &Command<'_>, number: u16) -> String {
    match command {
        Command::Identify { oldest, newest } => {
            format!("identify {number} oldest={oldest} newest={newest}")
        }
        Command::Set { setting, value } => format!("set {number} {}={value}", setting.name()),
        Command::Train(Train { first, times }) => {
            let times: Vec<String> = times.iter().map(|time| time.0.to_string()).collect();
            format!("train {number} first={first} times={}", times.join(","))
        }
        Command::Start(timing) => format!("start {number} timing={}", *timing as u8),
        Command::Stop => format!("stop {number}"),
        Command::Test => format!("test {number}"),
    }
}

fn report_text(report: &Report<'_>, number: u16) -> String {
    match report {
        Report::Identity(identity) => identity_text(identity, number),
        Report::Accepted(Accepted { command, setting, value }) => {
            let setting = setting.map_or("none", Setting::name);
            format!("accepted {number} command={:#04x} {setting}={value}", command.0)
        }
        Report::Refused(Refused { why, command, setting, value, range }) => {
            let setting = setting.map_or("none", Setting::name);
            let why = *why as u8;
            let command = command.0;
            let range = range_text(*range);
            format!("refused {number} why={why} command={command:#04x} {setting}={value} {range}")
        }
        Report::Started(started) => {
            let mut text = format!("started {number} run={} ", started.run.0);
            write!(text, "timing={} train={}", started.timing as u8, started.train).unwrap();
            for setting in Setting::ALL {
                write!(text, " {}={}", setting.name(), started.settings.get(setting)).unwrap();
            }
            text
        }
        Report::Stopped(Stopped { run, ended, triggers, at, tallies }) => {
            let (ended, fault) = match ended {
                Ended::Asked => (1, 0),
                Ended::Complete => (2, 0),
                Ended::Fault(number) => (3, *number),
                Ended::ClockEnds => (4, 0),
            };
            let tallies = tallies_text(tallies);
            let (run, at) = (run.0, at.0);
            format!(
                "stopped {number} run={run} ended={ended} fault={fault} triggers={triggers} at={at}{tallies}"
            )
        }
        Report::SelfTest(SelfTest { triggers, offset, jitter, late }) => {
            let (offset, jitter, late) = (offset.0, jitter.0, late.0);
            format!(
                "self-test {number} triggers={triggers} offset={offset} jitter={jitter} late={late}"
            )
        }
        Report::Batch(batch) => {
            let (run, first, at) = (batch.run.0, batch.first, batch.at.0);
            let (triggers, tallies) = (batch.triggers, tallies_text(&batch.tallies));
            let mut text = format!(
                "batch {number} run={run} first={first} triggers={triggers} at={at}{tallies}"
            );
            for Measurement { trigger, at, responder, latency } in batch.measurements.iter() {
                write!(text, " {trigger}/{}/{responder}/{}", at.0, latency.0).unwrap();
            }
            text
        }
    }
}

fn range_text(range: Range) -> String {
    format!("{}..{}/{}", range.least, range.most, range.step)
}

fn tallies_text(tallies: &Tallies) -> String {
    let mut text = String::new();
    for (responder, Tally { measured, losses }) in tallies.iter() {
        let Losses { unanswered, superseded, spurious, tainted, dropped, overrun } = losses;
        write!(
            text,
            " {responder}={measured},{unanswered},{superseded},{spurious},{tainted},{dropped},{overrun}"
        )
        .unwrap();
    }
    text
}

fn identity_text(identity: &Identity, number: u16) -> String {
    let running = identity.running.map_or(0, |run| run.0.get());
    let Tick { nanos, per } = identity.tick;
    let accuracy = identity.accuracy_ppb.map_or("unknown".into(), |ppb| ppb.to_string());
    let name = String::from_utf8_lossy(&identity.name);
    let Limits { train, gap, .. } = identity.limits;
    let mut text = format!(
        "identity {number} clock={} running={running} tick={nanos}/{per} accuracy={accuracy} held={} resolution={}",
        identity.clock as u8, identity.held, identity.resolution.0
    );
    let pins = identity.pins.map(|pin| pin.map_or("none", Responder::name)).join(",");
    let name = name.trim_end_matches('\0');
    write!(text, " pins={pins} gap={} train={train} name={name:?}", gap.0).unwrap();
    for setting in Setting::ALL {
        let (value, range) = (identity.settings.get(setting), identity.limits.range(setting));
        write!(text, " {}={value} {}", setting.name(), range_text(range)).unwrap();
    }
    text
}
