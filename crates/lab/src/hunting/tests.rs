// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests hunts with a made-up guest, and with real workers and journals.

use super::about::{About, AboutGuest};
use super::journal::Journal;
use super::search::search;
use crate::Error;
use hunt::examples::{hunt, result};
use hunt::{Budget, Hunt, HuntEnd, Knowledge, Trial};
use sample::Nanos;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn about(seed: u64) -> About {
    About {
        from: None,
        journal: About::JOURNAL,
        experiment: "title = \"x\"".into(),
        flavour: "6.12".into(),
        guests: vec![AboutGuest { load: "mixed".into(), seed: 1, snapshot: "key".into() }],
        responders: vec!["task".into()],
        strategies: vec!["random".into()],
        seed,
        shards: None,
    }
}

fn searched(hunt: &Hunt, path: &Path) -> (Knowledge, HuntEnd) {
    let mut journal = Journal::open(path, &about(5), &|_| ()).expect("a journal");
    let run = |trial: &Trial, _: Option<Instant>| {
        // With this sleep, workers overtake each other.
        std::thread::sleep(Duration::from_micros(trial.number % 3 * 300));
        Ok(Some(result(trial)))
    };
    search(hunt, &run, &mut journal, &mut |_| ()).expect("a hunt")
}

#[test]
fn any_number_of_workers_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let known = |jobs| searched(&hunt(jobs, 58), &directory.path().join(jobs.to_string()));
    let (one, ended) = known(1);
    assert_eq!(ended, HuntEnd::Budget);
    assert_eq!(one.trials, 58);
    assert!(one.worst("task").unwrap().answer.latency_ns > Nanos(80_000), "{:?}", one.finds);
    assert_eq!(known(2).0, one);
    assert_eq!(known(7).0, one);
    let several = |jobs| {
        let hunt = Hunt { guests: 3, ..hunt(jobs, 80) };
        searched(&hunt, &directory.path().join(format!("several {jobs}"))).0
    };
    assert_eq!(several(4), several(1));
}

#[test]
fn a_budget_of_trials_is_never_exceeded_and_in_how_many_parts_it_is_spent_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let whole = searched(&hunt(2, 47), &directory.path().join("whole")).0;
    assert_eq!(whole.trials, 47);
    for (name, parts) in [("a", [1, 2, 3, 13]), ("b", [6, 7, 20, 46]), ("c", [5, 30, 31, 32])] {
        let path = directory.path().join(name);
        for trials in parts {
            let (known, ended) = searched(&hunt(3, trials), &path);
            assert_eq!((known.trials, ended), (trials, HuntEnd::Budget));
            assert_eq!(Journal::open(&path, &about(5), &|_| ()).unwrap().count() as u64, trials);
        }
        assert_eq!(searched(&hunt(1, 47), &path).0, whole);
        // Fewer trials than there are, as if there were no more.
        let few = searched(&hunt(1, 11), &directory.path().join(format!("few {name}"))).0;
        assert_eq!(searched(&hunt(1, 11), &path).0, few);
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
    let whole = searched(&hunt(2, 34), &directory.path().join("whole")).0;
    let path = directory.path().join("killed");
    searched(&hunt(2, 26), &path);
    // The kill tore the last line.
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 20]).unwrap();
    let journal = Journal::open(&path, &about(5), &|_| ()).unwrap();
    assert_eq!(journal.count(), 25);
    drop(journal);
    assert_eq!(searched(&hunt(2, 34), &path).0, whole);
}

#[test]
fn the_journal_of_another_hunt_is_refused_with_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    drop(Journal::open(&path, &about(5), &|_| ()).unwrap());
    let failure = Journal::open(&path, &about(6), &|_| ()).unwrap_err();
    assert!(failure.to_string().contains("seed is 5, not 6"), "{}", failure);
    let mut other = about(5);
    other.guests.push(AboutGuest { load: "fork".into(), ..other.guests[0].clone() });
    let failure = Journal::open(&path, &other, &|_| ()).unwrap_err();
    assert!(failure.to_string().contains("load is mixed, not mixed,fork"), "{}", failure);
    std::fs::write(&path, "nonsense\n").unwrap();
    let failure = Journal::open(&path, &about(5), &|_| ()).unwrap_err();
    assert!(failure.to_string().contains("no journal of a hunt"), "{}", failure);
}

#[test]
fn a_trial_that_is_under_way_when_time_is_up_is_given_up_but_for_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5), &|_| ()).unwrap();
    let run = |trial: &Trial, deadline: Option<Instant>| {
        let is_over = || deadline.is_some_and(|at| Instant::now() >= at);
        // The third trial waits for longer than there is time.
        while trial.number == 2 && !is_over() {
            std::thread::yield_now();
        }
        Ok((!is_over()).then(|| result(trial)))
    };
    let hunt = Hunt { budget: Budget::Time(Duration::from_nanos(1)), ..hunt(1, 0) };
    let (known, ended) = search(&hunt, &run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!((known.trials, ended), (2, HuntEnd::Budget), "the first round is whole");
    let hunt = Hunt { budget: Budget::Time(Duration::from_millis(20)), ..hunt };
    let (known, ended) = search(&hunt, &run, &mut journal, &mut |_| ()).unwrap();
    assert_eq!((known.trials, ended), (2, HuntEnd::Budget));
}

#[test]
fn a_failure_of_the_rig_ends_the_hunt_with_its_reason_and_what_was_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("j"), &about(5), &|_| ()).unwrap();
    let run = |trial: &Trial, _: Option<Instant>| match trial.number {
        14 => Err(Error::MachineFailed("no QEMU".into())),
        _ => Ok(Some(result(trial))),
    };
    let broken = search(&hunt(1, 100), &run, &mut journal, &mut |_| ()).unwrap_err();
    assert_eq!((&*broken.failure.to_string(), broken.known.trials), ("no QEMU", 14));
    drop(journal);
    // The hunt's knowledge is that of a hunt with as many trials.
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(*broken.known, searched(&hunt(1, 14), &directory.path().join("j")).0);
}
