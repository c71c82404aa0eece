// SPDX-License-Identifier: GPL-2.0-or-later
//! The desk of the firmware (`firmware/core/desk.c`) answers as the one here does, to the byte.

use super::c;
use std::io::Write as _;
use std::process::{Command as Process, Stdio};
use wire::generator::*;

/// Commands of a session. Each begins with `identify`, most of the time.
const COMMANDS: u64 = 60;

/// The C sources, with what plays the board.
fn compiled() -> Option<String> {
    let core = format!("{}/../../firmware/core", env!("CARGO_MANIFEST_DIR"));
    let files = ["desk", "frame", "generator", "matcher", "outbox", "plan", "run", "schedule"];
    let files: Vec<String> = files.iter().map(|file| format!("{core}/{file}.c")).collect();
    let options: Vec<&str> =
        ["-std=c11", "-O1"].into_iter().chain(files.iter().map(String::as_str)).collect();
    c::compiled("../../../firmware/test/host.c", &options)
}

/// What the firmware answers to these bytes.
fn answers(program: &str, bytes: &[u8]) -> Vec<u8> {
    let mut desk = Process::new(program);
    desk.arg("desk").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut desk = desk.spawn().expect("the program");
    let mut input = desk.stdin.take().expect("it is piped");
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let said = desk.wait_with_output().expect("the program");
    writer.join().expect("no panic").expect("the program reads all");
    assert!(said.status.success());
    said.stdout
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number that matters. No level of these is shorter than the time between two triggers by one or two ticks: the
    /// firmware alone refuses that, because a low level takes three.
    fn value(&mut self) -> u64 {
        let matters = [0, 1, 22, 23, 100, 125_000, 1_250, 1_240, 5_000, 2_500, 255, 256, u64::MAX];
        matters[self.below(matters.len() as u64) as usize]
    }

    fn payload(&mut self, kind: u8) -> Vec<u8> {
        let mut to = Vec::new();
        match kind {
            1 => to.extend([self.below(4) as u8, 1 + self.below(3) as u8]),
            2 => {
                let zero = u8::from(self.below(30) == 0);
                to.extend([self.below(12) as u8, 0, 0, zero, 0, 0, 0, 0]);
                to.extend(self.value().to_le_bytes());
            }
            3 => {
                to.extend((self.below(3) * self.below(9)).to_le_bytes());
                let mut at = self.below(9_000);
                for _ in 0..self.below(12) {
                    to.extend(at.to_le_bytes());
                    at += 1_240 + 10 * self.below(30);
                }
            }
            4 => to.push(self.below(3) as u8),
            _ => {}
        }
        // Some are too long.
        to.extend((0..self.below(24) / 23).map(|_| 0));
        to
    }

    fn frame(&mut self, number: u16) -> (u8, u8, u16, Vec<u8>) {
        // Not `test`: its answer comes when it is over.
        let kind =
            [1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5, self.below(256) as u8][self.below(12) as usize];
        let kind = if kind == Kind::TEST.0 { Kind::STOP.0 } else { kind };
        let version = if self.below(20) == 0 { VERSION + 1 } else { VERSION };
        (version, kind, number, self.payload(kind))
    }
}

/// The identity in the first answer.
fn identity(said: &[u8]) -> Identity {
    let (mut deframer, mut bytes) = (Deframer::new(), said);
    let frame = deframer.next(&mut bytes).expect("an answer").expect("a whole one");
    match Report::decode(&frame) {
        Ok(Report::Identity(identity)) => identity,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_desk_of_the_firmware_answers_as_this_one_does() {
    let Some(program) = compiled() else { return };
    let mut compared = 0;
    for seed in 0..200 {
        let mut draws = Draws(seed << 32);
        let mut frames = vec![(VERSION, Kind::IDENTIFY.0, 0, vec![VERSION, VERSION])];
        frames.extend((1..COMMANDS).map(|number| draws.frame(number as u16)));
        let mut bytes = Vec::new();
        for (version, kind, number, payload) in &frames {
            let frame = Frame { version: *version, kind: *kind, number: *number, payload };
            bytes.extend_from_slice(frame.encode(&mut [0; STUFFED_MAX]));
        }
        let said = answers(&program, &bytes);
        let mut desk = Desk::new(identity(&said), true);
        let (mut expected, mut rest) = (Vec::new(), bytes.as_slice());
        let mut deframer = Deframer::new();
        while let Some(frame) = deframer.next(&mut rest) {
            let frame = frame.expect("a whole one");
            if let (Some(answer), _) = desk.take(&frame) {
                compared += 1;
                let answer = match answer {
                    // The low level takes three ticks of the board, not one.
                    Report::Refused(mut refused)
                        if refused.setting == Some(Setting::High)
                            && refused.command == Kind::START =>
                    {
                        refused.range.most -= 2;
                        Report::Refused(refused)
                    }
                    other => other,
                };
                expected.extend_from_slice(answer.encode(frame.number, &mut [0; STUFFED_MAX]));
            }
        }
        assert!(
            said == expected,
            "seed {seed}: {}\n{}",
            super::read(&said),
            super::read(&expected)
        );
    }
    std::fs::remove_file(&program).expect("it was there");
    assert!(compared > 8_000, "{compared}");
}
