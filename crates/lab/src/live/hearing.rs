// SPDX-License-Identifier: GPL-2.0-or-later
//! What the generator says, and what a conversation makes of it.

use super::run::{self, Base, Measuring};
use super::{Answer, Begun, Live};
use wire::generator::{Kind, Report, Run, Settings};

/// So often the generator may say that a run does not go on, and not how it ended.
const VAIN_MAX: u32 = 10;

impl Live {
    /// Takes what the generator says; `answers` where it has the number of the last command.
    pub(super) fn take(&mut self, report: Report<'_>, answers: bool) -> Result<(), String> {
        match report {
            Report::Identity(identity) if answers => {
                if self.identity.replace(identity).is_none() {
                    self.channels = run::channels(&identity);
                }
                match (&self.run, identity.running) {
                    // Of a run that somebody else has started, or whose start was answered in vain, all that went
                    // before is lost here.
                    (None, Some(number)) => self.begins(number, identity.settings),
                    (Some(run), running) if running != Some(run.number) => {
                        self.vain += 1;
                        if self.vain > VAIN_MAX {
                            return Err("it does not say how the run ended".into());
                        }
                    }
                    _ => {}
                }
                self.answer = Some(Answer::Identity);
            }
            Report::Accepted(_) if answers => self.answer = Some(Answer::Accepted),
            Report::Refused(refused) if answers => self.answer = Some(Answer::Refused(refused)),
            Report::Started(started) if answers => {
                self.identity.as_ref().ok_or("it starts before it says who it is")?;
                self.begins(started.run, started.settings);
                self.answer = Some(Answer::Started);
            }
            Report::SelfTest(test) if answers => self.answer = Some(Answer::Tested(test)),
            Report::Batch(batch) => {
                self.learns_of(batch.run);
                let base = Base { triggers: self.triggers, elapsed: self.elapsed };
                let (Some(run), Some(identity)) = (&mut self.run, &self.identity) else {
                    return Ok(());
                };
                let (channels, observed) = (&mut self.channels, &mut self.observed);
                run.take(&batch, (identity.tick, base, self.forgotten), channels, observed)?;
                run.came(self.came);
            }
            Report::Stopped(stopped) => {
                self.learns_of(stopped.run);
                self.last = Some(stopped.run);
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
                self.ends(&run);
            }
            _ => {}
        }
        Ok(())
    }

    /// A run goes on that is not known yet.
    fn begins(&mut self, number: Run, settings: Settings) {
        let Some(identity) = &self.identity else { return };
        self.run = Some(Measuring::of(number, &settings, identity));
        (self.last, self.stopped, self.vain) = (Some(number), None, 0);
        let (triggers, elapsed) = (self.triggers, self.elapsed);
        self.runs.push(Begun { triggers, elapsed, settings, drift: None });
    }

    pub(super) fn ends(&mut self, run: &Measuring) {
        self.runs.iter_mut().last().into_iter().for_each(|begun| begun.drift = run.drift());
    }

    /// The generator speaks of a run. Where that is the next one, and a start was asked for, it has started: the answer
    /// was damaged.
    fn learns_of(&mut self, run: Run) {
        let next = self.last.map_or(1, |last| last.0.get().saturating_add(1));
        if !self.starting || self.run.is_some() || run.0.get() != next {
            return;
        }
        self.begins(run, *self.settings());
        if self.awaited == Some(Kind::STARTED) {
            self.answer = Some(Answer::Started);
        }
    }
}
