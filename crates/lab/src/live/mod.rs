// SPDX-License-Identifier: GPL-2.0-or-later
//! The host of a generator of triggers: tells it what to do, and collects what it measures.
//! `docs/generator-protocol.md` says what the two say to each other.
//!
//! [`Live`] is one conversation. Its numbers go on over several runs of the generator: a change of the frequency ends
//! one run and starts the next.

mod asked;
mod channel;
mod connection;
mod drift;
mod hearing;
mod notes;
mod record;
mod run;
pub mod table;
mod talk;

pub use asked::{Duty, Frequency, Wanted};
pub use channel::Channel;
pub use drift::{DOUBTFUL_PPB, Drift};
pub use notes::{Mark, Tested};
pub use record::Record;
pub use talk::{Left, Standing, Talk};

use crate::Error;
use connection::Connection;
use run::{Base, Measuring};
use rustix::time::{ClockId, clock_gettime};
use sample::{Clock, Nanos, Observation};
use std::time::{Duration, Instant};
use wire::generator::{
    Command, DELIMITER, Deframer, Identity, Kind, Refused, Report, Run, STUFFED_MAX, SelfTest,
    Setting, Settings, Stopped, Tick, Timing, Unreadable, VERSION,
};

/// How long a generator may take to answer a command.
const ANSWER: Duration = Duration::from_secs(10);
/// After so long without an answer a command is sent again on a line that may damage bytes; after so long without a
/// word of a run, the generator is asked whether it goes on.
const AGAIN: Duration = Duration::from_secs(1);
/// Asks the generator who it is.
const IDENTIFY: Command<'_> = Command::Identify { oldest: VERSION, newest: VERSION };
const SILENT: &str = "it does not answer; does another program speak to it?";
/// How long a read waits while an answer is awaited.
const WAIT: Duration = Duration::from_millis(20);

/// A conversation with a generator.
pub struct Live {
    place: String,
    connection: Connection,
    deframer: Deframer,
    /// Of the last command.
    number: u16,
    answer: Option<Answer>,
    /// Of which kind the answer is that is awaited.
    awaited: Option<Kind>,
    identity: Option<Identity>,
    channels: Vec<Channel>,
    run: Option<Measuring>,
    /// The last run of which the generator spoke.
    last: Option<Run>,
    /// Whether a run may have started whose start was answered in vain.
    starting: bool,
    /// When the generator last said anything, and when that came by CLOCK_MONOTONIC.
    heard: Instant,
    came: Nanos,
    /// How often it said that the run does not go on, and nothing of its end.
    vain: u32,
    /// How the last run ended.
    stopped: Option<Stopped>,
    /// Triggers of the runs that have ended, and the time that they took together.
    triggers: u64,
    elapsed: Nanos,
    /// Of these, what was there when the numbers were last forgotten.
    forgotten: Base,
    damaged: u64,
    /// Each run so far.
    runs: Vec<Begun>,
    marks: Vec<Mark>,
    tests: Vec<Tested>,
    observed: Vec<Observation>,
}

/// A run of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Triggers of the conversation before it.
    pub triggers: u64,
    /// Time of the conversation before it.
    pub elapsed: Nanos,
    /// What the generator was set to.
    pub settings: Settings,
    /// How its clock went, once the run has ended.
    pub drift: Option<Drift>,
}

/// What answers a command.
#[derive(Clone, Copy)]
enum Answer {
    Identity,
    Accepted,
    Refused(Refused),
    Started,
    Tested(SelfTest),
    /// None came in time, and the command may have been carried out.
    Missing,
}

impl Live {
    /// Connects to the generator at `place` (HOST:PORT, or the path of a serial device), and asks who it is.
    ///
    /// # Errors
    /// [`Error::Generator`] where nothing is there, or what is there does not speak the protocol.
    pub fn connect(place: &str) -> Result<Live, Error> {
        let connection = Connection::open(place).map_err(|e| {
            Error::Generator(format!("cannot open {place}: {e}; `onset generator` makes a generator of a guest, and docs/generator-protocol.md says what else is one"))
        })?;
        let mut live = Live {
            place: place.into(),
            connection,
            deframer: Deframer::new(),
            number: 0,
            answer: None,
            awaited: None,
            identity: None,
            channels: Vec::new(),
            run: None,
            last: None,
            starting: false,
            heard: Instant::now(),
            came: now(),
            vain: 0,
            stopped: None,
            triggers: 0,
            elapsed: Nanos(0),
            forgotten: Base { triggers: 0, elapsed: Nanos(0) },
            damaged: 0,
            runs: Vec::new(),
            marks: Vec::new(),
            tests: Vec::new(),
            observed: Vec::new(),
        };
        // What an earlier host left on the line ends here.
        live.write(&[DELIMITER])?;
        live.ask(IDENTIFY)?;
        Ok(live)
    }

