// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator of triggers that only speaks its protocol.

use sample::{Responder, ResponderSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wire::generator::{
    BATCH_MAX, Batcher, Clock, Deed, Deframer, Desk, Ended, Identity, Limits, Measurement, Range,
    Report, STUFFED_MAX, Setting, Settings, Started, Stopped, Tick, Ticks,
};

/// Bytes that are written at once, as a generator with a queue would.
const QUEUE: usize = 64 * 1024;

/// A device with one responder that answers each trigger.
pub struct Device {
    /// How many measurements its run has.
    pub measurements: u64,
    /// From one to the next, by the time outside; 0: as fast as the line takes them.
    pub period: Duration,
    /// When its run began.
    pub begun: OnceLock<Instant>,
}

impl Device {
    /// Answers commands and, once it is started, sends the measurements. Stays until its host has gone.
    pub fn serve(&self, line: &mut TcpStream) {
        let (mut desk, mut deframer) = (Desk::new(self.identity(), false), Deframer::new());
        let (mut bytes, mut out) = ([0; 4096], [0; STUFFED_MAX]);
        loop {
            let read = line.read(&mut bytes).expect("a host");
            let mut rest = &bytes[..read];
            while let Some(frame) = deframer.next(&mut rest) {
                let frame = frame.expect("whole");
                let (answer, deed) = desk.take(&frame);
                if let Some(answer) = answer {
                    line.write_all(answer.encode(frame.number, &mut out)).expect("a host");
                }
                if let Deed::Start(started) = deed {
                    return self.send_all(line, &started);
                }
            }
        }
    }

    fn send_all(&self, line: &mut TcpStream, started: &Started) {
        let responder = Responder::Task;
        let only: ResponderSet = [responder].into_iter().collect();
        let mut batcher = Batcher::new(started.run, only, BATCH_MAX);
        let (mut queue, mut out) = (Vec::with_capacity(QUEUE + STUFFED_MAX), [0; STUFFED_MAX]);
        let (mut told, begun, step) = (0_u16, *self.begun.get_or_init(Instant::now), self.step());
        for trigger in 0..self.measurements {
            let at = Ticks(trigger * step);
            batcher.triggered();
            batcher.measured(
                Measurement { trigger, at, responder, latency: Ticks(5_000 + trigger % 977) },
                at,
            );
            if batcher.held() == BATCH_MAX || trigger + 1 == self.measurements {
                queue.extend_from_slice(Report::Batch(batcher.batch(at)).encode(told, &mut out));
                batcher.sent(at);
                told = told.wrapping_add(1);
            }
            let due = self.period * u32::try_from(trigger).unwrap_or(u32::MAX);
            let early = due.saturating_sub(begun.elapsed());
            if !early.is_zero() {
                // What has come by now is told, as a generator does.
                line.write_all(&queue).expect("a host");
                queue.clear();
                std::thread::sleep(early.max(Duration::from_millis(1)));
            }
            if queue.len() >= QUEUE {
                line.write_all(&queue).expect("a host");
                queue.clear();
            }
        }
        let (run, tallies) = (started.run, *batcher.tallies());
        let at = Ticks(self.measurements * step);
        let stopped =
            Stopped { run, ended: Ended::Complete, triggers: self.measurements, at, tallies };
        queue.extend_from_slice(Report::Stopped(stopped).encode(told, &mut out));
        line.write_all(&queue).expect("a host");
        // It stays until the host has gone.
        let _ = line.read(&mut [0; 1]);
    }

    fn identity(&self) -> Identity {
        let mut pins = [None; wire::generator::PINS];
        pins[usize::from(Responder::Task.pin())] = Some(Responder::Task);
        let mask = 1 << Responder::Task.pin();
        let ranges = Setting::ALL.map(|setting| match setting {
            Setting::Batch => Range::new(1, BATCH_MAX as u64),
            Setting::Responders => Range::new(1, mask),
            Setting::Period | Setting::High | Setting::Count => Range::new(1, u64::MAX),
            _ => Range::new(0, u64::MAX),
        });
        let settings = Setting::ALL.map(|setting| match setting {
            Setting::Period => self.step(),
            Setting::High => 100,
            Setting::Batch => BATCH_MAX as u64,
            Setting::Count => self.measurements,
            Setting::Responders => mask,
            _ => 0,
        });
        Identity {
            clock: Clock::Counter,
            running: None,
            tick: Tick::NANOSECOND,
            accuracy_ppb: None,
            resolution: Ticks(1),
            pins,
            held: 0,
            limits: Limits { ranges, train: 0, gap: Ticks(1) },
            settings: Settings::new(settings),
            name: [b'b'; Identity::NAME],
        }
    }

    /// The time of the clock from one trigger to the next, in ticks.
    fn step(&self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX).max(1_000)
    }
}
