// SPDX-License-Identifier: GPL-2.0-or-later

//! Tests whole hunts. Made-up guests carry out their trials one after the other.

mod strategies;

use crate::begin::Begin;
use crate::coincidence::{Coincidence, ComingInterrupt};
use crate::dealing::{self, Deal};
use crate::examples::{hunt, result};
use crate::foreseen::ForeseenStretch;
use crate::hunt::{Hunt, HuntEnd};
use crate::knowledge::{Discovery, Knowledge, Recipe, Share};
use crate::name::StrategyName;
use crate::registry::STRATEGIES;
use crate::result::{Encounter, EnteredStretch, LateAnswer, TrialResult};
use crate::search::{ROUND, RoundResults, STALE};
use crate::trial::Trial;
use sample::{Disturbance, Insns, Nanos, Occurrence, Responder, Schedule, Stretch, When};
use std::collections::{BTreeMap, BTreeSet};

/// Searches with the results that `of` returns. The hunt is stopped when `of` returns none.
fn search(hunt: &Hunt, mut of: impl FnMut(&Trial) -> Option<TrialResult>) -> (Knowledge, HuntEnd) {
    let mut carry_out = |round: &[Trial], _| RoundResults {
        results: round.iter().map(&mut of).collect(),
        failure: None::<()>,
    };
    hunt.search(&mut carry_out, &mut |_| ()).expect("nothing fails")
}

fn named(name: &str) -> StrategyName {
    name.parse().expect("a strategy's name")
}

fn names() -> Vec<StrategyName> {
    STRATEGIES.iter().map(|strategy| strategy.name()).collect()
}

#[test]
fn the_first_trial_scouts_and_then_foresight_fires_into_what_scouts_saw() {
    let mut rules = BTreeMap::new();
    let (known, _) = search(&hunt(3, 50), |trial| {
        if let ("foresight", When::Aimed(aim)) = (trial.strategy.as_str(), &trial.when) {
            rules.insert(trial.number, aim.rule.name());
        }
        Some(result(trial))
    });
    assert_eq!(rules[&0], "scout");
    assert_eq!(rules.values().nth(1), Some(&"listed"));
    assert_eq!(
        known.ahead[&0].scouts as usize,
        rules.values().filter(|rule| **rule == "scout").count()
    );
}

#[test]
fn a_hunt_that_starts_from_finds_makes_them_again_first_and_goes_on_from_there() {
    let find = |n: u64| Recipe {
        begin: Begin { guest: n as usize % 2, after: Nanos(n) },
        instants: vec![Nanos(100 + n), Nanos(200 + n)],
        disturbances: vec![Disturbance { at: Nanos(150 + n), timers: 1 }],
        ..Recipe::default()
    };
    let corpus: Vec<Recipe> = (0..ROUND + 2).map(find).collect();
    let hunt = Hunt { guests: 2, corpus: corpus.clone(), ..hunt(1, 60) };
    let mut made = Vec::new();
    let (known, _) = search(&hunt, |trial| {
        made.push(trial.clone());
        // The third find is later than anything else.
        let late = Nanos(if trial.number == 2 { 1 << 40 } else { 5 });
        let late = LateAnswer { latency_ns: late, triggers: 1, ..LateAnswer::default() };
        let late = BTreeMap::from([("task".into(), vec![late])]);
        Some(TrialResult { late, ..result(trial) })
    });
    let (first, rest) = made.split_at(corpus.len());
    for (trial, find) in first.iter().zip(&corpus) {
        assert_eq!((trial.strategy.as_str(), trial.begin), ("corpus", find.begin));
        assert_eq!(trial.when, When::Planned(Schedule::Explicit(find.instants.clone())));
        assert_eq!(trial.disturbances, find.disturbances);
    }
    assert!(rest.iter().all(|trial| trial.strategy.as_str() != "corpus"));
    assert_eq!(known.worst("task").expect("a find").answer.latency_ns, Nanos(5));
    // Each find has a place of its own, and no guest has a disturbed answer for its worst.
    assert!(known.disturbed["task"].len() > 2, "{:?}", known.disturbed["task"]);
    assert!(known.by_guest().values().all(|share| share.worst_ns.get("task") == Some(&Nanos(5))));
    let disturbed = &known.disturbed["task"][0];
    assert_eq!((disturbed.strategy.as_str(), disturbed.trial), ("corpus", 2));
    // Each guest has its scout all the same, and then goes on as a hunt that starts from nothing.
    let scouts = rest.iter().filter(|trial| trial.looks_ahead().is_some());
    let scouts: Vec<(u64, usize)> = scouts.take(2).map(|t| (t.number, t.begin.guest)).collect();
    assert_eq!(scouts, [(ROUND + 2, 0), (ROUND + 4, 1)]);
    // Nobody asks for it by its name, and journals have it.
    assert!("corpus".parse::<StrategyName>().is_err());
    let read: StrategyName = serde_json::from_str("\"corpus\"").expect("a journal's word");
    assert_eq!(read, first[0].strategy);
}

