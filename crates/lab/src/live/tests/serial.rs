// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator on a serial line that damages answers: a pseudo-terminal, whose other end is the device.

use super::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use wire::generator::{
    BATCH_MAX, Batcher, Clock as TheirClock, Deed, Desk, Limits, PINS, Range, Ticks,
};

/// What the device does to the answer of a command: to the first of its kind, it changes a byte.
fn damage(bytes: &mut [u8], kinds: &mut Vec<u8>, kind: u8) {
    if !kinds.contains(&kind) {
        kinds.push(kind);
        let middle = bytes.len() / 2;
        // Neither end is a delimiter, so the frame stays one and has another checksum.
        bytes[middle] = if bytes[middle] == 1 { 2 } else { 1 };
    }
}

/// What the device says of itself.
const TEST: SelfTest =
    SelfTest { triggers: 256, offset: Ticks(16), jitter: Ticks(8), late: Ticks(0) };

/// A device without pins, which counts the commands that it hears until its host has gone.
fn device(mut line: File, tests: bool) -> usize {
    let (mut desk, mut deframer) = (Desk::new(identity(), tests), Deframer::new());
    let (mut bytes, mut out, mut kinds, mut heard) = ([0; 512], [0; STUFFED_MAX], Vec::new(), 0);
    let mut run = None;
    // A pseudo-terminal whose other end was closed gives an error.
    while let Ok(read) = line.read(&mut bytes) {
        let mut rest = &bytes[..read];
        while let Some(frame) = deframer.next(&mut rest) {
            let Ok(frame) = frame else { continue };
            heard += 1;
            let (answer, deed) = desk.take(&frame);
            let tested = (deed == Deed::Test).then_some(Report::SelfTest(TEST));
            let answer = answer.or(tested).expect("every command has one");
            let length = answer.encode(frame.number, &mut out).len();
            damage(&mut out[..length], &mut kinds, frame.kind);
            line.write_all(&out[..length]).expect("a host");
            let stopped = |run| Stopped {
                run,
                ended: Ended::Asked,
                triggers: 0,
                at: Ticks(0),
                tallies: *Batcher::new(run, identity().responders(), 1).tallies(),
            };
            match deed {
                Deed::Start(started) => run = Some(started.run),
                // The end of the run is damaged, too.
                Deed::Stop => desk.stopped(stopped(run.expect("it was started"))),
                Deed::Tell(stopped) => {
                    let told = Report::Stopped(stopped).encode(0, &mut out);
                    line.write_all(told).expect("a host");
                }
                _ => {}
            }
        }
    }
    heard
}

fn identity() -> Identity {
    let mut pins = [None; PINS];
    pins[usize::from(Responder::Task.pin())] = Some(Responder::Task);
    let settings = Setting::ALL.map(|setting| match setting {
        Setting::Responders => 1 << Responder::Task.pin(),
        Setting::Batch => BATCH_MAX as u64,
        Setting::High => 100,
        Setting::Jitter => 1,
        _ => 1_000,
    });
    Identity {
        clock: TheirClock::Counter,
        running: None,
        tick: Tick::NANOSECOND,
        accuracy_ppb: None,
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits {
            ranges: settings.map(|value| Range::new(1, value.max(BATCH_MAX as u64))),
            train: 0,
            gap: Ticks(1),
        },
        settings: Settings::new(settings),
        name: [b'b'; Identity::NAME],
    }
}

#[test]
fn a_command_whose_answer_was_damaged_is_sent_again_and_the_device_is_left_as_it_was() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("ours");
    let place = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
    // Kept open, so that the settings outlive the host.
    let other = File::options().read(true).write(true).open(&place).expect("it is there");
    let before = tcgetattr(&other).expect("a terminal");
    assert!(before.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
    let thread = std::thread::spawn(move || device(master.into(), false));

    let mut live = Live::connect(&place).expect("its second answer is whole");
    let during = tcgetattr(&other).expect("a terminal");
    assert!(!during.local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON));
    live.set(Setting::Period, 500).expect("within the limits");
    assert_eq!(live.settings().get(Setting::Period), 500);
    live.start().expect("its run goes on");
    assert!(live.is_running());
    live.stop().expect("it has stopped");
    to_the_end(&mut live);
    assert_eq!(live.stopped().map(|stopped| stopped.ended), Some(Ended::Asked));
    assert!(live.damaged() >= 4, "{}", live.damaged());
    drop(live);
    let after = tcgetattr(&other).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!((after.input_modes, after.output_modes), (before.input_modes, before.output_modes));
    drop(other);
    // Each of the four twice; and who it is, after the start and after the stop.
    assert_eq!(thread.join().expect("no panic"), 10);
}

#[test]
fn a_recording_has_the_self_tests_before_and_after_it_of_a_device_that_can() {
    for tests in [true, false] {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let place = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
        let thread = std::thread::spawn(move || device(master.into(), tests));
        let live = Live::connect(&place).expect("its second answer is whole");
        let store = tempfile::tempdir().expect("a directory");
        let recorded: (&Path, &dyn crate::matrix::Issuer) = (store.path(), &Noon);
        let wanted = Wanted { count: Some(1_000.try_into().expect("not 0")), ..Wanted::default() };
        let begun = Talk::begin(live, &wanted, Some(recorded));
        let (mut talk, _) = begun.expect("a run goes on");
        talk.stop().expect("the line is whole");
        let begun = Instant::now();
        while talk.step(&mut |_| ()).expect("it goes on") != Standing::Ended {
            assert!(begun.elapsed() < Duration::from_secs(60), "the run does not end");
        }
        let left = talk.finish(None).expect("room on the disk");
        let bundle = bundle::Bundle::open(&left.bundle.expect("recorded")).expect("whole");
        let source = &bundle.manifest().about.experiment.source;
        let line = "# self-test at trigger 0: 256 pulses, offset 16, jitter 8, late 0 ticks\n";
        assert_eq!(source.matches(line).count(), if tests { 2 } else { 0 }, "{source}");
        assert_eq!(source.contains("self-test"), tests, "{source}");
        drop(talk);
        thread.join().expect("no panic");
    }
}
