// SPDX-License-Identifier: GPL-2.0-or-later
//! A session as a generator of triggers that speaks the generator protocol (`docs/generator-protocol.md`). The host's
//! messages become commands of the session, and the session's observations become batches.
//!
//! The generator itself knows no sockets. Its holder hands it the host's bytes and the time that has passed, and sends
//! what it says; [`Line`] does so over TCP. [`Log`] makes an ordinary run of a session's triggers.
//!
//! Time passes in the guest only while a run goes on, and never faster than outside: an instant is commanded only when
//! it has come outside, too. A busy guest comes to it later.

mod callers;
#[cfg(any(test, feature = "examples"))]
pub mod fake;
mod line;
mod log;
mod outbox;
mod run;

pub use line::{Happened, Line};
pub use log::Log;

use crate::Error;
use crate::target::{Command, Measured, Session, Step};
use outbox::Outbox;
use run::Run;
use sample::{ALL_RESPONDERS, Loss, Nanos, Observation, ResponderSet};
use std::ops::ControlFlow;
use wire::generator::{
    BATCH_MAX, Clock, Deed, Deframer, Desk, Ended, Identity, Limits, PINS, Range, Report, Setting,
    Settings, Started, Stopped, Tick, Ticks,
};

/// The least time from the end of one run to the beginning of the next.
const APART: Nanos = GAP;
/// The shortest time between two triggers. The hard handler of an idle guest answers within a third of it; a task takes
/// some ten times as long, so that its answers are superseded.
const GAP: Nanos = ::experiment::TRIGGERS_APART;
/// The longest time of any setting: a year. So instants stay far below 2⁶⁴ ns.
const LONGEST: Nanos = Nanos::from_millis(365 * 24 * 3_600_000);
/// How many times of a train are kept.
const TRAIN: u32 = 1_000_000;

/// A session that speaks the generator protocol.
pub struct Generator<'a> {
    session: Box<dyn Session + 'a>,
    /// The responders, in the order of the session's series.
    responders: ResponderSet,
    desk: Desk,
    deframer: Deframer,
    outbox: Outbox,
    train: Vec<Nanos>,
    run: Option<Run>,
    /// How many triggers of the session each responder has accounted for, by the responder's pin.
    accounted: [u64; ALL_RESPONDERS.len()],
    /// The instant of the last command.
    commanded: Nanos,
    /// How many triggers of all runs were commanded.
    triggers: u64,
    /// Those that nobody has taken yet.
    fired: Vec<Fired>,
    notes: Vec<Note>,
    ended: bool,
}

/// What whoever holds a generator may want to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A run has started, with these settings.
    Started(Started),
    /// A run has ended.
    Stopped(Box<Stopped>),
}

/// A trigger that was commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The instant, since measuring began.
    pub at: Nanos,
    /// How long the line was high.
    pub high: Nanos,
}

