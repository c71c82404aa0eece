// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::generator::{
    Clock, Deframer, Ended, Limits, List, PINS, Range, STUFFED_MAX, Settings, Tallies, Tick, Ticks,
    VERSION,
};
use proptest::collection::vec;
use proptest::prelude::*;
use sample::{Responder, ResponderSet};

fn desk() -> Desk {
    let ranges = Setting::ALL.map(|setting| match setting {
        Setting::Batch => Range::new(1, 22),
        Setting::Responders => Range::new(1, 1),
        _ => Range::new(1, 1_000),
    });
    let mut pins = [None; PINS];
    pins[0] = Some(Responder::Hardirq);
    let mut settings = Settings::new([1; Setting::COUNT]);
    settings.set(Setting::Period, 100);
    let identity = Identity {
        clock: Clock::Virtual,
        running: None,
        tick: Tick::NANOSECOND,
        accuracy_ppb: Some(0),
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits { ranges, train: 4, gap: Ticks(10) },
        settings,
        name: [0; Identity::NAME],
    };
    Desk::new(identity, false)
}

/// What the desk answers to a command, and what is to be done.
fn told<'a>(desk: &mut Desk, command: Command<'a>) -> (Result<Report<'static>, Why>, Deed<'a>) {
    let answer = match desk.obey(command) {
        Ok((Some(answer), deed)) => return (Ok(answer), deed),
        Ok((None, _)) => panic!("no answer"),
        Err(refused) => refused.why,
    };
    (Err(answer), Deed::None)
}

fn why(desk: &mut Desk, command: Command<'_>) -> Why {
    told(desk, command).0.expect_err("it is refused")
}

const IDENTIFY: Command<'static> = Command::Identify { oldest: VERSION, newest: VERSION };

fn set(setting: Setting, value: u64) -> Command<'static> {
    Command::Set { setting, value }
}

#[test]
fn nothing_is_obeyed_before_a_version_is_agreed_upon() {
    let mut desk = desk();
    assert_eq!(why(&mut desk, Command::Stop), Why::Unidentified);
    let unknown = Frame { version: VERSION, kind: 0x3f, number: 0, payload: &[] };
    let unidentified = Refused::new(Why::Unidentified, Kind(0x3f));
    assert_eq!(desk.take(&unknown), (Some(Report::Refused(unidentified)), Deed::None));
    assert_eq!(why(&mut desk, Command::Identify { oldest: VERSION + 1, newest: 9 }), Why::Version);
    assert_eq!(why(&mut desk, set(Setting::Period, 50)), Why::Unidentified);
    assert!(matches!(told(&mut desk, IDENTIFY), (Ok(Report::Identity(_)), Deed::None)));
    assert!(told(&mut desk, set(Setting::Period, 50)).0.is_ok());
    assert_eq!(desk.identity().settings.get(Setting::Period), 50);
    desk.disconnected();
    assert_eq!(why(&mut desk, Command::Stop), Why::Unidentified);
}

#[test]
fn a_run_is_measured_with_the_settings_that_it_started_with() {
    let mut desk = desk();
    told(&mut desk, IDENTIFY).0.expect("it answers");
    let (answer, deed) = told(&mut desk, Command::Start(Timing::Periodic));
    let Deed::Start(started) = deed else { panic!("{answer:?}") };
    assert_eq!(answer, Ok(Report::Started(started)));
    assert_eq!(started.settings, desk.identity().settings);
    for command in [
        set(Setting::Period, 50),
        Command::Start(Timing::Periodic),
        Command::Train(Train { first: 0, times: List::EMPTY }),
        Command::Test,
    ] {
        assert_eq!(why(&mut desk, command), Why::Running);
    }
    assert_eq!(told(&mut desk, set(Setting::Batch, 9)).1, Deed::Resize);
    assert_eq!(told(&mut desk, Command::Stop).1, Deed::Stop);
}

#[test]
fn how_a_run_ended_is_told_again_to_whoever_comes_back() {
    let mut desk = desk();
    told(&mut desk, IDENTIFY).0.expect("it answers");
    let Deed::Start(first) = told(&mut desk, Command::Start(Timing::Periodic)).1 else {
        panic!("it starts")
    };
    assert_eq!(told(&mut desk, IDENTIFY).1, Deed::None);
    let tallies = Tallies::new(ResponderSet::ALL.at(1));
    let (run, at) = (first.run, Ticks(7));
    let stopped = Stopped { run, ended: Ended::Asked, triggers: 0, at, tallies };
    desk.stopped(stopped);
    desk.disconnected();
    assert_eq!(told(&mut desk, IDENTIFY).1, Deed::Tell(stopped));
    assert_eq!(why(&mut desk, Command::Stop), Why::NotRunning);
    assert_eq!(why(&mut desk, Command::Test), Why::Unsupported);
    let Deed::Start(second) = told(&mut desk, Command::Start(Timing::Periodic)).1 else {
        panic!("it starts")
    };
    assert!(second.run > first.run);
}

#[test]
fn what_a_generator_said_itself_is_passed_over() {
    let (mut desk, mut out) = (desk(), [0; STUFFED_MAX]);
    for identified in [false, true] {
        desk.identified = identified;
        let echo = Report::Refused(Refused::new(Why::Unidentified, Kind::STOP)).encode(3, &mut out);
        let mut deframer = Deframer::new();
        let frame = deframer.next(&mut &*echo).expect("one").expect("whole");
        assert_eq!(desk.take(&frame), (None, Deed::None));
    }
}

#[test]
fn a_train_is_kept_and_started() {
    let mut desk = desk();
    told(&mut desk, IDENTIFY).0.expect("it answers");
    assert_eq!(why(&mut desk, Command::Start(Timing::Train)), Why::NoTrain);
    let times = [Ticks(5), Ticks(15)];
    let train = Train { first: 0, times: List::new(&times).expect("two") };
    assert_eq!(told(&mut desk, Command::Train(train)).1, Deed::Keep(train));
    // The answer was lost, and the host says it again: the train begins anew.
    assert_eq!(told(&mut desk, Command::Train(train)).1, Deed::Keep(train));
    assert_eq!(desk.identity().held, 2);
    let (_, Deed::Start(started)) = told(&mut desk, Command::Start(Timing::Train)) else {
        panic!("it starts")
    };
    assert_eq!((started.timing, started.train), (Timing::Train, 2));
}

proptest! {
    #[test]
    fn whatever_comes_is_answered_once_and_what_is_in_force_is_within_the_limits(
        all in vec((0u8..9, vec(0u8..12, 0..24)), 0..40)
    ) {
        let mut desk = desk();
        desk.identified = true;
        for (number, (kind, payload)) in (0..).zip(&all) {
            let frame = Frame { version: VERSION, kind: *kind, number, payload };
            let (answer, _) = desk.take(&frame);
            let answer = answer.expect("a mandatory kind, of a generator without a test");
            let mut out = [0; STUFFED_MAX];
            let bytes = answer.encode(number, &mut out);
            let mut deframer = Deframer::new();
            let read = deframer.next(&mut &*bytes).expect("one").expect("whole");
            prop_assert_eq!(Report::decode(&read), Ok(answer));
            let Identity { limits, settings, .. } = desk.identity();
            prop_assert!(Setting::ALL.iter().all(|s| limits.check(*s, settings.get(*s)).is_ok()));
        }
    }
}
