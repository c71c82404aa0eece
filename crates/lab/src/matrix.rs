// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the cells of an experiment, several at once, and turns each into a bundle.

use crate::target::Target;
use crate::{Error, Found};
use bundle::{
    About, Begun, BundleError, BundleWriter, Conclusion, RunId, SCHEMA, Tool, UtcTime, Warning,
};
use experiment::{Cell, Experiment, Instrument, Trigger};
use sample::Schedule;
use stats::Verdict;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use work::Progress;

/// How many names are tried for one run: four times as many as two runs of one second and cell can have by chance.
const TRIES: u16 = 1 << 10;

/// Dates and signs bundles. The measured time never comes from here.
pub trait Issuer: Sync {
    /// The present time, to the second.
    fn now(&self) -> UtcTime;

    /// The version of onset that makes the bundles.
    fn tool(&self) -> Tool;
}

/// What happens while a matrix runs, for the code that shows it. Cells are numbered in the experiment's order.
#[derive(Debug)]
pub enum Event {
    /// A cell goes on.
    Progress(usize, Progress),
    /// A cell has its bundle.
    Finished(usize, PathBuf, Verdict),
    /// The store has the bundle of a cell from before.
    Found(usize, PathBuf),
    /// A cell has no bundle. The text says why.
    Failed(usize, String),
}

/// Where the runs of a matrix go, and which of them there are.
pub struct Place<'a> {
    /// The directory of the store.
    pub root: &'a Path,
    /// The runs that are not measured again.
    pub found: &'a Found,
}

/// Runs every cell on `target`, `jobs` at a time, and tells `show` of it on the calling thread. Bundles are written to
/// the store at the place. Returns a bundle or a failure for each cell, in order. A failure does not keep the other
/// cells from running, but a [`work::Cancel`] does.
pub fn run(
    experiment: &Experiment,
    target: &dyn Target,
    place: Place,
    issuer: &dyn Issuer,
    jobs: usize,
    mut show: impl FnMut(&Event),
) -> Vec<Result<PathBuf, Error>> {
    let cells: Vec<Cell> = experiment.cells().collect();
    let Place { root, found } = place;
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<PathBuf, Error>>>> =
        Mutex::new(cells.iter().map(|_| None).collect());
    let (tell, told) = mpsc::channel();
    let cancel = &work::Cancel::current();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cells.len().max(1)) {
            let tell = tell.clone();
            let (next, results, cells) = (&next, &results, &cells);
            scope.spawn(move || {
                cancel.during(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = cells.get(index) else { return };
                        let one = One { experiment, target, root, issuer, index, cell: *cell };
                        let progress = |p| drop(tell.send(Event::Progress(index, p)));
                        let (result, ended) = one.run(found, &progress);
                        let _ = tell.send(ended);
                        results.lock().unwrap_or_else(|e| e.into_inner())[index] = Some(result);
                    }
                });
            });
        }
        drop(tell);
        told.iter().for_each(|event| show(&event));
    });
    let results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.into_iter().map(|r| r.unwrap_or(Err(Error::Interrupted))).collect()
}

/// One cell on its way to a bundle.
struct One<'a> {
    experiment: &'a Experiment,
    target: &'a dyn Target,
    root: &'a Path,
    issuer: &'a dyn Issuer,
    index: usize,
    cell: Cell<'a>,
}