impl<'a> Generator<'a> {
    /// A generator with a session that commands lead ([`crate::target::Lead`]), in which these responders answer.
    pub fn new(
        session: Box<dyn Session + 'a>,
        responders: ResponderSet,
        name: &str,
    ) -> Generator<'a> {
        Generator {
            session,
            responders,
            desk: Desk::new(identity(responders, name), false),
            deframer: Deframer::new(),
            outbox: Outbox::default(),
            train: Vec::new(),
            run: None,
            accounted: [0; ALL_RESPONDERS.len()],
            commanded: Nanos(0),
            triggers: 0,
            fired: Vec::new(),
            notes: Vec::new(),
            ended: false,
        }
    }

    /// Takes the host's bytes at `now`, and leaves what it does not take: no command is taken while an answer waits for
    /// the host. `now` is the time outside since any instant.
    pub fn hear(&mut self, bytes: &mut &[u8], now: Nanos) {
        while !self.outbox.holds_answer() {
            let Some(frame) = self.deframer.next(bytes) else { return };
            // The number of the sender may be damaged too, so there is no answer.
            let Ok(frame) = frame else { continue };
            let (answer, deed) = self.desk.take(&frame);
            if let Some(answer) = answer {
                self.outbox.answer(&answer, frame.number);
            }
            match deed {
                Deed::None | Deed::Test => {}
                Deed::Tell(stopped) => self.outbox.tell(&Report::Stopped(stopped)),
                Deed::Keep(train) => {
                    self.train.truncate(train.first as usize);
                    self.train.extend(train.times.iter().map(|ticks| Nanos(ticks.0)));
                }
                Deed::Resize => {
                    let size = self.desk.identity().settings.get(Setting::Batch);
                    let (age, outbox) = (self.age(), &mut self.outbox);
                    let run = self.run.iter_mut();
                    run.for_each(|run| run.resize(size as usize, age, outbox));
                }
                Deed::Start(started) => {
                    let zero = self.commanded + APART;
                    let (all, first) = (self.responders, self.triggers);
                    self.run = Some(Run::new(&started, &self.train, all, zero, first, now));
                    self.notes.push(Note::Started(started));
                }
                Deed::Stop => self.run.iter_mut().for_each(|run| run.stop(self.commanded)),
            }
        }
    }

    /// Goes on to `now`, and collects the messages for the host. The function waits for a moment, as a session's step
    /// does.
    ///
    /// # Errors
    /// The errors of the session. A session that has ended by itself is no error: [`Generator::has_ended`].
    pub fn turn(&mut self, now: Nanos) -> Result<(), Error> {
        let age = self.age();
        let Generator { session, responders, run, accounted, outbox, .. } = self;
        let step = session.step(&mut |observation: Observation| {
            take(&observation, *responders, accounted, run.as_mut());
            // A step may yield more than a batch holds.
            run.iter_mut().for_each(|run| run.send_due(age, outbox));
            ControlFlow::Continue(())
        })?;
        match step {
            Step::Ended => {
                self.ended = true;
                self.end_run(Ended::Fault(FAULT_GUEST));
                return Ok(());
            }
            Step::GoesOn { done, .. } => {
                let reached = session.reached();
                self.run.iter_mut().for_each(|run| run.comes_to(done, reached));
            }
            Step::Begins => return Ok(()),
        }
        self.command(now)?;
        let (age, outbox) = (self.age(), &mut self.outbox);
        self.run.iter_mut().for_each(|run| run.send_due(age, outbox));
        Ok(())
    }

    /// Commands everything that has become due.
    fn command(&mut self, now: Nanos) -> Result<(), Error> {
        let Some(run) = &mut self.run else { return Ok(()) };
        while let Some(fired) = run.next(now) {
            self.session.command(Command::Trigger { at: fired.at, high: fired.high })?;
            self.commanded = fired.at;
            self.triggers += 1;
            self.fired.push(fired);
        }
        if let Some(until) = run.runs_to(now).filter(|until| *until > self.commanded) {
            self.session.command(Command::Run { until })?;
            self.commanded = until;
        }
        if let Some(ended) = run.ended(self.session.reached()) {
            self.end_run(ended);
        }
        Ok(())
    }

    /// How old a measurement may become before it is sent.
    fn age(&self) -> Ticks {
        Ticks(self.desk.identity().settings.get(Setting::Age))
    }

    fn end_run(&mut self, ended: Ended) {
        let Some(mut run) = self.run.take() else { return };
        let stopped = run.conclude(ended, &mut self.outbox);
        self.desk.stopped(stopped);
        self.notes.push(Note::Stopped(Box::new(stopped)));
        self.outbox.tell(&Report::Stopped(stopped));
    }

    /// Sends the messages for the host. `send` takes bytes, and returns how many it took.
    pub fn say(&mut self, send: impl FnMut(&[u8]) -> usize) {
        self.outbox.drain(send);
    }

    /// Learns that another host is at the other end, or none. A run goes on.
    pub fn disconnected(&mut self) {
        self.desk.disconnected();
        self.deframer = Deframer::new();
        self.outbox.clear();
    }

    /// Whether the guest has ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The triggers that were commanded since the last call.
    pub fn fired(&mut self) -> Vec<Fired> {
        std::mem::take(&mut self.fired)
    }

    /// Ends the run that goes on, if one does: the generator is switched off.
    pub fn switch_off(&mut self) {
        self.end_run(Ended::Fault(FAULT_OFF));
    }

    /// Whether something waits for the host.
    pub fn has_to_say(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What has happened since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Ends the session, and says what it yielded besides its observations.
    ///
    /// # Errors
    /// Those of the session.
    pub fn finish(mut self) -> Result<Measured, Error> {
        let mut ignore = |_: Observation| ControlFlow::Continue(());
        self.session.command(Command::End)?;
        while self.session.step(&mut ignore)? != Step::Ended {}
        self.session.finish(&mut ignore)
    }
}

