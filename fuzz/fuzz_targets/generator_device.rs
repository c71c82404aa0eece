// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator that hears any bytes, in pieces of any size, answers each command once and stays within its limits. The
//! first byte is the size of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sample::Responder;
use std::num::NonZeroU32;
use wire::generator::*;

fn identity() -> Identity {
    let ranges = Setting::ALL.map(|setting| match setting {
        Setting::Period => Range { least: 1_000, most: 1 << 40, step: 8 },
        Setting::Batch => Range::new(1, BATCH_MAX as u64),
        Setting::Responders => Range::new(1, 0x81),
        _ => Range::new(1, u64::MAX),
    });
    let mut settings = Settings::new([1; Setting::COUNT]);
    settings.set(Setting::Period, 1_000);
    let mut pins = [None; PINS];
    (pins[0], pins[1]) = (Some(Responder::Task), Some(Responder::Hardirq));
    Identity {
        clock: Clock::Counter,
        running: None,
        tick: Tick { nanos: NonZeroU32::MIN, per: NonZeroU32::MIN },
        accuracy_ppb: None,
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits { ranges, train: 200, gap: Ticks(10) },
        settings,
        name: [0; Identity::NAME],
    }
}

/// What a generator does; the run ends when it is stopped.
fn carry_out(desk: &mut Desk, deed: Deed<'_>, run: &mut Option<Run>) {
    match deed {
        Deed::Start(started) => {
            assert!(run.replace(started.run).is_none(), "one run at a time");
            assert!(started.settings.get(Setting::High) > 0);
        }
        Deed::Stop => {
            let run = run.take().expect("a run goes on");
            let tallies = Tallies::new(desk.identity().responders());
            let (ended, at) = (Ended::Asked, Ticks(0));
            desk.stopped(Stopped { run, ended, triggers: 0, at, tallies });
        }
        Deed::Keep(train) => assert!(train.times.len() <= TRAIN_MAX),
        Deed::None | Deed::Tell(_) | Deed::Resize | Deed::Test => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, rest)) = bytes.split_first() else { return };
    let (mut deframer, mut desk, mut run) = (Deframer::new(), Desk::new(identity(), true), None);
    for mut bytes in rest.chunks(usize::from(*piece).max(1)) {
        while let Some(frame) = deframer.next(&mut bytes) {
            let Ok(frame) = frame else { continue };
            let (mut out, mut again) = ([0; STUFFED_MAX], [0; STUFFED_MAX]);
            if let Ok(command) = Command::decode(&frame)
                && frame.version == VERSION
            {
                assert_eq!(command.encode(frame.number, &mut out), frame.encode(&mut again));
            }
            let (answer, deed) = desk.take(&frame);
            let kind = Kind(frame.kind);
            let silent = kind.is_optional() || kind.is_of_generator() || deed == Deed::Test;
            assert!(answer.is_some() || silent, "{frame:?}");
            if let Some(answer) = answer {
                let mut bytes = answer.encode(frame.number, &mut out);
                let mut host = Deframer::new();
                let read = host.next(&mut bytes).expect("one").expect("whole");
                assert_eq!((Report::decode(&read), read.number), (Ok(answer), frame.number));
            }
            carry_out(&mut desk, deed, &mut run);
            let Identity { limits, settings, .. } = desk.identity();
            assert!(Setting::ALL.iter().all(|s| limits.check(*s, settings.get(*s)).is_ok()));
        }
    }
});
