// SPDX-License-Identifier: GPL-2.0-or-later

use super::dealing::RESTORE;
use super::*;
use sample::{Aim, Insns, Nanos, Occurrence, Rule, Stretch, When};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn about(seed: u64) -> About {
    About {
        journal: Journal::VERSION,
        experiment: "title = \"x\"".into(),
        flavour: "6.12".into(),
        guests: vec![AboutGuest { load: "mixed".into(), seed: 1, snapshot: "key".into() }],
        responders: vec!["task".into()],
        strategies: vec!["random".into()],
        seed,
    }
}

pub(super) fn hunt(jobs: usize, trials: u64) -> Hunt {
    Hunt {
        guests: 1,
        responders: vec![Responder::Task],
        strategies: ALL.to_vec(),
        seed: 5,
        budget: Budget::Trials(trials),
        jobs,
        enough: None,
    }
}

/// A field in which a latency is decided by what the trial does.
pub(super) fn tried(trial: &Trial) -> Tried {
    let text = format!("{:?}", trial.when);
    let sum = text.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let (latency, instants) = (sum % 100_000, vec![Nanos(50_000 + sum % 1000)]);
    let late = Late { latency_ns: Nanos(latency), triggers: 1, ..Late::default() };
    let scouted = match &trial.when {
        When::Aimed(Aim { rule: Rule::Scout, until, .. }) => {
            let foreseen = |ordinal: u32| Foreseen {
                occurrence: Occurrence { kind: Stretch::Unscheduled, key: sum, ordinal },
                length_insns: Insns(200_000),
                at_ns: Nanos(until.0 / 20 * u64::from(ordinal)),
            };
            Some((1..=20).map(foreseen).collect())
        }
        _ => None,
    };
    Tried {
        number: trial.number,
        strategy: trial.strategy,
        begin: trial.begin,
        snapshot: "key".into(),
        way_ns: Nanos(0),
        triggers: 1,
        virtual_ns: taken(&trial.when),
        disturbances: trial.disturbances.clone(),
        instants,
        late: BTreeMap::from([("task".into(), vec![late])]),
        losses: BTreeMap::new(),
        seen: BTreeSet::from([sum]),
        fired: BTreeSet::from([sum]),
        scouted,
        coincidences: Vec::new(),
        encounter: None,
        entered: trial.enters.map(|stretch| Entered { stretch, answered_insns: BTreeMap::new() }),
        died: None,
    }
}

/// How long a trial takes that fires whenever it may.
fn taken(when: &When) -> Nanos {
    match when {
        When::Planned(schedule) => schedule.due(schedule.count().saturating_sub(1)),
        When::Aimed(aim) => Some(aim.until),
    }
    .unwrap_or_default()
}

fn search(hunt: &Hunt, path: &std::path::Path) -> (Known, Ended) {
    let mut journal = Journal::open(path, &about(5)).expect("a journal");
    let run = |trial: &Trial| {
        // So that workers overtake each other.
        std::thread::sleep(Duration::from_micros(trial.number % 3 * 300));
        Ok(Ok(tried(trial)))
    };
    hunt.search(&run, &mut journal, &mut |_| ()).expect("a hunt")
}

#[test]
fn any_number_of_workers_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let known = |jobs| search(&hunt(jobs, 58), &directory.path().join(jobs.to_string()));
    let (one, ended) = known(1);
    assert_eq!(ended, Ended::Budget);
    assert_eq!(one.trials, 58);
    assert!(one.worst("task").unwrap().best.latency_ns > Nanos(80_000), "{:?}", one.finds);
    assert_eq!(known(2).0, one);
    assert_eq!(known(7).0, one);
}

#[test]
fn a_budget_of_trials_is_never_exceeded_and_in_how_many_parts_it_is_spent_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let whole = search(&hunt(2, 47), &directory.path().join("whole")).0;
    assert_eq!(whole.trials, 47);
    for (name, parts) in [("a", [1, 2, 3, 13]), ("b", [6, 7, 20, 46]), ("c", [5, 30, 31, 32])] {
        let path = directory.path().join(name);
        for trials in parts {
            let (known, ended) = search(&hunt(3, trials), &path);
            assert_eq!((known.trials, ended), (trials, Ended::Budget));
            assert_eq!(Journal::open(&path, &about(5)).unwrap().count() as u64, trials);
        }
        assert_eq!(search(&hunt(1, 47), &path).0, whole);
        // Less than there is: as if there were no more.
        let few = search(&hunt(1, 11), &directory.path().join(format!("few {name}"))).0;
        assert_eq!(search(&hunt(1, 11), &path).0, few);
    }
}

