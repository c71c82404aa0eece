// SPDX-License-Identifier: GPL-2.0-or-later
//! The host of a generator of triggers: tells it what to do, and collects what it measures.
//! `docs/generator-protocol.md` says what the two say to each other.
//!
//! [`Live`] is one conversation. Its numbers go on over several runs of the generator: a change of the frequency ends
//! one run and starts the next.

mod asked;
mod connection;
mod notes;
mod record;
mod run;
mod talk;

pub use asked::{Duty, Frequency, Wanted};
pub use notes::{Mark, Tested};
pub use record::Record;
pub use talk::{Left, Standing, Talk};

use crate::Error;
use connection::Connection;
use run::{Base, Measuring};
use sample::{Clock, Loss, Losses, Nanos, Observation, Responder};
use stats::Series;
use std::time::{Duration, Instant};
use wire::generator::{
    Command, DELIMITER, Deframer, Identity, Kind, Refused, Report, STUFFED_MAX, SelfTest, Setting,
    Settings, Stopped, Tick, Timing, Unreadable, VERSION, Why,
};

/// How long a generator may take to answer a command.
const ANSWER: Duration = Duration::from_secs(10);
/// After so long without an answer a command is sent again on a line that may damage bytes.
const AGAIN: Duration = Duration::from_secs(1);
/// Asks the generator who it is.
const IDENTIFY: Command<'_> = Command::Identify { oldest: VERSION, newest: VERSION };
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

/// A run of the conversation, as it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Triggers of the conversation before it.
    pub triggers: u64,
    /// Time of the conversation before it.
    pub elapsed: Nanos,
    /// What the generator was set to.
    pub settings: Settings,
}

/// What answers a command.
#[derive(Clone, Copy)]
enum Answer {
    Identity,
    Accepted,
    Refused(Refused),
    Started,
    Tested(SelfTest),
}

/// What is known of one responder.
pub struct Channel {
    /// Who answers.
    pub responder: Responder,
    /// Its latencies, of all runs of the conversation since the numbers were last forgotten.
    pub series: Series,
    /// What was lost since then, as far as the generator has told.
    pub losses: Losses,
    /// What was lost in runs that have ended, and what was lost when the numbers were last forgotten.
    settled: Losses,
    forgotten: Losses,
}

impl Channel {
    /// Of a responder that has not answered.
    pub fn new(responder: Responder, clock: Clock) -> Channel {
        let (losses, settled, forgotten) = Default::default();
        Channel {
            responder,
            series: Series::new(responder.into(), clock),
            losses,
            settled,
            forgotten,
        }
    }

    /// Forgets what was measured and lost so far.
    fn forget(&mut self) {
        self.series = Series::new(self.responder.into(), self.series.clock());
        self.forgotten.merge(&self.losses);
        self.losses = Losses::default();
    }

