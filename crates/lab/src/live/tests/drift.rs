// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator whose clock goes otherwise than this machine's, by a known rate.

use super::serial::{ended, identity};
use super::*;
use wire::generator::{Batcher, Deed, Desk, Ticks};

const BATCHES: u64 = 400;

/// Takes a host, and sends batches of a run by a clock that gains so many parts of 10⁶. Each is on its way for a random
/// time of up to two milliseconds.
fn serve(listener: &TcpListener, gain_ppm: u32) {
    let (mut line, _) = listener.accept().expect("a host");
    let (mut desk, mut deframer) = (Desk::new(identity(), false), Deframer::new());
    let (mut bytes, mut out) = ([0; 512], [0; STUFFED_MAX]);
    loop {
        let read = line.read(&mut bytes).expect("a host");
        let mut rest = &bytes[..read];
        while let Some(frame) = deframer.next(&mut rest) {
            let frame = frame.expect("whole");
            let (answer, deed) = desk.take(&frame);
            let answer = answer.expect("every command has one");
            line.write_all(answer.encode(frame.number, &mut out)).expect("a host");
            let Deed::Start(started) = deed else { continue };
            let mut batcher = Batcher::new(started.run, identity().responders(), 1);
            let (begun, mut dice) = (Instant::now(), 1_u64);
            for _ in 0..BATCHES {
                let at = begun.elapsed().mul_f64(1.0 + f64::from(gain_ppm) * 1e-6);
                let at = Ticks(u64::try_from(at.as_nanos()).expect("short"));
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                std::thread::sleep(Duration::from_nanos((dice >> 33) % 2_000_000));
                line.write_all(Report::Batch(batcher.batch(at)).encode(0, &mut out))
                    .expect("a host");
                batcher.sent(at);
            }
            let at = begun.elapsed().mul_f64(2.0).as_nanos();
            let end = ended(started.run, Ended::Complete, 0, batcher.tallies());
            let end = Stopped { at: Ticks(u64::try_from(at).expect("short")), ..end };
            line.write_all(Report::Stopped(end).encode(1, &mut out)).expect("a host");
            // It stays until the host has gone.
            let _ = line.read(&mut [0; 1]);
            return;
        }
    }
}

#[test]
fn a_generators_clock_is_held_against_this_machines_and_a_recording_keeps_what_came_out() {
    for (gain_ppm, doubtful) in [(40, false), (20_000, true)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = listener.local_addr().expect("a port").to_string();
        let device = std::thread::spawn(move || serve(&listener, gain_ppm));
        let mut live = Live::connect(&place).expect("it speaks the protocol");
        let store = tempfile::tempdir().expect("a directory");
        let record = Record::begin(&live, store.path(), &Noon).expect("room on the disk");
        assert_eq!(live.drift(), None);
        let before = now();
        live.start().expect("it starts");
        let after = now();
        to_the_end(&mut live);
        let drift = live.drift().expect("many batches");
        let off = drift.gain_ppb.abs_diff(1_000 * i64::from(gain_ppm));
        assert!(off <= drift.uncertainty_ppb, "{drift}, in truth {gain_ppm}");
        assert_eq!((drift.batches, drift.is_doubtful()), (BATCHES, doubtful), "{drift}");
        // It started in the call, to within what the rate leaves open.
        let started = before.saturating_sub(Nanos(20_000_000))..after + Nanos(50_000_000);
        assert!(started.contains(&drift.started), "{drift:?} {started:?}");
        let path = record.finish(&mut live, None).expect("room on the disk");
        let bundle = bundle::Bundle::open(&path).expect("a bundle");
        let manifest = bundle.manifest();
        let line =
            format!("# its clock: {drift} beside CLOCK_MONOTONIC here, of {BATCHES} batches in ");
        assert!(manifest.about.experiment.source.contains(&line), "{manifest:#?}");
        let warned = manifest.conclusion.warnings.iter().any(|w| w.code() == "generator_clock");
        assert_eq!(warned, doubtful);
        drop(live);
        device.join().expect("no panic");
    }
}

#[test]
fn virtual_time_is_not_held_against_that_of_this_machine() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    live.set(Setting::Batch, 1).expect("within the limits");
    start(&mut live, 100_000, 100);
    to_the_end(&mut live);
    assert_eq!(live.drift(), None);
}
