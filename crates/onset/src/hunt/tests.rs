// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use sample::Nanos;
use std::collections::{BTreeMap, BTreeSet};

fn about(seed: u64) -> About {
    About {
        journal: Journal::VERSION,
        experiment: "title = \"x\"".into(),
        flavour: "6.12".into(),
        load: "mixed".into(),
        responders: vec!["task".into()],
        strategies: vec!["random".into()],
        seed,
        snapshot: "key".into(),
    }
}

fn hunt(jobs: usize, trials: u64) -> Hunt {
    Hunt {
        responders: vec![Responder::Task],
        strategies: ALL.to_vec(),
        seed: 5,
        budget: Budget::Trials(trials),
        jobs,
    }
}

/// A field in which a latency is decided by what the trial does.
fn tried(trial: &Trial) -> Tried {
    let text = format!("{:?}", trial.when);
    let sum = text.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let (latency, instants) = (sum % 100_000, vec![Nanos(50_000 + sum % 1000)]);
    let best = Best { latency_ns: Nanos(latency), instants, ..Best::default() };
    Tried {
        number: trial.number,
        strategy: trial.strategy,
        triggers: 1,
        virtual_ns: Nanos(1_000),
        worst: BTreeMap::from([("task".into(), best)]),
        seen: BTreeSet::from([sum]),
        fired: BTreeSet::from([sum]),
        died: None,
    }
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
    let known = |jobs| search(&hunt(jobs, 60), &directory.path().join(jobs.to_string()));
    let (one, ended) = known(1);
    assert_eq!(ended, Ended::Budget);
    assert_eq!(one.trials, 60);
    assert!(one.worst["task"].best.latency_ns > Nanos(90_000), "{:?}", one.worst);
    assert_eq!(known(2).0, one);
    assert_eq!(known(7).0, one);
}

#[test]
fn a_hunt_that_was_killed_goes_on_where_it_was_and_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let whole = search(&hunt(2, 36), &directory.path().join("whole")).0;
    let path = directory.path().join("killed");
    search(&hunt(2, 24), &path);
    // The kill tore the last line.
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 20]).unwrap();
    let journal = Journal::open(&path, &about(5)).unwrap();
    assert_eq!(journal.count(), 23);
    drop(journal);
    assert_eq!(search(&hunt(2, 36), &path).0, whole);
}

#[test]
fn the_journal_of_another_hunt_is_refused_with_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    drop(Journal::open(&path, &about(5)).unwrap());
    let failure = Journal::open(&path, &about(6)).unwrap_err();
    assert!(failure.message.contains("seed is 5, not 6"), "{}", failure.message);
    std::fs::write(&path, "nonsense\n").unwrap();
    let failure = Journal::open(&path, &about(5)).unwrap_err();
    assert!(failure.message.contains("no journal of a hunt"), "{}", failure.message);
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
fn a_hunt_that_finds_nothing_new_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |trial: &Trial| {
        let nothing = Tried { worst: BTreeMap::new(), fired: BTreeSet::new(), ..tried(trial) };
        Ok(Ok(nothing))
    };
    let (known, ended) = hunt(1, 100_000).search(&run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!(ended, Ended::Stale);
    assert!(known.trials < 2 * STALE, "{}", known.trials);
}

#[test]
fn a_failure_of_the_rig_ends_the_hunt_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5)).unwrap();
    let run = |_: &Trial| Err(Failure::unavailable("no QEMU"));
    let failure = hunt(3, 10).search(&run, &mut journal, &mut |_| ()).unwrap_err();
    assert_eq!(failure.message, "no QEMU");
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
