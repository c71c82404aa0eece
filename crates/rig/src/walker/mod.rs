// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes trials without restoring their guest: a QEMU that has restored it once forks itself.
//!
//! All trials from one snapshot have the undisturbed run in common, up to their first trigger. So a QEMU walks along
//! that run, and leaves processes that stand still at *places* on it. A trial begins as a fork of the last place before
//! its first trigger. It saves the way there, and the code is translated already. A place that is wanted later is made
//! from the last place before it.
//!
//! A trial gives what a run from the snapshot gives, to the instruction. What is not as usual (a guest that dies, an
//! answer that does not come, a fork that fails) gives no outcome: a run from the snapshot then says what happens.

mod slot;
mod trial;

pub use trial::ForkedTrial;

use crate::cache::Owned;
use crate::collect::{Seer, Taken};
use crate::machine::{Generator, Plugin, Running, Stimulus, part};
use crate::run::RECORDS;
use crate::snapshot::Snapshot;
use crate::{Bench, Error, Follow, Guest, Result, console, tool};
use sample::{Nanos, Observer, Schedule, When};
use slot::{Forked, Slot};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trial::Known;
use wire::{Arguments, Event, Forking, Start, WalkReply, WalkRequest};

/// How many processes there are at the most for one guest: the one that has restored it, places, and trials. Each has
/// at most as much memory as the guest and QEMU's translated code, and shares what did not change.
const PROCESSES_MAX: u32 = 16;
/// How far apart places are on the way to a trial. With fewer places there are fewer processes, and a trial that begins
/// between two of them has a longer way.
const APART: Nanos = Nanos::from_millis(25);
/// How far before its first trigger a trial may begin where there is a place already. A fork takes as long as the guest
/// needs for this time.
const NEAR: Nanos = Nanos::from_micros(200);
/// How far before its first trigger a trial begins at the least. What is to be met as it opens is not open yet.
const BEFORE: Nanos = Nanos::from_micros(1);
/// How long a process may say nothing. It walks at most [`APART`] at once.
const SILENCE: Duration = Duration::from_secs(120);

/// Looks at the events of a followed guest. A copy goes on from where it was made.
pub trait Sees: Clone {
    /// Takes an event.
    fn see(&mut self, event: &Event);
}

/// What the undisturbed run told up to a place.
#[derive(Clone)]
struct Past<S> {
    taken: Taken,
    seen: S,
    /// The text that the guest's kernel printed.
    said: String,
    /// When QEMU was started, or the trial.
    begun: Instant,
}

impl<S: Sees> Past<S> {
    fn take(&mut self, event: &Event, gap: bool, observe: &mut Observer) {
        let Past { taken, seen, begun, .. } = self;
        let see: &mut Seer = &mut |event| seen.see(event);
        taken.take(event, gap, *begun, observe, &mut Some(see));
    }
}

/// A process that stands still.
struct Place<S> {
    slot: Slot,
    /// `None` for the process that restored the guest.
    process: Option<Forked>,
    at: Nanos,
    past: Past<S>,
    /// When it was last used, by the number of uses before.
    used: u64,
}

/// A QEMU that serves trials.
pub struct Walker<S> {
    running: Running,
    /// The places. The first one is that of the process that restored the guest, and stays.
    places: Vec<Place<S>>,
    free: Vec<Slot>,
    uses: u64,
    /// The port's registers in the snapshot.
    registers: (u16, u8),
    /// The triggers of a guest that only walks: none.
    undisturbed: Generator,
    known: Arc<Known>,
    /// Removed at the end.
    scratch: Owned,
}

