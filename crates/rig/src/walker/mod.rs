// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes trials without restoring their guest: a QEMU that has restored it once forks itself.
//!
//! All trials from one snapshot have the undisturbed run in common, up to their first trigger. So a QEMU walks along
//! that run, and leaves processes that stand still at *places* on it. A trial begins as a fork of the last place before
//! its first trigger. It saves the way there, and the code is translated already. A place that is wanted later is made
//! from the last place before it.
//!
//! A trial gives what a run from the snapshot gives, to the instruction. What is not as usual (a guest that dies, an
//! answer that does not come, a fork that fails) gives no outcome: a run from the snapshot then says what happens. A
//! forked trial ends with its last answer, before the guest could power off. So only a run from the snapshot sees what
//! the guest's kernel says after that.

mod no_room;
mod scout;
mod slot;
mod trial;

pub use no_room::NoRoom;
pub use trial::ForkedTrial;

use crate::cache::Owned;
use crate::collect::{Seer, Taken};
use crate::machine::{Generator, Plugin, Running, Stimulus, part};
use crate::run::RECORDS;
use crate::snapshot::Snapshot;
use crate::{Bench, Error, Follow, Guest, Result, console, memory_available, tool};
use sample::{Aim, Nanos, Observer, Rule, Schedule, When};
use slot::{Said, Slot};
use std::ops::ControlFlow;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trial::Known;
use wire::{Arguments, Event, Forking, Start, WalkReply, WalkRequest};

/// How many processes there are at the most for one guest: the one that has restored it, places, and trials. Each has
/// at most as much memory as the guest and QEMU's translated code, and shares what did not change.
const PROCESSES_MAX: u32 = 20;
/// How many trials of one guest go on at once at the most. The others are the one that has restored the guest, and a
/// place.
pub const TRIALS_AT_ONCE: usize = PROCESSES_MAX as usize - 2;
/// How far apart places are at the end of the way to a trial. With fewer places there are fewer processes, and a trial
/// that begins between two of them has a longer way.
const APART: Nanos = Nanos::from_millis(25);
/// How far a process goes at once. One that says nothing meanwhile is given up, so the way has to take less than
/// [`SILENCE`]: a busy guest takes about ten seconds for a virtual one.
const STRIDE: Nanos = Nanos::from_millis(2_000);
/// How far before its first trigger a trial may begin where there is a place already. A fork takes as long as the guest
/// needs for this time.
const NEAR: Nanos = Nanos::from_micros(200);
/// How far before its first trigger a trial begins at the least. What is to be met as it opens is not open yet.
const BEFORE: Nanos = Nanos::from_micros(1);
/// How long a process may say nothing.
const SILENCE: Duration = Duration::from_secs(120);
/// How many places may be lost while one trial begins. Each is made again from the one before it. A place ends by
/// itself only if somebody kills it.
const LOST_MAX: usize = 3;

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
    /// Whether events are lost.
    gaps: bool,
    /// When QEMU was started, or the trial.
    begun: Instant,
}

impl<S: Sees> Past<S> {
    fn take(&mut self, event: &Event, gap: bool, observe: &mut Observer) {
        let Past { taken, seen, gaps, begun, .. } = self;
        *gaps |= gap;
        let see: &mut Seer = &mut |event| seen.see(event);
        taken.take(event, gap, *begun, observe, &mut Some(see));
    }
}

/// A process that stands still.
struct Place<S> {
    slot: Slot,
    at: Nanos,
    past: Past<S>,
    /// When it was last used, by the number of uses before.
    used: u64,
}

/// Why a trial does not begin.
enum Failed {
    /// The process of the place at this instant has ended, or says nothing.
    Lost(Nanos),
    /// There is no room for one more process now.
    NoRoom(NoRoom),
    /// The guest does not get there.
    NotThere,
    /// The walker is of no use any more.
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Error(error)
    }
}

type Tried<T> = std::result::Result<T, Failed>;