#[test]
fn the_first_trial_scouts_and_then_foresight_fires_into_what_scouts_saw() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let rules = Mutex::new(BTreeMap::new());
    let run = |trial: &Trial| {
        if let (Strategy::Foresight, When::Aimed(aim)) = (trial.strategy, &trial.when) {
            rules.lock().unwrap().insert(trial.number, aim.rule.name());
        }
        Ok(Ok(tried(trial)))
    };
    let (known, _) = hunt(3, 50).search(&run, &mut journal, &mut |_| ()).unwrap();
    let rules = rules.into_inner().unwrap();
    assert_eq!(rules[&0], "scout");
    assert_eq!(rules.values().nth(1), Some(&"listed"));
    assert_eq!(
        known.ahead[&0].scouts as usize,
        rules.values().filter(|rule| **rule == "scout").count()
    );
}

#[test]
fn strategies_share_the_time_by_their_weights() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| Ok(Ok(tried(trial)));
    let (known, _) = hunt(1, 3_000).search(&run, &mut journal, &mut |_| ()).unwrap();
    let shares = known.by_strategy();
    let time = |s| shares[&s].virtual_ns.0 + shares[&s].trials * RESTORE.0;
    let all: u64 = ALL.map(time).iter().sum();
    let weights: u64 = ALL.map(Strategy::weight).iter().sum();
    assert_eq!(weights, 64);
    for strategy in ALL {
        let own = time(strategy) as f64 / all as f64;
        let due = strategy.weight() as f64 / weights as f64;
        assert!((own / due - 1.0).abs() < 0.2, "{strategy}: {own:.3}, not {due:.3}");
    }
}

#[test]
fn several_guests_take_turns_and_where_the_latest_answer_was_there_are_more_trials() {
    let directory = tempfile::tempdir().unwrap();
    let late = |trial: &Trial| {
        let late = Late { latency_ns: Nanos(10 + trial.begin.guest as u64 % 2), ..Late::default() };
        let late = BTreeMap::from([("task".into(), vec![late])]);
        Ok(Ok(Tried { late, ..tried(trial) }))
    };
    let known = |jobs, name| {
        let mut journal = Journal::open(&directory.path().join(name), &about(5)).unwrap();
        let hunt = Hunt { guests: 3, ..hunt(jobs, 6 + 24 * ROUND) };
        hunt.search(&late, &mut journal, &mut |_| ()).unwrap().0
    };
    let one = known(1, "one");
    assert_eq!(known(4, "four"), one);
    assert_eq!(one.worst("task").unwrap().best.begin.guest, 1);
    let guests = one.by_guest();
    let trials = |guest| guests[&guest].trials;
    assert_eq!(trials(0) + trials(1) + trials(2), one.trials);
    // Of 24 rounds after the first, twelve go to the one with the latest answer, and the others in turn; what begins from
    // the best find goes there, too.
    assert!(trials(1) >= 16 * ROUND && trials(0).min(trials(2)) >= ROUND, "{guests:?}");
    for guest in 0..3 {
        assert!(one.ahead[&guest].scouts > 0);
    }
}

#[test]
fn each_guest_of_any_number_has_every_strategy_that_has_much_time() {
    let directory = tempfile::tempdir().unwrap();
    for guests in [2, 3, 5, 7, 14] {
        let had = Mutex::new(BTreeSet::new());
        let run = |trial: &Trial| {
            had.lock().unwrap().insert((trial.begin.guest, trial.strategy));
            Ok(Ok(tried(trial)))
        };
        let path = directory.path().join(guests.to_string());
        let mut journal = Journal::open(&path, &about(5)).unwrap();
        let hunt = Hunt { guests, ..hunt(1, 200 * guests as u64) };
        hunt.search(&run, &mut journal, &mut |_| ()).unwrap();
        let had = had.into_inner().unwrap();
        // One begins from the best find, wherever that is.
        let own = |s: &Strategy| *s != Strategy::Refine && s.weight() > 2;
        for guest in 0..guests {
            let missed = ALL.into_iter().filter(own).find(|s| !had.contains(&(guest, *s)));
            assert_eq!(missed, None, "in guest {guest} of {guests}");
        }
    }
}

