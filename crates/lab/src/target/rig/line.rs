// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures Rhealstone's interrupt response in the rig: the response to the generator's line.
//!
//! The component begins where a device asks for the processor (Kar 1989), and nobody inside a guest sees this. So the
//! rig measures it in a second guest, in which the generator raises the line and the driver's hard handler answers on
//! its pin. The rig puts both into one run. On a machine the driver's own timer stands for the line.

use experiment::{Driver, Generator, Instrument, Trigger};
use probes::plan::{Component, Rhealstone};
use probes::{Plan, Probe, rhealstone_figures};
use sample::{
    Nanos, Observation, Observer, Responder, ResponderSet, Schedule, SeriesId, SeriesName,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The time from trigger to trigger. It is long in comparison with an answer, so that each trigger finds the guest at
/// rest.
const PERIOD: Nanos = Nanos::from_millis(1);
/// With this jitter, triggers come anywhere in a tick.
const JITTER: Nanos = Nanos::from_micros(500);
/// How long the rig waits for an answer to the last trigger.
const GRACE: Nanos = Nanos::from_millis(1_000);

/// The name of the component's series.
pub(super) const INTERRUPT: &str = "interrupt_latency";

/// The part of an instrument that one guest measures.
pub(super) struct Part {
    pub(super) instrument: Instrument,
    /// For each of the part's series, its place in the series of the whole instrument.
    places: Vec<SeriesId>,
}

impl Part {
    fn new(instrument: Instrument, whole: &[SeriesName]) -> Part {
        let place = |name: &SeriesName| {
            let name = if *name == Responder::Hardirq.into() { INTERRUPT } else { name.as_str() };
            let place = whole.iter().position(|other| other.as_str() == name);
            SeriesId(place.expect("a part measures what the whole does") as u16)
        };
        let places = instrument.series().iter().map(place).collect();
        Part { instrument, places }
    }

    /// Passes an observation on as one of the whole instrument. `mean` takes those of the line.
    pub(super) fn hand_over(
        &self,
        observation: Observation,
        mean: &mut Mean,
        observe: &mut Observer,
    ) -> ControlFlow<()> {
        let observation = self.placed(observation);
        if matches!(self.instrument, Instrument::Generator(_)) {
            mean.add(&observation);
        }
        observe(observation)
    }

    /// The observation as one of the whole instrument.
    pub(super) fn placed(&self, observation: Observation) -> Observation {
        let place = |series: SeriesId| self.places[series.index()];
        match observation {
            Observation::Sample(s) => {
                // The path ends at a pin's edge, and a probe's samples have no path.
                Observation::Sample(sample::Sample { series: place(s.series), path: None, ..s })
            }
            Observation::Loss(series, loss, count) => Observation::Loss(place(series), loss, count),
        }
    }
}

/// The parts of `plan`, the probe's own part first. `None` if one guest measures everything. `seed` places the
/// triggers.
pub(super) fn parts(plan: &Plan, seed: u64) -> Option<Vec<Part>> {
    let Probe::Rhealstone(probe) = &plan.probe else { return None };
    let is_line = |c: &&Component| **c == Component::InterruptLatency;
    probe.components.iter().find(is_line)?;
    let whole = Instrument::Probe(plan.clone()).series();
    let others: Vec<Component> = probe.components.iter().filter(|c| !is_line(c)).copied().collect();
    let mut parts = Vec::new();
    if !others.is_empty() {
        let probe = Probe::Rhealstone(Rhealstone { components: others, ..probe.clone() });
        parts.push(Part::new(Instrument::Probe(Plan { probe, ..plan.clone() }), &whole));
    }
    let schedule = Schedule::Periodic {
        phase: PERIOD,
        period: PERIOD,
        jitter: JITTER,
        seed,
        count: probe.count,
    };
    let generator = Generator {
        responders: ResponderSet::from_iter([Responder::Hardirq]),
        // The line is high for half of the shortest distance between two triggers.
        trigger: Trigger {
            schedule,
            high: (PERIOD - JITTER) / 2,
            grace: GRACE,
            disturbances: Vec::new(),
        },
        driver: Driver::default(),
    };
    parts.push(Part::new(Instrument::Generator(generator), &whole));
    Some(parts)
}

/// The sum of the line's answers, for their mean.
#[derive(Default)]
pub(super) struct Mean {
    sum: u128,
    count: u64,
}

impl Mean {
    pub(super) fn add(&mut self, observation: &Observation) {
        if let Observation::Sample(sample) = observation {
            self.sum += u128::from(sample.latency.0);
            self.count += 1;
        }
    }

    /// Enters the mean beside those that the probe counted, and the figures of all means in place of those of fewer.
    pub(super) fn enter(&self, plan: &Plan, counters: &mut BTreeMap<String, u64>) {
        let (Probe::Rhealstone(probe), Some(mean)) =
            (&plan.probe, self.sum.checked_div(self.count.into()))
        else {
            return;
        };
        let mean = u64::try_from(mean).unwrap_or(u64::MAX);
        counters.insert(format!("mean_ns_{INTERRUPT}"), mean);
        counters.retain(|name, _| !name.starts_with("rhealstones_per_second_"));
        counters.extend(rhealstone_figures(probe, counters));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::plan::{Gtod, Interface, ReadClock};
    use rt::Policy;
    use sample::{Loss, Sample};

    fn plan(components: &[Component]) -> Plan {
        let probe = Probe::Rhealstone(Rhealstone {
            components: components.to_vec(),
            interfaces: vec![Interface::Sysv],
            count: 7,
        });
        Plan { probe, policy: Policy::Fifo(90), cpus: vec![0], pm_qos: false, program: None }
    }

    const ALL: [Component; 6] = [
        Component::TaskSwitch,
        Component::Preemption,
        Component::InterruptLatency,
        Component::SemaphoreShuffle,
        Component::DeadlockBreaking,
        Component::MessagePassing,
    ];

    #[test]
    fn the_line_is_measured_by_triggers_and_the_other_components_by_the_probe() {
        let parts = parts(&plan(&ALL), 1).expect("two parts");
        let [own, line] = &parts[..] else { panic!("two parts") };
        let names: Vec<SeriesName> = own.instrument.series();
        assert!(names.len() == 5 && names.iter().all(|n| n.as_str() != INTERRUPT), "{names:?}");
        let Instrument::Generator(generator) = &line.instrument else { panic!("triggers") };
        assert_eq!(generator.trigger.schedule.count(), 7);
        // The series comes after task switch and preemption in the whole, and is 0 in its own guest.
        let loss = Observation::Loss(SeriesId(0), Loss::Unanswered, 1);
        assert_eq!(line.placed(loss), Observation::Loss(SeriesId(2), Loss::Unanswered, 1));
        let sample = |series| {
            let (at, latency) = (Nanos(5), Nanos(9));
            Observation::Sample(Sample {
                series: SeriesId(series),
                trigger: 3,
                at,
                latency,
                path: None,
            })
        };
        assert_eq!(own.placed(sample(2)), sample(3));
    }

    #[test]
    fn what_needs_no_line_is_measured_in_one_guest_and_the_line_alone_too() {
        assert!(parts(&plan(&[Component::Preemption]), 1).is_none());
        assert_eq!(parts(&plan(&[Component::InterruptLatency]), 1).expect("one").len(), 1);
        let gtod = Probe::Gtod(Gtod { clocks: vec![ReadClock::Monotonic], count: 1 });
        assert!(parts(&Plan { probe: gtod, ..plan(&ALL) }, 1).is_none());
    }

    #[test]
    fn the_mean_of_the_line_completes_the_combined_figure() {
        let plan = plan(&ALL);
        let mut mean = Mean::default();
        for latency in [3_000, 5_000] {
            let (at, latency) = (Nanos(0), Nanos(latency));
            let sample = Sample { series: SeriesId(2), trigger: 0, at, latency, path: None };
            mean.add(&Observation::Sample(sample));
        }
        let others = [
            "task_switch",
            "preemption",
            "semaphore_shuffle-sysv",
            "deadlock_breaking",
            "message_passing-sysv",
        ];
        let mut counters: BTreeMap<String, u64> =
            others.iter().map(|n| (format!("mean_ns_{n}"), 1_000)).collect();
        counters.insert("rhealstones_per_second_sysv_of_5".into(), 1_000_000);
        mean.enter(&plan, &mut counters);
        // Five means of 1 µs and one of 4 µs have a mean of 1.5 µs.
        assert_eq!(counters.get("rhealstones_per_second_sysv"), Some(&666_666));
        assert_eq!(counters.get("rhealstones_per_second_sysv_of_5"), None);
        assert_eq!(counters.get("mean_ns_interrupt_latency"), Some(&4_000));
    }
}