/// A QEMU that serves trials.
pub struct Walker<S> {
    running: Running,
    /// The places. The first one stays. It is where the guest was restored.
    places: Vec<Place<S>>,
    /// That of the process that restored the guest, if it has gone on as a scout, and has no place any more.
    gone_on: Option<Slot>,
    free: Vec<Slot>,
    uses: u64,
    /// Why the last trial did not begin, if it lacked room.
    no_room: Option<NoRoom>,
    /// The port's registers in the snapshot.
    registers: (u16, u8),
    /// The bytes of the guest's memory, which a process may have to have for itself.
    memory: u64,
    /// The triggers of a guest that only walks: none.
    undisturbed: Generator,
    known: Arc<Known>,
    /// Removed at the end.
    scratch: Owned,
}

impl Bench {
    /// Restores the guest in a QEMU that serves trials. Their responders are those of `generator`. If its triggers are
    /// those of a scout, the guest can also go on as this scout ([`Walker::scout`]). The guest is followed if `follow`
    /// is given, and `seen` looks at it.
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
        let made = (0..PROCESSES_MAX).rev().map(|number| Slot::new(number, RECORDS));
        let mut free = made.collect::<Result<Vec<_>>>()?;
        let mut first = free.pop().expect("there are some");
        let theirs = |slot: &Slot| [slot.requests_fd(), slot.channel.fd()];
        let mut inherited: Vec<RawFd> = free.iter().flat_map(theirs).collect();
        inherited.push(first.requests_fd());
        let undisturbed = Generator {
            when: When::Planned(Schedule::Explicit(Vec::new())),
            disturbances: Vec::new(),
            ..generator.clone()
        };
        let is_scout = matches!(&generator.when, When::Aimed(Aim { rule: Rule::Scout, .. }));
        let first_aims = if is_scout { generator } else { &undisturbed };
        let stimulus = Stimulus::Triggers(first_aims.clone());
        let begun = Instant::now();
        let plugin = Plugin {
            library: &self.parts().plugin,
            stimulus: &stimulus,
            follow: follow.map(|f| &f.plan),
            channel: &first.channel,
            commands: None,
            walk: Some((first.requests_fd(), &inherited)),
        };
        let running = self.restore(guest, snapshot, Some(plugin), scratch.path())?;
        first.is_used_by(running.id())?;
        let mut walker = Walker {
            running,
            places: Vec::new(),
            gone_on: None,
            free,
            uses: 0,
            no_room: None,
            registers: (snapshot.record.pins, snapshot.record.control),
            memory: u64::from(guest.memory_mib) << 20,
            undisturbed,
            known: Arc::new(Known {
                printed: snapshot.console(),
                context: snapshot.record.context.clone(),
                snapshot: key.clone(),
            }),
            scratch,
        };
        let taken = Taken::new(&stimulus);
        let mut past = Past { taken, seen, said: String::new(), gaps: false, begun };
        match stands(&mut first, &mut past, &mut |_| ()).map_err(|e| walker.why(e))? {
            Some(at) => walker.place(first, at, past),
            None => return Err(walker.why(Error::Qemu("does not stand still".into()))),
        }
        Ok(walker)
    }
}

impl<S: Sees> Walker<S> {
    /// Begins a trial whose first trigger or disturbance comes at `from` or later. It is measured by
    /// [`ForkedTrial::measure`], and its end is told by [`Walker::ended`]. Several trials may go on at once. `None` if
    /// there is no room for it now ([`Walker::no_room`]), or if the guest does not get there: a run from the snapshot
    /// has to make the trial.
    ///
    /// # Errors
    /// If QEMU has ended, if a process says nonsense, or if the user asks to stop. The walker is of no use then.
    pub fn begin(&mut self, generator: &Generator, from: Nanos) -> Result<Option<ForkedTrial<S>>> {
        self.no_room = None;
        for _ in 0..LOST_MAX {
            match self.try_to_begin(generator, from) {
                Ok(trial) => return Ok(Some(trial)),
                Err(Failed::NotThere) => return Ok(None),
                Err(Failed::NoRoom(why)) => {
                    self.no_room = Some(why);
                    return Ok(None);
                }
                Err(Failed::Error(e)) => return Err(self.why(e)),
                Err(Failed::Lost(at)) => {
                    let lost = self.index_of(at);
                    if lost == 0 {
                        return Err(self.why(Error::Qemu("says nothing any more".into())));
                    }
                    self.give_up(lost);
                }
            }
        }
        Ok(None)
    }

