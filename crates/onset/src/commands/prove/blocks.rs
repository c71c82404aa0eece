// SPDX-License-Identifier: GPL-2.0-or-later
//! Blocks of this machine: short measurements without and with changes. The journal makes the changes for one block and
//! takes them back after it, so that a kill leaves a journal that `onset tune undo` restores.

use crate::commands::{SystemClock, store};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use agent::Load;
use bundle::store::Store;
use bundle::{Bundle, Manifest};
use experiment::{Experiment, Problems};
use lab::Found;
use lab::matrix::{self, Place};
use lab::target::Local;
use machine::{Applied, Cpus, End, Fate, Plan, System, Tuning};
use probes::PROBES;
use sample::Nanos;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, value};
use view::results::Pairs;
use view::visible::tell;

/// What is changed. The plan of the control is empty.
#[derive(Clone)]
pub struct Change {
    pub name: String,
    pub plan: Plan,
}

impl Change {
    /// The knobs with their values.
    pub fn words(&self) -> String {
        let word = |change: &machine::Change| format!("{}={}", change.knob.name, change.value);
        self.plan.changes().iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The responder of the rig that a goal names most often: a real-time task.
const TASK: &str = "task";
/// The probe that is such a task on a machine.
const TASK_HERE: &str = "periodic";

/// Whose answers are judged: a series of a probe.
pub struct Subject {
    probe: &'static str,
    pub series: String,
}

impl Subject {
    /// What a user means by `responder`: a probe that has one series, a series, or the rig's `task`.
    ///
    /// # Errors
    /// If there is none, with what there is.
    pub fn find(responder: &str, cpus: &Cpus) -> Result<Subject, Failure> {
        if responder == TASK {
            tell!(
                "onset: no generator triggers this machine; its {TASK} is the probe {TASK_HERE}: a real-time task that a timer releases"
            );
            return Subject::find(TASK_HERE, cpus);
        }
        let series = |probe: &'static str| {
            let experiment =
                experiment("goal", Load::Idle, cpus, (probe, Nanos::from_secs(1))).ok()?;
            // A program that runs on this machine has to be named, and no goal names one.
            experiment.check_program().ok()?;
            let names = experiment.cells().next()?.instrument.series();
            Some((probe, names.iter().map(ToString::to_string).collect::<Vec<_>>()))
        };
        let all: Vec<_> = PROBES.iter().filter_map(|probe| series(probe.name)).collect();
        if let Some((probe, names)) = all.iter().find(|(probe, _)| *probe == responder) {
            return match &names[..] {
                [only] => Ok(Subject { probe, series: only.clone() }),
                _ => Err(Failure::usage(format!(
                    "{responder} has several series on these CPUs; name one: {}",
                    names.join(", ")
                ))),
            };
        }
        let of_series = all.iter().find(|(_, names)| names.iter().any(|name| name == responder));
        let (probe, _) = of_series.ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|(probe, _)| *probe).collect();
            Failure::usage(format!(
                "nothing on this machine answers as {responder:?}; name a probe or one of its series: {}; \
                 the responders of the driver are proven in the rig (--flavour)",
                known.join(", ")
            ))
        })?;
        Ok(Subject { probe, series: responder.into() })
    }
}

/// How blocks are measured.
pub struct Blocks<'a> {
    pub cpus: &'a Cpus,
    pub journal: &'a Path,
    pub load: Load,
    pub block: Nanos,
    pub subject: Subject,
    pub seed: u64,
    store: Store,
    target: Local,
    /// How many lots were drawn.
    drawn: u64,
}

impl<'a> Blocks<'a> {
    pub fn new(
        (cpus, journal, root): (&'a Cpus, &'a Path, &Path),
        (load, block): (Load, Nanos),
        (subject, seed): (Subject, u64),
    ) -> Result<Blocks<'a>, Failure> {
        let target = Local::new(Installation::find()?.parts().agent);
        let store = store(root);
        Ok(Blocks { cpus, journal, load, block, subject, seed, store, target, drawn: 0 })
    }

    /// The number of the next pair, by which its lots are drawn.
    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Measures a block with each of both changes, in the order of the lot, and adds the pair.
    pub fn pair(
        &self,
        number: u64,
        [without, with]: [&Change; 2],
        pairs: &mut Pairs,
    ) -> Result<(), Failure> {
        let (without, with) = match stats::is_changed_first(self.seed, number) {
            true => {
                let with = self.block(with)?;
                (self.block(without)?, with)
            }
            false => (self.block(without)?, self.block(with)?),
        };
        match (without, with) {
            (Ok(without), Ok(with)) => pairs.latencies.push((without, with)),
            (a, b) => pairs.absent.extend([a.err(), b.err()].into_iter().flatten()),
        }
        Ok(())
    }

    /// Why this machine does not take a change: makes it, and takes it back.
    pub fn hindrance(&self, change: &Change) -> Result<Option<String>, Failure> {
        self.during(change, || ()).map(Result::err)
    }

    /// One block. The inner error is of this block alone.
    fn block(&self, change: &Change) -> Result<Result<Manifest, String>, Failure> {
        let title = format!("tune prove: {}", change.name);
        let what = (self.subject.probe, self.block);
        let experiment = experiment(&title, self.load, self.cpus, what)?;
        let run = self.during(change, || self.measure(&experiment))?;
        match work::is_cancelled() {
            true => Err(rig::Error::Interrupted.into()),
            false => Ok(run.and_then(|run| run)),
        }
    }

    /// Carries out `what` while a change is made. The inner error says why the change was refused.
    fn during<T>(
        &self,
        change: &Change,
        what: impl FnOnce() -> T,
    ) -> Result<Result<T, String>, Failure> {
        let mut tuning = Tuning::begin(System::below("/"), self.journal)?;
        // Since the proof began, or between two blocks, somebody else may have changed something by this journal.
        empty(self.journal, tuning.changed())?;
        let applied = tuning.apply(&change.plan, self.cpus)?;
        let done = match refusal(&applied) {
            Some(why) => Err(why),
            None => Ok(what()),
        };
        let undone = tuning.undo()?;
        let left = undone.ended.iter().find_map(|ended| match &ended.end {
            End::Left(value) => Some(format!(
                "{} has the value {value:?}, which somebody else gave it while a block was measured; stop who does",
                ended.change.place
            )),
            End::Failed(why) => Some(format!("{why}; onset tune undo tries it again")),
            End::Restored | End::Already | End::Gone | End::Anew => None,
        });
        left.map_or(Ok(done), |why| Err(Failure::unavailable(why)))
    }

    fn measure(&self, experiment: &Experiment) -> Result<Manifest, String> {
        let place =
            Place { root: self.store.root(), found: &Found::default(), is_wanted: &|_| true };
        let mut runs = matrix::run(&[(experiment, &self.target)], place, &SystemClock, 1, |_| ());
        let path = runs.pop().expect("an experiment of one cell").map_err(|e| e.to_string())?;
        Ok(Bundle::open(&path).map_err(|e| e.to_string())?.manifest().clone())
    }
}