#[test]
fn strategies_share_the_time_by_their_weights() {
    let (known, _) = search(&hunt(1, 40_000), |trial| Some(result(trial)));
    let shares = known.by_strategy();
    let time = |s| dealing::time(&shares[&s]);
    let all: Nanos = names().into_iter().map(time).sum();
    let weights: u64 = STRATEGIES.iter().map(|s| s.weight()).sum();
    assert_eq!(weights, 64);
    for strategy in STRATEGIES {
        let own = time(strategy.name()).share_of(all);
        let due = strategy.weight() as f64 / weights as f64;
        let name = strategy.name();
        assert!((own / due - 1.0).abs() < 0.2, "{name}: {own:.3}, not {due:.3}");
    }
}

#[test]
fn several_guests_take_turns_and_where_the_latest_answer_was_there_are_more_trials() {
    let hunt = Hunt { guests: 3, ..hunt(1, 6 + 24 * ROUND) };
    let (known, _) = search(&hunt, |trial| {
        let late = Nanos(10 + trial.begin.guest as u64 % 2);
        let late = LateAnswer { latency_ns: late, ..LateAnswer::default() };
        let late = BTreeMap::from([("task".into(), vec![late])]);
        Some(TrialResult { late, ..result(trial) })
    });
    assert_eq!(known.worst("task").unwrap().answer.begin.guest, 1);
    let guests = known.by_guest();
    let trials = |guest| guests[&guest].trials;
    assert_eq!(trials(0) + trials(1) + trials(2), known.trials);
    // Of 24 rounds after the first, twelve go to the guest with the latest answer, and the others in turn. Trials that
    // begin from the best find go to that guest, too.
    assert!(trials(1) >= 16 * ROUND && trials(0).min(trials(2)) >= ROUND, "{guests:?}");
    for guest in 0..3 {
        assert!(known.ahead[&guest].scouts > 0);
    }
}

#[test]
fn each_guest_of_any_number_has_every_strategy_that_has_much_time() {
    for guests in [2, 3, 5, 7, 14] {
        let mut had = BTreeSet::new();
        let hunt = Hunt { guests, ..hunt(1, 1_500 * guests as u64) };
        search(&hunt, |trial| {
            had.insert((trial.begin.guest, trial.strategy));
            Some(result(trial))
        });
        // A strategy that begins from the best find goes to that find's guest.
        let own = |name: &StrategyName| *name != named("refine") && name.strategy().weight() > 2;
        for guest in 0..guests {
            let missed = names().into_iter().filter(own).find(|s| !had.contains(&(guest, *s)));
            assert_eq!(missed, None, "in guest {guest} of {guests}");
        }
    }
}

/// The strategies of these trials in the first guest, if nothing is foreseen.
fn turns(
    hunt: &Hunt,
    numbers: std::ops::Range<u64>,
    known: &Knowledge,
) -> Vec<(StrategyName, Option<Nanos>)> {
    let mut deal = Deal::new(hunt, 0, known);
    let each = numbers.map(|number| {
        let strategy = deal.due(number).expect("somebody's");
        let turn = deal.turn(number, strategy);
        deal.take(strategy, &strategy.trial(&turn));
        (strategy.name(), turn.best.map(|best| best.latency_ns))
    });
    each.collect()
}