    fn try_to_begin(&mut self, generator: &Generator, from: Nanos) -> Tried<ForkedTrial<S>> {
        let at = self.place_before(from)?;
        let mut slot = self.slot(at)?;
        let begun = Instant::now();
        if let Err(failed) = self.fork(at, &mut slot, generator, Start::Restore) {
            self.give_back(slot);
            return Err(failed);
        }
        let place = self.index_of(at);
        let past = Past { begun, ..self.places[place].past.clone() };
        let console = self.console(slot.number);
        Ok(ForkedTrial { slot, past, console, known: Arc::clone(&self.known) })
    }

    /// Takes back what an ended trial needed. A trial of another walker ends with that walker.
    pub fn ended(&mut self, trial: ForkedTrial<S>) {
        if Arc::ptr_eq(&trial.known, &self.known) {
            self.give_back(trial.slot);
        }
    }

    /// Why the last trial, or the scout, did not begin: there was no room for one more process.
    pub fn no_room(&self) -> Option<NoRoom> {
        self.no_room
    }

    /// The numbers of the processes that stand still at places. The first is the one that has restored the guest, or a
    /// copy of it once that one has gone on.
    pub fn processes(&self) -> Vec<u32> {
        self.places.iter().filter_map(|place| place.slot.process()).collect()
    }

    fn give_up(&mut self, place: usize) {
        let Place { slot, .. } = self.places.swap_remove(place);
        self.give_back(slot);
    }

    /// A slot whose process cannot be killed is not used again.
    fn give_back(&mut self, mut slot: Slot) {
        if slot.clear() {
            self.free.push(slot);
        }
    }

