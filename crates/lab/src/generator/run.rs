// SPDX-License-Identifier: GPL-2.0-or-later
//! One run of a generator: when its triggers come, what was measured, and when it ends.

use super::Fired;
use super::outbox::Outbox;
use sample::{Loss, Nanos, Observation, Responder, ResponderSet, Schedule};
use wire::generator::{
    Batcher, Ended, Measurement, Report, Setting, Started, Stopped, Ticks, Timing,
};

/// How many triggers are commanded ahead of those that the guest has raised. They are enough for the guest not to wait
/// for this process, and few enough to obey a stop soon.
const AHEAD: u64 = 64;
/// How far the guest may run ahead of the time outside. It is the time that the step of a session and its pipe take.
const LEAD: Nanos = Nanos::from_millis(5);

pub(super) struct Run {
    run: wire::generator::Run,
    schedule: Schedule,
    high: Nanos,
    grace: Nanos,
    measured: ResponderSet,
    /// The instant at which the run begins, since measuring began.
    zero: Nanos,
    /// The time outside at which the run began.
    begun: Nanos,
    /// The number of the run's first trigger in the session.
    first: u64,
    /// The number of the run's triggers that were commanded. Below, the number of those that were raised.
    commanded: u64,
    raised: u64,
    /// The last known instant, since the beginning of the run.
    heard: Ticks,
    batcher: Batcher,
    /// Set when nothing is raised any more: why the run ends, and where the grace ends, since measuring began.
    ends: Option<(Ended, Nanos)>,
}

impl Run {
    pub(super) fn new(
        started: &Started,
        train: &[Nanos],
        all: ResponderSet,
        zero: Nanos,
        first: u64,
        begun: Nanos,
    ) -> Run {
        let of = |setting| started.settings.get(setting);
        let schedule = match started.timing {
            Timing::Periodic => Schedule::Periodic {
                phase: Nanos(of(Setting::Phase)),
                period: Nanos(of(Setting::Period)),
                jitter: Nanos(of(Setting::Jitter)),
                seed: of(Setting::Seed),
                count: of(Setting::Count),
            },
            Timing::Train => Schedule::Explicit(train.to_vec()),
        };
        let asked = ResponderSet::from_mask(of(Setting::Responders) as u8);
        let measured: ResponderSet = all.iter().filter(|r| asked.contains(*r)).collect();
        Run {
            run: started.run,
            schedule,
            high: Nanos(of(Setting::High)),
            grace: Nanos(of(Setting::Grace)),
            measured,
            zero,
            begun,
            first,
            commanded: 0,
            raised: 0,
            heard: Ticks(0),
            batcher: Batcher::new(started.run, measured, of(Setting::Batch) as usize),
            ends: None,
        }
    }

    /// Takes the session's observation of a responder that has accounted for the triggers before `next`. An observation
    /// that belongs to a trigger of an earlier run is ignored.
    pub(super) fn observe(&mut self, observation: &Observation, responder: Responder, next: u64) {
        match *observation {
            Observation::Sample(sample) => {
                let trigger = sample.trigger.checked_sub(self.first);
                let (Some(trigger), Some(at)) = (trigger, sample.at.checked_sub(self.zero)) else {
                    return;
                };
                // It was raised, or nobody could have answered it.
                self.has_raised(sample.trigger + 1);
                self.heard = self.heard.max(Ticks((at + sample.latency).0));
                let (at, latency) = (Ticks(at.0), Ticks(sample.latency.0));
                let measurement = Measurement { trigger, at, responder, latency };
                self.batcher.measured(measurement, self.heard);
            }
            Observation::Loss(_, loss, count) => {
                let ours = match loss {
                    Loss::Superseded | Loss::Tainted => {
                        (next + count).saturating_sub(next.max(self.first))
                    }
                    _ => count,
                };
                self.batcher.lost(responder, loss, ours);
            }
        }
    }

