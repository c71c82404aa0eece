// SPDX-License-Identifier: GPL-2.0-or-later
//! A conversation with a generator from its first run to its end, for whoever shows it: it is recorded if that was
//! asked for, and a run that is to stop has time for its last answers.

use super::{Live, Record, Wanted};
use crate::Error;
use crate::matrix::Issuer;
use bundle::{BundleError, RunId};
use sample::Observation;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::generator::{Ended, Stopped};
use work::Cancel;

/// How long one look at the line waits.
const WAIT: Duration = Duration::from_millis(20);
/// How long a generator that was told to stop may say nothing new.
const END: Duration = Duration::from_secs(10);

/// How long a generator that was told to stop may say something new. It waits for answers for its grace, 100 ms unless
/// somebody set another one, which a busy guest takes ten times as long for. Whoever has asked to end is not kept
/// waiting by a generator that does not obey.
const LAST: Duration = Duration::from_secs(60);

/// A conversation that goes on.
pub struct Talk {
    live: Live,
    record: Option<Record>,
    /// Of a run that is to stop.
    ends: Option<Ends>,
}

/// Since when a run is to stop.
#[derive(Clone, Copy)]
struct Ends {
    /// When its generator was told.
    told: Instant,
    /// When its generator last said something new, or was told.
    heard: Instant,
}

impl Ends {
    /// What a generator is at fault with that has not stopped yet.
    fn fault(self, now: Instant) -> Option<&'static str> {
        if now.duration_since(self.heard) > END {
            Some("the generator was told to stop, and does not say that it has")
        } else if now.duration_since(self.told) > LAST {
            Some("the generator was told to stop, and goes on")
        } else {
            None
        }
    }
}

/// How a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A run goes on.
    Running,
    /// The run was told to stop, and its last answers are awaited.
    Stopping,
    /// The run has ended.
    Ended,
}

/// What is left of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The bundle, if it was recorded.
    pub bundle: Option<PathBuf>,
    /// Why it did not end as it was asked to, if it did not.
    pub failure: Option<String>,
}

impl Talk {
    /// Starts a run with what is wanted. If a run goes on already, joins that, and leaves its settings. Returns what
    /// the user is to know, too. `recorded` has the store and who dates the bundle; a recording has the generator test
    /// itself before and after its runs.
    ///
    /// # Errors
    /// Those of [`Wanted::apply`], [`Live::start`] and [`Record::begin`].
    pub fn begin(
        mut live: Live,
        wanted: &Wanted,
        recorded: Option<(&Path, &dyn Issuer)>,
    ) -> Result<(Talk, Option<String>), Error> {
        let joined = live.is_running();
        let note = match joined {
            true => Some("joined a run that goes on: its settings are fixed, and what came before counts as dropped".into()),
            false => wanted.apply(&mut live)?,
        };
        if recorded.is_some() && !joined {
            live.test()?;
        }
        let begin = |(store, issuer)| Record::begin(&live, store, issuer);
        let record = recorded.map(begin).transpose()?;
        if !joined {
            live.start()?;
        }
        Ok((Talk { live, record, ends: None }, note))
    }

    /// What is known so far.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Forgets the numbers so far ([`Live::reset`]).
    pub fn reset(&mut self) {
        self.live.reset();
    }

    /// Keeps a note of the user ([`Live::mark`]).
    ///
    /// # Errors
    /// Those of [`Live::mark`].
    pub fn mark(&mut self, note: &str) -> Result<(), Error> {
        self.live.mark(note)
    }

    /// The name of the run that is recorded.
    pub fn recorded(&self) -> Option<&RunId> {
        self.record.as_ref().map(Record::run)
    }

    /// Waits for a moment, takes and records what the generator says, and hands it to `each`.
    ///
    /// # Errors
    /// Those of the line and of the disk; [`Error::Generator`] if the generator was told to stop and does not.
    pub fn step(&mut self, each: &mut dyn FnMut(Observation)) -> Result<Standing, Error> {
        let before = self.live.elapsed();
        self.live.listen(WAIT)?;
        for observation in self.live.observed() {
            self.record.as_mut().map_or(Ok(()), |record| record.observe(&observation))?;
            each(observation);
        }
        let Some(ends) = &mut self.ends else {
            let is_running = self.live.is_running();
            return Ok(if is_running { Standing::Running } else { Standing::Ended });
        };
        if !self.live.is_running() {
            return Ok(Standing::Ended);
        }
        // Time still goes on there.
        if self.live.elapsed() > before {
            ends.heard = Instant::now();
        }
        match ends.fault(Instant::now()) {
            Some(why) => Err(Error::Generator(why.into())),
            None => Ok(Standing::Stopping),
        }
    }

    /// Has the run stop; again changes nothing. Also where the user has asked this work to stop: the last answers are
    /// still to come.
    ///
    /// # Errors
    /// Those of the line.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.ends.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        self.ends = Some(Ends { told: now, heard: now });
        Cancel::default().during(|| self.live.stop())
    }

    /// Whether the run was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.ends.is_some()
    }

    /// Has `start` begin the next run, after the last one has ended.
    ///
    /// # Errors
    /// Those of `start`.
    pub fn go_on(
        &mut self,
        start: impl FnOnce(&mut Live) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.ends = None;
        start(&mut self.live)
    }

    /// Ends the conversation, and keeps what was recorded. `failure` says why it was cut off, if it was.
    ///
    /// # Errors
    /// Those of a disk that is full; what was recorded is then kept for the next command.
    pub fn finish(&mut self, failure: Option<String>) -> Result<Left, BundleError> {
        let failure = failure.or_else(|| self.live.stopped().and_then(fault));
        let record = self.record.take();
        // The bundle is worth more than what the generator says of itself.
        if record.is_some() && failure.is_none() && !self.live.is_running() {
            let _ = Cancel::default().during(|| self.live.test());
        }
        let bundle = record.map(|record| record.finish(&mut self.live, failure.clone()));
        Ok(Left { bundle: bundle.transpose()?, failure })
    }
}

/// Why a run did not end as it was asked to; nothing if it did.
fn fault(stopped: &Stopped) -> Option<String> {
    match stopped.ended {
        Ended::Asked | Ended::Complete => None,
        Ended::Fault(number) => Some(format!(
            "the generator ended the run by itself (fault {number}): its guest has ended, or it was switched off"
        )),
        Ended::ClockEnds => {
            Some("the run ended because the generator's clock would have ended".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_that_does_not_stop_is_left_whether_it_is_silent_or_not() {
        let told = Instant::now();
        let fault = |heard: Duration, now: Duration| {
            Ends { told, heard: told + heard }.fault(told + now).unwrap_or("none")
        };
        let moment = Duration::from_millis(1);
        assert_eq!(fault(Duration::ZERO, END), "none");
        assert!(fault(Duration::ZERO, END + moment).ends_with("does not say that it has"));
        assert_eq!(fault(LAST, LAST), "none");
        assert!(fault(LAST, LAST + moment).ends_with("goes on"));
    }
}