impl Bench {
    /// Restores the guest in a QEMU that serves trials. Their responders are those of `generator`. The guest is
    /// followed if `follow` is given, and `seen` looks at it.
    ///
    /// # Errors
    /// The errors of restoring, and a QEMU that cannot fork.
    pub fn walker<S: Sees>(
        &self,
        guest: &Guest,
        generator: &Generator,
        (snapshot, key): &(Snapshot, String),
        (follow, seen): (Option<&Follow>, S),
    ) -> Result<Walker<S>> {
        let scratch = self.cache().scratch()?;
        let made = (0..PROCESSES_MAX).map(|number| Slot::new(number, RECORDS));
        let (mut free, theirs): (Vec<Slot>, Vec<_>) =
            made.collect::<Result<Vec<_>>>()?.into_iter().rev().unzip();
        let first = free.pop().expect("there are some");
        let mut inherited: Vec<_> = theirs.iter().map(AsRawFd::as_raw_fd).collect();
        inherited.extend(free.iter().map(|slot| slot.channel.fd()));
        let undisturbed = Generator {
            when: When::Planned(Schedule::Explicit(Vec::new())),
            disturbances: Vec::new(),
            ..generator.clone()
        };
        let stimulus = Stimulus::Triggers(undisturbed.clone());
        let begun = Instant::now();
        let plugin = Plugin {
            library: &self.parts().plugin,
            stimulus: &stimulus,
            follow: follow.map(|f| &f.plan),
            channel: &first.channel,
            commands: None,
            walk: Some((first.theirs, &inherited)),
        };
        let running = self.restore(guest, snapshot, Some(plugin), scratch.path())?;
        drop(theirs);
        let mut walker = Walker {
            running,
            places: Vec::new(),
            free,
            uses: 0,
            registers: (snapshot.record.pins, snapshot.record.control),
            undisturbed,
            known: Arc::new(Known {
                printed: snapshot.console(),
                context: snapshot.record.context.clone(),
                snapshot: key.clone(),
            }),
            scratch,
        };
        let past = Past { taken: Taken::new(&stimulus), seen, said: String::new(), begun };
        let stands = walker.stands(first, None, past);
        let place = stands.map_err(|e| walker.why(e))?;
        walker.places.push(place);
        Ok(walker)
    }
}

impl<S: Sees> Walker<S> {
    /// Begins a trial whose first trigger or disturbance comes at `from` or later. It is measured by
    /// [`ForkedTrial::measure`], and its end is told by [`Walker::ended`]. Several trials may go on at once.
    ///
    /// # Errors
    /// If QEMU has ended or cannot fork. The walker is of no use then.
    pub fn begin(&mut self, generator: Generator, from: Nanos) -> Result<ForkedTrial<S>> {
        let begin = || -> Result<ForkedTrial<S>> {
            let place = self.place_before(from)?;
            let slot = self.slot(place)?;
            let place = self.index_of(place);
            let begun = Instant::now();
            let process = self.fork(place, &slot, generator, Start::Restore)?;
            let past = Past { begun, ..self.places[place].past.clone() };
            let console = self.console(slot.number);
            Ok(ForkedTrial { slot, process, past, console, known: Arc::clone(&self.known) })
        };
        let begun = begin();
        begun.map_err(|e| self.why(e))
    }

    /// Takes back what an ended trial needed.
    pub fn ended(&mut self, trial: ForkedTrial<S>) {
        // A process that cannot be killed keeps its slot.
        if trial.process.kill() {
            self.give_back(trial.slot);
        }
    }

    /// The numbers of the processes that stand still.
    pub fn processes(&self) -> Vec<u32> {
        let of = |place: &Place<S>| place.process.as_ref().map(|process| process.number);
        self.places.iter().map(|place| of(place).unwrap_or(self.running.id())).collect()
    }

    fn give_back(&mut self, mut slot: Slot) {
        slot.clear();
        self.free.push(slot);
    }

    /// The instant of the last place at `at` or before, which is made if none is near.
    fn place_before(&mut self, at: Nanos) -> Result<Nanos> {
        let at = at.saturating_sub(BEFORE);
        loop {
            let before = self.places.iter().map(|place| place.at).filter(|place| *place <= at);
            let nearest = before.max().unwrap_or_default();
            if at - nearest <= NEAR {
                return Ok(nearest);
            }
            // A place is a moment before what it is made for, so that trials around it can use it.
            let wanted = (at - NEAR / 2).min(nearest + APART);
            self.make_place(nearest, wanted)?;
        }
    }

    fn index_of(&mut self, at: Nanos) -> usize {
        let index = self.places.iter().position(|place| place.at == at);
        let index = index.expect("it was made, and is kept");
        self.uses += 1;
        self.places[index].used = self.uses;
        index
    }