    /// Learns that the session has raised `done` triggers of all runs.
    pub(super) fn has_raised(&mut self, done: u64) {
        let raised = done.saturating_sub(self.first).min(self.commanded);
        while self.raised < raised {
            self.batcher.triggered();
            self.raised += 1;
        }
    }

    /// The next trigger, if its instant has come outside at `now` and the guest is not too far behind.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Fired> {
        if self.ends.is_some() || self.commanded - self.raised >= AHEAD {
            return None;
        }
        let Some(due) = self.schedule.due(self.commanded) else {
            let last = self.commanded.checked_sub(1).and_then(|n| self.schedule.due(n));
            let ended = if self.commanded < self.schedule.count() {
                Ended::ClockEnds
            } else {
                Ended::Complete
            };
            self.ends = Some((ended, self.zero + last.unwrap_or_default() + self.grace));
            return None;
        };
        let at = self.zero.checked_add(due)?;
        if due > self.passed(now) {
            return None;
        }
        self.commanded += 1;
        Some(Fired { at, high: self.high })
    }

    /// How much of the run has passed outside.
    fn passed(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.begun) + LEAD
    }

    /// The instant to which the guest may run, if nothing is to be triggered before.
    pub(super) fn runs_to(&self, now: Nanos) -> Option<Nanos> {
        if self.commanded - self.raised >= AHEAD {
            return None;
        }
        let come = self.zero.checked_add(self.passed(now))?;
        match (self.ends, self.schedule.due(self.commanded)) {
            (Some((_, end)), _) => Some(come.min(end)),
            (None, Some(due)) => Some(come.min((self.zero + due).checked_sub(Nanos(1))?)),
            (None, None) => Some(come),
        }
    }

    /// Learns that the host wants no more. Nothing is raised after the instant `commanded`.
    pub(super) fn stop(&mut self, commanded: Nanos) {
        let end = commanded.max(self.zero) + self.grace;
        self.ends = Some((Ended::Asked, end));
    }

    /// Why the run has ended, if it has: all triggers are accounted for, or the guest has come to the end of the grace.
    pub(super) fn ended(&self, reached: Nanos) -> Option<Ended> {
        let (ended, end) = self.ends?;
        let all = self.raised == self.commanded;
        let accounted = |tally: &wire::generator::Tally| tally.accounted() == Some(self.raised);
        let answered = self.batcher.tallies().iter().all(|(_, tally)| accounted(tally));
        (all && (answered || reached >= end)).then_some(ended)
    }

    pub(super) fn resize(&mut self, size: usize) {
        self.batcher.resize(size);
    }

    /// Sends the batch that is held, where it is full or old.
    pub(super) fn send_due(&mut self, age: Ticks, outbox: &mut Outbox) {
        if self.batcher.held() > 0 && self.batcher.is_due(self.heard, age) {
            self.send_batch(outbox);
        }
    }

    fn send_batch(&mut self, outbox: &mut Outbox) {
        let is_sent = outbox.offer(&Report::Batch(self.batcher.batch(self.heard)));
        if is_sent { self.batcher.sent(self.heard) } else { self.batcher.dropped(self.heard) }
    }

    /// Sends everything that is held, and returns the results. A trigger without an answer is unanswered.
    pub(super) fn conclude(&mut self, ended: Ended, outbox: &mut Outbox) -> Stopped {
        for responder in self.measured.iter() {
            let tally = self.batcher.tallies().get(responder);
            let accounted =
                tally.and_then(wire::generator::Tally::accounted).unwrap_or(self.raised);
            let missing = self.raised.saturating_sub(accounted);
            self.batcher.lost(responder, Loss::Unanswered, missing);
        }
        if self.batcher.held() > 0 {
            self.send_batch(outbox);
        }
        Stopped {
            run: self.run,
            ended,
            triggers: self.raised,
            at: self.heard,
            tallies: *self.batcher.tallies(),
        }
    }
}
