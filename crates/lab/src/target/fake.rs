// SPDX-License-Identifier: GPL-2.0-or-later
//! A target without a machine. It answers at seeded times, and fails as it is told.

use super::{Command, Lead, Measured, Parts, Session, Step, Target};
use crate::Error;
use bundle::{Kernel, Machine, Warning};
use experiment::{Cell, Experiment, Instrument};
use sample::{
    Clock, Insns, Loss, Nanos, Observation, Observer, Responder, ResponderSet, Sample, SeriesName,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use wire::WrongCommand;
use work::Progress;

/// The behaviour of the fake.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    /// The warnings that every run raises.
    pub warnings: Vec<Warning>,
    /// One of this many triggers is lost. 0 for none.
    pub lose_every: u64,
    /// The loads (by name) that fail outright.
    pub failing: Vec<String>,
    /// The trigger at which the run fails. 0 for never.
    pub failing_at: u64,
    /// Whether it answers nothing, and tells nothing of that.
    pub silent: bool,
    /// Whether its samples are the same if it measures again.
    pub is_deterministic: bool,
    /// How many triggers it answers together with each that it measures.
    pub supersede: usize,
}

impl Target for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn series(&self, cell: Cell) -> (Vec<SeriesName>, Vec<Warning>) {
        (cell.instrument.series(), Vec::new())
    }

    fn parts(&self, _experiment: &Experiment, _cell: Cell) -> Option<Parts> {
        self.is_deterministic.then(Parts::default)
    }

    fn begin<'a>(
        &'a self,
        experiment: &'a Experiment,
        cell: Cell<'a>,
        lead: Lead,
        _progress: &'a dyn Fn(Progress),
    ) -> Result<Box<dyn Session + 'a>, Error> {
        if self.failing.iter().any(|l| l == cell.load.name()) {
            return Err(Error::Probe("told to fail".into()));
        }
        let Instrument::Generator(generator) = cell.instrument else {
            return Err(Error::Instrument("the fake has no probes".into()));
        };
        let planned = generator.trigger.schedule.count();
        let times = match lead {
            Lead::Plan => (0..planned).map(|n| Nanos(n * 1_000_000)).collect(),
            Lead::Commands => VecDeque::new(),
        };
        Ok(Box::new(Fakes {
            fake: self,
            seed: experiment.seed,
            kernel: &cell.flavour.kernel,
            responders: generator.responders,
            times,
            last: None,
            reached: Nanos(0),
            trigger: 0,
            of: if lead == Lead::Plan { planned } else { u64::MAX },
            ended: false,
        }))
    }
}

/// A session of the fake. It answers a trigger at each step.
struct Fakes<'a> {
    fake: &'a Fake,
    seed: u64,
    kernel: &'a str,
    responders: ResponderSet,
    times: VecDeque<Nanos>,
    last: Option<Nanos>,
    /// How far the guest has come by the commands to run. It gets there when all triggers before are answered.
    reached: Nanos,
    trigger: u64,
    of: u64,
    ended: bool,
}

impl Fakes<'_> {
    fn answer(&self, responder: Responder, at: Nanos) -> Observation {
        let series = self.responders.rank(responder);
        if self.fake.lose_every > 0 && self.trigger.is_multiple_of(self.fake.lose_every) {
            return Observation::Loss(series, Loss::Unanswered, 1);
        }
        let noise = (self.trigger ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let latency = Nanos(300 + 1000 * u64::from(responder.pin()) + noise);
        let (trigger, path) = (self.trigger, Some(Insns(latency.0)));
        Observation::Sample(Sample { series, trigger, at, latency, path })
    }

    fn tell(&self, responder: Responder, at: Nanos, observe: &mut Observer) -> ControlFlow<()> {
        observe(self.answer(responder, at))?;
        let series = self.responders.rank(responder);
        match self.fake.supersede as u64 {
            0 => ControlFlow::Continue(()),
            n => observe(Observation::Loss(series, Loss::Superseded, n)),
        }
    }
}

impl Session for Fakes<'_> {
    fn step(&mut self, observe: &mut Observer) -> Result<Step, Error> {
        self.ended |= self.trigger == self.of;
        if self.ended {
            return Ok(Step::Ended);
        }
        let together = 1 + self.fake.supersede;
        if self.times.len() < together {
            return Ok(Step::GoesOn { done: self.trigger, of: self.of });
        }
        if let Some(at) = self.times.pop_front() {
            if self.fake.failing_at > 0 && self.trigger == self.fake.failing_at {
                return Err(Error::Probe("told to fail".into()));
            }
            let mut responders = self.responders.iter().filter(|_| !self.fake.silent);
            self.ended = responders.any(|r| self.tell(r, at, observe).is_break());
            self.times.drain(..self.fake.supersede);
            self.trigger += together as u64;
        }
        Ok(Step::GoesOn { done: self.trigger, of: self.of })
    }

    fn command(&mut self, command: Command) -> Result<(), Error> {
        let wrong = |e: WrongCommand| Error::Instrument(e.to_string());
        command.check_after(self.last).map_err(wrong)?;
        self.last = Some(command.at());
        match command {
            Command::Trigger { at, .. } => self.times.push_back(at),
            Command::Run { until } => self.reached = until,
            Command::End => self.of = self.trigger + self.times.len() as u64,
        }
        Ok(())
    }

    fn reached(&self) -> Nanos {
        if self.times.is_empty() { self.reached } else { Nanos(0) }
    }

    fn finish(self: Box<Self>, _observe: &mut Observer) -> Result<Measured, Error> {
        Ok(Measured {
            kernel: Kernel {
                name: self.kernel.to_owned(),
                release: "0.0".into(),
                build: "#0".into(),
                command_line: String::new(),
                reported: BTreeMap::new(),
            },
            machine: Machine {
                accelerator: "none".into(),
                cpu: "none".into(),
                memory_mib: 1,
                icount_shift: None,
                snapshot: None,
                contents_blake3: BTreeMap::new(),
            },
            versions: None,
            counters: BTreeMap::new(),
            probe_counters: BTreeMap::new(),
            truth: None,
            dropped: 0,
            console: Some("[    0.000000] fake\n".into()),
            warnings: self.fake.warnings.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const EXPERIMENT: &str = r#"
        title = "test"
        target = "rig"
        flavours = ["a"]
        loads = ["idle"]
        responders = ["hardirq"]
        trigger = { period = "1ms", count = 3 }
    "#;

    #[test]
    fn whoever_leads_a_session_says_when_it_is_triggered_and_when_it_ends() {
        let experiment = Experiment::parse(Path::new("t.toml"), EXPERIMENT).expect("it is sound");
        let cell = experiment.cells().next().expect("a cell");
        let fake = Fake::default();
        let mut session =
            fake.begin(&experiment, cell, Lead::Commands, &|_| ()).expect("it begins");
        let mut times = Vec::new();
        let mut observe = |observation| {
            if let Observation::Sample(sample) = observation {
                times.push(sample.at);
            }
            ControlFlow::Continue(())
        };
        let trigger = |at| Command::Trigger { at: Nanos(at), high: Nanos(1) };
        assert_eq!(session.step(&mut observe).ok(), Some(Step::GoesOn { done: 0, of: u64::MAX }));
        session.command(trigger(7)).expect("the first");
        session.command(trigger(9)).expect("it rises");
        session.command(trigger(9)).expect_err("it does not rise");
        session.command(Command::End).expect("any session ends");
        while session.step(&mut observe).expect("it does not fail") != Step::Ended {}
        session.finish(&mut observe).expect("it has measured");
        assert_eq!(times, [7, 9].map(Nanos));
    }
}
