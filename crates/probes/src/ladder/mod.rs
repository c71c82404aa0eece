// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `ladder`: the driver's responders on a real machine, triggered by the driver's own timer (`driver/README.md`).
//!
//! The driver stamps due times and answers inside the kernel with CLOCK_MONOTONIC. This probe only reads them, from a
//! thread without real-time priority, and provides the thread of the `task` responder.

mod device;
mod tally;
mod task;

pub(crate) use device::period;

use crate::definition::{Definition, Key, Measure, Sampled, events, times};
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::{Doubt, Output, Report, RunError};
use device::Samples;
use rt::{Policy, now};
use sample::{Monotonic, Nanos, Responder, ResponderSet, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally::Triggers;
pub use task::Answering;
use wire::Reading;

/// How long the slowest responder may take after the last trigger. A trigger without an answer by then is unanswered.
const PATIENCE: Duration = Duration::from_millis(200);

pub(crate) const DEFINITION: Definition = Definition {
    name: "ladder",
    about: "How late each responder of the driver answers the driver's own timer",
    keys: &[
        Key::period(
            "Time from one trigger to the next; the driver must be loaded with the same period.",
        ),
        Key::count("Triggers."),
        Key::words::<Responder>(
            "responders",
            "hardirq,threaded_irq,tasklet,bh_work,work,work_highpri,kthread,task",
            "Which: {}. The driver must be loaded with them.",
        ),
    ],
    examples: [
        "onset measure ladder --flavour 6.12-rt",
        "onset measure ladder --period 500us --duration 10s",
    ],
};

/// The probe's part of a plan: one series for each responder of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ladder {
    /// The time from trigger to trigger. It must be the period with which the module was loaded.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// The number of triggers.
    pub count: u64,
    /// Who answers. Runs of before there was a choice have all that there were.
    #[serde(default = "those_of_a_port")]
    pub responders: Vec<Responder>,
}

fn those_of_a_port() -> Vec<Responder> {
    ResponderSet::OF_PORT.iter().collect()
}

impl Ladder {
    /// Who answers.
    pub fn responders(&self) -> ResponderSet {
        self.responders.iter().copied().collect()
    }
}

impl Measure for Ladder {
    /// The responders in the order of the pins. The numbers of the series do not depend on the module that happens to
    /// be loaded where somebody asks for the names.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        self.responders().iter().map(|responder| responder.name().to_string()).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other(
            "the driver times its own answers; take an experiment with [trigger], as in experiments/ladder.toml, whose triggers come from outside",
        )
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, 1)
    }

    fn events(&self) -> u64 {
        events(self.count, self.responders.len())
    }

    /// Starts two threads, which share one output. `at` counts from the instant when the first trigger was due.
    ///
    /// # Errors
    /// If the module is not loaded, has another period, or its devices are in use.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        check_count(self.count)?;
        // This check comes before the task responder's device, because that device's absence would say less.
        device::check(self.period)?;
        let loaded = device::responders().at(self.responders().mask());
        let task = match loaded.contains(Responder::Task) {
            true => Some(Answering::open()?),
            false => None,
        };
        std::thread::scope(|threads| {
            let answering = task.as_ref().map(|task| {
                let policy = plan.policy;
                threads.spawn(move || task.answer(policy, device::cpu()))
            });
            let reader = threads.spawn(|| {
                aside()?;
                collect(self, output, stop)
            });
            let collected = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Some(task) = &task {
                task.end();
            }
            let answered = answering.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            answered.and(collected)
        })
    }
}

/// Moves the calling thread out of the way of the threads that it measures.
pub(crate) fn aside() -> Result<(), RunError> {
    rt::apply(Policy::Other(0))?;
    rt::unpin()?;
    Ok(())
}

fn collect(probe: &Ladder, output: &mut Output, stop: &AtomicBool) -> Result<Report, RunError> {
    let responders = probe.responders();
    let loaded = device::responders();
    let mut origin = None;
    drain(probe.period, probe.count, stop, |reading| {
        let (Reading::Sample { series: pin, .. } | Reading::Loss { series: pin, .. }) = reading;
        let Some(responder) = responders.iter().find(|r| u16::from(r.pin()) == pin) else { return };
        let first = *origin.get_or_insert_with(|| match reading {
            Reading::Sample { number, at, .. } => first_due(at, number, probe.period),
            Reading::Loss { .. } => now(),
        });
        let mut record = Recorder::new(output, responders.rank(responder).index(), first);
        match reading {
            Reading::Sample { number, at, latency, .. } => {
                record.sample(number, at, Some(latency));
            }
            Reading::Loss { loss, count, .. } => record.loss(loss, count),
        }
    })?;
    let mut report = Report::default();
    let absent = responders.iter().filter(|r| !loaded.contains(*r));
    report.doubts.extend(absent.map(|responder| Doubt::NotMeasured {
        series: responder.name().into(),
        reason: "the loaded module does not run this responder; load it with the responder in its parameter responders".into(),
    }));
    Ok(report)
}

/// When trigger 0 was due, computed from any other trigger. Triggers are exactly a period apart.
fn first_due(at: Stamp<Monotonic>, number: u64, period: Nanos) -> Stamp<Monotonic> {
    at.saturating_sub(period.saturating_mul(number))
}

/// Hands on the results of the first `count` triggers, or of all triggers until `stop` was set. Samples are handed on
/// as they come, losses at the end. The series of a reading is the pin, and `at` is on CLOCK_MONOTONIC.
pub(crate) fn drain(
    period: Nanos,
    count: u64,
    stop: &AtomicBool,
    mut each: impl FnMut(Reading),
) -> Result<(), RunError> {
    let mut samples = Samples::open(period)?;
    let mut triggers = Triggers::wanted(count);
    while !triggers.were_all() && !stop.load(Ordering::Relaxed) {
        if !samples.look(|reading| triggers.take(reading, &mut each))? {
            break;
        }
    }
    samples.stop()?;
    std::thread::sleep(PATIENCE);
    while samples.look(|reading| triggers.take(reading, &mut each))? {}
    triggers.finish(each);
    Ok(())
}
