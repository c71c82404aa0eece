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
fn measure(load: Load, probe: &Probe, witness: bool) -> Measured {
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
    let probe = probe.clone();
    let plan = probes::Plan { probe, policy: Policy::Fifo(80), cpus: vec![0], pm_qos: false };
    let plan = serde_json::to_vec(&plan).expect("a plan serialises");
    let stimulus = Stimulus::Probe(ProbeRun { plan, expected: Nanos::from_millis(2_000), witness });
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

/// 1 ms, 500 times.
fn periodic(method: SleepMethod) -> Probe {
    Probe::Periodic(Periodic {
        methods: vec![method],
        periods: vec![Nanos::from_millis(1)],
        count: 500,
        overrun: Overrun::Skip,
        migrate: false,
    })
}

/// The number of the system call of `clock_nanosleep`.
const CLOCK_NANOSLEEP: u8 = 230;
/// That of `sched_yield`, by which init begins each reading of the clock.
const SCHED_YIELD: u8 = 24;

#[test]
fn a_probe_measures_inside_the_guest_and_the_same_plan_gives_the_same_records() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let probe = periodic(SleepMethod::ClockNanosleep);
    for load in [Load::Idle, Load::Mixed] {
        let first = measure(load, &probe, false);
        let samples = first.latencies(SeriesId(0)).len();
        eprintln!("{load}: {samples} {:?} {:?}", &first.observations[..5], first.outcome.report);
        assert!(samples > 450, "{samples}");
        assert!(first.outcome.report.is_some());
        assert_eq!(measure(load, &probe, false).observations, first.observations);
    }
}

#[test]
fn one_saved_guest_serves_every_probe() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let clocks = vec![ReadClock::Monotonic, ReadClock::Tsc];
    let gtod = measure(Load::Idle, &Probe::Gtod(Gtod { clocks, count: 500 }), false);
    assert_eq!(gtod.latencies(SeriesId(0)).len(), 500);
    assert_eq!(gtod.latencies(SeriesId(1)).len(), 500);
    let periodic = measure(Load::Idle, &periodic(SleepMethod::Nanosleep), false);
    assert_eq!(periodic.outcome.snapshot, gtod.outcome.snapshot);
}

#[test]
fn a_witness_changes_nothing_and_agrees_with_the_port_to_the_instruction() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let probe = periodic(SleepMethod::ClockNanosleep);
    let begun = std::time::Instant::now();
    let alone = measure(Load::Idle, &probe, false);
    let t1 = begun.elapsed();
    let seen = measure(Load::Idle, &probe, true);
    eprintln!("{t1:?} {:?}", begun.elapsed() - t1);
    assert_eq!(seen.observations, alone.observations);
    let witness = &seen.outcome.witness;
    eprintln!("{:?} {:?}", seen.outcome.context, witness.clock);
    eprintln!("{:?}", witness.clock_line().map(|l| (l.uncertainty(), l.drift_ppb())));
    // Init enters the first write of each reading right from a system call.
    let yields: Vec<_> = witness.wakes.iter().filter(|w| w.call == SCHED_YIELD).collect();
    for point in &witness.clock {
        let before = yields.iter().find(|w| w.insns.0 + 1 == point.insns.0);
        assert!(
            before.is_some_and(|w| w.woke.ns() + 1 == point.begun.ns()),
            "{point:?} {yields:?}"
        );
    }
    let sleeps: Vec<_> = witness.wakes.iter().filter(|w| w.call == CLOCK_NANOSLEEP).collect();
    eprintln!("{} {:?}", sleeps.len(), &sleeps[..6.min(sleeps.len())]);
    assert!(sleeps.len() >= 500);
    let line = witness.clock_line().expect("a line");
    let lat = seen.latencies(SeriesId(0));
    for (w, l) in sleeps.iter().rev().take(500).rev().zip(&lat).take(10) {
        let due = w.requested.and_then(|r| line.to_virtual(r));
        eprintln!("{:?} {l:?}", due.map(|d| w.woke.ns() as i64 - d.ns() as i64));
    }
}