/// Why a block cannot be measured with a plan: a knob of it is refused, or it changes nothing.
fn refusal(applied: &[Applied]) -> Option<String> {
    let refused = |Applied { knob, fate, .. }: &Applied| match fate {
        Fate::Changed { .. } | Fate::Already => None,
        Fate::Refused(why) => Some(format!("{knob}: {why}")),
        Fate::NextBoot | Fate::Entry(_) => Some(format!("{knob} takes effect at the next boot")),
    };
    if let Some(why) = applied.iter().find_map(refused) {
        return Some(why);
    }
    // The plan of the control is empty, and changes nothing by intent. A knob may have its value by another knob of the
    // plan.
    let is_already = |applied: &&Applied| {
        matches!(applied.fate, Fate::Already | Fate::Changed { places: 0, .. })
    };
    let already: Vec<&Applied> = applied.iter().filter(is_already).collect();
    let Applied { knob, value, .. } = *already.first()?;
    let is_nothing_changed = already.len() == applied.len();
    is_nothing_changed.then(|| format!("{knob} has the value {value} already"))
}

/// Refuses a journal with changes: an undo after a block would take them back, too.
pub fn check_journal(journal: &Path) -> Result<(), Failure> {
    empty(journal, machine::status(&System::below("/"), journal)?.len())
}

fn empty(journal: &Path, changes: usize) -> Result<(), Failure> {
    match changes {
        0 => Ok(()),
        n => Err(Failure::unavailable(format!(
            "the journal in {} has {n} changes, and a proof needs an empty one; take them back with onset tune undo, or \
             prove beside them: --journal DIR",
            journal.display()
        ))),
    }
}

/// The experiment of one block. It keeps no CPU out of its idle states: some knobs are about these.
fn experiment(
    title: &str,
    load: Load,
    cpus: &Cpus,
    (probe, block): (&str, Nanos),
) -> Result<Experiment, Problems> {
    let mut root = DocumentMut::new();
    root["title"] = value(title);
    root["target"] = value("local");
    root["loads"] = value(Array::from_iter([load.name()]));
    let measured = cpus.measured.iter().map(|cpu| i64::from(*cpu));
    root["task"] = Item::Table(Table::from_iter([("cpus", value(Array::from_iter(measured)))]));
    let duration = value(format!("{}ns", block.0));
    root[probe] = Item::Table(Table::from_iter([("duration", duration)]));
    Experiment::parse(Path::new("onset tune prove"), &root.to_string())
}

/// A failure because no verdict can be reached. Nothing is changed.
pub fn undecided(message: String) -> Failure {
    Failure { exit: Exit::Undecided, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_measured_unless_a_knob_is_refused_or_nothing_changes() {
        let applied = |fates: &[Fate]| -> Option<String> {
            let of = |(n, fate): (usize, &Fate)| Applied {
                knob: format!("knob{n}"),
                value: "1".into(),
                fate: fate.clone(),
            };
            refusal(&fates.iter().enumerate().map(of).collect::<Vec<_>>())
        };
        let changed = |places, refused: &[&str]| Fate::Changed {
            places,
            refused: refused.iter().map(ToString::to_string).collect(),
        };
        let nothing = Some("knob0 has the value 1 already".to_owned());
        assert_eq!(applied(&[]), None);
        assert_eq!(applied(&[changed(1, &[])]), None);
        assert_eq!(applied(&[Fate::Already, changed(2, &["a"])]), None);
        assert_eq!(applied(&[Fate::Already]), nothing);
        assert_eq!(applied(&[Fate::Already, Fate::Already]), nothing);
        assert_eq!(applied(&[changed(0, &["a"]), Fate::Already]), nothing);
        let refused = applied(&[changed(1, &[]), Fate::Refused("no".into())]);
        assert_eq!(refused.as_deref(), Some("knob1: no"));
    }
}