impl One<'_> {
    /// Measures the cell, or finds its run.
    fn run(&self, found: &Found, progress: &dyn Fn(Progress)) -> (Result<PathBuf, Error>, Event) {
        let parts = || self.target.parts(self.experiment, self.cell);
        if let Some(path) = found.find(&self.about(self.issuer.now()), parts) {
            return (Ok(path.clone()), Event::Found(self.index, path));
        }
        let measured = self.measure(progress);
        let event = match &measured {
            Ok((path, verdict)) => Event::Finished(self.index, path.clone(), *verdict),
            Err(e) => Event::Failed(self.index, e.to_string()),
        };
        (measured.map(|(path, _)| path), event)
    }

    fn measure(&self, progress: &dyn Fn(Progress)) -> Result<(PathBuf, Verdict), Error> {
        if work::is_cancelled() {
            return Err(Error::Interrupted);
        }
        let created = self.issuer.now();
        let (responders, missing) = self.target.series(self.cell);
        let mut about = self.about(created);
        let mut begun = Begun {
            schema: SCHEMA,
            run: RunId::new(created, &self.slug(), 0),
            clock: self.target.clock(),
            responders,
            about: about.clone(),
            limits: self.experiment.limits_for(self.cell),
            warnings: missing,
        };
        let mut writer = self.begin(&mut begun)?;
        let mut broken: Option<BundleError> = None;
        let mut observe = |observation| match writer.observe(&observation) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                broken.get_or_insert(e);
                ControlFlow::Break(())
            }
        };
        let measured = self.target.measure(self.experiment, self.cell, &mut observe, progress);
        let measured = match (measured, broken) {
            (Ok(measured), None) => measured,
            (Err(cause), None) => return Err(keep(writer, begun, cause)),
            (_, Some(broken)) => return Err(keep(writer, begun, broken.into())),
        };
        writer.add_dropped(measured.dropped);
        let kept = writer.kept();
        let left = |e: BundleError| left(e.into(), kept.as_deref());
        if let Some(console) = &measured.console {
            writer.add_console(console).map_err(&left)?;
        }
        let warnings = [measured.warnings, begun.warnings].concat();
        let complete = !warnings.iter().any(Warning::cuts_short);
        let conclusion =
            Conclusion::of(&writer.summaries(), &writer.tallies(), begun.limits, warnings);
        let verdict = conclusion.verdict;
        (about.kernel, about.machine) = (Some(measured.kernel), Some(measured.machine));
        (about.qemu, about.plugin) = measured.versions.unzip();
        about.load_counters = measured.counters;
        about.probe_counters = measured.probe_counters;
        about.truth = measured.truth;
        match writer.finish(about, conclusion, complete) {
            // The bundle is there and whole, so its verdict counts. Only its message has to reach the user.
            Err(e @ BundleError::NotDurable { .. }) => Err(e.into()),
            finished => Ok((finished.map_err(left)?, verdict)),
        }
    }

    /// Begins the bundle under a name that no other run of the store has. A probe may take less than a second, so a
    /// script may make several runs in one second. Chance alone tells only 256 of them apart.
    fn begin(&self, begun: &mut Begun) -> Result<BundleWriter, BundleError> {
        let first = salt(self.index);
        for further in 0..TRIES {
            begun.run = RunId::new(begun.about.created, &self.slug(), first.wrapping_add(further));
            match BundleWriter::create(self.root, begun) {
                Err(BundleError::Exists { .. }) => {}
                done => return done,
            }
        }
        BundleWriter::create(self.root, begun)
    }

    fn slug(&self) -> String {
        let Cell { flavour, load, instrument } = self.cell;
        match instrument {
            Instrument::Generator(_) => format!("{flavour} {load}"),
            Instrument::Probe(plan) => format!("{} {flavour} {load}", plan.probe.name()),
        }
    }

    /// The facts that are known before the target is asked.
    fn about(&self, created: UtcTime) -> About {
        let Experiment { title, seed, source, directory, overrides, .. } = self.experiment;
        About {
            title: title.clone(),
            created,
            tool: self.issuer.tool(),
            target: self.target.name().into(),
            flavour: self.cell.flavour.to_string(),
            load: self.cell.load.name().into(),
            seed: *seed,
            kernel: None,
            machine: None,
            qemu: None,
            plugin: None,
            experiment: bundle::Experiment {
                source: source.clone(),
                directory: directory
                    .to_str()
                    .filter(|_| self.experiment.has_relative_paths)
                    .map(str::to_owned),
                overrides: overrides.clone(),
                paper: self.experiment.paper.map(|p| p.name().into()),
                warm_up: self.experiment.warm_up,
                trigger: match self.cell.instrument {
                    Instrument::Generator(generator) => Some(trigger(&generator.trigger)),
                    Instrument::Probe(_) => None,
                },
                probe: match self.cell.instrument {
                    Instrument::Generator(_) => None,
                    Instrument::Probe(plan) => Some(plan.clone()),
                },
            },
            load_counters: BTreeMap::new(),
            probe_counters: BTreeMap::new(),
            truth: None,
        }
    }
}

/// Makes a bundle of the observations from before the measurement failed, if there are any. Returns the error, with the
/// place of the bundle.
fn keep(writer: BundleWriter, begun: Begun, cause: Error) -> Error {
    let Some(kept) = writer.kept() else { return cause };
    let Begun { about, limits, mut warnings, .. } = begun;
    warnings.push(Warning::Failed { text: cause.to_string() });
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), limits, warnings);
    match writer.finish(about, conclusion, false) {
        Ok(bundle) | Err(BundleError::NotDurable { path: bundle, .. }) => {
            Error::KeptAsBundle { cause: Box::new(cause), bundle }
        }
        Err(_) => left(cause, Some(&kept)),
    }
}

/// The error, with the place of the observations.
fn left(cause: Error, kept: Option<&Path>) -> Error {
    match kept {
        None => cause,
        Some(kept) => Error::KeptAsPartial { cause: Box::new(cause), partial: kept.into() },
    }
}

/// The triggers in the form of the manifest.
fn trigger(asked: &Trigger) -> bundle::Trigger {
    bundle::Trigger {
        schedule: match &asked.schedule {
            Schedule::Periodic { phase, period, jitter, count, .. } => bundle::Schedule::Periodic {
                period: *period,
                jitter: *jitter,
                phase: *phase,
                count: *count,
            },
            Schedule::Explicit(times) => bundle::Schedule::Times { times_ns: times.clone() },
        },
        high: asked.high,
        grace: asked.grace,
        disturbances: asked.disturbances.clone(),
    }
}

/// Tells the runs of one second apart: those of this command by their number, others by chance.
fn salt(index: usize) -> u16 {
    // These are the standard library's random keys for hash maps.
    let chance = RandomState::new().build_hasher().finish();
    (chance as u16) << 8 | (index as u16 & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        Place { root, found: &NONE }
    }

    fn matrix(fake: &Fake, jobs: usize) -> (tempfile::TempDir, Vec<Result<PathBuf, Error>>) {
        let root = tempfile::tempdir().unwrap();
        let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).unwrap();
        let results = run(&experiment, fake, place(root.path()), &Fixed, jobs, |_| ());
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
        let place = Place { root, found: &found };
        let results = run(&experiment, fake, place, &Fixed, 2, |event| {
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
        assert_eq!(
            results.iter().map(Result::is_ok).collect::<Vec<_>>(),
            [false, true, false, true]
        );
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
            let results = run(&experiment, &fake, place(root.path()), &Fixed, 1, |_| ());
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
        let results = run(&experiment, &Fake::default(), place(root.path()), &Fixed, 1, |_| ());
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
            conclusion
                .warnings
                .iter()
                .any(|w| matches!(w, Warning::Unanswered { triggers: 5, .. }))
        );
    }
}
