// SPDX-License-Identifier: GPL-2.0-or-later
//! A cell that is measured in a guest, or in one guest after the other.

use super::line::{self, Part};
use super::{Rig, outcome, versions};
use crate::Error;
use crate::costs;
use crate::edges::Seen;
use crate::target::{Lead, Measured, Session, Step, refuse_commands};
use ::rig::{Guest, Stimulus};
use bundle::{Machine, Warning};
use experiment::{Cell, Experiment, Flavour, Instrument, Load};
use probes::{Plan, Probe};
use sample::{Nanos, Observation, Observer, Sample, When};
use std::ops::ControlFlow;
use std::vec::IntoIter;
use wire::Command;
use work::Progress;

/// What one guest measures.
pub(super) struct InGuest<'a> {
    rig: &'a Rig,
    flavour: &'a Flavour,
    load: Load,
    instrument: Instrument,
    guest: Guest,
    session: ::rig::Session,
    aside: Aside,
}

impl<'a> InGuest<'a> {
    /// Restores the cell's guest. `instrument` measures in it.
    pub(super) fn begin(
        rig: &'a Rig,
        experiment: &Experiment,
        Cell { flavour, load, .. }: Cell<'a>,
        instrument: Instrument,
        lead: Lead,
        progress: &dyn Fn(Progress),
    ) -> Result<InGuest<'a>, Error> {
        let cell = Cell { flavour, load, instrument: &instrument };
        let guest = rig.guest(experiment, cell);
        let mut stimulus = rig.stimulus(experiment, cell);
        match &mut stimulus {
            Stimulus::Triggers(generator) if lead == Lead::Commands => {
                generator.when = When::Commanded;
            }
            Stimulus::Triggers(_) => {}
            Stimulus::Probe(_) | Stimulus::Work(_) => refuse_commands(lead)?,
        }
        let aside = Aside {
            pulses: outcome::width(cell).map(|_| Vec::new()),
            judged: experiment.guest.witness.then(Vec::new),
        };
        let snapshot = rig.bench().snapshot(&guest, progress)?;
        progress(Progress::Restoring);
        let session = rig.bench().begin(&guest, &stimulus, &snapshot, None)?;
        Ok(InGuest { rig, flavour, load, guest, session, aside, instrument })
    }

    fn ended(self, observe: &mut Observer) -> Result<Measured, Error> {
        let InGuest { rig, flavour, load, instrument, guest, session, mut aside } = self;
        let ended = session.finish(&mut |observation| aside.take(observation, observe))?;
        let cell = Cell { flavour, load, instrument: &instrument };
        let truth = match (aside, outcome::width(cell)) {
            (Aside { pulses: Some(pulses), .. }, Some(width)) => {
                let Seen { observations, truths } = outcome::seen(cell, width, &pulses, &ended);
                // The observer that breaks says why itself.
                let _ = observations.into_iter().try_for_each(observe);
                Some(truths)
            }
            (Aside { judged, .. }, _) => judged.map(|judged| outcome::truth(cell, &judged, &ended)),
        };
        let counted = match &instrument {
            Instrument::Probe(plan) if matches!(plan.probe, Probe::Cost(_)) => {
                costs::counters(plan, &ended.witness)
            }
            _ => Default::default(),
        };
        let bench = rig.bench();
        let reported = outcome::context(&guest.kernel, &ended);
        Ok(Measured {
            kernel: crate::target::kernel(Some(&flavour.kernel), reported),
            machine: Machine {
                accelerator: "tcg".into(),
                cpu: ::rig::CPU.into(),
                memory_mib: guest.memory_mib,
                icount_shift: Some(guest.shift),
                snapshot: Some(ended.snapshot.clone()),
                contents_blake3: crate::target::contents(&guest),
            },
            versions: Some(versions(bench)),
            dropped: ended.dropped,
            warnings: outcome::doubts(bench.qemu_version(), &ended, flavour, load),
            counters: ended.counters,
            probe_counters: {
                let said = ended.report.map_or_else(Default::default, |r| r.counters);
                said.into_iter().chain(counted).collect()
            },
            truth,
            console: Some(ended.console),
        })
    }
}

/// The parts of a probe's observations that are kept to be compared with what is seen from outside.
struct Aside {
    /// The probe's reports about pulses, which the port knows better.
    pulses: Option<Vec<Observation>>,
    /// The samples that the witness judges.
    judged: Option<Vec<Sample>>,
}

