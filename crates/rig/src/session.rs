// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest that is being measured: it goes on by steps, and takes commands in between.
//!
//! A session whose triggers are commanded ([`sample::When::Commanded`]) runs as far as its commands say, and stands
//! still there. The guest cannot tell: commands and a schedule of the same instants give the same samples.

use crate::cache::Owned;
use crate::collect::{Collector, Seer, read_words, why_it_ended, why_it_stands_still};
use crate::machine::{Plugin, Running, Stimulus};
use crate::run::{END_DEADLINE, Ending, Outcome, RECORDS};
use crate::snapshot::Snapshot;
use crate::{Bench, Error, Follow, Guest, Result, console};
use rustix::fs::OFlags;
use sample::{Nanos, Observer, When};
use std::collections::BTreeMap;
use std::io::{ErrorKind, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use wire::{Channel, Command};
use work::{Progress, Step};

/// How long no event may come before the machine counts as standing still. To this is added a second for each ten
/// virtual milliseconds that may rightly pass between two events. (A busy guest takes about ten seconds for a virtual
/// one.)
const STALL_DEADLINE: Duration = Duration::from_secs(120);

/// A guest that is being measured.
pub struct Session {
    running: Running,
    collector: Collector,
    commands: Option<Pipe>,
    /// The key of the snapshot from which it was restored. Below, the facts that the guest had reported there, and its
    /// text.
    snapshot: String,
    context: BTreeMap<String, String>,
    printed: String,
    begun: Instant,
    heard: Instant,
    /// How long nothing may come before the machine counts as standing still.
    stall_deadline: Duration,
    /// Whether the machine has ended. The error says that it failed.
    ended: Result<bool>,
    /// Whether the guest has work besides its load.
    works: bool,
    /// When a probe was asked to end.
    asked: Option<Instant>,
    ending: Option<Ending>,
    /// Removed at the end of the session.
    _scratch: Owned,
}

impl Bench {
    /// Restores the guest and lets it go on. The session is measured by steps ([`Session::step`]).
    ///
    /// # Errors
    /// The errors of restoring.
    pub fn begin(
        &self,
        guest: &Guest,
        stimulus: &Stimulus,
        (snapshot, key): &(Snapshot, String),
        follow: Option<&Follow>,
    ) -> Result<Session> {
        let scratch = self.cache().scratch()?;
        let collector = Collector::new(stimulus, Channel::with_capacity(RECORDS)?);
        let (ours, theirs) = match stimulus {
            Stimulus::Triggers(triggers) if triggers.when == When::Commanded => {
                let (theirs, pipe) = Pipe::new()?;
                (Some(pipe), Some(theirs))
            }
            _ => (None, None),
        };
        let begun = Instant::now();
        let plugin = Plugin {
            library: &self.parts().plugin,
            stimulus,
            follow: follow.map(|f| &f.plan),
            channel: &collector.channel,
            commands: theirs.as_ref().map(AsRawFd::as_raw_fd),
            walk: None,
        };
        let running = self.restore(guest, snapshot, Some(plugin), scratch.path())?;
        Ok(Session {
            running,
            collector,
            commands: ours,
            snapshot: key.clone(),
            context: snapshot.record.context.clone(),
            printed: snapshot.console(),
            begun,
            heard: Instant::now(),
            stall_deadline: STALL_DEADLINE + Duration::from_secs(silence(stimulus).0 / 10_000_000),
            ended: Ok(false),
            works: matches!(stimulus, Stimulus::Triggers(triggers) if triggers.work.is_some()),
            asked: None,
            ending: None,
            _scratch: scratch,
        })
    }
}

/// How much virtual time may pass without an event.
fn silence(stimulus: &Stimulus) -> Nanos {
    match stimulus {
        Stimulus::Triggers(generator) => generator.when.longest_gap().max(generator.grace),
        Stimulus::Probe(run) => run.expected,
        Stimulus::Work(work) => Nanos(work.for_ns),
    }
}

impl Session {
    /// Hands over the observations since the last step. `see` takes the follower's events. The function waits for a
    /// moment. If `observe` breaks, the session has ended as if it had been interrupted.
    ///
    /// # Errors
    /// If the channel holds bytes that are no events.
    pub fn step(&mut self, observe: &mut Observer, see: &mut Option<&mut Seer>) -> Result<Step> {
        if self.ending.is_some() {
            return Ok(Step::Ended);
        }
        self.commands.iter_mut().for_each(Pipe::flush);
        // This comes before draining: everything that the machine wrote before it ended is then in the channel.
        if matches!(self.ended, Ok(false)) {
            self.ended = self.running.ended();
        }
        let received = self.collector.drain(self.begun, observe, see)?;
        if received > 0 {
            self.heard = Instant::now();
        }
        self.ending = self.ending_now();
        if self.ending.is_some() {
            return Ok(Step::Ended);
        }
        std::thread::sleep(work::POLL);
        Ok(self
            .collector
            .taken
            .progress()
            .map_or(Step::Begins, |(done, of)| Step::GoesOn { done, of }))
    }

    /// The way in which measuring ends, if it does not go on.
    fn ending_now(&mut self) -> Option<Ending> {
        if self.collector.taken.is_unheard() {
            return Some(Ending::Interrupted);
        }
        if self.collector.taken.is_whole() {
            return Some(if self.asked.is_some() { Ending::Interrupted } else { Ending::Whole });
        }
        match &self.ended {
            Ok(false) => {}
            Ok(true) => return Some(Ending::Died(why_it_ended(&self.running))),
            Err(e) => return Some(Ending::Failed(e.to_string())),
        }
        if self.asked.is_some_and(|asked| asked.elapsed() > END_DEADLINE) {
            return Some(Ending::Interrupted);
        }
        let silent = self.heard.elapsed();
        let is_stalled = silent > self.stall_deadline;
        is_stalled.then(|| Ending::Failed(why_it_stands_still(&self.running, silent)))
    }

    /// Lets the guest get a trigger, or run on, if its triggers are commanded. [`Command::End`] ends any session: a
    /// commanded one after its last answers, a probe with what it has measured, and a schedule at once.
    ///
    /// # Errors
    /// [`Error::Command`] if the command cannot follow the last one, or if this session takes no command but the end.
    pub fn command(&mut self, command: Command) -> Result<()> {
        match (&mut self.commands, command) {
            (Some(pipe), command) => pipe.send(command),
            (None, Command::End) => {
                self.end_early();
                Ok(())
            }
            (None, _) => Err(Error::Command("its triggers are planned, and not commanded".into())),
        }
    }

    /// How far the guest has come by commands to run, counted from the beginning of measuring.
    pub fn reached(&self) -> Nanos {
        self.collector.taken.reached
    }

    fn end_early(&mut self) {
        if self.asked.is_some() || self.ending.is_some() {
            return;
        }
        if self.collector.taken.is_probing() && self.running.ask_probe_to_end().is_ok() {
            self.asked = Some(Instant::now());
        } else {
            self.ending = Some(Ending::Interrupted);
        }
    }

    /// Waits for the guest to report and end. Returns the session's results besides its observations. A session that
    /// has not ended is interrupted.
    ///
    /// # Errors
    /// There are none so far. The errors of ending the guest are part of the outcome.
    pub fn finish(mut self, observe: &mut Observer) -> Result<Outcome> {
        let ending = self.ending.take().unwrap_or(Ending::Interrupted);
        self.collector.taken.finish(observe);
        // A guest with work goes on with it, and is not asked to report.
        let mut guest_ended = match self.works && ending == Ending::Whole {
            true => Ok(()),
            false => wait_for_end(&mut self.running, &ending),
        };
        let (failure, words) = read_words(&self.running.wire());
        if let Some(reason) = failure {
            guest_ended = Err(format!("its init gave up: {reason}"));
        }
        let restored_at = self.printed.len();
        let console = self.printed + &self.running.console();
        Ok(Outcome {
            ending,
            dropped: self.collector.channel.dropped() + words.dropped,
            report: words.report,
            worked: words.worked,
            witness: self.collector.taken.witness,
            context: self.context,
            counters: words.counters,
            faults: console::faults(&console),
            console,
            restored_at,
            guest_ended,
            snapshot: self.snapshot,
            first_answer: self.collector.taken.first_answer,
        })
    }

    /// Measures to the end, or until this thread's work is cancelled.
    pub(crate) fn run(
        &mut self,
        observe: &mut Observer,
        mut see: Option<&mut Seer>,
        progress: &dyn Fn(Progress),
    ) -> Result<()> {
        work::to_the_end(progress, |is_to_end| {
            if is_to_end {
                self.command(Command::End)?;
            }
            self.step(observe, &mut see)
        })
    }
}

/// Waits for the guest to report and end. A guest that does not do so is killed when `running` is dropped.
fn wait_for_end(running: &mut Running, ending: &Ending) -> std::result::Result<(), String> {
    if *ending != Ending::Whole {
        return Err("measuring was not whole".into());
    }
    let begun = Instant::now();
    while begun.elapsed() < END_DEADLINE && !work::is_cancelled() {
        match running.ended() {
            Ok(true) => return Ok(()),
            Ok(false) => std::thread::sleep(work::POLL),
            Err(e) => return Err(e.to_string()),
        }
    }
    Err(format!("it still ran after {} s", begun.elapsed().as_secs()))
}

/// The pipe of commands. The plugin reads it only when virtual time has come to the end of the last command. Commands
/// that do not fit into the pipe are kept here, so that the commanding side never waits.
struct Pipe {
    end: PipeWriter,
    waiting: Vec<u8>,
    last: Option<Nanos>,
}

impl Pipe {
    /// The end that the plugin reads, and our end.
    fn new() -> Result<(PipeReader, Pipe)> {
        let failed = |e: std::io::Error| Error::Qemu(format!("a pipe for its commands: {e}"));
        let (theirs, end) = std::io::pipe().map_err(failed)?;
        let set = rustix::fs::fcntl_setfl(&end, OFlags::NONBLOCK);
        set.map_err(|e| failed(e.into()))?;
        Ok((theirs, Pipe { end, waiting: Vec::new(), last: None }))
    }

    fn send(&mut self, command: Command) -> Result<()> {
        match (command, self.last) {
            // A second command to end changes nothing.
            (Command::End, Some(last)) if last == Command::End.at() => return Ok(()),
            (command, last) => {
                command.check_after(last).map_err(|e| Error::Command(e.to_string()))?;
            }
        }
        self.last = Some(command.at());
        self.waiting.extend(command.encode());
        self.flush();
        Ok(())
    }

    /// Writes as many commands as fit. A machine that is gone reads no more; the next step notices this.
    fn flush(&mut self) {
        while !self.waiting.is_empty() {
            match self.end.write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.waiting.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn who_commands_never_waits_and_all_commands_arrive_in_their_order() {
        let (mut theirs, mut pipe) = Pipe::new().expect("a pipe");
        // This is more than a pipe holds (64 KiB, pipe(7)).
        let all: Vec<Command> = (1..10_000).map(|n| Command::Run { until: Nanos(n) }).collect();
        all.iter().for_each(|command| pipe.send(*command).expect("it rises"));
        let refused = pipe.send(Command::Run { until: Nanos(9_999) }).unwrap_err().to_string();
        assert!(refused.contains("after 9999 ns"), "{refused}");
        let mut bytes = Vec::new();
        let mut some = [0; 4096];
        while bytes.len() < all.len() * wire::COMMAND_BYTES {
            let read = theirs.read(&mut some).expect("more to come");
            bytes.extend(&some[..read]);
            pipe.flush();
        }
        let (read, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        assert_eq!(read.iter().map(Command::decode).collect::<Vec<_>>(), all);
    }

    #[test]
    fn commands_to_a_machine_that_is_gone_are_dropped() {
        let (theirs, mut pipe) = Pipe::new().expect("a pipe");
        drop(theirs);
        pipe.send(Command::End).expect("nobody is to notice");
        pipe.send(Command::End).expect("twice is as once");
        assert!(pipe.waiting.is_empty());
    }
}