    /// The instant of the last place at `at` or before, which is made if none is near. The places on a long way lie the
    /// closer the nearer they are to its end, since trials often begin around the same instants.
    fn place_before(&mut self, at: Nanos) -> Tried<Nanos> {
        let at = at.saturating_sub(BEFORE);
        loop {
            let before = self.places.iter().map(|place| place.at).filter(|place| *place <= at);
            let nearest = before.max().unwrap_or_default();
            if at - nearest <= NEAR {
                return Ok(nearest);
            }
            let step = ((at - nearest) / 2).max(APART).min(STRIDE);
            // A place is a moment before what it is made for, so that trials around it can use it.
            self.make_place(nearest, (at - NEAR / 2).min(nearest + step))?;
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
    fn slot(&mut self, kept: Nanos) -> Tried<Slot> {
        loop {
            let lacks = match self.free.is_empty() {
                true => Some(NoRoom::Processes),
                false => memory_available()
                    .is_some_and(|there| there < self.memory)
                    .then_some(NoRoom::Memory),
            };
            match lacks {
                None => return Ok(self.free.pop().expect("there is one")),
                Some(_) if self.give_up_oldest(kept) => {}
                Some(why) => return Err(Failed::NoRoom(why)),
            }
        }
    }

    /// Gives up the place that was not used for longest. The first one stays, and so does that at `kept`. Returns
    /// whether there was such a place.
    fn give_up_oldest(&mut self, kept: Nanos) -> bool {
        let others = self.places.iter().enumerate().skip(1).filter(|(_, p)| p.at != kept);
        let oldest = others.min_by_key(|(_, place)| place.used).map(|(index, _)| index);
        oldest.map(|index| self.give_up(index)).is_some()
    }

    /// Lets a copy of the place at `from` go on to `to`, and stand there.
    fn make_place(&mut self, from: Nanos, to: Nanos) -> Tried<()> {
        let mut slot = self.slot(from)?;
        match self.walk(&mut slot, from, to) {
            Ok((at, past)) => {
                self.place(slot, at, past);
                Ok(())
            }
            Err(failed) => {
                self.give_back(slot);
                Err(failed)
            }
        }
    }

    fn walk(&mut self, slot: &mut Slot, from: Nanos, to: Nanos) -> Tried<(Nanos, Past<S>)> {
        let undisturbed = self.undisturbed.clone();
        self.fork(from, slot, &undisturbed, Start::Walk)?;
        let before = self.index_of(from);
        let mut past = self.places[before].past.clone();
        if stands(slot, &mut past, &mut |_| ())?.is_none() {
            return Err(Failed::NotThere);
        }
        slot.request(WalkRequest::Walk { until: to });
        let stands = stands(slot, &mut past, &mut |_| ())?;
        past.said += &console::read(&self.console(slot.number));
        stands.map(|at| (at, past)).ok_or(Failed::NotThere)
    }

    fn place(&mut self, slot: Slot, at: Nanos, past: Past<S>) {
        self.uses += 1;
        self.places.push(Place { slot, at, past, used: self.uses });
    }

    /// Forks the process of the place at this instant. Where the system refuses that, other places make room.
    fn fork(
        &mut self,
        at: Nanos,
        slot: &mut Slot,
        generator: &Generator,
        start: Start,
    ) -> Tried<()> {
        self.tell(slot, generator, start)?;
        loop {
            let place = self.index_of(at);
            match asked_to_fork(&mut self.places[place].slot, at, slot) {
                Err(Failed::NoRoom(_)) if self.give_up_oldest(at) => {}
                asked => return asked,
            }
        }
    }

    /// Writes down what the process that gets this slot is to be.
    fn tell(&self, slot: &Slot, generator: &Generator, start: Start) -> Result<()> {
        let directory = self.scratch.path();
        let told = Arguments {
            ring_fd: slot.channel.fd(),
            commands_fd: None,
            start,
            // The guest has its work from the walk.
            stimulus: wire::Stimulus::Triggers(Generator { work: None, ..generator.clone() }),
            witness: false,
            functions: None,
            follow: None,
            registers: self.registers,
            forking: Some(Forking {
                requests_fd: slot.requests_fd(),
                directory: directory.display().to_string(),
            }),
        };
        let words = told
            .words(|name, bytes| part(directory.join(format!("{name}-{}", slot.number)), bytes))?;
        part(directory.join(WalkRequest::file(slot.number)), words.join("\n").as_bytes())?;
        Ok(())
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

/// Lets the process that stands at this instant fork itself. The copy gets `slot`.
fn asked_to_fork(standing: &mut Slot, at: Nanos, slot: &mut Slot) -> Tried<()> {
    standing.request(WalkRequest::Fork { slot: slot.number });
    match standing.reply(SILENCE, |_, _| ())? {
        Said::Reply(WalkReply::Forked { process }) => Ok(slot.is_used_by(process)?),
        Said::Reply(WalkReply::Refused { errno }) => Err(Failed::NoRoom(NoRoom::Refused(errno))),
        Said::Ended | Said::Silent => Err(Failed::Lost(at)),
        Said::Reply(other) => Err(Error::Qemu(format!("does not fork, but says {other:?}")).into()),
    }
}

/// Waits until a process stands still, and adds what is told meanwhile to `past`. `see` takes it too. Returns where.
/// `None` if the process has ended, or says nothing.
fn stands<S: Sees>(
    slot: &mut Slot,
    past: &mut Past<S>,
    see: &mut Seer<'_>,
) -> Result<Option<Nanos>> {
    // Nobody answers where nothing is triggered.
    let observe: &mut Observer = &mut |_| ControlFlow::Continue(());
    let take = |event: &Event, gap| {
        see(event);
        past.take(event, gap, observe);
    };
    match slot.reply(SILENCE, take)? {
        Said::Reply(WalkReply::Stands { at }) => Ok(Some(at)),
        Said::Ended | Said::Silent => Ok(None),
        Said::Reply(other) => Err(Error::Qemu(format!("does not stand still, but says {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_that_is_refused_says_why() {
        let (mut standing, mut slot) =
            (Slot::new(0, 8).expect("a slot"), Slot::new(1, 8).expect("a slot"));
        standing.is_told(WalkReply::Refused { errno: 12 });
        let Err(Failed::NoRoom(why)) = asked_to_fork(&mut standing, Nanos(7), &mut slot) else {
            panic!("it is refused")
        };
        let why = why.to_string();
        assert!(why.contains("Cannot allocate memory") && why.contains("overcommit"), "{why}");
        assert_eq!(slot.process(), None);
    }
}
