// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the matrix, with a target that measures nothing.

use super::*;
use crate::shards::Shard;
use crate::target::fake::Fake;
use bundle::Bundle;
use bundle::store::Store;
use std::sync::LazyLock;

struct Fixed;
impl Issuer for Fixed {
    fn now(&self) -> UtcTime {
        UtcTime::from_unix_seconds(1_800_000_000).unwrap()
    }

    fn tool(&self) -> Tool {
        Tool { version: "0.0".into(), revision: "unknown".into() }
    }
}

const EXPERIMENT: &str = r#"
    title = "test"
    target = "rig"
    flavours = ["a x=1", "b"]
    loads = ["idle", "disk"]
    responders = ["hardirq", "task"]
    trigger = { period = "1ms", count = 500 }
    [limits]
    hardirq.max = "2us"
    [limits."b/disk"]
    hardirq.max = "100ns"
"#;

fn place(root: &Path) -> Place<'_> {
    static NONE: LazyLock<Found> = LazyLock::new(Found::default);
    Place { root, found: &NONE, is_wanted: &|_| true }
}

fn matrix(fake: &Fake, jobs: usize) -> (tempfile::TempDir, Vec<Result<PathBuf, Error>>) {
    let root = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).unwrap();
    let results = run(&[(&experiment, fake)], place(root.path()), &Fixed, jobs, |_| ());
    (root, results)
}

fn verdicts(results: &[Result<PathBuf, Error>]) -> Vec<Option<Verdict>> {
    let verdict = |p: &PathBuf| Bundle::open(p).unwrap().manifest().conclusion.verdict;
    results.iter().map(|r| r.as_ref().ok().map(verdict)).collect()
}

#[test]
fn every_cell_becomes_a_bundle_that_verifies_with_its_own_limits() {
    let (_root, results) = matrix(&Fake::default(), 2);
    use Verdict::*;
    assert_eq!(verdicts(&results), [Some(Pass), Some(Pass), Some(Pass), Some(Fail)]);
    for path in results.iter().flatten() {
        Bundle::open(path).unwrap().verify().unwrap();
    }
}

/// Goes on with the experiment under this seed. Returns the paths, and how many cells were not measured again.
fn resumed(root: &Path, text: &str, seed: &str, fake: &Fake) -> (Vec<PathBuf>, usize) {
    let found = Found::of(&Store::at(root)).unwrap();
    let experiment = Experiment::parse(Path::new("t.toml"), text).unwrap();
    let experiment = experiment.with_overrides(&[("seed".into(), seed.into())]).unwrap();
    let mut again = 0;
    let place = Place { root, found: &found, is_wanted: &|_| true };
    let results = run(&[(&experiment, fake)], place, &Fixed, 2, |event| {
        again += usize::from(matches!(event, Event::Found(..)));
    });
    (results.into_iter().map(Result::unwrap).collect(), again)
}