#[test]
fn guests_are_called_by_their_load_and_where_that_is_not_enough_by_their_seed() {
    let guest =
        |(load, seed): (&str, u32)| AboutGuest { load: load.into(), seed, snapshot: String::new() };
    let guests = [("fork", 1), ("mixed", 1), ("mixed", 2)].map(guest).to_vec();
    let about = About { guests, ..about(5) };
    let names = [0, 1, 2].map(|n| about.guest(n).unwrap());
    assert_eq!(names, ["fork", "mixed, guest seed 1", "mixed, guest seed 2"]);
    assert_eq!(about.loads(), "fork, mixed");
    let alone = About { guests: about.guests[..1].to_vec(), ..about };
    assert_eq!(alone.guest(0), None);
}

#[test]
fn a_hunt_that_was_killed_goes_on_where_it_was_and_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let whole = search(&hunt(2, 34), &directory.path().join("whole")).0;
    let path = directory.path().join("killed");
    search(&hunt(2, 26), &path);
    // The kill tore the last line.
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 20]).unwrap();
    let journal = Journal::open(&path, &about(5)).unwrap();
    assert_eq!(journal.count(), 25);
    drop(journal);
    assert_eq!(search(&hunt(2, 34), &path).0, whole);
}

#[test]
fn the_journal_of_another_hunt_is_refused_with_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    drop(Journal::open(&path, &about(5)).unwrap());
    let failure = Journal::open(&path, &about(6)).unwrap_err();
    assert!(failure.message.contains("seed is 5, not 6"), "{}", failure.message);
    let mut other = about(5);
    other.guests.push(AboutGuest { load: "fork".into(), ..other.guests[0].clone() });
    let failure = Journal::open(&path, &other).unwrap_err();
    assert!(failure.message.contains("load is mixed, not mixed,fork"), "{}", failure.message);
    std::fs::write(&path, "nonsense\n").unwrap();
    let failure = Journal::open(&path, &about(5)).unwrap_err();
    assert!(failure.message.contains("no journal of a hunt"), "{}", failure.message);
}

/// Whose turns these trials in the first guest are, and how often it was before.
fn turns(hunt: &Hunt, numbers: std::ops::Range<u64>, known: &Known) -> Vec<(Strategy, u64)> {
    let mut deal = Deal::new(hunt, 0, known);
    let each = numbers.map(|number| {
        let strategy = deal.due(number).expect("somebody's");
        (strategy, deal.take(number, strategy, &Next::Blind))
    });
    each.collect()
}

#[test]
fn strategies_that_begin_from_a_find_take_turns_between_the_responders() {
    let responders = vec![Responder::Hardirq, Responder::Task];
    let dealt = BTreeMap::from([((0, Strategy::Random), Share::default())]);
    let known = Known { dealt, ..Known::default() };
    for strategies in
        [ALL.to_vec(), vec![Strategy::Refine], vec![Strategy::Refine, Strategy::Random]]
    {
        let hunt = Hunt { responders: responders.clone(), strategies, ..hunt(1, 1) };
        let all = turns(&hunt, 0..8_000, &known);
        let turns = all.iter().filter(|turn| turn.0 == Strategy::Refine);
        let turns: Vec<u64> = turns.map(|turn| turn.1).collect();
        assert!(turns.windows(2).all(|w| w[1] == w[0] + 1), "{turns:?}");
        assert!(turns.len() >= 20);
    }
}