#[test]
fn strategies_that_begin_from_a_find_take_turns_between_the_responders() {
    let responders = vec![Responder::Hardirq, Responder::Task];
    let dealt = BTreeMap::from([((0, named("random")), Share::default())]);
    let mut known = Knowledge { dealt, ..Knowledge::default() };
    for (responder, latency) in [("hardirq", 1), ("task", 2)] {
        let answer = Recipe { latency_ns: Nanos(latency), ..Recipe::default() };
        let found = Discovery { trial: 0, strategy: named("random"), answer };
        known.finds.insert(responder.into(), vec![found]);
    }
    let refine = named("refine");
    for strategies in [names(), vec![refine], vec![refine, named("random")]] {
        let hunt = Hunt { responders: responders.clone(), strategies, ..hunt(1, 1) };
        let all = turns(&hunt, 0..8_000, &known);
        let turns = all.iter().filter(|turn| turn.0 == refine);
        let turns: Vec<Option<Nanos>> = turns.map(|turn| turn.1).collect();
        assert!(
            turns.chunks(2).all(|two| two
                .iter()
                .copied()
                .eq([1, 2].map(|ns| Some(Nanos(ns))).into_iter().take(two.len()))),
            "{turns:?}"
        );
        assert!(turns.len() >= 20);
    }
}

#[test]
fn who_finds_nothing_to_fire_into_has_no_more_than_a_few_trials() {
    let chain = named("window_chain");
    let (known, _) = search(&hunt(1, 30_000), |trial| {
        let triggers = u64::from(trial.strategy != chain);
        Some(TrialResult { triggers, ..result(trial) })
    });
    let shares = known.by_strategy();
    // A round is dealt at once.
    let idle = shares[&chain].trials;
    assert!((1..=ROUND).contains(&idle), "{idle}");
    assert!(shares[&named("window_start")].trials > 2 * ROUND);
    let hunt = Hunt { strategies: vec![chain], ..hunt(1, 1) };
    assert_eq!(turns(&hunt, 300..308, &known).len(), 8, "there is nobody else");
}

#[test]
fn an_interrupted_hunt_says_so_and_keeps_what_it_has() {
    let (known, ended) = search(&hunt(1, 1000), |trial| (trial.number < 15).then(|| result(trial)));
    assert_eq!((known.trials, ended), (15, HuntEnd::Interrupted));
}

#[test]
fn a_hunt_that_finds_nothing_new_ends() {
    let (known, ended) = search(&hunt(1, 100_000), |trial| {
        let (late, fired) = (BTreeMap::new(), BTreeSet::new());
        Some(TrialResult { late, fired, ..result(trial) })
    });
    assert_eq!(ended, HuntEnd::Stale);
    assert!(known.trials < 2 * STALE, "{}", known.trials);
}

#[test]
fn a_hunt_ends_with_the_round_in_which_an_answer_was_late_enough() {
    let enough = Nanos(90_000);
    let hunt = Hunt { enough: Some(enough), ..hunt(2, 1000) };
    let (known, ended) = search(&hunt, |trial| Some(result(trial)));
    assert_eq!(ended, HuntEnd::Enough);
    let reached = known.growth.iter().find(|step| step.latency_ns >= enough).unwrap();
    assert!(known.worst("task").unwrap().answer.latency_ns >= enough);
    assert!(known.trials - reached.trial <= ROUND, "{reached:?} of {}", known.trials);
}

