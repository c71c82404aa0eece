// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `rhealstone`: the Rhealstone benchmark (Kar and Porter 1989, Kar 1990), as the 2001 paper uses it (§9.1):
//! SCHED_FIFO, locked memory, each repetition timed by itself.
//!
//! All threads of a component run on one CPU. So a thread of higher priority that becomes ready always preempts one of
//! lower priority. The paper used processes, and these are threads of one process: no address space is switched. A
//! measured length contains at least half a reading of the clock at each end; `overhead_ns` says how long one reading
//! takes. No length is too short for a clock of 1 ns.

mod bench;
mod locks;
mod switch;

use crate::async_handler::{
    PosixQueue, PosixSemaphore, SysvQueue, SysvSemaphore, isolate, made, not_measured,
};
use crate::definition::{Definition, Key, Measure, Sampled, events, times, word};
use crate::plan::Plan;
use crate::priorities::strictly_below;
use crate::recorder::Recorder;
use crate::run::check_count;
use crate::{Output, Report, RunError, failure, ladder, overhead};
use bench::Bench;
use rt::now;
use sample::{Nanos, Responder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use wire::Reading;

/// The number of components. Kar's benchmark is the mean of all six.
const COMPONENTS: usize = 6;

pub(crate) const DEFINITION: Definition = Definition {
    name: "rhealstone",
    about: "The six components of the Rhealstone benchmark",
    keys: &[
        Key::words::<Component>("components", "all", "Which: {}."),
        Key::words::<Interface>(
            "interfaces",
            "both",
            "The interface of the semaphores and queues: {}.",
        ),
        Key::count("Number of repetitions in each series."),
    ],
    examples: [
        "onset measure rhealstone",
        "onset measure rhealstone --component task_switch --count 100000",
    ],
};

/// The probe's part of a plan: one series for each component, and for each interface where both exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rhealstone {
    /// The components. The probe measures one after the other.
    pub components: Vec<Component>,
    /// The standards whose semaphores and queues the probe uses.
    pub interfaces: Vec<Interface>,
    /// The number of repetitions in each series.
    pub count: u64,
}

/// A component of the Rhealstone benchmark (Kar 1989, 1990).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// A switch between two tasks of one priority.
    TaskSwitch,
    /// A switch to a task of higher priority.
    Preemption,
    /// From an interrupt to the first instruction of its handler.
    InterruptLatency,
    /// From asking for a semaphore that a lower task holds to having it, without the lower task's own time.
    SemaphoreShuffle,
    /// Resolving that a high task waits for a resource of a low task, which a middle task keeps from running.
    DeadlockBreaking,
    /// From task to task, by a message of non-zero length.
    MessagePassing,
}

/// The standard of semaphores and queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// System V, as in the 2001 paper.
    Sysv,
    /// POSIX.
    Posix,
}

/// The subject of one series: a component, and the interface if the component has several.
type Part = (Component, Option<Interface>);

fn parts(probe: &Rhealstone) -> impl Iterator<Item = Part> {
    probe.components.iter().flat_map(|component| match component {
        Component::SemaphoreShuffle | Component::MessagePassing => {
            probe.interfaces.iter().map(|i| (*component, Some(*i))).collect()
        }
        _ => vec![(*component, None)],
    })
}

fn name((component, interface): Part) -> String {
    match interface {
        None => word(&component),
        Some(interface) => format!("{}-{}", word(&component), word(&interface)),
    }
}

/// The number of priorities below the highest that the component's threads have.
fn lower_threads(component: Component) -> u8 {
    match component {
        Component::TaskSwitch | Component::InterruptLatency => 0,
        Component::Preemption | Component::SemaphoreShuffle | Component::MessagePassing => 1,
        Component::DeadlockBreaking => 2,
    }
}

impl Measure for Rhealstone {
    /// The names of the series: `task_switch`, `semaphore_shuffle-sysv`, …
    fn series(&self, _plan: &Plan) -> Vec<String> {
        parts(self).map(name).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other(
            "its samples are operations between two tasks, each timed as a whole; take async, which measures one task that wakes another",
        )
    }

    fn duration(&self) -> Nanos {
        times(Nanos::from_micros(50), self.count, self.components.len() * self.interfaces.len())
    }

    fn events(&self) -> u64 {
        events(self.count, self.components.len() * self.interfaces.len())
    }

    fn spins(&self) -> bool {
        true
    }