    /// Who the generator is.
    pub fn identity(&self) -> &Identity {
        self.identity.as_ref().expect("it has been identified")
    }

    /// What the generator calls itself.
    pub fn name(&self) -> String {
        let name = &self.identity().name;
        let ends = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..ends]).into_owned()
    }

    /// What the generator is set to; of a run that goes on what it was started with.
    pub fn settings(&self) -> &Settings {
        &self.identity().settings
    }

    /// How long a tick of the generator is.
    pub fn tick(&self) -> Tick {
        self.identity().tick
    }

    /// The clock of all times.
    pub fn clock(&self) -> Clock {
        run::clock(self.identity())
    }

    /// What is known of each responder, in the order of the pins.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Triggers that have come, of all runs since the numbers were last forgotten.
    pub fn triggers(&self) -> u64 {
        self.so_far().triggers.saturating_sub(self.forgotten.triggers)
    }

    /// The time that they took, without the time between runs.
    pub fn elapsed(&self) -> Nanos {
        self.so_far().elapsed.saturating_sub(self.forgotten.elapsed)
    }

    /// The triggers and the time of the whole conversation.
    fn so_far(&self) -> Base {
        let run = self.run.as_ref();
        let triggers = run.map_or(0, |run| run.receipt.triggers());
        let reached = run.map_or(Nanos(0), |run| run.reached);
        Base {
            triggers: self.triggers.saturating_add(triggers),
            elapsed: self.elapsed.saturating_add(reached),
        }
    }

    /// The runs of the conversation, as they began.
    pub fn runs(&self) -> &[Begun] {
        &self.runs
    }

    /// Whether a run goes on.
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// How the last run ended; absent while one goes on.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// Frames that the line damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Forgets the numbers so far: latencies, losses, triggers and time count from here. What is observed counts on.
    pub fn reset(&mut self) {
        self.channels.iter_mut().for_each(Channel::forget);
        self.forgotten = self.so_far();
    }

    /// Gives a setting another value, from the next run on.
    ///
    /// # Errors
    /// [`Error::Unfit`] with the limits, where the generator refuses it.
    pub fn set(&mut self, setting: Setting, value: u64) -> Result<(), Error> {
        self.ask(Command::Set { setting, value }).map(drop)?;
        if let Some(identity) = &mut self.identity {
            identity.settings.set(setting, value);
        }
        Ok(())
    }

    /// Starts a run by the settings.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn start(&mut self) -> Result<(), Error> {
        self.starting = self.connection.is_serial();
        let started = self.start_once();
        self.starting = false;
        started
    }

    /// A start that was carried out is not sent again, also where its answer was damaged and its run has ended by now.
    fn start_once(&mut self) -> Result<(), Error> {
        let (before, begun) = (self.runs.len(), Instant::now());
        while begun.elapsed() < ANSWER {
            if !matches!(self.ask(Command::Start(Timing::Periodic))?, Answer::Missing) {
                return Ok(());
            }
            // How a run ended is said behind the first answer, so it has come before the second one.
            self.ask(IDENTIFY)?;
            self.ask(IDENTIFY)?;
            if self.runs.len() > before {
                return Ok(());
            }
        }
        Err(self.broken(SILENT))
    }

    /// Has the generator end its run. The run goes on until [`listen`](Self::listen) has heard of its end.
    ///
    /// # Errors
    /// Those of the line.
    pub fn stop(&mut self) -> Result<(), Error> {
        match self.ask(Command::Stop) {
            // It ended by itself meanwhile. Whoever asks who the generator is, is told how once more.
            Err(Error::Unfit(_)) if self.run.is_none() => Ok(()),
            Err(Error::Unfit(_)) => self.ask(IDENTIFY).map(drop),
            asked => asked.map(drop),
        }
    }

    /// Gives up the run that goes on, because the line is broken: what was lost so far is observed, and what came after
    /// the last batch is not known.
    pub fn break_off(&mut self) {
        let Some(run) = self.run.take() else { return };
        run.tell_all_lost(&mut self.channels, &mut self.observed);
        self.ends(&run);
        self.triggers = self.triggers.saturating_add(run.receipt.triggers());
        self.elapsed = self.elapsed.saturating_add(run.reached);
    }

    /// Waits for what the generator says, and takes it.
    ///
    /// # Errors
    /// [`Error::Generator`] where the line is broken, or the generator contradicts itself.
    pub fn listen(&mut self, wait: Duration) -> Result<(), Error> {
        // How the run ended may have been damaged. It is said again behind the answer.
        if self.run.is_some() && self.connection.is_serial() && self.heard.elapsed() > AGAIN {
            self.heard = Instant::now();
            self.send(IDENTIFY)?;
        }
        self.hear(wait)
    }

    fn hear(&mut self, wait: Duration) -> Result<(), Error> {
        let mut bytes = [0; 16 * 1024];
        let read = self.connection.read(&mut bytes, wait).map_err(|e| self.gone(&e))?;
        self.came = now();
        let mut rest = &bytes[..read];
        let mut deframer = std::mem::replace(&mut self.deframer, Deframer::new());
        let mut taken = Ok(());
        while let Some(frame) = deframer.next(&mut rest) {
            let Ok(frame) = frame else {
                self.damaged += 1;
                continue;
            };
            self.heard = Instant::now();
            taken = taken.and_then(|()| match Report::decode(&frame) {
                Ok(report) => {
                    let answers = self.awaited == Some(report.kind()) || is_refusal(&report);
                    self.take(report, answers && frame.number == self.number)
                }
                // What a later version adds is passed over, where the protocol says so.
                Err(Unreadable::Optional(_)) => Ok(()),
                Err(e) => Err(format!("{e}; a newer onset may know it")),
            });
        }
        self.deframer = deframer;
        taken.map_err(|why| self.broken(&why))
    }

    /// What was observed since the last call: each latency, and at the end of a run what was lost. Triggers and times
    /// count on from one run to the next.
    pub fn observed(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observed)
    }

    /// How the generator's clock goes beside this machine's, by the run that tells it most closely. `None` where no run
    /// was long enough, and of virtual time, which has nothing to do with that of this machine.
    pub fn drift(&self) -> Option<Drift> {
        let ended = self.runs.iter().filter_map(|run| run.drift);
        let all = ended.chain(self.run.as_ref().and_then(Measuring::drift));
        all.min_by_key(|drift| drift.uncertainty_ppb)
    }

    /// Asks for what is to be carried out.
    fn ask(&mut self, command: Command<'_>) -> Result<Answer, Error> {
        match self.answer_to(command)? {
            Answer::Refused(refused) => Err(Error::Unfit(refused.to_string())),
            answer => Ok(answer),
        }
    }

    /// Asks, and waits for the answer. What else comes meanwhile counts as always.
    fn answer_to(&mut self, command: Command<'_>) -> Result<Answer, Error> {
        let bytes = self.send(command)?;
        let (begun, mut sent) = (Instant::now(), Instant::now());
        loop {
            self.hear(WAIT)?;
            let is_late = self.connection.is_serial() && sent.elapsed() > AGAIN;
            match self.answer.take() {
                Some(answer) => {
                    self.awaited = None;
                    return Ok(answer);
                }
                None if work::is_cancelled() => return Err(Error::Interrupted),
                None if begun.elapsed() > ANSWER => return Err(self.broken(SILENT)),
                None if is_late && matches!(command, Command::Start(_)) => {
                    self.awaited = None;
                    return Ok(Answer::Missing);
                }
                None if is_late => {
                    self.write(&bytes)?;
                    sent = Instant::now();
                }
                None => {}
            }
        }
    }

    /// Sends a command, whose bytes these are.
    fn send(&mut self, command: Command<'_>) -> Result<Vec<u8>, Error> {
        self.number = self.number.wrapping_add(1);
        let mut out = [0; STUFFED_MAX];
        let bytes = command.encode(self.number, &mut out).to_vec();
        self.answer = None;
        self.awaited = Some(match command {
            Command::Identify { .. } => Kind::IDENTITY,
            Command::Start(_) => Kind::STARTED,
            Command::Test => Kind::SELF_TEST,
            _ => Kind::ACCEPTED,
        });
        self.write(&bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.connection.write(bytes).map_err(|e| self.gone(&e))
    }

    fn gone(&self, e: &std::io::Error) -> Error {
        let place = &self.place;
        Error::Generator(match self.identity {
            Some(_) => format!(
                "the generator at {place} hung up: {e}; if it is still there, its run goes on, and the same command without settings joins it"
            ),
            None => format!(
                "{place} hung up before it said who it is ({e}): another host speaks to this generator, or it is none"
            ),
        })
    }

    fn broken(&self, why: &str) -> Error {
        Error::Generator(format!(
            "the generator at {} does not keep to its protocol (docs/generator-protocol.md): {why}",
            self.place
        ))
    }
}

/// The time of this machine, by CLOCK_MONOTONIC.
fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

/// A refusal may answer any command.
fn is_refusal(report: &Report<'_>) -> bool {
    matches!(report, Report::Refused(_))
}

#[cfg(test)]
mod tests;