    /// A slot that nobody uses. The place that was not used for longest gives its own up, unless it is at `kept`.
    fn slot(&mut self, kept: Nanos) -> Result<Slot> {
        while self.free.is_empty() {
            let others = self.places.iter().enumerate().skip(1).filter(|(_, p)| p.at != kept);
            let oldest = others.min_by_key(|(_, place)| place.used).map(|(index, _)| index);
            let oldest = oldest.ok_or_else(|| Error::Qemu("has too many trials at once".into()))?;
            let Place { slot, process, .. } = self.places.swap_remove(oldest);
            if process.is_some_and(|process| process.kill()) {
                self.give_back(slot);
            }
        }
        Ok(self.free.pop().expect("there is one"))
    }

    /// Lets a copy of the place at `from` go on to `to`, and stand there.
    fn make_place(&mut self, from: Nanos, to: Nanos) -> Result<()> {
        let slot = self.slot(from)?;
        let before = self.index_of(from);
        let process = self.fork(before, &slot, self.undisturbed.clone(), Start::Walk)?;
        let past = self.places[before].past.clone();
        let mut place = self.stands(slot, Some(process), past)?;
        place.slot.request(WalkRequest::Walk { until: to })?;
        let place = self.stands(place.slot, place.process, place.past)?;
        self.places.push(place);
        Ok(())
    }

    /// Waits until a process stands still.
    fn stands(
        &mut self,
        mut slot: Slot,
        process: Option<Forked>,
        mut past: Past<S>,
    ) -> Result<Place<S>> {
        // Nobody answers where nothing is triggered.
        let observe: &mut Observer = &mut |_| ControlFlow::Continue(());
        match slot.reply(SILENCE, |event| past.take(event, false, observe))? {
            Some(WalkReply::Stands { at }) => {
                self.uses += 1;
                past.said += &console::read(&self.console(slot.number));
                Ok(Place { slot, process, at, past, used: self.uses })
            }
            other => Err(Error::Qemu(format!("does not stand still, but says {other:?}"))),
        }
    }

    /// Forks the process of a place.
    fn fork(
        &mut self,
        place: usize,
        slot: &Slot,
        generator: Generator,
        start: Start,
    ) -> Result<Forked> {
        let directory = self.scratch.path();
        let told = Arguments {
            ring_fd: slot.channel.fd(),
            commands_fd: None,
            start,
            stimulus: wire::Stimulus::Triggers(generator),
            witness: false,
            functions: None,
            follow: None,
            registers: self.registers,
            forking: Some(Forking {
                requests_fd: slot.theirs,
                directory: directory.display().to_string(),
            }),
        };
        let words = told
            .words(|name, bytes| part(directory.join(format!("{name}-{}", slot.number)), bytes))?;
        part(directory.join(WalkRequest::file(slot.number)), words.join("\n").as_bytes())?;
        let standing = &mut self.places[place].slot;
        standing.request(WalkRequest::Fork { slot: slot.number })?;
        match standing.reply(SILENCE, |_| ())? {
            Some(WalkReply::Forked { process }) => Ok(Forked::new(process)),
            Some(WalkReply::Refused { errno }) => {
                let why = std::io::Error::from_raw_os_error(errno as i32);
                Err(Error::Qemu(format!("cannot fork: {why}")))
            }
            other => Err(Error::Qemu(format!("does not fork, but says {other:?}"))),
        }
    }

    /// The file into which the guest of a process prints.
    fn console(&self, slot: u32) -> PathBuf {
        let name = if slot == 0 { "console".into() } else { format!("console-{slot}") };
        self.scratch.path().join(name)
    }

    /// The error, with what QEMU said if it has ended.
    fn why(&mut self, error: Error) -> Error {
        if matches!(error, Error::Interrupted) {
            return error;
        }
        let said = tool::last_lines(&self.running.complaints(), 6);
        match self.running.ended() {
            Err(ended) => ended,
            Ok(_) if !said.is_empty() => Error::Qemu(format!("{error}. {said}")),
            Ok(_) => error,
        }
    }
}