/// A guest in which trials find everything that there is.
fn rich(trial: &Trial) -> TrialResult {
    let plain = result(trial);
    let sum = *plain.seen.first().expect("one");
    let draw = |n: u64, below: u64| {
        let mixed =
            (sum ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 20) % below
    };
    let foreseen = |until: Nanos, n: u64| ForeseenStretch {
        occurrence: Occurrence {
            kind: Stretch::ALL[draw(n, 4) as usize % Stretch::ALL.len()],
            key: draw(n + 1_000, 30),
            ordinal: n as u32,
        },
        length_insns: Insns(2_000 + draw(n + 2_000, 40_000) + until.0 / 100_000),
        at_ns: until / 200 * n + Nanos(draw(n + 3_000, 1_000)),
    };
    let coming = |n: u64| ComingInterrupt {
        after_insns: Insns(500 * n + draw(n, 900)),
        takes_insns: Insns(800 + draw(n + 9, 3_000)),
    };
    let together = |n: u64| Coincidence {
        at_ns: Nanos(7_000_000 * n + draw(n + 4_000, 100_000)),
        masked_insns: Insns(1_000 + draw(n + 5_000, 9_000)),
        interrupts: (1..4).map(coming).collect(),
    };
    let answered_insns = || {
        let each = [("hardirq", 6_000), ("task", 90_000)];
        each.map(|(name, below)| (name.to_string(), Insns(300 + draw(below, below)))).into()
    };
    let late = |responder: u64| {
        let of = |n: u64| LateAnswer {
            latency_ns: Nanos(300 + draw(n + responder, 8_000 * (1 + responder))),
            latency_insns: Insns(300 + draw(n + responder, 8_000 * (1 + responder))),
            trigger: n,
            triggers: n + 1,
            stack: vec![format!("f{}+0x1 [m]", draw(n + 70, 9)), "g+0x2".into()],
        };
        let mut own: Vec<LateAnswer> = (0..3).map(of).collect();
        own.sort_by_key(|late| std::cmp::Reverse(late.latency_ns));
        own
    };
    let until = trial.looks_ahead();
    let fires = u64::from(until.is_none());
    let late = [("hardirq".to_string(), late(0)), ("task".into(), late(1))];
    let entered = |stretch| EnteredStretch { stretch, answered_insns: answered_insns() };
    let met = |coincidence| Encounter { coincidence, answered_insns: answered_insns() };
    TrialResult {
        triggers: 5 * fires,
        way_ns: trial.begin.after,
        undisturbed_ns: trial.fires_from().unwrap_or_default(),
        instants: [1_000_000, 2_000_000, 3_000_000].map(|at| Nanos(at + sum % 1_000)).into(),
        late: late.into_iter().filter(|_| fires > 0).collect(),
        scouted: until.map(|until| (1..=200).map(|n| foreseen(until, n)).collect()),
        coincidences: (1..30).filter(|_| fires == 0).map(together).collect(),
        entered: trial.enters.map(entered),
        encounter: trial.meets.clone().map(met),
        ..plain
    }
}

/// If this test fails, hunts do something else: the finds of a seed are others, and a journal needs another version.
#[test]
fn a_seed_makes_the_trials_that_it_made_when_journals_had_version_13() {
    let hash = |text: &str| {
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    };
    let of = |seed, guests, strategies: &[StrategyName]| {
        let responders = vec![Responder::Hardirq, Responder::Task];
        let strategies = strategies.to_vec();
        let hunt = Hunt { seed, guests, strategies, responders, ..hunt(1, 1_200) };
        let mut lines = String::new();
        let (known, _) = search(&hunt, |trial| {
            let result = rich(trial);
            lines += &(serde_json::to_string(&result).expect("plain data") + "\n");
            Some(result)
        });
        let by_strategy: Vec<_> = known.by_strategy().into_iter().collect();
        let shares = (known.by_guest(), by_strategy, &known.growth);
        (hash(&lines), hash(&serde_json::to_string(&shares).expect("plain data")))
    };
    let foresight = [named("foresight")];
    let from_finds = [named("refine"), named("disturb")];
    assert_eq!(of(1, 1, &names()), (0x69e7_50c5_baf7_2fe2, 0xb263_885a_e04e_1269));
    assert_eq!(of(2, 3, &names()), (0x3a48_351e_9f30_d5db, 0x3960_a91a_40c5_2198));
    assert_eq!(of(3, 1, &foresight), (0xf3fb_2beb_0153_62fe, 0x2e87_edc1_cc31_a0c3));
    assert_eq!(of(4, 2, &from_finds), (0x8bd4_9ac8_e5a2_056d, 0xdb6e_ceab_9ae9_7d15));
}