#[test]
fn who_goes_on_measures_what_is_missing_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let same = Fake { is_deterministic: true, ..Fake::default() };
    let (first, none) = resumed(root.path(), EXPERIMENT, "1", &same);
    assert_eq!((first.len(), none), (4, 0));
    assert_eq!(resumed(root.path(), EXPERIMENT, "1", &same), (first.clone(), 4));
    // Another seed asks for other runs.
    assert_eq!(resumed(root.path(), EXPERIMENT, "2", &same).1, 0);
    std::fs::remove_dir_all(&first[2]).unwrap();
    let (again, found) = resumed(root.path(), EXPERIMENT, "1", &same);
    assert_eq!(found, 3);
    assert_eq!((&again[..2], &again[3..]), (&first[..2], &first[3..]));
    assert!(again[2].is_dir() && Store::at(root.path()).list().unwrap().len() == 8);
    // An experiment with one more flavour lacks that flavour's runs alone; with another limit it lacks all.
    let more = EXPERIMENT.replace(r#""b"]"#, r#""b", "c"]"#);
    assert_eq!(resumed(root.path(), &more, "1", &same).1, 4);
    let stricter = EXPERIMENT.replace(r#""2us""#, r#""1us""#);
    assert_eq!(resumed(root.path(), &stricter, "1", &same).1, 0);
    // Where measuring again gives other samples, each repetition is a sample of its own.
    assert_eq!(resumed(root.path(), EXPERIMENT, "1", &Fake::default()).1, 0);
}

#[test]
fn each_shard_runs_its_own_cells_and_together_they_miss_none() {
    let root = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).unwrap();
    let fake = Fake { is_deterministic: true, ..Fake::default() };
    let mut left = vec![4, 2, 0];
    for shard in Shard::all(2).unwrap() {
        let found = Found::of(&Store::at(root.path())).unwrap();
        let is_wanted = |index| shard.has(index);
        let everything = Place { root: root.path(), found: &found, is_wanted: &|_| true };
        assert_eq!(missing(&[(&experiment, &fake)], everything, &Fixed).len(), left.remove(0));
        let place = Place { root: root.path(), found: &found, is_wanted: &is_wanted };
        let results = run(&[(&experiment, &fake)], place, &Fixed, 2, |_| ());
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    }
    let found = Found::of(&Store::at(root.path())).unwrap();
    let everything = Place { root: root.path(), found: &found, is_wanted: &|_| true };
    assert_eq!(missing(&[(&experiment, &fake)], everything, &Fixed).len(), left.remove(0));
}

#[test]
fn the_number_of_jobs_does_not_change_the_samples() {
    let hashes = |jobs| -> Vec<String> {
        let (_root, results) = matrix(&Fake::default(), jobs);
        let hash = |p: &PathBuf| Bundle::open(p).unwrap().manifest().samples.blake3.clone();
        results.iter().flatten().map(hash).collect()
    };
    assert_eq!(hashes(1), hashes(4));
}

#[test]
fn a_cell_that_fails_leaves_the_others_their_bundles_and_no_debris() {
    let fake = Fake { failing: vec!["idle".into()], ..Fake::default() };
    let (root, results) = matrix(&fake, 2);
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false, true]);
    let left = std::fs::read_dir(root.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|e| e.file_name().into_string().unwrap()).collect();
    assert_eq!(left.iter().filter(|n| !n.starts_with(".lock")).count(), 2, "{left:?}");
}

#[test]
fn a_measurement_that_fails_leaves_what_it_had_and_says_why_and_where() {
    let fake = Fake { failing_at: 123, ..Fake::default() };
    let (root, results) = matrix(&fake, 1);
    let store = Store::at(root.path());
    assert!(store.salvage().is_empty());
    let entries = store.list().unwrap();
    assert_eq!(entries.len(), 4);
    for result in &results {
        let Error::KeptAsBundle { cause, bundle } = result.as_ref().unwrap_err() else {
            panic!("{result:?}")
        };
        assert!(matches!(**cause, Error::Probe(_)), "{cause}");
        let bundle = Bundle::open(bundle).unwrap();
        assert_eq!(bundle.verify().unwrap().samples, 246);
        let manifest = bundle.manifest();
        assert!(!manifest.complete);
        assert_eq!(manifest.conclusion.verdict, Verdict::Invalid);
        let why = manifest.conclusion.warnings[0].symptom();
        assert_eq!(why, "the measurement failed: told to fail");
    }
}

#[test]
fn a_bundle_says_where_relative_paths_began_and_is_silent_where_there_were_none() {
    let root = tempfile::tempdir().unwrap();
    let directory = |path: &str, more: &str| {
        let text = format!("{EXPERIMENT}\n[guest]\n{more}");
        let experiment = Experiment::parse(Path::new(path), &text).unwrap();
        let fake = Fake::default();
        let results = run(&[(&experiment, &fake)], place(root.path()), &Fixed, 1, |_| ());
        let bundle = Bundle::open(results[0].as_ref().unwrap()).unwrap();
        bundle.manifest().about.experiment.directory.clone()
    };
    let here = std::env::current_dir().unwrap();
    let relative = directory("sub/t.toml", "modules = [\"m.ko\"]");
    assert_eq!(relative.as_deref(), here.join("sub").to_str());
    let relative = directory("/lab/t.toml", "files = [\"f=/f\"]");
    assert_eq!(relative.as_deref(), Some("/lab"));
    assert_eq!(directory("sub/t.toml", "modules = [\"/m.ko\"]"), None);
    assert_eq!(directory("sub/t.toml", ""), None);
}

