// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::generator::{DELIMITER, Deframer, Measurement, PAYLOAD_MAX, Ticks, Timing};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::vec::Vec;

/// A frame of any known kind, with bytes that are often those of a message.
fn frame_of(kind: u8, payload: &[u8]) -> Frame<'_> {
    Frame { version: VERSION, kind, number: 9, payload }
}

fn kinds() -> impl Strategy<Value = u8> {
    prop_oneof![1u8..=6, 0x81u8..=0x87, any::<u8>()]
}

/// Small numbers are valid more often.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(0u8..4, 0..100), vec(any::<u8>(), 0..=PAYLOAD_MAX)]
}

fn check(frame: &Frame<'_>) -> Result<(), TestCaseError> {
    let mut out = [0; STUFFED_MAX];
    let encoded = match (Command::decode(frame), Report::decode(frame)) {
        (Ok(command), _) => command.encode(frame.number, &mut out).to_vec(),
        (_, Ok(report)) => report.encode(frame.number, &mut out).to_vec(),
        _ => return Ok(()),
    };
    let mut again = [0; STUFFED_MAX];
    prop_assert_eq!(encoded.as_slice(), frame.encode(&mut again));
    Ok(())
}

proptest! {
    #[test]
    fn what_any_bytes_say_is_written_to_the_same_bytes(kind in kinds(), payload in payload()) {
        check(&frame_of(kind, &payload))?;
    }

    #[test]
    fn bytes_of_a_message_that_are_changed_are_another_one_or_none(
        which in 0usize..4, changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut out = [0; STUFFED_MAX];
        let bytes = samples()[which].encode(1, &mut out).to_vec();
        let mut deframer = Deframer::new();
        let frame = deframer.next(&mut bytes.as_slice()).expect("one").expect("whole");
        let mut payload = frame.payload.to_vec();
        for (place, byte) in changes {
            let place = place.index(payload.len());
            payload[place] = byte;
        }
        check(&frame_of(frame.kind, &payload))?;
    }

    #[test]
    fn a_train_reads_back(first: u32, times in vec(any::<u64>().prop_map(Ticks), 0..=126)) {
        let train = Command::Train(Train { first, times: List::new(&times).expect("they fit") });
        let mut out = [0; STUFFED_MAX];
        let bytes = train.encode(1, &mut out);
        let mut deframer = Deframer::new();
        let frame = deframer.next(&mut &*bytes).expect("one").expect("whole");
        prop_assert_eq!(Command::decode(&frame), Ok(train));
    }

    #[test]
    fn a_batch_reads_back(
        mask: u16, counts: [u64; 3], tallies: [u64; 11],
        all in vec((any::<u64>(), any::<u64>(), select(&ALL_RESPONDERS[..]), 0u64..1 << 56), 0..=22)
    ) {
        let responders = ResponderSet::ALL.at(mask);
        let all: Vec<Measurement> = all.into_iter().filter(|m| responders.contains(m.2)).map(
            |(trigger, at, responder, latency)| {
                let (at, latency) = (Ticks(at), Ticks(latency));
                Measurement { trigger, at, responder, latency }
            }
        ).collect();
        let [first, triggers, at] = counts;
        let (run, at) = (Run(NonZeroU32::MIN), Ticks(at));
        let mut told = Tallies::new(responders);
        for (responder, n) in responders.iter().zip(tallies) {
            let tally = told.get_mut(responder).expect("a member");
            (tally.measured, tally.losses.overrun) = (n, !n);
        }
        let measurements = List::new(&all).expect("they fit");
        let batch = Batch { run, first, triggers, at, tallies: told, measurements };
        let mut out = [0; STUFFED_MAX];
        let bytes = Report::Batch(batch).encode(1, &mut out);
        let mut deframer = Deframer::new();
        let frame = deframer.next(&mut &*bytes).expect("one").expect("whole");
        prop_assert_eq!(Report::decode(&frame), Ok(Report::Batch(batch)));
    }
}

/// Of the longer reports, and those with rules of their own.
fn samples() -> [Report<'static>; 4] {
    let run = Run(NonZeroU32::MIN);
    let tallies = Tallies::new(ResponderSet::ALL.at(3));
    let ranges = Setting::ALL.map(|setting| match setting {
        Setting::Batch => Range::new(1, 22),
        Setting::Responders => Range::new(1, 3),
        _ => Range::new(1, 1_000),
    });
    let mut pins = [None; PINS];
    (pins[0], pins[4]) = (Some(Responder::ThreadedIrq), Some(Responder::Hardirq));
    let mut name = [0; Identity::NAME];
    name[..4].copy_from_slice(b"pico");
    let mut settings = Settings::new([1; Setting::COUNT]);
    settings.set(Setting::Period, 1_000);
    let identity = Identity {
        clock: Clock::Counter,
        running: None,
        tick: Tick::NANOSECOND,
        accuracy_ppb: None,
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits { ranges, train: 9, gap: Ticks(1) },
        settings,
        name,
    };
    [
        Report::Identity(identity),
        Report::Started(Started { run, timing: Timing::Train, train: 3, settings }),
        Report::Stopped(Stopped {
            run,
            ended: Ended::Fault(7),
            triggers: 5,
            at: Ticks(6),
            tallies,
        }),
        Report::Batch(Batch {
            run,
            first: 0,
            triggers: 3,
            at: Ticks(6),
            tallies,
            measurements: List::EMPTY,
        }),
    ]
}