impl Aside {
    fn take(&mut self, observation: Observation, observe: &mut Observer) -> ControlFlow<()> {
        if let Some(pulses) = &mut self.pulses {
            pulses.push(observation);
            return ControlFlow::Continue(());
        }
        if let (Some(judged), Observation::Sample(sample)) = (&mut self.judged, &observation) {
            judged.push(*sample);
        }
        observe(observation)
    }
}

impl Session for InGuest<'_> {
    fn step(&mut self, observe: &mut Observer) -> Result<Step, Error> {
        let InGuest { session, aside, .. } = self;
        let mut take = |observation| aside.take(observation, observe);
        Ok(session.step(&mut take, &mut None)?)
    }

    fn command(&mut self, command: Command) -> Result<(), Error> {
        Ok(self.session.command(command)?)
    }

    fn reached(&self) -> Nanos {
        self.session.reached()
    }

    fn finish(self: Box<Self>, observe: &mut Observer) -> Result<Measured, Error> {
        self.ended(observe)
    }
}

/// What several guests measure for one run, one after the other.
pub(super) struct InGuests<'a> {
    rig: &'a Rig,
    experiment: &'a Experiment,
    cell: Cell<'a>,
    plan: &'a Plan,
    progress: &'a dyn Fn(Progress),
    current: Option<(Part, InGuest<'a>)>,
    next: IntoIter<Part>,
    /// The results of the guests before.
    whole: Option<Measured>,
    mean: line::Mean,
}

impl<'a> InGuests<'a> {
    pub(super) fn begin(
        rig: &'a Rig,
        experiment: &'a Experiment,
        cell: Cell<'a>,
        (plan, parts): (&'a Plan, Vec<Part>),
        progress: &'a dyn Fn(Progress),
    ) -> Result<InGuests<'a>, Error> {
        let (next, mean) = (parts.into_iter(), line::Mean::default());
        let (current, whole) = (None, None);
        let mut guests =
            InGuests { rig, experiment, cell, plan, progress, current, next, whole, mean };
        guests.begin_next()?;
        Ok(guests)
    }

    /// Restores the guest of the next part. Returns whether there is one.
    fn begin_next(&mut self) -> Result<bool, Error> {
        let Some(part) = self.next.next() else { return Ok(false) };
        let InGuests { rig, experiment, cell, progress, .. } = *self;
        let instrument = part.instrument.clone();
        let guest = InGuest::begin(rig, experiment, cell, instrument, Lead::Plan, progress)?;
        self.current = Some((part, guest));
        Ok(true)
    }

    /// Ends the measuring guest, and joins its results to the rest. Returns whether all of the parts were to be ended.
    fn end_current(&mut self, observe: &mut Observer) -> Result<bool, Error> {
        let Some((part, guest)) = self.current.take() else { return Ok(false) };
        let mean = &mut self.mean;
        let measured =
            guest.ended(&mut |observation| part.hand_over(observation, mean, observe))?;
        let ended = measured.warnings.iter().any(|w| matches!(w, Warning::Interrupted));
        self.whole = Some(match self.whole.take() {
            None => measured,
            Some(before) => before.joined(measured),
        });
        Ok(ended)
    }
}

impl Session for InGuests<'_> {
    fn step(&mut self, observe: &mut Observer) -> Result<Step, Error> {
        let Some((part, guest)) = &mut self.current else { return Ok(Step::Ended) };
        let mean = &mut self.mean;
        let step = guest.step(&mut |observation| part.hand_over(observation, mean, observe))?;
        if step != Step::Ended {
            return Ok(step);
        }
        let goes_on = !self.end_current(observe)? && self.begin_next()?;
        Ok(if goes_on { Step::Begins } else { Step::Ended })
    }

    fn command(&mut self, command: Command) -> Result<(), Error> {
        self.current.as_mut().map_or(Ok(()), |(_, guest)| guest.command(command))
    }

    fn finish(mut self: Box<Self>, observe: &mut Observer) -> Result<Measured, Error> {
        self.end_current(observe)?;
        let mut whole = self.whole.expect("the first part was begun with the session");
        self.mean.enter(self.plan, &mut whole.probe_counters);
        Ok(whole)
    }
}
