// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest that stands where measuring begins, and that can be run as often as asked.

use super::explained::{LOOKS_FROM, STACKS_FROM};
use super::{MadeWith, Subject};
use crate::Error;
use agent::Work;
use probes::{Plan, validity};
use rig::{
    Bench, Calls, Ending, Follow, Following, Generator, Guest, Outcome, ProbeRun, Seer, Sees,
    Snapshot, Stimulus, Walker,
};
use sample::{Aim, Insns, Nanos, Observation, Observer, Responder, Sample, SeriesName, When};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use trace::{Event, Reader, Role, WATCHED};
use vmlinux::Map;
use work::Progress;

/// Looks at a run while it goes on.
pub trait Watcher {
    /// Takes an event in the guest's kernel. This is not called if the run is not followed.
    fn event(&mut self, event: &Event, reader: &Reader);

    /// Takes an answer to a trigger, after the event of the answer. It breaks when the rest of the run is not wanted.
    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()>;
}

/// A snapshot, and what is done from there on.
pub struct Ready<'a> {
    bench: &'a Bench,
    guest: Guest,
    stimulus: Stimulus,
    series: Vec<SeriesName>,
    snapshot: (Snapshot, String),
}

impl<'a> Ready<'a> {
    /// Makes a guest ready. If its snapshot is not kept any more, the guest is booted.
    ///
    /// # Errors
    /// If the parts that it was made with are not here, with the difference. If the guest does not run what its flavour
    /// says, unless a bundle has said so already. Also the errors of booting.
    pub fn new(
        bench: &'a Bench,
        subject: Subject,
        progress: &dyn Fn(Progress),
    ) -> Result<Ready<'a>, Error> {
        let Subject { guest, stimulus, made_with } = subject;
        if let Some(made_with) = &made_with {
            // A find or a bundle may be anybody's, and to build a module is to run its Makefile.
            for sources in guest.contents.modules.iter().filter(|path| path.is_dir()) {
                guest.kernel.check_foreign_sources(sources)?;
            }
            made_with.check(&MadeWith::here(bench, &guest, &made_with.snapshot))?;
        }
        let snapshot = bench.snapshot(&guest, progress)?;
        match &made_with {
            Some(made_with) => made_with.check_snapshot(&snapshot.1)?,
            None => check_boot(&guest.parameters, snapshot.0.context())?,
        }
        let series = series(&stimulus)?;
        Ok(Ready { bench, guest, stimulus, series, snapshot })
    }

    /// The same guest, after it was let run on for `by`.
    ///
    /// # Errors
    /// The errors of the rig.
    pub fn later(&self, by: Nanos) -> Result<Ready<'a>, Error> {
        let guest = self.guest_later(by);
        let subject = Subject { guest, stimulus: self.stimulus.clone(), made_with: None };
        Ready::new(self.bench, subject, &|_| ())
    }

    /// The same guest, in which something else is done.
    ///
    /// # Panics
    /// If it has other responders.
    pub fn with(&self, stimulus: Stimulus) -> Ready<'a> {
        let Ready { bench, guest, series, snapshot, .. } = self;
        let ready = Ready {
            bench,
            guest: guest.clone(),
            stimulus,
            series: series.clone(),
            snapshot: snapshot.clone(),
        };
        assert!(
            matches!(&ready.stimulus, Stimulus::Triggers(g) if g.responders == self.generator().responders)
        );
        ready
    }

    /// The same guest, which is to be let run on for `by`.
    pub fn guest_later(&self, by: Nanos) -> Guest {
        let begin_after = self.guest.begin_after + by;
        Guest { begin_after, ..self.guest.clone() }
    }

    /// How long the guest was let run to its place, from the last stage before.
    pub fn way(&self) -> Nanos {
        let to = self.guest.begin_after;
        rig::stage_before(to).map_or(Nanos(0), |from| to - from)
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// The bench on which it runs.
    pub fn bench(&self) -> &'a Bench {
        self.bench
    }

    /// What is measured in the guest.
    pub fn stimulus(&self) -> &Stimulus {
        &self.stimulus
    }

    /// The guest's triggers.
    ///
    /// # Panics
    /// If a probe measures. Hunts and finds are of triggers alone.
    pub fn generator(&self) -> &Generator {
        match &self.stimulus {
            Stimulus::Triggers(generator) => generator,
            Stimulus::Probe(_) | Stimulus::Work(_) => panic!("nobody triggers this guest"),
        }
    }

    /// The parts that its runs are made with.
    pub fn made_with(&self) -> MadeWith {
        self.made_with_snapshot(&self.snapshot.1)
    }

    /// The parts that runs of the same guest are made with, if they begin at the snapshot with this key.
    pub fn made_with_snapshot(&self, key: &str) -> MadeWith {
        MadeWith::here(self.bench, &self.guest, key)
    }

    /// The responders to the guest's triggers. A sample's series is the place in this list. Empty if a probe measures.
    pub fn responders(&self) -> Vec<Responder> {
        match &self.stimulus {
            Stimulus::Triggers(generator) => generator.responders.iter().collect(),
            Stimulus::Probe(_) | Stimulus::Work(_) => Vec::new(),
        }
    }

    /// The names of the series. A sample's series is the place in this list.
    pub fn series(&self) -> &[SeriesName] {
        &self.series
    }

    /// What the guest's kernel says of its code, and the file that has it.
    ///
    /// # Errors
    /// If the kernel's image or its memory cannot be read.
    pub fn map(&self) -> Result<(Map<Vec<u8>>, PathBuf), Error> {
        let path: PathBuf = self.bench.map(&self.guest, &self.snapshot)?;
        let unreadable = |why: String| {
            let path = path.display();
            Error::File(format!("cannot read {path}: {why}; remove it, and run this again"))
        };
        let bytes = std::fs::read(&path).map_err(|e| unreadable(e.to_string()))?;
        let map = Map::from_bytes(bytes).map_err(|e| unreadable(e.to_string()))?;
        Ok((map, path))
    }

    /// What to follow in the guest's kernel, and the names of its code. Stretches shorter than `stacks_from` get no
    /// stack ([`Follow::new`]).
    ///
    /// # Errors
    /// The errors of [`Ready::map`].
    pub fn follow(
        &self,
        stacks_from: Insns,
        calls: Calls,
    ) -> Result<(Map<Vec<u8>>, Follow), Error> {
        let (map, path) = self.map()?;
        let mut follow = Follow::new(&map, &path, stacks_from, calls);
        if let Stimulus::Probe(_) | Stimulus::Work(_) = self.stimulus {
            // The guest of a probe or of work has no driver, and nobody waits for its handler.
            let handlers = WATCHED.iter().filter(|watched| watched.role == Role::Handler);
            let names: Vec<&str> = handlers.flat_map(|watched| watched.names).copied().collect();
            follow.missing.retain(|missing| !names.iter().any(|name| missing.contains(name)));
        }
        Ok((map, follow))
    }

    /// The same as [`Ready::follow`], with everything that explanations need: calls, the stacks of short stretches, and
    /// looks inside.
    ///
    /// # Errors
    /// The errors of [`Ready::follow`].
    pub fn follow_closely(&self) -> Result<(Map<Vec<u8>>, Follow), Error> {
        let (map, follow) = self.follow(STACKS_FROM, Calls::All)?;
        Ok((map, follow.looking_inside(LOOKS_FROM)))
    }

    /// Runs until `watcher` has seen enough, or to the end. The run is followed if `follow` is given. Returns what the
    /// reader knows at the end of the run.
    ///
    /// # Errors
    /// If the guest died before, if records were lost, or if the user interrupts. Also the errors of restoring.
    pub fn run(
        &self,
        follow: Option<&Follow>,
        watcher: &mut dyn Watcher,
        progress: &dyn Fn(Progress),
    ) -> Result<Reader, Error> {
        let mut enough = false;
        let whole = (&self.stimulus, &mut enough);
        let (reader, outcome) = self.watched(whole, follow, watcher, progress)?;
        check(&outcome, enough)?;
        Ok(reader)
    }

    /// Runs the guest while it does `work`, followed. The guest may die under the work. Returns what the reader knows
    /// at the end, and what became of the guest.
    ///
    /// # Errors
    /// If records were lost. Also the errors of restoring.
    pub fn work(
        &self,
        work: Work,
        follow: &Follow,
        watcher: &mut dyn Watcher,
        progress: &dyn Fn(Progress),
    ) -> Result<(Reader, Outcome), Error> {
        let whole = (&Stimulus::Work(work), &mut false);
        self.watched(whole, Some(follow), watcher, progress)
    }

    fn watched(
        &self,
        (stimulus, enough): (&Stimulus, &mut bool),
        follow: Option<&Follow>,
        watcher: &mut dyn Watcher,
        progress: &dyn Fn(Progress),
    ) -> Result<(Reader, Outcome), Error> {
        let reader = Reader::new(follow.map_or(&[], |f| &f.watches))
            .with_lazy_flag(follow.and_then(|f| f.lazy));
        let shared = RefCell::new((reader, watcher));
        let mut see = |event: &wire::Event| {
            let (reader, watcher) = &mut *shared.borrow_mut();
            if let Some(event) = reader.read(event) {
                watcher.event(&event, reader);
            }
        };
        let mut observe = |observation| {
            let (reader, watcher) = &mut *shared.borrow_mut();
            if let Observation::Sample(sample) = observation {
                *enough |= watcher.answer(&sample, reader).is_break();
            }
            if *enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let following = follow.map(|follow| Following { follow, see: &mut see });
        let outcome = self.measure(stimulus, &mut observe, following, progress)?;
        Ok((shared.into_inner().0, outcome))
    }

    /// Runs the guest to the end of a run in which `generator` triggers.
    ///
    /// # Errors
    /// The errors of restoring, and lost records.
    pub fn fire(
        &self,
        generator: Generator,
        observe: &mut Observer,
        following: Option<Following>,
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome, Error> {
        self.measure(&Stimulus::Triggers(generator), observe, following, progress)
    }

    /// Restores the guest in a QEMU that serves trials by forking itself. The guest is followed if `follow` is given,
    /// and `seen` looks at it. Such a guest can go on as a scout.
    ///
    /// # Errors
    /// The errors of restoring, and a QEMU that cannot fork.
    pub fn walker<S: Sees>(&self, follow: Option<&Follow>, seen: S) -> Result<Walker<S>, Error> {
        let mut generator = self.generator().clone();
        if follow.is_some() {
            generator.when = When::Aimed(Aim::scout(Nanos(0)));
        }
        Ok(self.bench.walker(&self.guest, &generator, &self.snapshot, (follow, seen))?)
    }

    /// Lets a walker of this guest go on as a scout ([`Walker::scout`]).
    ///
    /// # Errors
    /// The errors of the rig, and an interruption.
    pub fn scout<S: Sees>(
        &self,
        walker: &mut Walker<S>,
        until: Nanos,
        see: &mut Seer,
    ) -> Result<Option<Outcome>, Error> {
        let from = (&self.guest, &self.snapshot);
        let outcome = walker.scout(self.bench, from, until, see)?;
        outcome.map(unless_lost).transpose()
    }

    /// Runs the guest to the end of a run in which a probe measures. A witness watches when tasks wait and wake.
    ///
    /// # Errors
    /// If the guest died before, if records were lost, or if the user interrupts. Also the errors of restoring.
    pub fn probe(
        &self,
        run: &ProbeRun,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome, Error> {
        let run = ProbeRun { witness: true, ..run.clone() };
        let outcome = self.measure(&Stimulus::Probe(run), observe, None, progress)?;
        check(&outcome, false)?;
        Ok(outcome)
    }

    fn measure(
        &self,
        stimulus: &Stimulus,
        observe: &mut Observer,
        following: Option<Following>,
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome, Error> {
        let (guest, snapshot) = (&self.guest, &self.snapshot);
        let stimulus = match (stimulus, &following) {
            // The plugin is either a witness or a follower.
            (Stimulus::Probe(run), Some(_)) => {
                &Stimulus::Probe(ProbeRun { witness: false, ..run.clone() })
            }
            (other, _) => other,
        };
        unless_lost(self.bench.measure(guest, stimulus, snapshot, observe, following, progress)?)
    }

    /// Lets the guest run on without triggers, to the place from which [`Ready::later`] then has it without running it
    /// again ([`Bench::advance_followed`]).
    ///
    /// # Errors
    /// The errors of [`Ready::fire`].
    pub fn advance(
        &self,
        by: Nanos,
        generator: Generator,
        following: Following,
    ) -> Result<Outcome, Error> {
        let (guest, snapshot) = (&self.guest, &self.snapshot);
        unless_lost(self.bench.advance_followed(guest, snapshot, by, (generator, following))?)
    }
}

/// The names of the series that are measured.
fn series(stimulus: &Stimulus) -> Result<Vec<SeriesName>, Error> {
    match stimulus {
        Stimulus::Triggers(generator) => {
            Ok(generator.responders.iter().map(SeriesName::from).collect())
        }
        Stimulus::Work(_) => Ok(Vec::new()),
        Stimulus::Probe(run) => {
            let plan = plan(run)?;
            let named = |name: String| {
                name.parse().map_err(|e| Error::Probe(format!("the series {name}: {e}")))
            };
            plan.series().into_iter().map(named).collect()
        }
    }
}

/// The plan of a probe.
///
/// # Errors
/// If its bytes are no plan.
pub fn plan(run: &ProbeRun) -> Result<Plan, Error> {
    serde_json::from_slice(&run.plan).map_err(|e| Error::Probe(format!("its plan: {e}")))
}

/// Checks that the guest runs what its flavour says.
fn check_boot(words: &[String], context: &BTreeMap<String, String>) -> Result<(), Error> {
    match validity::boot(words, &context.clone().into()).first() {
        None => Ok(()),
        Some(doubt) => Err(Error::OtherBoot(format!(
            "{}: {}; {}",
            doubt.symptom(),
            doubt.cause(),
            doubt.action()
        ))),
    }
}

fn unless_lost(outcome: Outcome) -> Result<Outcome, Error> {
    if outcome.dropped > 0 {
        return Err(Error::RecordsLost(outcome.dropped));
    }
    Ok(outcome)
}

pub(crate) fn check(outcome: &Outcome, enough: bool) -> Result<(), Error> {
    match &outcome.ending {
        _ if enough => Ok(()),
        Ending::Whole => Ok(()),
        Ending::Interrupted => Err(Error::Interrupted),
        Ending::Died(why) => Err(Error::GuestDied(why.clone())),
        Ending::Failed(why) => Err(Error::MachineFailed(format!("the machine failed: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::context::keys;

    #[test]
    fn a_guest_that_does_not_run_what_its_flavour_says_is_not_followed() {
        let context = [(keys::PREEMPTION_MODE, "lazy"), (keys::PREEMPTION_MODES, "full lazy")];
        let context = context.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let asked = |word: &str| check_boot(&[word.to_owned()], &context);
        let failure = asked("preempt=none").unwrap_err();
        let Error::OtherBoot(why) = failure else { panic!("{failure}") };
        assert!(why.contains("the kernel runs lazy"), "{why}");
        assert!(asked("preempt=lazy").is_ok());
    }
}
