// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator on a serial line that damages answers: a pseudo-terminal, whose other end is the device.

use super::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use wire::generator::{
    BATCH_MAX, Batcher, Clock as TheirClock, Deed, Desk, Limits, Measurement, PINS, Range, Tallies,
    Ticks,
};

/// A device without pins, on a line that damages.
struct Device {
    /// Whether it can test itself.
    tests: bool,
    /// The kinds of commands whose first answer is damaged.
    damages: Vec<Kind>,
    /// Whether a run ends as soon as it has started, after one trigger.
    is_short: bool,
    /// Whether what it says of such a run, and of the end of any, is damaged the first time.
    damages_ends: bool,
}

/// Every command is answered twice.
impl Default for Device {
    fn default() -> Device {
        let damages = vec![Kind::IDENTIFY, Kind::SET, Kind::START, Kind::STOP];
        Device { tests: false, damages, is_short: false, damages_ends: true }
    }
}

/// Changes a byte of a frame. Neither end is a delimiter, so the frame stays one and has another checksum.
fn damage(bytes: &mut [u8]) {
    let middle = bytes.len() / 2;
    bytes[middle] = if bytes[middle] == 1 { 2 } else { 1 };
}

/// What the device says of itself.
const TEST: SelfTest =
    SelfTest { triggers: 256, offset: Ticks(16), jitter: Ticks(8), late: Ticks(0) };

impl Device {
    /// Answers until the host has gone. The kinds of the commands that it heard.
    fn serve(mut self, mut line: File) -> Vec<Kind> {
        let (mut desk, mut deframer) = (Desk::new(identity(), self.tests), Deframer::new());
        let (mut bytes, mut out, mut heard) = ([0; 512], [0; STUFFED_MAX], Vec::new());
        let mut run = None;
        // A pseudo-terminal whose other end was closed gives an error.
        while let Ok(read) = line.read(&mut bytes) {
            let mut rest = &bytes[..read];
            while let Some(frame) = deframer.next(&mut rest) {
                let Ok(frame) = frame else { continue };
                heard.push(Kind(frame.kind));
                let (answer, deed) = desk.take(&frame);
                let tested = (deed == Deed::Test).then_some(Report::SelfTest(TEST));
                let answer = answer.or(tested).expect("every command has one");
                let length = answer.encode(frame.number, &mut out).len();
                let before = self.damages.len();
                self.damages.retain(|kind| kind.0 != frame.kind);
                if self.damages.len() < before {
                    damage(&mut out[..length]);
                }
                line.write_all(&out[..length]).expect("a host");
                match deed {
                    Deed::Start(started) => {
                        run = Some(started.run);
                        if self.is_short {
                            desk.stopped(self.short(started.run, &mut line));
                        }
                    }
                    Deed::Stop => {
                        let nothing =
                            Batcher::new(run.expect("started"), identity().responders(), 1);
                        let end = ended(run.expect("started"), Ended::Asked, 0, nothing.tallies());
                        desk.stopped(end);
                        self.say(Report::Stopped(end), &mut line);
                    }
                    Deed::Tell(stopped) => self.say(Report::Stopped(stopped), &mut line),
                    _ => {}
                }
            }
        }
        heard
    }

    /// A run of one trigger and its answer.
    fn short(&mut self, run: wire::generator::Run, line: &mut File) -> Stopped {
        let mut batcher = Batcher::new(run, identity().responders(), 1);
        let (responder, latency) = (Responder::Task, Ticks(7));
        batcher.triggered();
        batcher.measured(Measurement { trigger: 0, at: Ticks(0), responder, latency }, Ticks(9));
        let batch = Report::Batch(batcher.batch(Ticks(9)));
        let mut out = [0; STUFFED_MAX];
        let length = batch.encode(0, &mut out).len();
        if self.damages_ends {
            damage(&mut out[..length]);
        }
        line.write_all(&out[..length]).expect("a host");
        batcher.sent(Ticks(9));
        let end = ended(run, Ended::Complete, 1, batcher.tallies());
        self.say(Report::Stopped(end), line);
        end
    }

    /// Says how a run ended.
    fn say(&mut self, end: Report<'_>, line: &mut File) {
        let mut out = [0; STUFFED_MAX];
        let length = end.encode(1, &mut out).len();
        if std::mem::take(&mut self.damages_ends) {
            damage(&mut out[..length]);
        }
        line.write_all(&out[..length]).expect("a host");
    }
}

pub(super) fn ended(
    run: wire::generator::Run,
    ended: Ended,
    triggers: u64,
    tallies: &Tallies,
) -> Stopped {
    Stopped { run, ended, triggers, at: Ticks(10), tallies: *tallies }
}

/// A line to a device: its path, and what ends with the kinds of commands that the device heard.
fn line(device: Device) -> (String, JoinHandle<Vec<Kind>>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("ours");
    let place = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
    (place, std::thread::spawn(move || device.serve(master.into())))
}

pub(super) fn identity() -> Identity {
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
    let (place, thread) = line(Device::default());
    // Kept open, so that the settings outlive the host.
    let other = File::options().read(true).write(true).open(&place).expect("it is there");
    let before = tcgetattr(&other).expect("a terminal");
    assert!(before.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));

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
    let heard = thread.join().expect("no panic");
    let count = |kind| heard.iter().filter(|heard| **heard == kind).count();
    assert_eq!([Kind::SET, Kind::START, Kind::STOP].map(count), [2, 1, 2], "{heard:?}");
}

#[test]
fn the_end_of_a_run_is_asked_for_where_it_was_damaged() {
    let (place, thread) = line(Device { damages: Vec::new(), ..Device::default() });
    let mut live = Live::connect(&place).expect("the line is whole so far");
    live.start().expect("the line is whole so far");
    live.stop().expect("the line is whole so far");
    assert!(live.is_running());
    to_the_end(&mut live);
    assert_eq!(live.stopped().map(|stopped| stopped.ended), Some(Ended::Asked));
    assert_eq!(live.damaged(), 1);
    drop(live);
    let heard = thread.join().expect("no panic");
    assert_eq!(heard, [Kind::IDENTIFY, Kind::START, Kind::STOP, Kind::IDENTIFY]);
}

#[test]
fn a_short_run_whose_start_was_answered_in_vain_is_not_started_again() {
    for damages_ends in [false, true] {
        let device =
            Device { damages: vec![Kind::START], is_short: true, damages_ends, tests: false };
        let (place, thread) = line(device);
        let mut live = Live::connect(&place).expect("the line is whole so far");
        live.start().expect("it has started");
        let observed = to_the_end(&mut live);
        assert_eq!(live.stopped().map(|stopped| stopped.ended), Some(Ended::Complete));
        assert_eq!((live.runs().len(), live.triggers()), (1, 1));
        let task = &live.channels()[0];
        // Of the answer that was damaged too, it is known that it is missing.
        let known = (task.series.summary().count, task.losses.dropped);
        assert_eq!(known, if damages_ends { (0, 1) } else { (1, 0) });
        assert_eq!(observed.len(), 1, "{observed:?}");
        drop(live);
        let heard = thread.join().expect("no panic");
        let starts = heard.iter().filter(|kind| **kind == Kind::START).count();
        assert_eq!(starts, 1, "{heard:?}");
    }
}

#[test]
fn a_recording_has_the_self_tests_before_and_after_it_of_a_device_that_can() {
    for tests in [true, false] {
        let (place, thread) = line(Device { tests, ..Device::default() });
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