#[test]
fn an_identity_that_contradicts_itself_is_malformed() {
    let [Report::Identity(right), ..] = samples() else { panic!("the first is one") };
    let decoded = |identity: Identity| {
        let mut out = [0; STUFFED_MAX];
        let bytes = Report::Identity(identity).encode(1, &mut out);
        let mut deframer = Deframer::new();
        let frame = deframer.next(&mut &*bytes).expect("one").expect("whole");
        Report::decode(&frame).map(|_| ())
    };
    assert_eq!(decoded(right), Ok(()));
    let mut wrong = [right; 7];
    wrong[0].pins[7] = Some(Responder::Hardirq);
    wrong[1].pins[4] = None;
    wrong[2].limits.gap = Ticks(0);
    wrong[3].limits.ranges[2].most = 23;
    wrong[4].settings.set(Setting::Period, 1_001);
    wrong[5].held = 10;
    wrong[6].name[0] = b'\x1b';
    for identity in wrong {
        assert_eq!(decoded(identity), Err(Unreadable::Malformed(Kind::IDENTITY)), "{identity:?}");
    }
}

#[test]
fn frames_of_other_versions_and_kinds_are_passed_over_or_refused() {
    const OTHER: u8 = VERSION + 1;
    let of = |version, kind, payload: &'static [u8]| Frame { version, kind, number: 0, payload };
    let unknown = Command::decode(&of(VERSION, 0x3f, &[]));
    assert_eq!(unknown, Err(Unreadable::Unknown(Kind(0x3f))));
    let refusal = |e: Unreadable, kind| e.refusal(kind).map(|refused| refused.why);
    assert_eq!(refusal(unknown.expect_err("it is"), 0x3f), Some(Why::UnknownCommand));
    let optional = Command::decode(&of(VERSION, 0x7f, &[]));
    assert_eq!(optional, Err(Unreadable::Optional(Kind(0x7f))));
    assert_eq!(refusal(optional.expect_err("it is"), 0x7f), None);
    assert_eq!(Report::decode(&of(VERSION, 0xc1, &[])), Err(Unreadable::Optional(Kind(0xc1))));
    assert_eq!(Report::decode(&of(VERSION, 0x91, &[])), Err(Unreadable::Unknown(Kind(0x91))));
    // A line that echoes.
    assert_eq!(Command::decode(&of(OTHER, 0x83, &[])), Err(Unreadable::Optional(Kind::REFUSED)));
    assert_eq!(Report::decode(&of(VERSION, 5, &[])), Err(Unreadable::Optional(Kind::STOP)));
    assert_eq!(Command::decode(&of(OTHER, 5, &[])), Err(Unreadable::Version(OTHER)));
    let identify = Command::Identify { oldest: 2, newest: 3 };
    assert_eq!(Command::decode(&of(OTHER, 1, &[2, 3])), Ok(identify));
    assert_eq!(Command::decode(&of(VERSION, 5, &[0])), Err(Unreadable::Malformed(Kind::STOP)));
    let set = Command::decode(&of(VERSION, 2, &[11, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(set, Err(Unreadable::Setting(11)));
    let refused = set.expect_err("it is").refusal(2).expect("it is told");
    assert_eq!((refused.value, refused.range.most), (11, 10));
}

#[test]
fn a_version_that_only_one_side_speaks_is_refused_with_those_of_the_generator() {
    use crate::generator::negotiate;
    assert_eq!(negotiate(1, 7), Ok(VERSION));
    assert_eq!(negotiate(0, VERSION), Ok(VERSION));
    for (oldest, newest) in [(VERSION + 1, 7), (0, 0), (VERSION, 0), (0, 1)] {
        let refused = negotiate(oldest, newest).expect_err("none is spoken by both");
        let told = (refused.why, refused.value, refused.range.least, refused.range.most);
        assert_eq!(told, (Why::Version, newest.into(), VERSION.into(), VERSION.into()));
    }
}

#[test]
fn no_message_has_its_delimiter_inside() {
    for report in samples() {
        let mut out = [0; STUFFED_MAX];
        let bytes = report.encode(1, &mut out);
        assert_eq!(bytes.iter().position(|byte| *byte == DELIMITER), Some(bytes.len() - 1));
    }
}