#[test]
fn runs_of_one_second_have_names_of_their_own() {
    let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).unwrap();
    let root = tempfile::tempdir().unwrap();
    // Every name that chance could give the first cell.
    for high in 0..=0xff {
        let name = RunId::new(Fixed.now(), "a x=1 idle", high << 8);
        std::fs::create_dir(root.path().join(name.as_str())).unwrap();
    }
    let results = run(&[(&experiment, &Fake::default())], place(root.path()), &Fixed, 1, |_| ());
    assert!(verdicts(&results).iter().all(Option::is_some), "{results:?}");
}

#[test]
fn a_doubt_that_invalidates_makes_every_verdict_invalid() {
    let fake = Fake {
        warnings: vec![Warning::GuestDidNotEnd { text: "hangs".into() }],
        ..Fake::default()
    };
    let (_root, results) = matrix(&fake, 1);
    assert!(verdicts(&results).iter().all(|v| *v == Some(Verdict::Invalid)));
}

#[test]
fn an_interrupted_run_keeps_what_it_had_and_is_marked() {
    let fake = Fake { warnings: vec![Warning::Interrupted], ..Fake::default() };
    let (_root, results) = matrix(&fake, 1);
    let bundle = Bundle::open(results[0].as_ref().unwrap()).unwrap();
    assert!(!bundle.manifest().complete);
    assert_eq!(bundle.manifest().samples.count, 1000);
}

#[test]
fn losses_are_warned_of_and_fail_a_limit_on_the_maximum() {
    let fake = Fake { lose_every: 100, ..Fake::default() };
    let (_root, results) = matrix(&fake, 1);
    let bundle = Bundle::open(results[0].as_ref().unwrap()).unwrap();
    let conclusion = &bundle.manifest().conclusion;
    assert_eq!(conclusion.verdict, Verdict::Fail);
    assert!(
        conclusion.warnings.iter().any(|w| matches!(w, Warning::Unanswered { triggers: 5, .. }))
    );
}

#[test]
fn cells_of_experiments_that_run_together_are_numbered_over_all_and_come_in_order() {
    let root = tempfile::tempdir().unwrap();
    let seeded = |seed: &str| {
        let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).unwrap();
        experiment.with_overrides(&[("seed".into(), seed.into())]).unwrap()
    };
    let (first, second) = (seeded("3"), seeded("5"));
    let fake = Fake { is_deterministic: true, ..Fake::default() };
    let both: [Placed; 2] = [(&first, &fake), (&second, &fake)];
    let found = Found::default();
    // The last cell of the first, and the first two of the second.
    let some =
        Place { root: root.path(), found: &found, is_wanted: &|cell| (3..6).contains(&cell) };
    let mut ended = Vec::new();
    let results = run(&both, some, &Fixed, 3, |event| {
        if let Event::Finished(cell, path, _) = event {
            ended.push((*cell, path.clone()));
        }
    });
    ended.sort();
    let (cells, paths): (Vec<usize>, Vec<PathBuf>) = ended.into_iter().unzip();
    assert_eq!(cells, [3, 4, 5]);
    assert_eq!(paths, results.into_iter().map(Result::unwrap).collect::<Vec<_>>());
    let about = |path: &PathBuf| {
        let about = Bundle::open(path).unwrap().manifest().about.clone();
        (about.seed, about.flavour, about.load)
    };
    let about: Vec<_> = paths.iter().map(about).collect();
    let said = |seed, flavour: &str, load: &str| (seed, flavour.to_owned(), load.to_owned());
    assert_eq!(about, [said(3, "b", "disk"), said(5, "a x=1", "idle"), said(5, "a x=1", "disk")]);
    let found = Found::of(&Store::at(root.path())).unwrap();
    let all = Place { root: root.path(), found: &found, is_wanted: &|_| true };
    assert_eq!(missing(&both, all, &Fixed), [0, 1, 2, 6, 7]);
}
