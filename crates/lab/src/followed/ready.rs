// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest that stands where measuring begins, to be run as often as asked.

use super::explained::{LOOKS_FROM, STACKS_FROM};
use super::{MadeWith, Subject};
use crate::Error;
use probes::validity;
use rig::{Bench, Calls, Ending, Follow, Following, Generator, Guest, Outcome, Snapshot, Stimulus};
use sample::{Insns, Nanos, Observation, Observer, Responder, Sample};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use trace::{Event, Reader};
use vmlinux::Map;
use work::Progress;

/// Looks at a run while it goes on.
pub trait Watcher {
    /// Something happened in the guest's kernel. Not called where the run is not followed.
    fn event(&mut self, event: &Event, reader: &Reader);

    /// A trigger was answered, after the event of the answer. Breaks when no more of the run is wanted.
    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()>;
}

/// A snapshot, and what is done from there on.
pub struct Ready<'a> {
    bench: &'a Bench,
    guest: Guest,
    generator: Generator,
    responders: Vec<Responder>,
    snapshot: (Snapshot, String),
}

impl<'a> Ready<'a> {
    /// Boots the guest where its snapshot is not kept any more.
    ///
    /// # Errors
    /// What it was made with is not here, with the difference; a guest that does not run what its flavour says, unless
    /// a bundle has said so already; those of booting.
    pub fn new(
        bench: &'a Bench,
        subject: Subject,
        progress: &dyn Fn(Progress),
    ) -> Result<Ready<'a>, Error> {
        let Subject { guest, generator, made_with } = subject;
        if let Some(made_with) = &made_with {
            made_with.check(&MadeWith::here(bench, &guest, &made_with.snapshot))?;
        }
        let snapshot = bench.snapshot(&guest, progress)?;
        match &made_with {
            Some(made_with) => made_with.check_snapshot(&snapshot.1)?,
            None => check_boot(&guest.parameters, snapshot.0.context())?,
        }
        let responders = generator.responders.iter().collect();
        Ok(Ready { bench, guest, generator, responders, snapshot })
    }

    /// The same guest, let run for so much longer.
    ///
    /// # Errors
    /// Those of the rig.
    pub fn later(&self, by: Nanos) -> Result<Ready<'a>, Error> {
        let guest = self.guest_later(by);
        let subject = Subject { guest, generator: self.generator.clone(), made_with: None };
        Ready::new(self.bench, subject, &|_| ())
    }

    /// The same guest, to be let run for so much longer.
    pub fn guest_later(&self, by: Nanos) -> Guest {
        let begin_after = self.guest.begin_after + by;
        Guest { begin_after, ..self.guest.clone() }
    }

    /// For how long it was let run to where it is, from the last stage before that.
    pub fn way(&self) -> Nanos {
        let to = self.guest.begin_after;
        rig::stage_before(to).map_or(Nanos(0), |from| to - from)
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Its triggers.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// With what its runs are made.
    pub fn made_with(&self) -> MadeWith {
        self.made_with_snapshot(&self.snapshot.1)
    }

    /// With what runs of the same guest are made that begin at the snapshot of this key.
    pub fn made_with_snapshot(&self, key: &str) -> MadeWith {
        MadeWith::here(self.bench, &self.guest, key)
    }

    /// Who answers: a sample's series is its place in this list.
    pub fn responders(&self) -> &[Responder] {
        &self.responders
    }

    /// What there is to follow of the guest's kernel, and the names of its code. Stretches shorter than `stacks_from`
    /// get no stack ([`Follow::new`]).
    ///
    /// # Errors
    /// A kernel whose image or memory cannot be read.
    pub fn follow(
        &self,
        stacks_from: Insns,
        calls: Calls,
    ) -> Result<(Map<Vec<u8>>, Follow), Error> {
        let path: PathBuf = self.bench.map(&self.guest, &self.snapshot)?;
        let unreadable = |why: String| {
            let path = path.display();
            Error::File(format!("cannot read {path}: {why}; remove it, and run this again"))
        };
        let bytes = std::fs::read(&path).map_err(|e| unreadable(e.to_string()))?;
        let map = Map::from_bytes(bytes).map_err(|e| unreadable(e.to_string()))?;
        let follow = Follow::new(&map, &path, stacks_from, calls);
        Ok((map, follow))
    }

    /// As [`Ready::follow`], with all that explanations take: calls, the stacks of short stretches, and looks inside.
    ///
    /// # Errors
    /// Those of [`Ready::follow`].
    pub fn follow_closely(&self) -> Result<(Map<Vec<u8>>, Follow), Error> {
        let (map, follow) = self.follow(STACKS_FROM, Calls::All)?;
        Ok((map, follow.looking_inside(LOOKS_FROM)))
    }

    /// Runs until `watcher` has seen enough, or to the end; followed where `follow` is given. What the reader knows at
    /// the end of the run comes back.
    ///
    /// # Errors
    /// A guest that died before, records that were lost, an interruption; those of restoring.
    pub fn run(
        &self,
        follow: Option<&Follow>,
        watcher: &mut dyn Watcher,
        progress: &dyn Fn(Progress),
    ) -> Result<Reader, Error> {
        let reader = Reader::new(follow.map_or(&[], |f| &f.watches))
            .with_lazy_flag(follow.and_then(|f| f.lazy));
        let shared = RefCell::new((reader, watcher));
        let mut enough = false;
        let mut see = |event: &wire::Event| {
            let (reader, watcher) = &mut *shared.borrow_mut();
            if let Some(event) = reader.read(event) {
                watcher.event(&event, reader);
            }
        };
        let mut observe = |observation| {
            let (reader, watcher) = &mut *shared.borrow_mut();
            if let Observation::Sample(sample) = observation {
                enough |= watcher.answer(&sample, reader).is_break();
            }
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let following = follow.map(|follow| Following { follow, see: &mut see });
        let outcome = self.fire(self.generator.clone(), &mut observe, following, progress)?;
        check(&outcome, enough)?;
        Ok(shared.into_inner().0)
    }

    /// The guest, to the end of a run in which `generator` triggers.
    ///
    /// # Errors
    /// Those of restoring, and lost records.
    pub fn fire(
        &self,
        generator: Generator,
        observe: &mut Observer,
        following: Option<Following>,
        progress: &dyn Fn(Progress),
    ) -> Result<Outcome, Error> {
        let stimulus = Stimulus::Triggers(generator);
        let (guest, snapshot) = (&self.guest, &self.snapshot);
        unless_lost(self.bench.measure(guest, &stimulus, snapshot, observe, following, progress)?)
    }

    /// Lets the guest run on, triggered by nobody, to where [`Ready::later`] then has it without running it again
    /// ([`Bench::advance_followed`]).
    ///
    /// # Errors
    /// Those of [`Ready::fire`].
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

/// Whether the guest runs what its flavour says.
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

fn check(outcome: &Outcome, enough: bool) -> Result<(), Error> {
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
