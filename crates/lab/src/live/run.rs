// SPDX-License-Identifier: GPL-2.0-or-later
//! One run of the generator, as the host hears of it.

use super::Channel;
use super::drift::{Drift, Moments};
use sample::{Clock, Loss, Nanos, Observation, Sample, SeriesId};
use wire::generator::{
    self as protocol, Batch, Identity, Receipt, Run, Settings, Stopped, Tick, Ticks,
};

pub(super) const TOO_MANY: &str = "more triggers, or a longer time, than 64 bits hold";

/// A run that goes on.
pub(super) struct Measuring {
    pub(super) receipt: Receipt,
    /// Its number.
    pub(super) number: Run,
    /// How far it is, since its start.
    pub(super) reached: Nanos,
    /// When its batches came; `None` of virtual time.
    moments: Option<Moments>,
}

/// A place in the conversation.
#[derive(Clone, Copy)]
pub(super) struct Base {
    /// Triggers before it.
    pub(super) triggers: u64,
    /// The time that the runs before it took.
    pub(super) elapsed: Nanos,
}

impl Measuring {
    /// A run that has started with these settings.
    pub(super) fn of(number: Run, settings: &Settings, identity: &Identity) -> Measuring {
        let measured = identity.responders().at(settings.responders().mask());
        let is_virtual = identity.clock == protocol::Clock::Virtual;
        let moments = (!is_virtual).then(Moments::new);
        let receipt = Receipt::new(number, measured);
        Measuring { receipt, number, reached: Nanos(0), moments }
    }

    /// The last batch came at this time of this machine.
    pub(super) fn came(&mut self, ours: Nanos) {
        let reached = self.reached;
        self.moments.iter_mut().for_each(|moments| moments.take(reached, ours));
    }

    /// How the generator's clock goes, as far as the run tells.
    pub(super) fn drift(&self) -> Option<Drift> {
        self.moments.as_ref().and_then(Moments::drift)
    }

    /// Takes a batch: its latencies go to the channels and to `observed`. The run began at `base`. The channels have
    /// the latencies since `forgotten`, with times since then.
    pub(super) fn take(
        &mut self,
        batch: &Batch<'_>,
        (tick, base, forgotten): (Tick, Base, Base),
        channels: &mut [Channel],
        observed: &mut Vec<Observation>,
    ) -> Result<(), String> {
        self.receipt.take(batch).map_err(|e| e.to_string())?;
        self.reached = nanos(tick, batch.at)?;
        for measurement in batch.measurements.iter() {
            let index = channels.iter().position(|c| c.responder == measurement.responder);
            let index = index.ok_or("a responder that it has not announced")?;
            let sample = Sample {
                series: SeriesId(index as u16),
                trigger: base.triggers.checked_add(measurement.trigger).ok_or(TOO_MANY)?,
                at: base.elapsed.checked_add(nanos(tick, measurement.at)?).ok_or(TOO_MANY)?,
                latency: nanos(tick, measurement.latency)?,
                path: None,
            };
            if let Some(at) = sample.at.checked_sub(forgotten.elapsed)
                && sample.trigger >= forgotten.triggers
            {
                channels[index].series.record(&Sample { at, ..sample });
            }
            observed.push(Observation::Sample(sample));
        }
        self.tell_losses(channels);
        Ok(())
    }

    /// Takes the end of the run, and what was lost of each channel.
    pub(super) fn stop(
        &mut self,
        stopped: &Stopped,
        tick: Tick,
        channels: &mut [Channel],
        observed: &mut Vec<Observation>,
    ) -> Result<(), String> {
        self.receipt.stop(stopped).map_err(|e| e.to_string())?;
        self.reached = nanos(tick, stopped.at)?;
        self.tell_all_lost(channels, observed);
        Ok(())
    }

    /// What was lost of each channel, as far as is known: the run has ended, or nobody hears of it any more.
    pub(super) fn tell_all_lost(&self, channels: &mut [Channel], observed: &mut Vec<Observation>) {
        self.tell_losses(channels);
        for (index, channel) in channels.iter_mut().enumerate() {
            let Some(losses) = self.receipt.losses(channel.responder) else { continue };
            let lost = Loss::ALL.into_iter().zip(losses.of_all()).filter(|(_, n)| *n > 0);
            let series = SeriesId(index as u16);
            observed.extend(lost.map(|(loss, n)| Observation::Loss(series, loss, n)));
            channel.settled.merge(&losses);
        }
    }

    fn tell_losses(&self, channels: &mut [Channel]) {
        for channel in channels {
            if let Some(losses) = self.receipt.losses(channel.responder) {
                let mut all = channel.settled;
                all.merge(&losses);
                channel.has_lost(&all);
            }
        }
    }
}

/// The channels of a generator, of which nothing is known.
pub(super) fn channels(identity: &Identity) -> Vec<Channel> {
    identity.responders().iter().map(|r| Channel::new(r, clock(identity))).collect()
}

/// The clock by which a generator measures.
pub(super) fn clock(identity: &Identity) -> Clock {
    match identity.clock {
        protocol::Clock::Virtual => Clock::Virtual,
        protocol::Clock::Counter => Clock::Counter,
    }
}

/// Rounded down to whole nanoseconds, as `docs/generator-protocol.md` says.
fn nanos(tick: Tick, ticks: Ticks) -> Result<Nanos, String> {
    let nanos = tick.nanos(ticks).map(|(nanos, _)| nanos);
    nanos.ok_or_else(|| "a time that is longer than 584 years".into())
}
