// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator's side of commands: what is answered, what changes, and what is left for the generator to do.

use super::{
    Accepted, Command, Frame, Held, Identity, Kind, Refused, Report, Run, Setting, Started,
    Stopped, Timing, Train, Unreadable, Why, negotiate,
};
use core::num::NonZeroU32;

/// Takes commands, of a fixed size. It knows nothing of lines, clocks and pins.
#[derive(Clone, Debug)]
pub struct Desk {
    identity: Identity,
    held: Held,
    /// Whether the generator can test itself.
    tests: bool,
    /// Whether a version has been agreed upon.
    identified: bool,
    /// The run that was started last.
    last: Option<Run>,
    /// How that ended.
    stopped: Option<Stopped>,
}

/// What the generator is to do beside sending the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nothing here allocates, and one lives at a time")]
pub enum Deed<'a> {
    /// Nothing.
    None,
    /// Say once more how the last run ended, after the answer: a host that was away may not know.
    Tell(Stopped),
    /// Keep these times of the train, before the answer.
    Keep(Train<'a>),
    /// Send what follows in batches of another size or age.
    Resize,
    /// Start this run. The answer is sent before its first trigger.
    Start(Started),
    /// Raise nothing more, send what is held, and end the run.
    Stop,
    /// Test yourself. The answer is the result, with the number of the command.
    Test,
}

impl Desk {
    /// Of a generator that has just been switched on. No run goes on, and no train is held.
    pub fn new(identity: Identity, tests: bool) -> Desk {
        let identity = Identity { running: None, held: 0, ..identity };
        let held = Held::default();
        Desk { identity, held, tests, identified: false, last: None, stopped: None }
    }

    /// Takes a frame. `None` where it has no answer, or where [`Deed::Test`] yields it.
    pub fn take<'a>(&mut self, frame: &Frame<'a>) -> (Option<Report<'static>>, Deed<'a>) {
        let command = match Command::decode(frame) {
            Ok(command) => command,
            Err(Unreadable::Optional(_)) => return (None, Deed::None),
            Err(_) if !self.identified && frame.kind != Kind::IDENTIFY.0 => {
                let refused = Refused::new(Why::Unidentified, Kind(frame.kind));
                return (Some(Report::Refused(refused)), Deed::None);
            }
            Err(e) => return (e.refusal(frame.kind).map(Report::Refused), Deed::None),
        };
        match self.obey(command) {
            Ok((answer, deed)) => (answer, deed),
            Err(refused) => (Some(Report::Refused(refused)), Deed::None),
        }
    }

    fn obey<'a>(
        &mut self,
        command: Command<'a>,
    ) -> Result<(Option<Report<'static>>, Deed<'a>), Refused> {
        let kind = command.kind();
        let accepted = |setting, value| {
            let command = kind;
            Some(Report::Accepted(Accepted { command, setting, value }))
        };
        if let Command::Identify { oldest, newest } = command {
            self.identified = false;
            negotiate(oldest, newest)?;
            self.identified = true;
            let idle = self.identity.running.is_none();
            let told = self.stopped.filter(|_| idle).map_or(Deed::None, Deed::Tell);
            return Ok((Some(Report::Identity(self.identity)), told));
        }
        if !self.identified {
            return Err(Refused::new(Why::Unidentified, kind));
        }
        match command {
            Command::Set { setting, value } => {
                let deed = self.set(setting, value)?;
                Ok((accepted(Some(setting), value), deed))
            }
            Command::Train(train) => {
                self.idle(kind)?;
                let limits = self.identity.limits;
                self.held = limits.check_train(self.held, train.first, train.times.iter())?;
                self.identity.held = self.held.count;
                Ok((accepted(None, self.held.count.into()), Deed::Keep(train)))
            }
            Command::Start(timing) => {
                let started = self.start(timing)?;
                Ok((Some(Report::Started(started)), Deed::Start(started)))
            }
            Command::Stop if self.identity.running.is_some() => Ok((accepted(None, 0), Deed::Stop)),
            Command::Stop => Err(Refused::new(Why::NotRunning, kind)),
            Command::Test => {
                self.idle(kind)?;
                let can = self.tests.then_some((None, Deed::Test));
                can.ok_or(Refused::new(Why::Unsupported, kind))
            }
            Command::Identify { .. } => Ok((None, Deed::None)),
        }
    }

    fn set(&mut self, setting: Setting, value: u64) -> Result<Deed<'static>, Refused> {
        let of_batches = matches!(setting, Setting::Batch | Setting::Age);
        if !of_batches {
            self.idle(Kind::SET)?;
        }
        self.identity.limits.check(setting, value)?;
        self.identity.settings.set(setting, value);
        let resize = of_batches && self.identity.running.is_some();
        Ok(if resize { Deed::Resize } else { Deed::None })
    }

    fn start(&mut self, timing: Timing) -> Result<Started, Refused> {
        self.idle(Kind::START)?;
        let settings = self.identity.settings;
        self.identity.limits.check_start(&settings, timing, self.held)?;
        let next = self.last.map_or(Some(NonZeroU32::MIN), |last| last.0.checked_add(1));
        let run = Run(next.unwrap_or(NonZeroU32::MIN));
        (self.last, self.identity.running, self.stopped) = (Some(run), Some(run), None);
        let train = if timing == Timing::Train { self.held.count } else { 0 };
        Ok(Started { run, timing, train, settings })
    }

    /// Whether no run goes on.
    fn idle(&self, command: Kind) -> Result<(), Refused> {
        let Some(run) = self.identity.running else { return Ok(()) };
        Err(Refused { value: run.0.get().into(), ..Refused::new(Why::Running, command) })
    }

    /// The run has ended. The same is told again to whoever identifies the generator afterwards.
    pub fn stopped(&mut self, stopped: Stopped) {
        (self.identity.running, self.stopped) = (None, Some(stopped));
    }

    /// Somebody else may be at the other end: nothing is agreed upon. A run goes on.
    pub fn disconnected(&mut self) {
        self.identified = false;
    }

    /// Who the generator is, and what is in force.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}

#[cfg(test)]
#[path = "tests/desk.rs"]
mod tests;
