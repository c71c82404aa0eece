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
/// How far ahead of where the guest is it is told what to do. A busy guest takes some 0.2 s for so long.
const NEAR: Nanos = Nanos::from_millis(20);
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
        let measured = all.at(started.settings.responders().mask());
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
                        // They were raised, as an answer's trigger was.
                        self.has_raised(next + count);
                        (next + count).saturating_sub(next.max(self.first))
                    }
                    _ => count,
                };
                self.batcher.lost(responder, loss, ours);
            }
        }
    }

    /// Learns how far the session is: the triggers of all runs that it has raised, and the instant that it has reached.
    /// Time goes on also where nobody answers.
    pub(super) fn comes_to(&mut self, done: u64, reached: Nanos) {
        self.has_raised(done);
        let last = self.raised.checked_sub(1).and_then(|n| self.schedule.due(n));
        let now = reached.saturating_sub(self.zero).max(last.unwrap_or_default());
        self.heard = self.heard.max(Ticks(now.0));
    }

    /// Learns that the session has raised `done` triggers of all runs.
    fn has_raised(&mut self, done: u64) {
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
            let end = self.zero.saturating_add(last.unwrap_or_default());
            self.ends = Some((ended, end.saturating_add(self.grace)));
            return None;
        };
        let Some(at) = self.zero.checked_add(due) else {
            self.ends = Some((Ended::ClockEnds, self.zero));
            return None;
        };
        let is_near = self.commanded == self.raised || due <= self.near();
        if due > self.passed(now) || !is_near {
            return None;
        }
        self.commanded += 1;
        Some(Fired { at, high: self.high })
    }

    /// Up to where the session is told what to do, so that it obeys a stop soon.
    fn near(&self) -> Nanos {
        Nanos(self.heard.0).saturating_add(NEAR)
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
        let come = self.zero.checked_add(self.passed(now).min(self.near()))?;
        match (self.ends, self.schedule.due(self.commanded)) {
            (Some((_, end)), _) => Some(come.min(end)),
            (None, Some(due)) => Some(come.min(self.zero.checked_add(due)?.checked_sub(Nanos(1))?)),
            (None, None) => Some(come),
        }
    }

    /// Learns that the host wants no more. Nothing is raised after the instant `commanded`.
    pub(super) fn stop(&mut self, commanded: Nanos) {
        let end = commanded.max(self.zero).saturating_add(self.grace);
        self.ends = self.ends.or(Some((Ended::Asked, end)));
    }

    /// Why the run has ended, if it has: all triggers are accounted for, or the guest has come to the end of the grace.
    pub(super) fn ended(&self, reached: Nanos) -> Option<Ended> {
        let (ended, end) = self.ends?;
        let all = self.raised == self.commanded;
        let accounted = |tally: &wire::generator::Tally| tally.accounted() == Some(self.raised);
        let answered = self.batcher.tallies().iter().all(|(_, tally)| accounted(tally));
        (all && (answered || reached >= end)).then_some(ended)
    }

    /// A batch has so many measurements from now on. What is held beyond that is sent first.
    pub(super) fn resize(&mut self, size: usize, age: Ticks, outbox: &mut Outbox) {
        if self.batcher.held() > size {
            self.send_batch(outbox);
        }
        self.batcher.resize(size);
        self.send_due(age, outbox);
    }

    /// Sends the batch that is held, where it is full or old. One without measurements says that the run goes on.
    pub(super) fn send_due(&mut self, age: Ticks, outbox: &mut Outbox) {
        if self.batcher.is_due(self.heard, age) {
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
