// SPDX-License-Identifier: GPL-2.0-or-later
//! A target without a machine: answers at seeded times, and fails as it is told.

use super::{Measured, Target};
use crate::bundle::{Kernel, Machine, Warning};
use crate::experiment::{Cell, Experiment, Instrument};
use crate::failure::Failure;
use ::rig::{Observer, Progress};
use sample::{Clock, Insns, Loss, Nanos, Observation, Sample, SeriesName};
use std::collections::BTreeMap;

/// How the fake behaves.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    /// Raised with every run.
    pub warnings: Vec<Warning>,
    /// Every how many triggers one is lost; 0 for none.
    pub lose_every: u64,
    /// Loads (by name) that fail outright.
    pub failing: Vec<String>,
    /// At which trigger it fails; 0 for never.
    pub failing_at: u64,
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

    fn measure(
        &self,
        experiment: &Experiment,
        cell: Cell,
        observe: &mut Observer,
        progress: &dyn Fn(Progress),
    ) -> Result<Measured, Failure> {
        if self.failing.iter().any(|l| l == cell.load.name()) {
            return Err(Failure::unavailable("told to fail"));
        }
        let Instrument::Generator(generator) = cell.instrument else {
            return Err(Failure::unavailable("the fake has no probes"));
        };
        let count = generator.trigger.schedule.count();
        'measuring: for trigger in 0..count {
            progress(Progress::Measuring(trigger, count));
            if self.failing_at > 0 && trigger == self.failing_at {
                return Err(Failure::unavailable("told to fail"));
            }
            for responder in generator.responders.iter() {
                let series = generator.responders.rank(responder);
                let lost = self.lose_every > 0 && trigger % self.lose_every == 0;
                let observation = if lost {
                    Observation::Loss(series, Loss::Unanswered, 1)
                } else {
                    let noise =
                        (trigger ^ experiment.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
                    let latency = Nanos(300 + 1000 * u64::from(responder.pin()) + noise);
                    let at = Nanos(trigger * 1_000_000);
                    let path = Some(Insns(latency.0));
                    Observation::Sample(Sample { series, trigger, at, latency, path })
                };
                if observe(observation).is_break() {
                    break 'measuring;
                }
            }
        }
        Ok(Measured {
            kernel: Kernel {
                name: cell.flavour.kernel.clone(),
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
            warnings: self.warnings.clone(),
        })
    }
}
