// SPDX-License-Identifier: GPL-2.0-or-later
//! How many measurements a second pass from a generator to its host, through loopback: made into batches and frames,
//! written, read, checked, and counted in series. Prints; asserts that none is lost.

mod figure;

use figure::{heading, print, spread};
use lab::live::Live;
use sample::{Responder, ResponderSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use wire::generator::{
    BATCH_MAX, Batcher, Clock, Deed, Deframer, Desk, Ended, Identity, Limits, Measurement, Range,
    Report, STUFFED_MAX, Setting, Settings, Started, Stopped, Tick, Ticks,
};

const MEASUREMENTS: u64 = 4_000_000;
/// Bytes that are written at once, as a generator with a queue would.
const QUEUE: usize = 64 * 1024;

fn main() {
    heading();
    let rates = (0..5).map(|_| rate()).collect();
    print(
        "generator protocol through loopback, measurements a second",
        "1000000",
        spread(rates, 0),
    );
}

fn rate() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("a port").to_string();
    let device = std::thread::spawn(move || serve(&mut listener.accept().expect("a host").0));
    let mut live = Live::connect(&place).expect("the device answers");
    live.start().expect("it starts");
    let begun = Instant::now();
    while live.is_running() {
        live.listen(Duration::from_millis(20)).expect("it goes on");
        live.observed();
    }
    let passed = begun.elapsed();
    let channel = &live.channels()[0];
    assert_eq!((channel.series.summary().count, channel.losses.total()), (MEASUREMENTS, 0));
    // The device stays until its host has gone.
    drop(live);
    device.join().expect("no panic");
    MEASUREMENTS as f64 / passed.as_secs_f64()
}

/// A device that answers commands and, once it is started, sends as fast as the line takes it.
fn serve(line: &mut TcpStream) {
    let (mut desk, mut deframer) = (Desk::new(identity(), false), Deframer::new());
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
                return send_all(line, &started);
            }
        }
    }
}

fn send_all(line: &mut TcpStream, started: &Started) {
    let responder = Responder::Task;
    let only: ResponderSet = [responder].into_iter().collect();
    let mut batcher = Batcher::new(started.run, only, BATCH_MAX);
    let (mut queue, mut out) = (Vec::with_capacity(QUEUE + STUFFED_MAX), [0; STUFFED_MAX]);
    let mut told = 0_u16;
    for trigger in 0..MEASUREMENTS {
        let at = Ticks(trigger * 1_000);
        batcher.triggered();
        batcher.measured(
            Measurement { trigger, at, responder, latency: Ticks(5_000 + trigger % 977) },
            at,
        );
        if batcher.held() == BATCH_MAX || trigger + 1 == MEASUREMENTS {
            queue.extend_from_slice(Report::Batch(batcher.batch(at)).encode(told, &mut out));
            batcher.sent(at);
            told = told.wrapping_add(1);
        }
        if queue.len() >= QUEUE {
            line.write_all(&queue).expect("a host");
            queue.clear();
        }
    }
    let (run, tallies) = (started.run, *batcher.tallies());
    let at = Ticks(MEASUREMENTS * 1_000);
    let stopped = Stopped { run, ended: Ended::Complete, triggers: MEASUREMENTS, at, tallies };
    queue.extend_from_slice(Report::Stopped(stopped).encode(told, &mut out));
    line.write_all(&queue).expect("a host");
    // It stays until the host has gone.
    let _ = line.read(&mut [0; 1]);
}

fn identity() -> Identity {
    let mut pins = [None; 8];
    pins[usize::from(Responder::Task.pin())] = Some(Responder::Task);
    let mask = 1 << Responder::Task.pin();
    let ranges = Setting::ALL.map(|setting| match setting {
        Setting::Batch => Range::new(1, BATCH_MAX as u64),
        Setting::Responders => Range::new(1, mask),
        Setting::Period | Setting::High | Setting::Count => Range::new(1, u64::MAX),
        _ => Range::new(0, u64::MAX),
    });
    let settings = Setting::ALL.map(|setting| match setting {
        Setting::Period => 1_000,
        Setting::High => 100,
        Setting::Batch => BATCH_MAX as u64,
        Setting::Count => MEASUREMENTS,
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
