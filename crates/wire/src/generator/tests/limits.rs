// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use proptest::prelude::*;
use std::string::ToString;

fn limits() -> Limits {
    let ranges = [
        Range { least: 1_000, most: 1_000_000, step: 10 },
        Range::new(50, 500_000),
        Range::new(1, 22),
        Range::new(1, u64::MAX),
        Range::new(0, 900_000),
        Range::new(0, u64::MAX),
        Range::new(0, 1 << 32),
        Range::new(1, 0x89),
        Range::new(0, 1 << 32),
        Range::new(0, u64::MAX),
    ];
    Limits { ranges, train: 4, gap: Ticks(200) }
}

fn settings() -> Settings {
    Settings::new([1_000, 500, 8, 100, 0, 1, 0, 0x81, 1_000, 5_000])
}

#[test]
fn what_is_outside_is_refused_with_the_limits_and_nothing_is_rounded() {
    let limits = limits();
    assert!(limits.is_sound());
    assert_eq!(limits.check(Setting::Period, 1_010), Ok(()));
    for (value, why) in
        [(999, Why::OutsideLimits), (1_000_001, Why::OutsideLimits), (1_005, Why::NotAStep)]
    {
        let range = limits.range(Setting::Period);
        let refused = Refused::of_setting(why, Kind::SET, Setting::Period, value, range);
        assert_eq!(limits.check(Setting::Period, value), Err(refused));
    }
}

#[test]
fn a_refusal_says_what_was_asked_for_and_what_would_be_taken() {
    let text = |value| limits().check(Setting::Period, value).expect_err("outside").to_string();
    assert_eq!(text(9), "the generator refuses period 9: the limits are 1000 to 1000000");
    let step =
        "the generator refuses period 1005: from 1000 on it takes steps of 10, up to 1000000";
    assert_eq!(text(1_005), step);
}

#[test]
fn responders_are_any_of_those_that_answer() {
    for (mask, fine) in [(0x89, true), (0x08, true), (0, false), (0x02, false), (0x100, false)] {
        assert_eq!(limits().check(Setting::Responders, mask).is_ok(), fine, "{mask:#x}");
    }
}

#[test]
fn settings_that_do_not_agree_with_each_other_are_refused_at_the_start() {
    let limits = limits();
    let start = |change: &[(Setting, u64)]| {
        let mut settings = settings();
        change.iter().for_each(|(setting, value)| settings.set(*setting, *value));
        let refused = limits.check_start(&settings, Timing::Periodic, Held::default());
        refused.map_err(|refused| (refused.setting, refused.range.most))
    };
    assert_eq!(start(&[]), Ok(()));
    assert_eq!(start(&[(Setting::High, 1_000)]), Err((Some(Setting::High), 999)));
    assert_eq!(start(&[(Setting::Jitter, 500)]), Err((Some(Setting::High), 499)));
    assert_eq!(start(&[(Setting::Jitter, 499)]), Ok(()));
    assert_eq!(start(&[(Setting::Jitter, 801)]), Err((Some(Setting::Jitter), 800)));
    assert_eq!(start(&[(Setting::High, 1_000), (Setting::Count, 1)]), Ok(()));
}

#[test]
fn a_train_comes_in_pieces_that_follow_each_other() {
    let limits = limits();
    let piece = |held, first, times: &[u64]| {
        limits.check_train(held, first, times.iter().map(|time| Ticks(*time)))
    };
    let held = piece(Held::default(), 0, &[0, 300]).expect("they rise");
    let why = |refused: Result<Held, Refused>| refused.map_err(|refused| refused.why);
    assert_eq!(why(piece(held, 1, &[900])), Err(Why::Place));
    assert_eq!(why(piece(held, 2, &[499])), Err(Why::Order));
    assert_eq!(why(piece(held, 2, &[299])), Err(Why::Order));
    assert_eq!(why(piece(held, 2, &[500, 700, 900])), Err(Why::OutsideLimits));
    let whole = piece(held, 2, &[500, 700]).expect("they follow");
    let shortest_gap = Some(Ticks(200));
    assert_eq!(whole, Held { count: 4, last: Some(Ticks(700)), shortest_gap });
    assert_eq!(piece(whole, 0, &[]), Ok(Held::default()));

    let mut settings = settings();
    let start =
        |settings: &Settings, held| why_of(limits.check_start(settings, Timing::Train, held));
    settings.set(Setting::High, 199);
    assert_eq!(start(&settings, whole), Ok(()));
    assert_eq!(start(&settings, Held::default()), Err(Why::NoTrain));
    settings.set(Setting::High, 200);
    assert_eq!(start(&settings, whole), Err(Why::OutsideLimits));
}

fn why_of(checked: Result<(), Refused>) -> Result<(), Why> {
    checked.map_err(|refused| refused.why)
}

proptest! {
    #[test]
    fn what_passes_is_a_step_within_the_limits(least: u64, most: u64, step: u64, value: u64) {
        let mut limits = limits();
        limits.ranges[Setting::Seed.index()] = Range { least, most, step };
        if limits.check(Setting::Seed, value).is_ok() {
            prop_assert!((least..=most).contains(&value));
            prop_assert!(value == least || (value - least) % step == 0);
        }
    }

    #[test]
    fn triggers_that_may_start_are_a_gap_apart_and_the_line_falls_before_the_next(
        period in 1u64..5_000, high in 1u64..5_000, jitter in 0u64..5_000
    ) {
        let (limits, mut settings) = (limits(), settings());
        let all = [(Setting::Period, period), (Setting::High, high), (Setting::Jitter, jitter)];
        all.iter().for_each(|(setting, value)| settings.set(*setting, *value));
        if limits.check_start(&settings, Timing::Periodic, Held::default()).is_ok() {
            prop_assert!(period - jitter >= limits.gap.0 && high < period - jitter);
        }
    }
}
