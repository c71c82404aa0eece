// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests what all strategies have in common, and what the strategies do that begin from a find.

use crate::knowledge::{Knowledge, Recipe};
use crate::name::StrategyName;
use crate::registry::STRATEGIES;
use crate::strategy::{Strategy, Turn};
use proptest::prelude::*;
use sample::{Disturbance, Nanos, Schedule, When};

/// What a strategy does in a turn of which nothing else is known.
fn on<T>(number: u64, seed: u64, best: Option<&Recipe>, does: impl Fn(&Turn) -> T) -> T {
    let knowledge = &Knowledge::default();
    does(&Turn { number, turns: number, guest: 0, seed, best, knowledge, corpus: &[] })
}

fn named(name: &str) -> &'static dyn Strategy {
    name.parse::<StrategyName>().expect("a strategy's name").strategy()
}

#[test]
fn a_trial_is_the_same_for_the_same_number_and_seed_and_another_for_others() {
    for strategy in STRATEGIES {
        let when = |number, seed| on(number, seed, None, |turn| strategy.when(turn));
        assert_eq!(when(3, 7), when(3, 7));
        assert_ne!(when(3, 7), when(4, 7), "{}", strategy.name());
        assert_ne!(when(3, 7), when(3, 8), "{}", strategy.name());
    }
}

#[test]
fn no_two_strategies_have_one_name_or_one_row() {
    let mut names: Vec<StrategyName> = STRATEGIES.iter().map(|s| s.name()).collect();
    names.sort();
    let sorted = names.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    let rows = ["random", "coverage", "window_start", "window_chain", "stage_aware"];
    assert_eq!(sorted, [&rows[..], &["foresight", "refine", "disturb"]].concat());
}

#[test]
fn only_one_strategy_disturbs_and_it_does_so_in_every_way_around_the_last_trigger() {
    let last = Nanos::from_millis(5);
    let instants = vec![Nanos::from_millis(2), last, Nanos::from_millis(9)];
    let latency_ns = Nanos(2_000_000);
    let best = Recipe { instants, trigger: 1, latency_ns, ..Recipe::default() };
    let made = |strategy: &dyn Strategy| {
        let each = |n| on(n, 7, Some(&best), |turn| strategy.disturbances(turn));
        (0..100).flat_map(each).collect::<Vec<_>>()
    };
    let disturb = named("disturb");
    for strategy in STRATEGIES.iter().filter(|s| s.name() != disturb.name()) {
        assert_eq!(made(*strategy), [], "{}", strategy.name());
        assert!(!strategy.disturbs());
    }
    let made = made(disturb);
    assert_eq!(made.len(), 100);
    let with_timers = made.iter().filter(|d| d.timers > 0).count();
    assert!((30..70).contains(&with_timers), "{with_timers}");
    let before = made.iter().filter(|d| d.at < last).count();
    assert!((30..70).contains(&before), "{before}");
    for disturbance in made {
        let (at, until) = (disturbance.at, last + latency_ns);
        assert!(
            (last - Nanos(60_000)..=last - Nanos(300)).contains(&at) || (last..until).contains(&at)
        );
        assert!(disturbance.timers <= Disturbance::TIMERS_MAX);
    }
    assert_eq!(on(3, 7, None, |turn| disturb.disturbances(turn)), []);
}

#[test]
fn names_are_read_back_and_a_wrong_one_is_answered_with_all() {
    for name in STRATEGIES.iter().map(|strategy| strategy.name()) {
        assert_eq!(name.as_str().parse(), Ok(name));
        let text = format!("\"{name}\"");
        assert_eq!(serde_json::to_string(&name).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<StrategyName>(&text).expect("a name"), name);
    }
    let error = "luck".parse::<StrategyName>().unwrap_err();
    assert!(error.contains("window_chain") && error.contains("luck"), "{error}");
    assert!(serde_json::from_str::<StrategyName>("\"luck\"").is_err());
}

proptest! {
    #[test]
    fn a_refined_find_keeps_its_earlier_triggers_and_rises(
        gaps in proptest::collection::vec(10_000u64..2_000_000, 1..20), seed: u64, number: u64,
    ) {
        let instants: Vec<Nanos> = gaps
            .iter()
            .scan(0, |t, gap| { *t += gap; Some(Nanos(*t)) })
            .collect();
        let trigger = instants.len() as u64 - 1;
        let best = Recipe { instants: instants.clone(), trigger, ..Recipe::default() };
        let when = on(number, seed, Some(&best), |turn| named("refine").when(turn));
        let When::Planned(Schedule::Explicit(times)) = when
        else { panic!("refining is exact") };
        let before = instants.len() - 1;
        prop_assert_eq!(&times[..before], &instants[..before]);
        prop_assert!(times.windows(2).all(|w| w[0] < w[1]));
        prop_assert!(times.len() == before + 1 || times.len() == before + 2);
    }
}