    /// Starts up to three threads for each component in turn. All series share one output. If a component cannot be
    /// measured here, that becomes a doubt, and the probe measures the others. The counters are `mean_ns_SERIES` and
    /// the combined figures of [`combine`].
    ///
    /// # Errors
    /// A policy without strict priorities, too few priorities below it, or a missing privilege.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        check_count(self.count)?;
        let cpu = *plan.cpus.first().ok_or_else(|| failure::plan("cpus", "none; name one"))?;
        let deepest = self.components.iter().map(|c| lower_threads(*c)).max().unwrap_or(0);
        strictly_below(plan.policy, deepest)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let origin = now();
        for (series, part) in parts(self).enumerate() {
            let mut record = Recorder::new(output, series, origin);
            let mut bench =
                Bench { cpu, highest: plan.policy, count: self.count, record: &mut record, stop };
            let measured = std::thread::scope(|threads| {
                let apart = threads.spawn(|| measure(part, &mut bench));
                apart.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            report.add("page_faults", record.faults());
            match measured {
                Err(RunError::Unavailable { reason, .. }) => {
                    not_measured(&mut report, name(part), reason);
                }
                other => other?,
            }
            if let Some(mean) = record.mean() {
                report.largest(format!("mean_ns_{}", name(part)), mean.0);
            }
        }
        report.counters.extend(figures(self, &report.counters));
        Ok(report)
    }
}

/// The combined figures of all components with means in `counters`, one figure for each interface ([`combine`]).
pub fn figures(probe: &Rhealstone, counters: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mean = |part: Part| {
        let mean = counters.get(&format!("mean_ns_{}", name(part)))?;
        Some((part, Nanos(*mean)))
    };
    let means: Vec<(Part, Nanos)> = parts(probe).filter_map(mean).collect();
    probe.interfaces.iter().filter_map(|interface| combine(&means, *interface)).collect()
}

/// Measures on a thread of its own, because the policy of that thread changes.
fn measure((component, interface): Part, bench: &mut Bench) -> Result<(), RunError> {
    isolate();
    rt::prefault_stack();
    match (component, interface) {
        (Component::TaskSwitch, _) => switch::task_switch(bench),
        (Component::Preemption, _) => switch::preemption(bench),
        (Component::InterruptLatency, _) => interrupt_latency(bench),
        (Component::SemaphoreShuffle, Some(Interface::Sysv)) => {
            locks::semaphore_shuffle(bench, &made(SysvSemaphore::new())?)
        }
        (Component::SemaphoreShuffle, _) => {
            locks::semaphore_shuffle(bench, &made(PosixSemaphore::new())?)
        }
        (Component::DeadlockBreaking, _) => locks::deadlock_breaking(bench),
        (Component::MessagePassing, Some(Interface::Sysv)) => {
            locks::message_passing(bench, &made(SysvQueue::new())?)
        }
        (Component::MessagePassing, _) => locks::message_passing(bench, &made(PosixQueue::new())?),
    }
}

/// Measures from the instant when the driver's timer was due to the first instructions of its handler (the responder
/// `hardirq`). The original begins when the CPU gets the interrupt. A user process cannot see that, nor be the handler.
fn interrupt_latency(bench: &mut Bench) -> Result<(), RunError> {
    ladder::aside()?;
    let hardirq = u16::from(Responder::Hardirq.pin());
    ladder::drain(ladder::period(), bench.count, bench.stop, |reading| match reading {
        Reading::Sample { series, number, at, latency } if series == hardirq => {
            bench.record.sample(number, at, Some(latency));
        }
        Reading::Loss { series, loss, count } if series == hardirq => {
            bench.record.loss(loss, count);
        }
        _ => {}
    })
}

/// Kar's figure in Rhealstones per second: 1 ÷ the mean of the components' mean times in seconds, all with one weight.
/// Only `rhealstones_per_second_INTERFACE` is comparable. If components are missing, the name says how many there are
/// (`…_of_5`), and the doubts say which are missing. `None` if there are no components.
fn combine(means: &[(Part, Nanos)], interface: Interface) -> Option<(String, u64)> {
    let counted: Vec<u64> = means
        .iter()
        .filter(|((_, i), _)| i.is_none_or(|i| i == interface))
        .map(|(_, mean)| mean.0)
        .collect();
    let sum: u64 = counted.iter().sum();
    let value = (counted.len() as u64 * 1_000_000_000).checked_div(sum)?;
    let name = format!("rhealstones_per_second_{}", word(&interface));
    Some(match counted.len() {
        COMPONENTS => (name, value),
        fewer => (format!("{name}_of_{fewer}"), value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Component; COMPONENTS] = [
        Component::TaskSwitch,
        Component::Preemption,
        Component::InterruptLatency,
        Component::SemaphoreShuffle,
        Component::DeadlockBreaking,
        Component::MessagePassing,
    ];

    fn probe(interfaces: &[Interface]) -> Rhealstone {
        Rhealstone { components: ALL.to_vec(), interfaces: interfaces.to_vec(), count: 1 }
    }

    #[test]
    fn only_semaphores_and_messages_have_a_series_for_each_interface() {
        assert_eq!(
            parts(&probe(&[Interface::Sysv, Interface::Posix])).map(name).collect::<Vec<_>>(),
            [
                "task_switch",
                "preemption",
                "interrupt_latency",
                "semaphore_shuffle-sysv",
                "semaphore_shuffle-posix",
                "deadlock_breaking",
                "message_passing-sysv",
                "message_passing-posix",
            ]
        );
    }

    #[test]
    fn the_figure_is_the_inverse_of_the_mean_and_says_when_components_are_missing() {
        // The mean of 1 … 6 µs is 3.5 µs, which makes 285,714 a second.
        let all: Vec<_> = parts(&probe(&[Interface::Posix]))
            .zip(1..)
            .map(|(part, us)| (part, Nanos::from_micros(us)))
            .collect();
        let whole = combine(&all, Interface::Posix);
        assert_eq!(whole, Some(("rhealstones_per_second_posix".into(), 285_714)));
        let five: Vec<_> =
            all.iter().filter(|(p, _)| p.0 != Component::InterruptLatency).copied().collect();
        // Five components with a sum of 18 µs have a mean of 3.6 µs.
        let fewer = combine(&five, Interface::Posix);
        assert_eq!(fewer, Some(("rhealstones_per_second_posix_of_5".into(), 277_777)));
        assert_eq!(combine(&[], Interface::Sysv), None);
    }
}