#[test]
fn who_finds_nothing_to_fire_into_has_no_more_than_a_few_trials() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| {
        let triggers = u64::from(trial.strategy != Strategy::WindowChain);
        Ok(Ok(Tried { triggers, ..tried(trial) }))
    };
    let (known, _) = hunt(1, 1_000).search(&run, &mut journal, &mut |_| ()).unwrap();
    let shares = known.by_strategy();
    // A round is dealt at once.
    let idle = shares[&Strategy::WindowChain].trials;
    assert!((1..=ROUND).contains(&idle), "{idle}");
    assert!(shares[&Strategy::WindowStart].trials > 2 * ROUND);
    let hunt = Hunt { strategies: vec![Strategy::WindowChain], ..hunt(1, 1) };
    assert_eq!(turns(&hunt, 300..308, &known).len(), 8, "there is nobody else");
}

#[test]
fn an_interrupted_hunt_says_so_and_keeps_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run =
        |trial: &Trial| Ok(if trial.number < 15 { Ok(tried(trial)) } else { Err(trial::Stopped) });
    let (known, ended) = hunt(1, 1000).search(&run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!((known.trials, ended), (15, Ended::Interrupted));
}

#[test]
fn a_trial_that_is_under_way_when_time_is_up_is_given_up_but_for_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| {
        // The third waits for more than there is time for.
        while trial.number == 2 && !tool::interrupted() {
            std::thread::yield_now();
        }
        Ok(if tool::interrupted() { Err(trial::Stopped) } else { Ok(tried(trial)) })
    };
    let hunt = Hunt { budget: Budget::Time(Duration::from_nanos(1)), ..hunt(1, 0) };
    let (known, ended) = hunt.search(&run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!((known.trials, ended), (FIRST_ROUND, Ended::Budget), "the first round is whole");
    let hunt = Hunt { budget: Budget::Time(Duration::from_millis(20)), ..hunt };
    let (known, ended) = hunt.search(&run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!((known.trials, ended), (FIRST_ROUND, Ended::Budget));
}

#[test]
fn a_hunt_that_finds_nothing_new_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| {
        let nothing = Tried { late: BTreeMap::new(), fired: BTreeSet::new(), ..tried(trial) };
        Ok(Ok(nothing))
    };
    let (known, ended) = hunt(1, 100_000).search(&run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!(ended, Ended::Stale);
    assert!(known.trials < 2 * STALE, "{}", known.trials);
}

#[test]
fn a_hunt_ends_with_the_round_in_which_an_answer_was_late_enough() {
    let directory = tempfile::tempdir().unwrap();
    let enough = Nanos(90_000);
    let hunt = Hunt { enough: Some(enough), ..hunt(2, 1000) };
    let (known, ended) = search(&hunt, &directory.path().join("j"));
    assert_eq!(ended, Ended::Enough);
    let reached = known.growth.iter().find(|step| step.latency_ns >= enough).unwrap();
    assert!(known.worst("task").unwrap().best.latency_ns >= enough);
    assert!(known.trials - reached.trial <= ROUND, "{reached:?} of {}", known.trials);
}

#[test]
fn a_failure_of_the_rig_ends_the_hunt_with_its_reason_and_what_was_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| match trial.number {
        14 => Err(Failure::unavailable("no QEMU")),
        _ => Ok(Ok(tried(trial))),
    };
    let broken = hunt(1, 100).search(&run, &mut journal, &mut |_| ()).unwrap_err();
    assert_eq!((&*broken.failure.message, broken.known.trials), ("no QEMU", 14));
    drop(journal);
    // What it knew is what a hunt of as many trials knows.
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(*broken.known, search(&hunt(1, 14), &directory.path().join("j")).0);
}

#[test]
fn budgets_are_times_or_trials_and_never_zero() {
    assert_eq!("5min".parse(), Ok(Budget::Time(Duration::from_secs(300))));
    assert_eq!("30s".parse(), Ok(Budget::Time(Duration::from_secs(30))));
    assert_eq!("200trials".parse(), Ok(Budget::Trials(200)));
    for zero in ["0s", "0min", "0trials"] {
        assert_eq!(zero.parse::<Budget>(), Err(NotABudget::Zero));
    }
    let error = "soon".parse::<Budget>().unwrap_err().to_string();
    assert!(error.contains("5min"), "{error}");
}
