// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `ladder`: the driver's responders on a real machine, triggered by the driver's own timer (`driver/README.md`).
//!
//! The driver stamps due times and answers inside the kernel with CLOCK_MONOTONIC. This probe only reads them, from a
//! thread without real-time priority, and provides the thread of the `task` responder.

mod device;
mod tally;
mod task;

pub(crate) use device::period;

use crate::definition::{Definition, Key, Measure, events, times};
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::{Doubt, Output, Report, RunError};
use device::Samples;
use rt::{Policy, now};
use sample::{ALL_RESPONDERS, Monotonic, Nanos, Responder, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally::Triggers;
use task::Answering;
use wire::Reading;

/// What the slowest responder is given after the last trigger; what has not answered then is unanswered.
const PATIENCE: Duration = Duration::from_millis(200);

pub(crate) const DEFINITION: Definition = Definition {
    name: "ladder",
    about: "How late each responder of the driver answers the driver's own timer",
    keys: &[
        Key::period(
            "Time from one trigger to the next; the driver must be loaded with the same period.",
        ),
        Key::count("Triggers."),
    ],
    examples: [
        "onset measure ladder --flavour 6.12-rt",
        "onset measure ladder --period 500us --duration 10s",
    ],
};

/// One series a responder of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ladder {
    /// From trigger to trigger; must be what the module was loaded with.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Triggers.
    pub count: u64,
}

impl Measure for Ladder {
    /// Every responder in the order of the pins, so that the numbers of series do not depend on which module is loaded
    /// where they are asked for.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        ALL_RESPONDERS.iter().map(|responder| responder.name().to_string()).collect()
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, 1)
    }

    fn events(&self) -> u64 {
        events(self.count, ALL_RESPONDERS.len())
    }

    /// Two threads of its own, but one way out. `at` counts from when the first trigger was due.
    ///
    /// # Errors
    /// The module is not loaded, has another period, or its devices are in use.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        check_count(self.count)?;
        // Before the task responder's device, whose absence would say less.
        device::check(self.period)?;
        let responders = device::responders();
        let task = match responders.contains(Responder::Task) {
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

/// Takes the calling thread out of the way of what it measures.
pub(crate) fn aside() -> Result<(), RunError> {
    rt::apply(Policy::Other(0))?;
    rt::unpin()?;
    Ok(())
}

fn collect(probe: &Ladder, output: &mut Output, stop: &AtomicBool) -> Result<Report, RunError> {
    let responders = device::responders();
    let mut origin = None;
    drain(probe.period, probe.count, stop, |reading| {
        let (Reading::Sample { series: pin, .. } | Reading::Loss { series: pin, .. }) = reading;
        if responders.mask() >> pin & 1 == 0 {
            return;
        }
        let first = *origin.get_or_insert_with(|| match reading {
            Reading::Sample { number, at, .. } => first_due(at, number, probe.period),
            Reading::Loss { .. } => now(),
        });
        let mut record = Recorder::new(output, usize::from(pin), first);
        match reading {
            Reading::Sample { number, at, latency, .. } => {
                record.sample(number, at, Some(latency));
            }
            Reading::Loss { loss, count, .. } => record.loss(loss, count),
        }
    })?;
    let mut report = Report::default();
    let absent = ALL_RESPONDERS.into_iter().filter(|r| !responders.contains(*r));
    report.doubts.extend(absent.map(|responder| Doubt::NotMeasured {
        series: responder.name().into(),
        reason: "the loaded module does not run this responder; load it with the responder in its parameter responders".into(),
    }));
    Ok(report)
}

/// When trigger 0 was due, by any other one: they are exactly a period apart.
fn first_due(at: Stamp<Monotonic>, number: u64, period: Nanos) -> Stamp<Monotonic> {
    at.saturating_sub(period.saturating_mul(number))
}

/// Hands on what became of the first `count` triggers, or of as many as there were when `stop` was set: samples while
/// they come, losses at the end. The series of a reading is the pin, and `at` is on CLOCK_MONOTONIC.
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
