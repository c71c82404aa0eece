// SPDX-License-Identifier: GPL-2.0-or-later
//! Probes inside the guest.

use agent::Load;
use lab::{Lab, have_kernels};
use onset::installation::Installation;
use probes::plan::{Gtod, Overrun, Periodic, Probe, ReadClock, SleepMethod};
use rig::{Bench, Cache, Contents, Ending, Guest, Outcome, ProbeRun, Stimulus};
use rt::Policy;
use sample::{Nanos, Observation, SeriesId};
use std::ops::ControlFlow;

/// What a run gave.
struct Measured {
    observations: Vec<Observation>,
    outcome: Outcome,
}

impl Measured {
    /// The latencies of a series, in the order of events.
    fn latencies(&self, of: SeriesId) -> Vec<Nanos> {
        let latency = |o: &Observation| match o {
            Observation::Sample(s) if s.series == of => Some(s.latency),
            _ => None,
        };
        self.observations.iter().filter_map(latency).collect()
    }
}

/// Runs a probe in a guest under `load`.
fn measure(load: Load, probe: Probe, expected: Nanos) -> Measured {
    let lab = Lab::new();
    let parts = Installation::find_near(&lab::onset()).expect("built").parts();
    let agent = parts.agent.clone();
    let bench = Bench::new(Cache::at(&lab.cache()).expect("a cache"), parts).expect("a rig");
    let kernel = bench.cache().kernels().and_then(|k| k.get("6.12")).expect("a kernel");
    let guest = Guest {
        kernel,
        parameters: vec!["preempt=none".into()],
        contents: Contents {
            agent,
            load,
            driver: None,
            task: false,
            warm_up_ns: 200_000_000,
            ends_after_ns: None,
            modules: Vec::new(),
            programs: Vec::new(),
            files: Vec::new(),
        },
        memory_mib: 256,
        shift: 0,
    };
    let plan = probes::Plan { probe, policy: Policy::Fifo(80), cpus: vec![0], pm_qos: false };
    let plan = serde_json::to_vec(&plan).expect("a plan serialises");
    let stimulus = Stimulus::Probe(ProbeRun { plan, expected });
    let snapshot = bench.snapshot(&guest, &|_| ()).expect("a snapshot");
    let mut observations = Vec::new();
    let mut observe = |o| {
        observations.push(o);
        ControlFlow::Continue(())
    };
    let outcome =
        bench.measure(&guest, &stimulus, &snapshot, &mut observe, &|_| ()).expect("a run");
    assert_eq!(outcome.ending, Ending::Whole, "{}", outcome.console);
    assert_eq!((&outcome.guest_ended, outcome.dropped), (&Ok(()), 0));
    Measured { observations, outcome }
}

#[test]
fn a_probe_reads_the_clocks_of_the_guest() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let probe =
        Probe::Gtod(Gtod { clocks: vec![ReadClock::Monotonic, ReadClock::Tsc], count: 500 });
    let first = measure(Load::Idle, probe.clone(), Nanos::from_millis(10));
    assert_eq!(first.latencies(SeriesId(0)).len(), 500);
    assert_eq!(first.latencies(SeriesId(1)).len(), 500);
    eprintln!("{:?} {:?}", &first.observations[..5], first.outcome.report);
    let again = measure(Load::Idle, probe, Nanos::from_millis(10));
    assert_eq!(again.observations, first.observations);
}