    /// Learns what was lost in all runs.
    fn has_lost(&mut self, all: &Losses) {
        self.losses = Losses::default();
        let counts = all.of_all().into_iter().zip(self.forgotten.of_all());
        for (loss, (all, forgotten)) in Loss::ALL.into_iter().zip(counts) {
            // What came late is no loss any more, so there may be less than there was.
            self.losses.count(loss, all.saturating_sub(forgotten));
        }
    }
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
        self.ask(Command::Start(Timing::Periodic)).map(drop)
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
        self.triggers = self.triggers.saturating_add(run.receipt.triggers());
        self.elapsed = self.elapsed.saturating_add(run.reached);
    }

    /// Waits for what the generator says, and takes it.
    ///
    /// # Errors
    /// [`Error::Generator`] where the line is broken, or the generator contradicts itself.
    pub fn listen(&mut self, wait: Duration) -> Result<(), Error> {
        let mut bytes = [0; 16 * 1024];
        let read = self.connection.read(&mut bytes, wait).map_err(|e| self.gone(&e))?;
        let mut rest = &bytes[..read];
        let mut deframer = std::mem::replace(&mut self.deframer, Deframer::new());
        let mut taken = Ok(());
        while let Some(frame) = deframer.next(&mut rest) {
            let Ok(frame) = frame else {
                self.damaged += 1;
                continue;
            };
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

    /// Takes what the generator says; `answers` where it has the number of the last command.
    fn take(&mut self, report: Report<'_>, answers: bool) -> Result<(), String> {
        match report {
            Report::Identity(identity) if answers => {
                if self.identity.replace(identity).is_none() {
                    self.channels = run::channels(&identity);
                }
                // Of a run that somebody else has started, or whose start was answered in vain, all that went before is
                // lost here.
                if let (None, Some(number)) = (&self.run, identity.running) {
                    self.run = Some(Measuring::of(number, &identity.settings, &identity));
                    self.begins(identity.settings);
                }
                self.answer = Some(Answer::Identity);
            }
            Report::Accepted(_) if answers => self.answer = Some(Answer::Accepted),
            Report::Refused(refused) if answers => self.answer = Some(Answer::Refused(refused)),
            Report::Started(started) if answers => {
                let identity =
                    self.identity.as_ref().ok_or("it starts before it says who it is")?;
                self.run = Some(Measuring::of(started.run, &started.settings, identity));
                self.begins(started.settings);
                self.answer = Some(Answer::Started);
            }
            Report::SelfTest(test) if answers => self.answer = Some(Answer::Tested(test)),
            Report::Batch(batch) => {
                let base = Base { triggers: self.triggers, elapsed: self.elapsed };
                let (Some(run), Some(identity)) = (&mut self.run, &self.identity) else {
                    return Ok(());
                };
                let (channels, observed) = (&mut self.channels, &mut self.observed);
                run.take(&batch, (identity.tick, base, self.forgotten), channels, observed)?;
            }
            Report::Stopped(stopped) => {
                let (Some(mut run), Some(identity)) = (self.run.take(), &self.identity) else {
                    return Ok(());
                };
                run.stop(&stopped, identity.tick, &mut self.channels, &mut self.observed)?;
                let triggers = self.triggers.checked_add(run.receipt.triggers());
                let elapsed = self.elapsed.checked_add(run.reached);
                let (Some(triggers), Some(elapsed)) = (triggers, elapsed) else {
                    return Err(run::TOO_MANY.into());
                };
                (self.triggers, self.elapsed) = (triggers, elapsed);
                self.stopped = Some(stopped);
            }
            _ => {}
        }
        Ok(())
    }

    fn begins(&mut self, settings: Settings) {
        self.stopped = None;
        self.runs.push(Begun { triggers: self.triggers, elapsed: self.elapsed, settings });
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
        let (begun, mut sent, mut is_repeated) = (Instant::now(), Instant::now(), false);
        loop {
            self.listen(WAIT)?;
            match self.answer.take() {
                Some(Answer::Refused(refused)) => {
                    self.awaited = None;
                    // The start was carried out, and its answer was damaged: who the generator is says the rest.
                    let has_started = is_repeated && matches!(command, Command::Start(_));
                    return match refused.why {
                        Why::Running if has_started => self.answer_to(IDENTIFY),
                        _ => Ok(Answer::Refused(refused)),
                    };
                }
                Some(answer) => {
                    self.awaited = None;
                    return Ok(answer);
                }
                None if work::is_cancelled() => return Err(Error::Interrupted),
                None if begun.elapsed() > ANSWER => {
                    return Err(
                        self.broken("it does not answer; does another program speak to it?")
                    );
                }
                None if self.connection.is_serial() && sent.elapsed() > AGAIN => {
                    self.write(&bytes)?;
                    (sent, is_repeated) = (Instant::now(), true);
                }
                None => {}
            }
        }
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

/// A refusal may answer any command.
fn is_refusal(report: &Report<'_>) -> bool {
    matches!(report, Report::Refused(_))
}

#[cfg(test)]
mod tests;