/// Hands an observation to the present run, and keeps count of the triggers that are accounted for.
fn take(
    observation: &Observation,
    responders: ResponderSet,
    accounted: &mut [u64; ALL_RESPONDERS.len()],
    run: Option<&mut Run>,
) {
    let series = match observation {
        Observation::Sample(sample) => sample.series,
        Observation::Loss(series, ..) => *series,
    };
    let Some(responder) = responders.iter().nth(series.index()) else { return };
    let next = &mut accounted[usize::from(responder.pin())];
    if let Some(run) = run {
        run.observe(observation, responder, *next);
    }
    match observation {
        Observation::Sample(sample) => *next = sample.trigger + 1,
        Observation::Loss(_, Loss::Superseded | Loss::Tainted, count) => *next += count,
        Observation::Loss(..) => {}
    }
}

/// The number of the fault that the guest or its machine has ended.
const FAULT_GUEST: u16 = 1;
/// The generator is switched off.
const FAULT_OFF: u16 = 2;

/// What a session is, and what it can do.
fn identity(responders: ResponderSet, name: &str) -> Identity {
    let time = |least: Nanos| Range::new(least.0, LONGEST.0);
    let ranges = Setting::ALL.map(|setting| match setting {
        Setting::Period => time(GAP),
        Setting::High => time(Nanos(1)),
        Setting::Batch => Range::new(1, BATCH_MAX as u64),
        Setting::Count => Range::new(1, u64::MAX),
        Setting::Jitter | Setting::Phase | Setting::Grace | Setting::Age => time(Nanos(0)),
        Setting::Seed => Range::new(0, u64::MAX),
        Setting::Responders => Range::new(1, responders.mask().into()),
    });
    let settings = Setting::ALL.map(|setting| match setting {
        Setting::Period => 1_000_000,
        Setting::High => 100_000,
        Setting::Batch => BATCH_MAX as u64,
        Setting::Count => u64::MAX,
        Setting::Jitter | Setting::Phase => 0,
        Setting::Seed => 1,
        Setting::Responders => responders.mask().into(),
        Setting::Grace => 100_000_000,
        Setting::Age => 50_000_000,
    });
    let mut pins = [None; PINS];
    responders.iter().for_each(|r| pins[usize::from(r.pin())] = Some(r));
    let mut said = [0; Identity::NAME];
    let printable = name.bytes().filter(|b| (b' '..=b'~').contains(b));
    said.iter_mut().zip(printable).for_each(|(to, byte)| *to = byte);
    Identity {
        clock: Clock::Virtual,
        running: None,
        tick: Tick::NANOSECOND,
        accuracy_ppb: Some(0),
        resolution: Ticks(1),
        pins,
        held: 0,
        limits: Limits { ranges, train: TRAIN, gap: Ticks(GAP.0) },
        settings: Settings::new(settings),
        name: said,
    }
}

#[cfg(test)]
mod tests;
